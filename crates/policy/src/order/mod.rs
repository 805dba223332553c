//! Orders: which of two jobs is more urgent. Each sibling file is one order of the literature.

mod edf;
mod fair_lateness;
mod fixed_priority;
mod laxity;
mod pfair;

pub use edf::Edf;
pub use fair_lateness::FairLateness;
pub use fixed_priority::FixedPriority;
pub(crate) use laxity::{Laxity, LaxityOrder, LeastLaxity, ZeroLaxity};
pub(crate) use pfair::{Eligibility, Subtask, SubtaskOrder};

use core::fmt::Debug;

use shiftwork_model::{Job, Order, TaskId};

/// How waiting jobs are compared; the smaller key is the more urgent one. Ties must be broken: the
/// keys of two different tasks are never equal.
pub trait Ranking: Send {
    /// What is compared.
    type Key: Send + Ord + Copy + Debug;

    /// Precedes every key. Stands for "no job" where the least urgent is sought.
    const FIRST: Self::Key;

    /// Follows every key. Stands for "no job" where the most urgent is sought.
    const LAST: Self::Key;

    /// The task that this is the key of.
    fn task(key: &Self::Key) -> TaskId;
}

/// Ranks jobs.
pub trait JobOrder: Ranking {
    /// What it is called.
    const ORDER: Order;

    /// The job's key.
    fn key(job: &Job) -> Self::Key;
}
