//! The nine implementations are those of the slides, and what is derived of the one that they tabulate is what they say.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use shiftwork_analysis::verdicts::Criterion;
use shiftwork_model::Span;
use shiftwork_papers::brandenburg_2009::derived::{Assumption, Contention, Delays, Derived};
use shiftwork_papers::brandenburg_2009::locks::{Hold, Holds, QUEUES, TASKS, counted};
use shiftwork_papers::brandenburg_2009::niagara;
use shiftwork_papers::brandenburg_2009::variants::Variant;

#[test]
fn the_nine_are_built_as_the_slides_say() {
    let built = [
        ("CEm", ["coarse-grained", "event-driven", "global"]),
        ("CQm", ["coarse-grained", "quantum (aligned)", "global"]),
        ("S-CQm", ["coarse-grained", "quantum (staggered)", "global"]),
        ("HEm", ["hierarchical", "event-driven", "global"]),
        ("FEm", ["fine-grained", "event-driven", "global"]),
        ("CE1", ["coarse-grained", "event-driven", "dedicated"]),
        ("CQ1", ["coarse-grained", "quantum (aligned)", "dedicated"]),
        (
            "S-CQ1",
            ["coarse-grained", "quantum (staggered)", "dedicated"],
        ),
        ("FE1", ["fine-grained", "event-driven", "dedicated"]),
    ];
    let all = Variant::all().unwrap();
    let found: Vec<_> = all.iter().map(|one| (one.name, one.words())).collect();
    assert_eq!(found, built);
}

/// So long for every queue and number of tasks, in tenths of a nanosecond.
fn holds() -> Holds {
    let places = (0..QUEUES.len()).flat_map(|place| TASKS.map(|tasks| (place, tasks)));
    let hold = Hold {
        enqueue: 300,
        dequeue: 700,
    };
    places.map(|at| (at, hold)).collect()
}

#[test]
fn what_is_derived_of_cem_is_what_the_slides_say_of_gedf() {
    let variant = Variant::find("CEm").unwrap();
    let derived = Derived::new(niagara().unwrap(), &[variant], &holds(), &[100]).unwrap();
    let assumed = Assumption {
        locking: 100,
        contention: Contention::Simulated,
        delays: Delays::OfGedf,
        ipi: Span::from_us(10),
    };
    let of = |criterion| {
        derived
            .overheads(&variant, criterion, 100, &assumed)
            .unwrap()
    };
    let (worst, average) = (of(Criterion::Hard), of(Criterion::Soft));
    let us = |tenths: u64| Span::from_ns(100 * tenths);
    assert_eq!(
        [worst.schedule.base, worst.release.base],
        [us(812), us(750)]
    );
    assert_eq!(
        [average.schedule.base, average.release.base],
        [us(178), us(158)]
    );
    assert_eq!(worst.ipi.base, Span::from_us(10));
}

#[test]
fn a_lock_for_each_node_keeps_others_waiting_for_a_part_only() {
    let hold = holds()[&(0, 100)];
    let of = |name| counted(&Variant::find(name).unwrap(), hold, 100);
    // 70 ns, and 31 others of 70; or of a seventh of that.
    assert_eq!(of("CEm").dequeue, 70.0 + 31.0 * 70.0);
    assert_eq!(of("FEm").dequeue, 70.0 + 31.0 * 10.0);
}
