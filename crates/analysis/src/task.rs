//! What tests need to know of a task; only that, so that they can be called on anything.

use shiftwork_model::{CpuSet, Priority, Span, Task};

/// What a test needs to know of a sporadic task. All above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sporadic {
    /// C.
    pub cost: Span,
    /// T, the least separation of releases.
    pub period: Span,
    /// D, relative to the release; shorter or longer than the period.
    pub deadline: Span,
}

impl Sporadic {
    pub(crate) const fn cost_ns(&self) -> u128 {
        self.cost.as_ns() as u128
    }

    pub(crate) const fn period_ns(&self) -> u128 {
        self.period.as_ns() as u128
    }

    pub(crate) const fn deadline_ns(&self) -> u128 {
        self.deadline.as_ns() as u128
    }

    pub(crate) const fn is_possible(&self) -> bool {
        !self.cost.is_zero() && !self.period.is_zero() && !self.deadline.is_zero()
    }
}

impl From<&Task> for Sporadic {
    fn from(task: &Task) -> Self {
        Self {
            cost: task.cost,
            period: task.period,
            deadline: task.deadline,
        }
    }
}

/// A task with its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// The task.
    pub task: Sporadic,
    /// Its fixed priority, 1 the most urgent.
    pub priority: Priority,
}

/// A task with the CPUs it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The task.
    pub task: Sporadic,
    /// Its CPUs.
    pub cpus: CpuSet,
}

/// A task of which a test does not show that it is in time. That does not show that it is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotShown {
    /// Its place among the tasks.
    pub place: usize,
}
