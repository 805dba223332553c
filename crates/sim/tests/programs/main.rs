//! Programs: jobs that suspend themselves, lock mutexes and trigger other tasks, against their definition, executed one time
//! unit after the other, and against what holds of all of them.
#![allow(clippy::unwrap_used, reason = "to test")]

mod ceilings;
#[path = "../common/mod.rs"]
mod common;
mod definition;
mod locks;
mod queues;
mod random;
mod triggers;

use common::{finishes, options, simulate};
use definition::Definition;
use shiftwork_model::{Phase, Record, RecordKind, Task, TaskSet};

const HORIZON: u64 = 400;

/// Sets of a random test.
fn sets() -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 200_000,
        None => 3_000,
    }
}

/// Instant, task, mutex, and whether it was locked.
fn locks_of(records: &[Record]) -> Vec<(u64, usize, usize, bool)> {
    let line = |record: &Record| match record.kind {
        RecordKind::Locked { job, resource } => Some((job, resource, true)),
        RecordKind::Unlocked { job, resource } => Some((job, resource, false)),
        _ => None,
    };
    let of = |record: &Record| {
        let (job, resource, locked) = line(record)?;
        let at = record.at.as_ns();
        Some((at, job.task.index(), resource.index(), locked))
    };
    records.iter().filter_map(of).collect()
}

/// Instant, source, target, and whether it was lost.
fn triggers_of(records: &[Record]) -> Vec<(u64, usize, usize, bool)> {
    let of = |record: &Record| match record.kind {
        RecordKind::Triggered { by, task, is_lost } => {
            Some((record.at.as_ns(), by.task.index(), task.index(), is_lost))
        }
        _ => None,
    };
    records.iter().filter_map(of).collect()
}

/// Compares a run with the definition; returns its records.
fn compare(seed: u64, set: &TaskSet, policy: &str, by_priority: bool) -> Vec<Record> {
    let (records, _) = simulate(set, policy, options(HORIZON));
    let expected = Definition::new(set, by_priority, &records).run(HORIZON);
    // A completion exactly at the horizon is part of the run, and what is unlocked right before it, and not of the definition.
    let before = |at: &u64| *at < HORIZON;
    let of = |task| {
        finishes(&records, task)
            .into_iter()
            .filter(before)
            .collect()
    };
    let found: Vec<Vec<u64>> = (0..set.tasks.len()).map(of).collect();
    let context = || format!("seed {seed}, {policy}: {set:#?}");
    let mut locks = locks_of(&records);
    locks.retain(|(at, ..)| before(at));
    assert_eq!(locks, expected.locks, "{}", context());
    assert_eq!(triggers_of(&records), expected.triggers, "{}", context());
    assert_eq!(found, expected.finishes, "{}", context());
    records
}

/// Whether a job needs a mutex or a CPU once more after it has executed: at the horizon none is given.
fn needs_more_at_end(task: &Task) -> bool {
    let phases = task.phases().iter().rev();
    let mut after = phases.take_while(|phase| !matches!(phase, Phase::Run(_)));
    after.any(|phase| matches!(phase, Phase::Lock(_) | Phase::Sleep(_)))
}

#[test]
fn run_to_any_horizon_has_the_completions_of_a_longer_run() {
    let mut at_horizon = 0;
    for seed in 0..sets() / 30 {
        for set in [
            random::locking_set(seed, &[], &random::BOUND),
            random::triggering_set(seed, &[]),
        ] {
            let policy = if seed % 2 == 0 { "p-fp" } else { "p-edf" };
            let (long, _) = simulate(&set, policy, options(HORIZON));
            for horizon in (1..HORIZON).step_by(1 + seed as usize % 7) {
                let (short, _) = simulate(&set, policy, options(horizon));
                for task in 0..set.tasks.len() {
                    let end = horizon - u64::from(needs_more_at_end(&set.tasks[task]));
                    let [expected, found] = [&long, &short].map(|records| {
                        let mut all = finishes(records, task);
                        all.retain(|&at| at <= end);
                        all
                    });
                    assert_eq!(
                        found, expected,
                        "seed {seed}, {policy} to {horizon}, task {task}: {set:#?}"
                    );
                    at_horizon += u64::from(found.last() == Some(&horizon));
                }
            }
        }
    }
    assert!(at_horizon > sets() / 10, "{at_horizon}");
}
