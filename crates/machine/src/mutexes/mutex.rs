//! What is known of one mutex, and how it boosts jobs to which it belongs.

use shiftwork_model::{Affinity, Priority, Protocol, Span, TaskId};

/// A mutex.
#[derive(Clone, Debug)]
pub(super) struct Mutex {
    pub(super) protocol: Protocol,
    /// The most urgent priority and the shortest relative deadline of the tasks that use it; `None` if none does.
    pub(super) ceiling: Option<(Priority, Span)>,
    /// With MPCP, the remote ceilings of the tasks to which it is global.
    pub(super) remote_ceilings: Vec<(TaskId, Priority)>,
    /// With DPCP, the CPU on which jobs have it; `None` if all tasks that use it are bound to that.
    pub(super) served_on: Option<Affinity>,
    pub(super) holder: Option<TaskId>,
    /// How many of those that wait are first come, first served.
    pub(super) first_come: usize,
    /// Those that are first come, first served, and then the others in the order of their requests.
    pub(super) waiters: Vec<TaskId>,
}

impl Mutex {
    /// By what the task's job is boosted while the mutex belongs to it, beside a number; `None` if it is not.
    pub(super) fn boost_of(&self, task: TaskId) -> Option<Priority> {
        let mut remote = self.remote_ceilings.iter();
        match self.protocol {
            Protocol::Fmlp => Some(Priority::NON_PREEMPTIVE),
            Protocol::Dpcp(_) => self.served_on.and(self.ceiling).map(|it| it.0),
            _ => Some(remote.find(|(user, _)| *user == task)?.1),
        }
    }

    /// Whether the task's job has the ceiling while the mutex belongs to it.
    pub(super) fn has_ceiling(&self, task: TaskId) -> bool {
        match self.protocol {
            Protocol::Ceiling => true,
            Protocol::Mpcp | Protocol::Dpcp(_) => self.boost_of(task).is_none(),
            _ => false,
        }
    }
}

/// By what boosted jobs of a CPU precede each other, the least first: those with FMLP+, and then those of the most urgent ceilings,
/// remote ones with MPCP; of equals the first number, that of the request with FMLP+ and else that of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Boost {
    pub(super) ceiling: Priority,
    pub(super) number: u64,
}

impl Boost {
    pub(super) const NONE: Self = Self {
        ceiling: Priority::LEAST_URGENT,
        number: u64::MAX,
    };
}
