//! The summary of a run in numbers.

use serde_json::{Value, json};
use shiftwork_model::{Instant, Span};

use crate::chains::ChainSummary;
use crate::inversions::{InversionCounts, InversionSummary};
use crate::statistics::SpanStatistics;

/// Version of the JSON of [`RunSummary::to_json`]; it changes when a key changes its meaning.
pub const SCHEMA_VERSION: u64 = 1;

/// The summary of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSummary {
    /// The task's name.
    pub name: String,
    /// Jobs released before the horizon.
    pub jobs: u64,
    /// Jobs finished by the horizon.
    pub completed: u64,
    /// Jobs finished late, and unfinished jobs that were due by the horizon.
    pub misses: u64,
    /// Response times of the completed jobs; `None` if there are none.
    pub response: Option<SpanStatistics>,
    /// Largest tardiness of a completed job; `None` if there are none.
    pub tardiness_max_ns: Option<u64>,
    /// Mean tardiness of the completed jobs, to the nearest nanosecond; `None` if there are none.
    pub tardiness_mean_ns: Option<u64>,
    /// Number of times that a running unfinished job was ready but not running after an instant.
    pub preemptions: u64,
    /// Number of times that a job executed on another CPU than before.
    pub migrations: u64,
    /// Number of times that a job ran before and after an instant, on different CPUs.
    pub shifts: u64,
    /// For how long its jobs spun for mutexes; zero if none did.
    pub spinning: Span,
    /// Priority inversions of its jobs; `None` if they were not determined.
    pub inversions: Option<InversionCounts>,
}

/// The summary of a run. The counts are sums over the tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// CPUs of the machine.
    pub cpus: usize,
    /// The run covers the time up to here.
    pub horizon: Instant,
    /// Jobs released before the horizon.
    pub jobs: u64,
    /// Jobs finished by the horizon.
    pub completed: u64,
    /// Jobs finished late, and unfinished jobs that were due by the horizon.
    pub deadline_misses: u64,
    /// Preemptions.
    pub preemptions: u64,
    /// Migrations, shifts included.
    pub migrations: u64,
    /// Shifts.
    pub shifts: u64,
    /// Priority inversions; `None` if they were not determined.
    pub inversions: Option<InversionCounts>,
    /// Each task, in the order of the task set.
    pub tasks: Vec<TaskSummary>,
    /// Each cause-effect chain, in the order of the task set.
    pub chains: Vec<ChainSummary>,
}

impl RunSummary {
    pub(crate) fn of(
        cpus: usize,
        horizon: Instant,
        tasks: Vec<TaskSummary>,
        chains: Vec<ChainSummary>,
    ) -> Self {
        let sum = |of: fn(&TaskSummary) -> u64| tasks.iter().map(of).sum();
        Self {
            cpus,
            horizon,
            jobs: sum(|task| task.jobs),
            completed: sum(|task| task.completed),
            deadline_misses: sum(|task| task.misses),
            preemptions: sum(|task| task.preemptions),
            migrations: sum(|task| task.migrations),
            shifts: sum(|task| task.shifts),
            inversions: None,
            tasks,
            chains,
        }
    }

    /// Whether every requirement on the reaction time or data age of a chain was met.
    pub fn meets_chains(&self) -> bool {
        !self.chains.iter().any(ChainSummary::is_violated)
    }

    /// With the inversions of the same run.
    pub fn with_inversions(mut self, found: &InversionSummary) -> Self {
        self.inversions = Some(found.run);
        for (task, found) in self.tasks.iter_mut().zip(&found.tasks) {
            task.inversions = Some(*found);
        }
        self
    }

    /// The summary under the keys of `simulate --json` and `run --json`. `events` is the number of events that were
    /// passed to the policy.
    pub fn to_json(&self, policy: &str, events: u64) -> Value {
        let mut value = json!({
            "schema_version": SCHEMA_VERSION,
            "policy": policy,
            "cpus": self.cpus,
            "horizon_ns": self.horizon.as_ns(),
            "jobs": self.jobs,
            "completed": self.completed,
            "events": events,
            "deadline_misses": self.deadline_misses,
            "preemptions": self.preemptions,
            "migrations": self.migrations,
            "shifts": self.shifts,
            "tasks": self.tasks.iter().map(TaskSummary::to_json).collect::<Vec<_>>(),
        });
        add(&mut value, self.inversions);
        if !self.chains.is_empty() {
            value["chains"] = self.chains.iter().map(ChainSummary::to_json).collect();
        }
        value
    }
}

impl TaskSummary {
    fn to_json(&self) -> Value {
        let mut value = json!({
            "name": self.name,
            "jobs": self.jobs,
            "completed": self.completed,
            "misses": self.misses,
            "response_ns": self.response.map(|response| json!({
                "min": response.min_ns,
                "mean": response.mean_ns,
                "p99": response.p99_ns,
                "max": response.max_ns,
            })),
            "tardiness_ns": self.tardiness_max_ns.map(|max| json!({
                "max": max,
                "mean": self.tardiness_mean_ns,
            })),
            "preemptions": self.preemptions,
            "migrations": self.migrations,
            "shifts": self.shifts,
        });
        if !self.spinning.is_zero() {
            value["spinning_ns"] = self.spinning.as_ns().into();
        }
        add(&mut value, self.inversions);
        value
    }
}

/// Adds the key, unless inversions were not determined.
fn add(value: &mut Value, inversions: Option<InversionCounts>) {
    if let Some(inversions) = inversions {
        value["inversions"] = inversions.to_json();
    }
}
