//! What several tests need: runs by policy name, and what became of a job.

#![allow(dead_code, reason = "each test uses a part of it")]

use shiftwork_model::{Instant, JobId, Record, RecordKind, TaskSet};
use shiftwork_policy::registry::{self, Entry};
use shiftwork_sim::{Options, Simulation};
use shiftwork_trace::{Counters, RunSummary, check};

/// How much random testing is asked for: a few cases, or with `SHIFTWORK_LONG` many.
pub fn cases(few: u64, many: u64) -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => many,
        None => few,
    }
}

/// A run that is over.
pub struct Done {
    pub records: Vec<Record>,
    pub summary: RunSummary,
    pub horizon: Instant,
    /// By what the checkers judge it.
    pub contract: check::PolicyContract,
}

/// Simulates; `None` if the task set is outside the policy's domain.
pub fn simulate(set: &TaskSet, entry: &Entry, seed: u64, horizon: Instant) -> Option<Done> {
    let policy = entry.build(set).ok()?;
    let contract = check::PolicyContract::of(&entry.traits, policy.packing());
    let options = Options {
        seed,
        horizon,
        overheads: None,
        reserve_server: false,
    };
    let mut recorders = (Vec::new(), Counters::new(set, set.platform.cpus));
    Simulation::new(set, policy, &entry.traits, options).run(&mut recorders);
    let (records, counters) = recorders;
    Some(Done {
        records,
        summary: counters.finish(horizon),
        horizon,
        contract,
    })
}

/// Simulates a task set that the policy must take.
pub fn run(set: &TaskSet, policy: &str, horizon: Instant) -> Done {
    let entry = registry::find(policy).unwrap();
    simulate(set, entry, 1, horizon).unwrap_or_else(|| panic!("{policy} refuses {}", set.name))
}

impl Done {
    /// The job `number` (from 1) of a task.
    fn job(set: &TaskSet, task: &str, number: u64) -> JobId {
        JobId {
            task: set.find(task).unwrap(),
            number,
        }
    }

    /// When a job first ran; `None` if it never did.
    pub fn start(&self, set: &TaskSet, task: &str, number: u64) -> Option<Instant> {
        let job = Self::job(set, task, number);
        self.when(|kind| matches!(kind, RecordKind::Switched { to: Some(to), .. } if *to == job))
    }

    /// When a job finished; `None` if it did not.
    pub fn finish(&self, set: &TaskSet, task: &str, number: u64) -> Option<Instant> {
        let job = Self::job(set, task, number);
        self.when(|kind| matches!(kind, RecordKind::Completed { job: done } if *done == job))
    }

    fn when(&self, is_it: impl Fn(&RecordKind) -> bool) -> Option<Instant> {
        self.records
            .iter()
            .find(|record| is_it(&record.kind))
            .map(|record| record.at)
    }
}
