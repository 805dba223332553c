//! The status of the daemon, its tasks and its CPUs.

use serde::{Deserialize, Serialize};
use shiftwork_model::{Instant, Span};

use crate::nanoseconds;
use crate::reservation::Reservation;

/// Whether the reservation of a task is in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The reservation is in effect.
    Admitted,
    /// The thread requested CPUs for which it was not admitted, or a CPU went offline. It runs as ordinary work until it
    /// can be admitted again.
    Demoted,
}

/// A thread with a reservation, and its statistics since it was admitted. The load must be finite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its number, which is reused after the task has ended.
    pub task: u32,
    /// Its name.
    pub name: String,
    /// Process ID.
    pub process: u32,
    /// Thread ID.
    pub thread: u32,
    /// User ID of the thread.
    pub user: u32,
    /// Its control group, as in `/proc/PID/cgroup`.
    pub cgroup: String,
    /// Its reservation, which it waits for while it is demoted.
    pub reservation: Reservation,
    /// Whether the reservation is in effect.
    pub state: State,
    /// The guarantee, as `shiftwork analyze` names it.
    pub guarantee: String,
    /// The CPU that it runs on now; absent while it does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Number of completed jobs. A job lasts from waking up to blocking.
    pub jobs: u64,
    /// Number of late jobs.
    pub misses: u64,
    /// Number of exhausted budgets.
    pub overruns: u64,
    /// Maximum tardiness of any job.
    #[serde(with = "nanoseconds::span")]
    pub tardiness_max: Span,
    /// Maximum response time of any job, from waking up to blocking.
    #[serde(with = "nanoseconds::span")]
    pub response_max: Span,
    /// CPU time of all jobs.
    #[serde(with = "nanoseconds::span")]
    pub ran: Span,
    /// CPU time in the last second, as a fraction of a CPU.
    pub load: f64,
}

/// A CPU that the daemon schedules. The shares are fractions of it and must be finite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Its number on this machine.
    pub cpu: u32,
    /// Whether it is online.
    pub online: bool,
    /// The reserved task that runs on it now; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<u32>,
    /// Fraction used by reserved tasks in the last second.
    pub load: f64,
    /// Fraction available to reserved tasks.
    pub share: f64,
    /// Fraction kept for ordinary work.
    pub reserve: f64,
}

/// Capacity of a set of CPUs. The numbers are in CPUs and must be finite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Room {
    /// The CPUs, a list in the format of `taskset -c`.
    pub cpus: String,
    /// Sum of the utilizations reserved within the set.
    pub reserved: f64,
    /// Largest utilization of a further task with this affinity that would be admitted.
    pub free: f64,
}

/// The status of the daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The version of the daemon.
    pub version: String,
    /// The scheduling policy, as `shiftwork policies` names it.
    pub policy: String,
    /// The guarantee of every task, as `shiftwork analyze` names it.
    pub guarantee: String,
    /// Its CPUs, by number.
    pub cpus: Vec<Cpu>,
    /// Capacity, by set of CPUs.
    pub rooms: Vec<Room>,
    /// The tasks that the caller may see, by number: its own, all for root.
    pub tasks: Vec<Task>,
    /// Missed deadlines of these tasks; for root of all since the daemon started, including tasks that have ended.
    pub misses: u64,
    /// When the daemon started, on the monotonic clock.
    #[serde(with = "nanoseconds::instant")]
    pub since: Instant,
    /// When the status was computed, on the monotonic clock.
    #[serde(with = "nanoseconds::instant")]
    pub now: Instant,
    /// Number of scheduling events lost because the ring buffer was full; the statistics lack them.
    pub lost: u64,
    /// What does not work for now, though the daemon goes on: one sentence each.
    pub problems: Vec<String>,
}
