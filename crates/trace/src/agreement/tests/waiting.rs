//! When a job is rightly kept waiting.

use shiftwork_model::{Affinity, Happening, NotReadyReason, Span};

use super::{compared, texts};
use crate::agreement::testing::facts;
use crate::agreement::*;
use crate::check::{Invariant, Order};
use crate::testing::{Story, at, cpu, job, set};

fn interrupted(meanwhile: Option<(usize, u64)>) -> [Story; 2] {
    let begin = |start| {
        Story::default()
            .at(0)
            .release(1, 1, 300)
            .release(2, 1, 400)
            .at(start)
            .switch(0, Some((1, 1)))
    };
    let reference = begin(0)
        .at(20)
        .complete(1, 1)
        .release(0, 1, 200)
        .switch(0, Some((0, 1)))
        .at(70)
        .complete(0, 1)
        .switch(0, None);
    let measured = begin(2)
        .at(20)
        .release(0, 1, 200)
        .switch(0, meanwhile)
        .at(70)
        .switch(0, Some((1, 1)))
        .at(72)
        .complete(1, 1)
        .switch(0, None);
    [reference, measured]
}

#[test]
fn a_job_that_just_missed_its_end_may_wait_for_more_urgent_ones() {
    let set = set(1, &[("a", "0"), ("b", "0"), ("c", "0")]);
    let about_b = |meanwhile, order| {
        let [reference, measured] = interrupted(meanwhile);
        let found = compared(&set, order, [&reference, &measured], 90);
        let both = *found.jobs.iter().find(|it| it.job == job(1, 1)).unwrap();
        let late = texts(&found);
        let late = late
            .into_iter()
            .filter(|text| text.contains("of b finished"));
        (both, late.collect::<Vec<_>>())
    };
    for order in [Order::Edf, Order::FixedPriority] {
        let (both, late) = about_b(Some((0, 1)), order);
        assert_eq!(late, [""; 0]);
        assert_eq!(
            (both.difference, both.waited),
            (Span::from_ns(2), Span::from_ns(50))
        );
        assert_eq!(both.preemptions, 1);
        for wrongly in [None, Some((2, 1))] {
            let (both, late) = about_b(wrongly, order);
            assert_eq!(
                (both.difference, both.waited),
                (Span::from_ns(52), Span::ZERO)
            );
            assert_eq!(late.len(), 1, "{wrongly:?}, {order:?}");
        }
    }
}

#[test]
fn the_next_job_of_a_task_that_rightly_waits_waits_rightly_too() {
    let set = set(1, &[("a", "0"), ("b", "0")]);
    let reference = Story::default()
        .at(0)
        .release(1, 1, 300)
        .switch(0, Some((1, 1)))
        .at(20)
        .complete(1, 1)
        .release(1, 2, 320)
        .switch(0, Some((1, 2)))
        .at(22)
        .complete(1, 2)
        .release(0, 1, 200)
        .switch(0, Some((0, 1)))
        .at(70)
        .complete(0, 1)
        .switch(0, None);
    let measured = Story::default()
        .at(0)
        .release(1, 1, 300)
        .at(3)
        .switch(0, Some((1, 1)))
        .at(20)
        .tell(Happening::Released {
            job: job(1, 2),
            deadline: at(320),
        })
        .at(22)
        .release(0, 1, 200)
        .switch(0, Some((0, 1)))
        .at(70)
        .complete(0, 1)
        .switch(0, Some((1, 1)))
        .at(71)
        .complete(1, 1)
        .ready(1, 2, 320)
        .switch(0, Some((1, 2)))
        .at(73)
        .complete(1, 2)
        .switch(0, None);
    let found = compared(&set, Order::Edf, [&reference, &measured], 90);
    assert_eq!(texts(&found), [""; 0]);
    let waited: Vec<u64> = found.jobs.iter().map(|job| job.waited.as_ns()).collect();
    // The second job also waits while the first one executes its last nanosecond.
    assert_eq!(waited, [0, 48, 49]);
}

