//! The work of the tasks: threads that compute for the execution times of their jobs, and programs.
//!
//! This module owns [`Workers`], all of these threads and processes. It must never decide when a job may run: the
//! machine behind [`JobBarrier`] does. Start reading at [`Workers`], then `thread.rs`, the loop of a thread.

mod burn;
mod jobs;
mod program;
mod thread;
mod workers;

pub(crate) use jobs::Jobs;
pub(crate) use workers::{Ending, Worker, Workers};

use shiftwork_model::{ResourceId, TaskId};

use crate::sys::word::Word;

/// The release of a job that another task's job triggers: `SW_ON_TRIGGER` of `bpf/shared.h`.
pub const ON_TRIGGER_NS: u64 = u64::MAX - 1;

/// The most tasks that a job may trigger at one instant.
pub(crate) const TRIGGERS: usize = shiftwork_kernel_core::SOURCES_MAX;

/// A task that another one triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The task.
    pub task: TaskId,
    /// The [place](shiftwork_model::Trigger::place) of the one that triggers it.
    pub place: u8,
}

/// What a job does to others at one instant.
#[derive(Clone, Copy, Debug, Default)]
pub struct Effects<'a> {
    /// The mutexes that it unlocks.
    pub unlocks: &'a [ResourceId],
    /// The tasks that it triggers.
    pub triggers: &'a [Target],
}

impl Effects<'_> {
    /// Its triggers alone.
    pub(crate) const fn without_unlocks(self) -> Self {
        Self {
            unlocks: &[],
            ..self
        }
    }
}

/// Where a thread waits between its jobs.
///
/// The machine behind it decides when a job may run; no thread polls a clock.
pub trait JobBarrier: Send + Sync {
    /// The calling thread has had no job yet, and the task's first job is released at `release_ns` of
    /// the monotonic clock. Returns when that job runs, or when the run is over; at once where the
    /// machine holds the thread back by other means.
    fn first_job(&self, _task: TaskId, _release_ns: u64) {}

    /// The calling thread's job is finished, with these effects, and the task's next is released at `release_ns` of the
    /// monotonic clock, or with [`ON_TRIGGER_NS`] by a trigger. Returns when that job runs, or when the run is over.
    fn next_job(&self, task: TaskId, release_ns: u64, effects: Effects<'_>);

    /// The calling thread's job is finished, with these effects, and the task releases no more. Returns at once or when the
    /// run is over; the thread ends then.
    fn last_job(&self, task: TaskId, effects: Effects<'_>);

    /// The calling thread's job has these effects and goes on. If it unlocks mutexes, returns when it runs after what followed
    /// from that was decided.
    fn affect(&self, task: TaskId, effects: Effects<'_>);

    /// The calling thread's job locks the mutex. Returns when it runs with it, or when the run is over.
    fn lock(&self, task: TaskId, mutex: ResourceId);

    /// The calling thread suspends its job until this instant of the monotonic clock. Returns then or later,
    /// when the job runs again, or when the run is over: `state` is not `going` then. A machine that does not
    /// implement this lets the thread sleep.
    fn suspend(&self, _task: TaskId, until_ns: u64, state: &Word, going: u32) {
        state.wait_until(going, until_ns);
    }
}
