//! Who matters more. Each sibling file is one order of the literature.

mod edf;
mod fixed_priority;

pub use edf::Edf;
pub use fixed_priority::FixedPriority;

use core::fmt::Debug;

use shiftwork_model::{Job, TaskId};

/// Ranks jobs; the smaller key is the more important one. Ties must be broken: the keys of two
/// different tasks are never equal.
pub trait JobOrder: Send {
    /// What jobs are compared by.
    type Key: Send + Ord + Copy + Debug;

    /// Precedes every job's key: nobody is the least urgent.
    const FIRST: Self::Key;

    /// Follows every job's key: nobody is the most urgent.
    const LAST: Self::Key;

    /// The job's key.
    fn key(job: &Job) -> Self::Key;

    /// The task whose job has this key.
    fn task(key: &Self::Key) -> TaskId;
}
