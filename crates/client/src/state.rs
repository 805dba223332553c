//! What the agent tells of itself, its tasks and its CPUs.

use serde::{Deserialize, Serialize};
use shiftwork_model::{Instant, Span};

use crate::nanoseconds;
use crate::reservation::Reservation;

/// Whether a task has what it asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its reservation holds.
    Admitted,
    /// It asked for CPUs that it was not admitted for, or a CPU went offline; it runs in the
    /// background until it may be admitted again.
    Demoted,
}

/// A thread with a reservation, and how it fared since it was admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its number; another task may have it once this one is gone.
    pub task: u32,
    /// The name that it was admitted by.
    pub name: String,
    /// The process of the thread.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The user whose thread it is.
    pub user: u32,
    /// Its control group, as in `/proc/PID/cgroup`.
    pub cgroup: String,
    /// What it has, or asks for while it is demoted.
    pub reservation: Reservation,
    /// Whether it has it.
    pub state: State,
    /// What is guaranteed, in the words of `shiftwork analyze`.
    pub guarantee: String,
    /// Where it runs now; absent while it does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// How many jobs it had. A job is what a thread does between waking up and blocking.
    pub jobs: u64,
    /// How many of them were late.
    pub misses: u64,
    /// How often a budget was used up.
    pub overruns: u64,
    /// By how much the latest job was late.
    #[serde(with = "nanoseconds::span")]
    pub tardiness_max: Span,
    /// The longest time from waking up to blocking.
    #[serde(with = "nanoseconds::span")]
    pub response_max: Span,
    /// Processor time of all jobs.
    #[serde(with = "nanoseconds::span")]
    pub ran: Span,
}

/// A CPU of the agent's. The numbers are shares of it and must be finite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Its number on this machine.
    pub cpu: u32,
    /// Whether it is there.
    pub online: bool,
    /// The task that runs on it now; absent if none of the agent's does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<u32>,
    /// What managed tasks ran since the status before.
    pub load: f64,
    /// What managed tasks may run.
    pub share: f64,
    /// What is kept for everything else.
    pub reserve: f64,
}

/// Room for tasks that may use the same CPUs. The shares are of one CPU and must be finite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Room {
    /// The CPUs, a list as of `taskset -c`.
    pub cpus: String,
    /// The share that is reserved.
    pub reserved: f64,
    /// The largest share that would still be admitted.
    pub free: f64,
}

/// How everything is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The version of the agent.
    pub version: String,
    /// The policy it schedules by, as `shiftwork policies` names it.
    pub policy: String,
    /// What it guarantees, in the words of `shiftwork analyze`.
    pub guarantee: String,
    /// Its CPUs, by number.
    pub cpus: Vec<Cpu>,
    /// Room, by set of CPUs.
    pub rooms: Vec<Room>,
    /// The tasks, by number.
    pub tasks: Vec<Task>,
    /// Missed deadlines of all tasks that there ever were.
    pub misses: u64,
    /// When the agent began, on the monotonic clock.
    #[serde(with = "nanoseconds::instant")]
    pub since: Instant,
    /// When this was so.
    #[serde(with = "nanoseconds::instant")]
    pub now: Instant,
    /// How many facts about tasks the kernel could not tell, so that counts may be too small.
    pub lost: u64,
}
