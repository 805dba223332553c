//! Every policy of the registry, on random task sets of its domain, on the simulated machine, judged
//! by every checker of `trace`. A new policy takes part as soon as it has its registry line.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
mod random_sets;

use std::collections::BTreeMap;

use shiftwork_model::{Instant, Invariant, Order, TaskSet};
use shiftwork_policy::registry::Entry;
use shiftwork_trace::check;

use common::{Done, cases, simulate};
use random_sets::{SHAPES, random_set};
use shiftwork_cli::catalogue::policies;

/// Long enough for hyperperiods of most sets, short enough for many sets.
const HORIZON: Instant = Instant::from_ns(150_000_000);

/// Everything that is needed to see a failure again.
fn story(entry: &Entry, seed: u64, set: &TaskSet) -> String {
    format!(
        "{} on the task set of seed {seed} (save it and `shiftwork simulate FILE --policy {} --for \
         150ms --seed {seed}`):\n{}",
        entry.name,
        entry.name,
        shiftwork_taskset::write(set)
    )
}

/// The random set of this seed; Linux takes no deadlines after the period.
fn random_set_for(entry: &Entry, seed: u64) -> TaskSet {
    let mut set = random_set(seed);
    if entry.traits.invariant == Invariant::PushPull {
        for task in &mut set.tasks {
            task.deadline = task.deadline.min(task.period);
        }
    }
    set
}

fn judge(set: &TaskSet, done: &Done) -> Vec<check::Violation> {
    check::check(set, done.contract.clone(), done.horizon, &done.records)
}

#[test]
fn every_policy_keeps_what_it_promises_on_random_task_sets() {
    let mut taken = BTreeMap::<&str, u64>::new();
    for seed in 1..=cases(120, 6_000) {
        for entry in policies() {
            let set = random_set_for(entry, seed);
            let Some(done) = simulate(&set, entry, seed, HORIZON) else {
                continue;
            };
            *taken.entry(entry.name).or_default() += 1;
            let violations = judge(&set, &done);
            assert_eq!(violations, [], "{}", story(entry, seed, &set));
        }
    }
    for entry in policies() {
        let count = taken.get(entry.name).copied().unwrap_or(0);
        // One shape in SHAPES is global, and every policy takes those.
        assert!(
            count >= cases(120, 6_000) / SHAPES / 2,
            "{} took only {count} sets",
            entry.name
        );
    }
}

#[test]
fn counters_agree_with_each_other_on_random_task_sets() {
    for seed in 1..=cases(60, 3_000) {
        for entry in policies() {
            let set = random_set_for(entry, seed);
            let Some(done) = simulate(&set, entry, seed, HORIZON) else {
                continue;
            };
            let summary = &done.summary;
            let story = || story(entry, seed, &set);
            assert!(summary.completed <= summary.jobs, "{}", story());
            assert!(summary.deadline_misses <= summary.jobs, "{}", story());
            assert!(
                summary.shifts <= summary.migrations,
                "every shift is a migration: {}",
                story()
            );
            if matches!(entry.traits.invariant, Invariant::NonPreemptive) && set.actions.is_empty()
            {
                assert_eq!(summary.preemptions, 0, "{}", story());
            }
        }
    }
}

/// The suite can fail: it detects a weak scheduler judged as a strong one, and one order judged as
/// the other.
#[test]
fn policy_that_breaks_its_contract_is_detected() {
    let found_out = |entry: &Entry, broken: fn(&mut check::PolicyContract)| {
        (1..=200).any(|seed| {
            let set = random_set_for(entry, seed);
            let Some(mut done) = simulate(&set, entry, seed, HORIZON) else {
                return false;
            };
            broken(&mut done.contract);
            !judge(&set, &done).is_empty()
        })
    };
    for entry in policies() {
        if entry.traits.invariant == Invariant::Weak {
            let strong =
                |contract: &mut check::PolicyContract| contract.invariant = Invariant::Strong;
            assert!(
                found_out(entry, strong),
                "{} is weak, not strong",
                entry.name
            );
        }
        if entry.traits.invariant == Invariant::Quanta {
            let strong =
                |contract: &mut check::PolicyContract| contract.invariant = Invariant::Strong;
            assert!(
                found_out(entry, strong),
                "{} does not decide at once",
                entry.name
            );
            continue;
        }
        if entry.traits.invariant == Invariant::PushPull {
            // Which task waits for which follows from pushes and pulls, and is not judged.
            continue;
        }
        let other_order: fn(&mut check::PolicyContract) = match entry.traits.order {
            Order::Edf => |contract| contract.order = Order::FixedPriority,
            _ => |contract| contract.order = Order::Edf,
        };
        assert!(
            found_out(entry, other_order),
            "{} has another order",
            entry.name
        );
    }
}
