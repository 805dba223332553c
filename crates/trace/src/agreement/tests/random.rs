//! Random runs of a machine that needs time to react.

use shiftwork_model::{RandomStream, Span};

use super::texts;
use crate::agreement::testing::{Fault, facts, random_set, run};
use crate::agreement::*;
use crate::check::Order;
use crate::testing::{at, job, noise, set};

#[test]
fn a_run_agrees_with_itself_to_the_nanosecond() {
    for seed in 1..=40 {
        let mut random = RandomStream::new(seed, 0, 0);
        let set = random_set(&mut random);
        let records = run(&set, Order::Edf, Fault::default(), &mut random, 2_000);
        let basis = Basis {
            facts: &facts(Order::Edf),
            reaction: Span::ZERO,
            horizon: at(2_000),
        };
        let found = compare(&set, basis, &records, &records);
        assert!(found.holds(), "seed {seed}: {:?}", texts(&found));
        let worst = found.worst().map(|job| (job.difference, job.waited));
        assert_eq!(worst, Some((Span::ZERO, Span::ZERO)), "seed {seed}");
        assert!(found.sets_differed.is_zero(), "seed {seed}");
    }
}

#[test]
fn whatever_reacts_in_time_agrees() {
    let (mut differed, mut ties) = (Span::ZERO, 0);
    for seed in 1..=120 {
        let mut random = RandomStream::new(seed, 1, 0);
        let set = random_set(&mut random);
        for order in [Order::Edf, Order::FixedPriority] {
            let reaction = random.below(7);
            let reference = run(&set, order, Fault::default(), &mut random, 3_000);
            let fault = Fault {
                reaction,
                ..Fault::default()
            };
            let measured = run(&set, order, fault, &mut random, 3_000);
            let basis = Basis {
                facts: &facts(order),
                reaction: Span::from_ns(reaction),
                horizon: at(3_000),
            };
            let found = compare(&set, basis, &reference, &measured);
            let step = format!("seed {seed}, {order:?}, reaction {reaction} ns");
            assert!(found.holds(), "{step}: {:?}", texts(&found));
            assert!(found.sets_differed_outside.is_zero(), "{step}");
            differed += found.sets_differed;
            ties += found.near_ties();
        }
    }
    // Otherwise the runs were too much alike to show anything.
    assert!(differed > Span::from_ns(10_000), "{differed}");
    assert!(ties > 3, "{ties}");
}

#[test]
fn a_job_that_executes_longer_than_its_bound_allows_is_found() {
    let mut found_count = 0;
    for seed in 1..=120 {
        let mut random = RandomStream::new(seed, 2, 0);
        let set = random_set(&mut random);
        let reference = run(&set, Order::Edf, Fault::default(), &mut random, 3_000);
        let wrong = job(random.below(set.tasks.len() as u64) as usize, 2);
        let fault = Fault {
            reaction: 2,
            overrun: Some((wrong.task.index(), wrong.number, 120)),
        };
        let measured = run(&set, Order::Edf, fault, &mut random, 3_000);
        let basis = Basis {
            facts: &facts(Order::Edf),
            reaction: Span::from_ns(2),
            horizon: at(3_000),
        };
        let found = compare(&set, basis, &reference, &measured);
        let both = found.jobs.iter().find(|it| it.job == wrong);
        let both = both.filter(|it| it.expected.is_some() && it.found.is_some());
        if both.is_some_and(|it| it.bound < Span::from_ns(120)) {
            let mut executed = found.disagreements.iter().filter(|it| it.job == wrong);
            let more = |it: &Disagreement| matches!(it.what, Finding::Executed { ahead: true, .. });
            assert!(executed.any(more), "seed {seed}: {:?}", texts(&found));
            assert!(!found.sets_differed_outside.is_zero(), "seed {seed}");
            found_count += 1;
        }
    }
    assert!(found_count > 60, "{found_count}");
}

#[test]
fn nonsense_is_found_and_never_panics() {
    for seed in 1..=300 {
        let mut random = RandomStream::new(seed, 3, 0);
        let set = set(4, &[("a", "0"), ("b", "0-1"), ("c", "2-3")]);
        let (one, other) = (noise(&mut random, 5, 9, 400), noise(&mut random, 5, 9, 400));
        for horizon in [Instant::NEVER, at(random.bits() >> random.below(64))] {
            let basis = Basis {
                facts: &facts(Order::FixedPriority),
                reaction: Span::from_ns(random.bits() >> random.below(64)),
                horizon,
            };
            let found = compare(&set, basis, &one, &other);
            assert!(found.disagreements.len() <= VIOLATIONS_MAX, "seed {seed}");
            assert!(!found.holds() || horizon != Instant::NEVER, "seed {seed}");
            assert!(found.to_json()["disagreements"].is_u64(), "seed {seed}");
        }
    }
}
