//! The C library `libshiftwork`: threads of any program declare themselves as tasks of the daemon.
//!
//! This crate owns the conversion between the types of C and those of `shiftwork-client`, and nothing else: it must never
//! contain a decision, nor error messages of other crates. The public interface is `include/shiftwork.h`, which documents it.
//! Start reading there; `boundary.rs` has the functions and all `unsafe`, `task.rs` their implementation, `failure.rs` the
//! codes and the last error of each thread.

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
