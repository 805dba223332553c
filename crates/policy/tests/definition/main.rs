//! The definition is the oracle: after every event exactly the jobs run that ought to.
//!
//! `oracle.rs` says what ought to run, by brute force and in the words of the papers; `drive.rs`
//! sends events to a policy and compares after each; the other files choose the events.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod drive;
mod exhaustive;
mod oracle;
mod random;
mod rtems_defects;
