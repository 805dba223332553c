//! The nine implementations are those of the slides, and what is derived of the one that they tabulate is what they say.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;

use shiftwork_analysis::verdicts::Criterion;
use shiftwork_model::{LinearCost, Span};
use shiftwork_papers::brandenburg_2009::derived::{Assumption, Contention, Delays, Derived};
use shiftwork_papers::brandenburg_2009::findings_page::overhead_file;
use shiftwork_papers::brandenburg_2009::locks::{
    Hold, Holds, QUEUES, TASKS, counted, csv, from_csv,
};
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
    let of = |criterion| derived.overheads(&variant, criterion, &assumed).unwrap();
    let (worst, average) = (of(Criterion::Hard), of(Criterion::Soft));
    let us = |tenths: u64| Span::from_ns(100 * tenths);
    let linear = |base, per_task| LinearCost {
        base: us(base),
        per_task: Span::from_ns(per_task),
    };
    assert_eq!(
        [worst.schedule, worst.release],
        [linear(552, 260), linear(450, 300)]
    );
    assert_eq!(
        [average.schedule, average.release],
        [linear(118, 60), linear(58, 100)]
    );
    assert_eq!(worst.ipi.base, Span::from_us(10));
}

#[test]
fn the_overhead_file_is_derived_of_the_hold_times_beside_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/papers/brandenburg-2009");
    let read = |name| fs::read_to_string(folder.join(name)).unwrap();
    let holds = from_csv(&read("overheads-locks.csv")).unwrap();
    assert_eq!(csv(&holds), read("overheads-locks.csv"));
    let derived = overhead_file(&holds).unwrap();
    assert!(derived == read("overheads.toml"), "run `make papers`");
}

#[test]
fn malformed_hold_times_are_rejected() {
    let text = csv(&holds());
    assert_eq!(from_csv(&text), Some(holds()));
    for broken in [
        "",
        "queue",
        &text.replace("300", "x"),
        &text.replace(",300", ""),
    ] {
        assert_eq!(from_csv(broken), None, "{broken}");
    }
}

#[test]
fn a_lock_for_each_node_keeps_others_waiting_for_a_part_only() {
    let hold = holds()[&(0, 100)];
    let of = |name| counted(&Variant::find(name).unwrap(), hold, 100);
    // 70 ns, and 31 others of 70; or of a seventh of that.
    assert_eq!(of("CEm").dequeue, 70.0 + 31.0 * 70.0);
    assert_eq!(of("FEm").dequeue, 70.0 + 31.0 * 10.0);
}
