//! The definition is the oracle: after every event exactly the jobs run that ought to.
//!
//! `oracle.rs` says what ought to run, by brute force and in the words of the papers; `drive.rs`
//! sends events to a policy and compares after each; `exhaustive.rs` and `random.rs` choose the events,
//! `policies.rs` the policies. Other crates with policies include the first four files.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod drive;
mod exhaustive;
mod oracle;
mod policies;
mod random;
mod rtems_defects;

use shiftwork_policy::registry::{self, Entry};

/// The policies that can be driven.
fn find(name: &str) -> &'static Entry {
    registry::find(name).unwrap()
}
