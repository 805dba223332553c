//! Tasks as the core numbers and describes them.

use core::fmt;

use shiftwork_model::{CpuId, Instant, TaskId};

/// Maximum number of tasks.
pub const TASKS_MAX: usize = 1024;

/// The core's number of a task: 1 to [`TASKS_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskNumber(pub(crate) u32);

impl TaskNumber {
    /// The number of this task, one more than its index; `None` beyond [`TASKS_MAX`].
    pub fn of(task: TaskId) -> Option<Self> {
        (task.index() < TASKS_MAX).then(|| Self(task.index() as u32 + 1))
    }

    /// The task.
    pub const fn task(self) -> TaskId {
        TaskId::from_index(self.0 as usize - 1)
    }
}

impl fmt::Debug for TaskNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The scheduling state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// The task has not entered, or has left.
    Absent,
    /// The task has no ready job.
    Blocked,
    /// The job of the task is ready, on a CPU or waiting.
    Ready,
    /// The budget of the task is used up until the next period.
    Throttled,
    /// The server of the task follows releases, and the next release is in the future.
    Unreleased,
}

/// The state of a task in the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// Its scheduling state.
    pub state: TaskState,
    /// The CPU to which it is assigned.
    pub on: Option<CpuId>,
    /// The CPUs that it may use now, one bit each.
    pub mask: u64,
    /// Deadline of its job or of its server's period.
    pub deadline: Instant,
    /// The number of the priority that it is scheduled by.
    pub priority: u32,
    /// Remaining budget in nanoseconds; negative if it is overdrawn.
    pub left_ns: i64,
    /// Whether its thread is runnable, throttled or not.
    pub awake: bool,
    /// Number of times it was throttled.
    pub throttled: u64,
    /// Number of times its budget was replenished.
    pub replenished: u64,
}

/// The server parameters are invalid: the budget must not exceed the relative deadline, the relative
/// deadline not the period, and the period not 36 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerRefused;

impl fmt::Display for ServerRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a budget server needs cost <= deadline <= period")
    }
}

impl core::error::Error for ServerRefused {}