#[test]
fn under_a_packing_a_job_waits_for_its_own_cpu_only() {
    let bound = |cpus: &str| Affinity::new(cpus.parse().unwrap()).unwrap();
    let packed = Facts {
        invariant: Invariant::Packed,
        packing: Some(["0", "0", "1"].map(bound).into()),
        ..facts(Order::Edf)
    };
    let set = set(2, &[("a", "0-1"), ("b", "0-1"), ("c", "0-1")]);
    let waited = |facts: &Facts, [reference, measured]: &[Story; 2]| {
        let basis = Basis {
            facts,
            reaction: Span::from_ns(1),
            horizon: at(90),
        };
        let found = compare(&set, basis, &reference.records, &measured.records);
        let b = found.jobs.iter().find(|it| it.job == job(1, 1)).unwrap();
        b.waited.as_ns()
    };
    let busy = interrupted(Some((0, 1)));
    assert_eq!(waited(&packed, &busy), 50);
    // With the affinities alone `b` could have run on CPU 1.
    assert_eq!(waited(&facts(Order::Edf), &busy), 0);
    let mut idle = interrupted(None);
    assert_eq!(waited(&packed, &idle), 0);
    // A CPU that goes makes the policy pack again; where to is not known.
    let (at, what) = (at(0), Happening::CpuOffline { cpu: cpu(1) });
    idle[1].records.insert(0, Record { at, what });
    assert_eq!(waited(&packed, &idle), 50);
}

#[test]
fn a_cpu_that_is_away_keeps_a_job_waiting_and_a_spent_budget_does_not() {
    let set = set(1, &[("a", "0"), ("b", "0"), ("c", "0")]);
    for (away, throttled, waited) in [(true, false, 50), (false, true, 0)] {
        let [reference, mut measured] = interrupted(None);
        let from = measured
            .records
            .iter()
            .position(|it| it.at == at(20))
            .unwrap();
        let mut tell = |at_ns, what| {
            let what = Record {
                at: at(at_ns),
                what,
            };
            measured.records.insert(from, what);
        };
        if away {
            tell(20, Happening::BackgroundStarted { cpu: cpu(0) });
            tell(70, Happening::BackgroundEnded { cpu: cpu(0) });
        }
        if throttled {
            let reason = NotReadyReason::Throttled;
            tell(
                20,
                Happening::NotReady {
                    job: job(1, 1),
                    reason,
                },
            );
        }
        let found = compared(&set, Order::Edf, [&reference, &measured], 90);
        let b = found.jobs.iter().find(|it| it.job == job(1, 1)).unwrap();
        assert_eq!(b.waited, Span::from_ns(waited));
    }
}

#[test]
fn a_job_may_end_just_before_the_reference_throttles_it_and_not_long_before() {
    let set = set(1, &[("a", "0"), ("b", "0")]);
    let begin = || {
        Story::default()
            .at(0)
            .release(0, 1, 100)
            .switch(0, Some((0, 1)))
    };
    // Its budget is spent after 10 ns, and it goes on with a new one at 100.
    let throttled = |lacks: u64| {
        begin()
            .at(10)
            .not_ready(0, 1, NotReadyReason::Throttled)
            .switch(0, None)
            .at(100)
            .ready(0, 1, 200)
            .switch(0, Some((0, 1)))
            .at(100 + lacks)
            .complete(0, 1)
            .switch(0, None)
    };
    let ends = |at| begin().at(at).complete(0, 1).switch(0, None);
    let compared = |lacks, end| {
        let found = compared(&set, Order::Edf, [&throttled(lacks), &ends(end)], 200);
        (
            found.holds(),
            found.jobs[0].difference,
            found.jobs[0].waited,
        )
    };
    // Of the 90 ns from 12 to 102 it waits for the new budget up to 100, and then executes.
    assert_eq!(compared(2, 12), (true, Span::from_ns(2), Span::from_ns(88)));
    assert!(!compared(20, 30).0);
}
