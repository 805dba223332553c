//! The simulated machine: exact integer time, deterministic, fast.
//!
//! This crate owns *when* events occur on a machine without noise. It must never decide which job runs
//! (policies do), count or check (the trace crate does), read a clock or start a thread.
//!
//! Start reading at [`Simulation`], then `engine.rs`; its `instant` has the order of events at one instant.
//! In `engine/`, `jobs.rs` is the life of a job, `dispatch.rs` has the switches of CPUs, `speeds.rs` their speeds.

mod engine;
mod options;
mod simulation;
mod speed;
mod state;

pub use engine::{Outcome, QueueUse};
pub use options::Options;
pub use simulation::Simulation;
