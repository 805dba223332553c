//! Who does the tasks' work: threads that compute for as long as their jobs should, and programs.
//!
//! This module owns [`Workers`], which is all of them. It must never decide when a job may run: the
//! machine behind [`JobBarrier`] does. Start reading at [`Workers`], then `thread.rs`, the life of a thread.

mod burn;
mod jobs;
mod program;
mod thread;
mod workers;

pub(crate) use jobs::Jobs;
pub(crate) use workers::{Ending, Worker, Workers};

use shiftwork_model::TaskId;

use crate::sys::word::Word;

/// Where a thread waits between its jobs.
///
/// The machine behind it decides when a job may run; nobody polls a clock.
pub trait JobBarrier: Send + Sync {
    /// The calling thread has done nothing yet, and the task's first job is released at `release_ns` of
    /// the monotonic clock. Returns when that job runs, or when the run is over; at once where the
    /// machine holds threads back without being asked.
    fn first_job(&self, _task: TaskId, _release_ns: u64) {}

    /// The calling thread's job is finished, and the task's next is released at `release_ns` of the
    /// monotonic clock. Returns when that job runs, or when the run is over.
    fn next_job(&self, task: TaskId, release_ns: u64);

    /// The calling thread's job is finished, and the task releases no more. Returns at once; the
    /// thread ends.
    fn last_job(&self, task: TaskId);

    /// The calling thread sleeps within its job until this instant of the monotonic clock. Returns then
    /// or later, when the job runs again, or when the run is over; `state` tells that by not being
    /// `going`. Without a machine that wants to know the thread just sleeps.
    fn suspend(&self, _task: TaskId, until_ns: u64, state: &Word, going: u32) {
        state.wait_until(going, until_ns);
    }
}
