//! Deadlines under any affinities: each task as if scheduled globally on some of its own CPUs.
//!
//! One file per order, and what they share: `interference.rs` bounds what others do meanwhile,
//! `subsets.rs` chooses the CPUs to look at.

mod earliest_deadline;
mod fixed_priority;
mod interference;
mod subsets;

pub use earliest_deadline::reduction_edf;
pub use fixed_priority::{Bound, reduction, reduction_fp};
