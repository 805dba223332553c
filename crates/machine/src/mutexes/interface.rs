//! What mutexes and the machine that has them need of each other.

use shiftwork_model::{Affinity, Instant, Order, Priority, ResourceId, TaskId};

/// By what a job is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Its priority, where these matter.
    pub priority: Priority,
    /// Its deadline, where these matter.
    pub deadline: Instant,
}

impl Rank {
    /// More urgent than any job that may be preempted.
    pub(super) const NON_PREEMPTIVE: Self = Self {
        priority: Priority::NON_PREEMPTIVE,
        deadline: Instant::ZERO,
    };

    /// Less urgent than any job.
    pub(super) const LEAST: Self = Self {
        priority: Priority::LEAST_URGENT,
        deadline: Instant::NEVER,
    };

    /// The more urgent of both in what the order compares; the rest of this one.
    pub(super) fn raised_to(self, other: Self, order: Order) -> Self {
        match order.is_by_priority() {
            true => Self {
                priority: self.priority.min(other.priority),
                ..self
            },
            false => Self {
                deadline: self.deadline.min(other.deadline),
                ..self
            },
        }
    }
}

/// A machine with jobs that lock mutexes: what [`Mutexes`](super::Mutexes) reads of it, and what it has to carry out, in this order.
pub trait MutexMachine {
    /// By what the task's job is scheduled now.
    fn rank(&self, task: TaskId) -> Rank;

    /// The CPUs that the task may use by itself.
    fn own_affinity(&self, task: TaskId) -> &Affinity;

    /// The task's job holds the mutex from now on.
    fn locked(&mut self, task: TaskId, resource: ResourceId);

    /// The task's job holds the mutex no more.
    fn unlocked(&mut self, task: TaskId, resource: ResourceId);

    /// The task's job waits for the mutex, and is not ready meanwhile.
    fn blocked(&mut self, task: TaskId, resource: ResourceId);

    /// The task's job waits for the mutex on its CPU.
    fn spins(&mut self, task: TaskId, resource: ResourceId);

    /// The mutex for which the task's job waits passes to it.
    fn handed_over(&mut self, task: TaskId, handed: Handed);

    /// The task's job becomes ready at this instant, with the ranks of all that happens at it.
    fn becomes_ready(&mut self, task: TaskId);

    /// The task's job is scheduled by this rank from now on.
    fn set_rank(&mut self, task: TaskId, rank: Rank);

    /// The task's job may use these CPUs from now on.
    fn set_affinity(&mut self, task: TaskId, affinity: &Affinity);
}

/// How a job waited to which a mutex passes, and how it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handed {
    /// It spun, and goes on where it is. Otherwise it becomes ready.
    pub spun: bool,
    /// It goes on with what follows its request. Otherwise it requests the mutex again when it runs, since what a non-preemptive
    /// mutex forbids begins when its holder runs.
    pub goes_on: bool,
}

/// What a request led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The job holds the mutex, and goes on.
    Holds,
    /// It waits on its CPU.
    Spins,
    /// It waits, and is not ready.
    Waits,
}
