//! The scheduling policies of shiftwork: an *order* (which jobs are more urgent) and a *placement*
//! (which CPU runs which job). Events go in, switches come out.
//!
//! This crate owns every scheduling decision and nothing else. It must never read a clock, start a
//! thread, or know what carries its decisions out: machines do that. Wake, block, complete, budget
//! and tick events never allocate; a task that enters or leaves, or an affinity never seen before,
//! may.
//!
//! Start reading at [`Policy`], then `placement/weak.rs` for the smallest complete placement, then
//! `placement/hierarchical/` for the one that this project is about. [`registry`] is the table of
//! names.
#![no_std]

extern crate alloc;

mod error;
mod order;
mod placement;
mod policy;
pub mod registry;

pub use error::PolicyError;
pub use order::{Edf, FairLateness, FixedPriority, JobOrder};
pub use placement::{PushPull, Ties};
pub use policy::{Event, Policy, Quanta, Switch, Switches};
