//! The C library `libshiftwork`: threads of any program declare themselves as tasks of the agent.
//!
//! This crate owns the way between C's values and those of `shiftwork-client`, and nothing else: it must never contain
//! a decision, nor the text of somebody else's error. What people use is `include/shiftwork.h`, which says what
//! everything means. Start reading there; `boundary.rs` has the functions and all `unsafe`, `task.rs` what they do,
//! `failure.rs` the codes and the last error of each thread.

mod boundary;
mod failure;
#[cfg(test)]
mod header;
mod reservation;
mod task;

pub use boundary::{
    shiftwork_admit, shiftwork_change, shiftwork_dismiss, shiftwork_error, shiftwork_guarantee,
    shiftwork_release, shiftwork_version, shiftwork_wait_next,
};
pub use failure::Code;
pub use reservation::{OnOverrunName, RawReservation};
pub use task::CTask;
