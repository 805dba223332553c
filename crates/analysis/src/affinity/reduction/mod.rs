//! Deadlines under any affinities: each task as if scheduled globally on some of its own CPUs.
//!
//! One file per order, and `subsets.rs`, which chooses the CPUs to look at.

mod earliest_deadline;
mod fixed_priority;
mod subsets;

pub use earliest_deadline::reduction_edf;
pub(crate) use fixed_priority::reduction_in_time;
pub use fixed_priority::{reduction, reduction_fp};
