//! Runs of random task sets under every policy, verified by the checkers, and their determinism.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use common::{AT, NS, contract, options, random_set, simulate};
use shiftwork_model::{Invariant, Preemption, RandomStream, TaskSet};
use shiftwork_policy::registry::{self};
use shiftwork_trace::check;

/// Deadlines up to the period.
fn as_linux_takes_it(set: &mut TaskSet) {
    for task in &mut set.tasks {
        task.deadline = task.deadline.min(task.period);
    }
}

/// Jitter of two tasks of three, of some beyond their period.
fn with_jitter(set: &mut TaskSet, seed: u64) {
    let mut random = RandomStream::new(seed, 8, 0);
    for task in &mut set.tasks {
        if random.below(3) > 0 {
            task.jitter = NS(random.below(2 * task.period.as_ns()));
        }
    }
}

#[test]
fn random_runs_pass_the_checkers_under_every_policy() {
    for entry in registry::POLICIES {
        let mut runs = 0;
        for seed in 1..=150 {
            let mut set = random_set(seed);
            if entry.traits.invariant == Invariant::PushPull {
                as_linux_takes_it(&mut set);
            }
            let is_pfair = matches!(entry.traits.preemption, Preemption::Pfair(_));
            // Every other pair of seeds, as affinities alternate.
            if seed / 2 % 2 == 0 && !is_pfair {
                with_jitter(&mut set, seed);
            }
            if entry.build(&set).is_err() {
                continue;
            }
            runs += 1;
            let horizon = 400;
            let (records, _) = simulate(&set, entry.name, options(horizon));
            let found = check::check(&set, contract(entry, &set), AT(horizon), &records);
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert!(found.is_empty(), "seed {seed}, {}: {found:#?}", entry.name);
        }
        assert!(runs >= 40, "{} took {runs} task sets", entry.name);
    }
}

#[test]
fn records_depend_on_the_seed_only() {
    let mut differ = 0;
    for seed in 1..=20 {
        let set = random_set(seed);
        let once = simulate(&set, "strong-edf", options(2_000));
        assert_eq!(
            once,
            simulate(&set, "strong-edf", options(2_000)),
            "seed {seed}"
        );
        let mut other = options(2_000);
        other.seed = 2;
        differ += usize::from(once != simulate(&set, "strong-edf", other));
    }
    assert!(
        differ >= 15,
        "{differ} of 20 sets have random numbers that matter"
    );
}

#[test]
fn shorter_run_is_a_prefix_of_a_longer_one() {
    for seed in 1..=20 {
        let set = random_set(seed);
        let (short, _) = simulate(&set, "strong-edf", options(150));
        let (long, _) = simulate(&set, "strong-edf", options(900));
        let before = |records: &[shiftwork_model::Record]| {
            records
                .iter()
                .filter(|record| record.at < AT(150))
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(before(&short), before(&long), "seed {seed}");
    }
}
