//! The threads under SCHED_DEADLINE as JSON.

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_live::host::DeadlineThread;

use super::SchedDeadline;

/// The key `sched_deadline` of `doctor --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SchedDeadlineOutput {
    /// Whether the kernel refuses what does not fit; null if it does not say.
    admission_control: Option<bool>,
    /// How many threads were looked at.
    threads_looked_at: usize,
    /// How many threads, and processes without visible threads, could not be looked at.
    threads_unreadable: usize,
    /// Those under SCHED_DEADLINE, without the kernel's own for frequencies.
    threads: Vec<ThreadOutput>,
}

/// A thread under SCHED_DEADLINE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct ThreadOutput {
    /// Its number.
    id: i32,
    /// Its name.
    name: String,
    /// Where it may run; null if unknown.
    cpus: Option<String>,
    /// The CPUs of its cpuset; null if unknown.
    cpuset: Option<String>,
    /// What it has reserved of each period; null if unknown.
    runtime_ns: Option<u64>,
    /// Within so long of a period's start; null if unknown.
    deadline_ns: Option<u64>,
    /// The period; null if unknown.
    period_ns: Option<u64>,
}

impl SchedDeadline {
    /// The JSON for programs.
    pub fn output(&self) -> SchedDeadlineOutput {
        let thread = |thread: &DeadlineThread| ThreadOutput {
            id: thread.id,
            name: thread.name.clone(),
            cpus: thread.cpus.map(|cpus| cpus.to_string()),
            cpuset: thread.cpuset.map(|cpus| cpus.to_string()),
            runtime_ns: thread.reservation.map(|it| it.runtime.as_ns()),
            deadline_ns: thread.reservation.map(|it| it.deadline.as_ns()),
            period_ns: thread.reservation.map(|it| it.period.as_ns()),
        };
        SchedDeadlineOutput {
            admission_control: self.limit.map(|limit| limit.runtime.is_some()),
            threads_looked_at: self.found.looked_at,
            threads_unreadable: self.found.unreadable,
            threads: self.found.threads.iter().map(thread).collect(),
        }
    }
}
