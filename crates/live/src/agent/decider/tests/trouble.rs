//! Late and lost reports: no task runs twice, no job is lost, and decisions become right again.

use std::collections::BTreeSet;

use shiftwork_model::{Instant, RandomStream, Span, TaskSet};
use shiftwork_policy::registry::Entry;
use shiftwork_trace::check::{self, PolicyContract};

use super::sets::{Flavour, HORIZON, random_set};
use super::world::{Habits, Trouble, World};
use super::{policies, seeds};

/// A load so low that all jobs are finished in the end.
const LIGHT: Flavour = Flavour {
    grid_ns: 1,
    has_budgets: false,
    has_changes: false,
    has_triggers: false,
    has_mutexes: false,
    load: 40,
};

/// Under policies that take them.
const MUTEXES: Flavour = Flavour {
    has_mutexes: true,
    ..LIGHT
};

/// Number of jobs of each task; not known in advance for a task that leaves and comes back.
fn jobs_to_do(set: &TaskSet, seed: u64) -> Vec<u64> {
    let count = |id| {
        let mut jobs = crate::work::Jobs::new(set, id, seed, HORIZON);
        let mut count = 0;
        while jobs.next(Instant::ZERO).is_some() {
            count += 1;
        }
        count
    };
    set.iter().map(|(id, _)| count(id)).collect()
}

/// Runs to the end of the last job, and checks that all jobs were done.
fn run_out<'a>(entry: &Entry, set: &'a TaskSet, seed: u64, trouble: Trouble) -> World<'a> {
    let world = World::new(entry, set, seed, Habits::of(seed), BTreeSet::new());
    let mut world = world.with_trouble(trouble);
    world.run_out();
    assert_eq!(world.jobs_done(), jobs_to_do(set, seed), "{}", world.name);
    world
}

/// Maximum delay in ns, different for each seed: from almost none to longer than jobs.
fn delay(seed: u64) -> u64 {
    [1_000, 20_000, 300_000][seed as usize % 3]
}

fn late(seed: u64) -> Trouble {
    Trouble {
        random: RandomStream::new(seed, 13, 0),
        delay_ns_max: delay(seed / 2),
        lost: 0,
        between: (Instant::ZERO, Instant::ZERO),
    }
}

#[test]
fn late_reports_lose_no_jobs() {
    for flavour in [
        LIGHT,
        Flavour {
            has_budgets: true,
            ..LIGHT
        },
        MUTEXES,
    ] {
        for entry in policies() {
            for seed in seeds(12) {
                let set = random_set(entry, seed, flavour);
                if entry.build(&set).is_ok() {
                    run_out(entry, &set, seed, late(seed));
                }
            }
        }
    }
}

/// Changes come from outside at their own instants, independent of the state of the agent.
#[test]
fn changes_with_late_reports_keep_the_machine_consistent() {
    let flavour = Flavour {
        has_budgets: true,
        has_changes: true,
        ..LIGHT
    };
    for entry in policies() {
        for seed in seeds(20) {
            let set = random_set(entry, seed, flavour);
            if entry.build(&set).is_ok() && !super::same::is_any_refused(entry, &set, seed) {
                let habits = Habits::of(seed);
                let world = World::new(entry, &set, seed, habits, BTreeSet::new());
                world.with_trouble(late(seed)).run_out();
            }
        }
    }
}

const LOSING: (Instant, Instant) = (Instant::from_ns(4_000_000), Instant::from_ns(9_000_000));

fn losing(seed: u64, delay_ns_max: u64) -> Trouble {
    Trouble {
        random: RandomStream::new(seed, 14, 0),
        delay_ns_max,
        lost: [30, 200, 900][seed as usize % 3],
        between: LOSING,
    }
}

#[test]
fn lost_reports_lose_no_jobs() {
    let budgets = Flavour {
        has_budgets: true,
        ..LIGHT
    };
    for flavour in [LIGHT, budgets, MUTEXES] {
        for entry in policies() {
            for seed in seeds(12) {
                let set = random_set(entry, seed, flavour);
                if entry.build(&set).is_ok() {
                    run_out(entry, &set, seed, losing(seed, delay(seed / 3)));
                }
            }
        }
    }
}

fn contract(entry: &Entry, set: &TaskSet) -> PolicyContract {
    let policy = entry.build(set).ok();
    PolicyContract::of(&entry.traits, policy.and_then(|policy| policy.packing()))
}

/// The translator takes every event, so what the checkers find is what the decider made of its part.
#[test]
fn invariant_holds_again_after_lost_reports() {
    for entry in policies() {
        let (mut taken, mut synced) = (0, 0);
        for seed in seeds(20) {
            let set = random_set(entry, seed, LIGHT);
            if entry.build(&set).is_err() {
                continue;
            }
            taken += 1;
            let world = run_out(entry, &set, seed, losing(seed, 0));
            let Some(since) = world.synced else { continue };
            synced += 1;
            let found = check::check(&set, contract(entry, &set), HORIZON, &world.records);
            let since = since + Span::from_us(1);
            let found: Vec<String> = found
                .iter()
                .filter(|violation| violation.at > since && violation.at < HORIZON)
                .map(ToString::to_string)
                .collect();
            assert!(found.is_empty(), "{}: {found:#?}", world.name);
        }
        assert!(
            4 * synced >= taken && synced > 0,
            "{}: hardly anything was lost",
            entry.name
        );
    }
}
