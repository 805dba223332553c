//! Who does the tasks' work: threads that compute for as long as their jobs should, and programs.
//!
//! This module owns [`Crew`], which is all of them. It must never decide when a job may run: the
//! machine behind [`JobGate`] does. Start reading at [`Crew`], then `thread.rs`, the life of a thread.

mod burn;
mod crew;
mod jobs;
mod program;
mod thread;

pub(crate) use crew::{Crew, Ending, Member};
pub(crate) use jobs::Jobs;

use shiftwork_model::TaskId;

/// Where a thread waits between its jobs.
///
/// The machine behind it decides when a job may run; nobody polls a clock.
pub trait JobGate: Send + Sync {
    /// The calling thread's job is finished, and the task's next is released at `release_ns` of the
    /// monotonic clock. Returns when that job runs, or when the run is over.
    fn next_job(&self, task: TaskId, release_ns: u64);

    /// The calling thread's job is finished, and the task releases no more. Returns at once; the
    /// thread ends.
    fn last_job(&self, task: TaskId);
}
