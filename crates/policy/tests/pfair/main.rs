//! PD2 schedules what its definition says, slot by slot.
//!
//! `oracle.rs` is the definition, executed naively with exact fractions; `system.rs` drives it and a policy
//! side by side, as a machine would, and compares the tasks of every slot; the files beside choose the
//! systems.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod oracle;
mod published;
mod random;
mod small;
mod system;
