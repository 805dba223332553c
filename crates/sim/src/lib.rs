//! The simulated machine: exact integer time, deterministic, fast.
//!
//! This crate owns *when* events occur on a machine without noise. It must never decide which job runs
//! (policies do), count or check (the trace crate does), read a clock or start a thread.
//!
//! Start reading at [`Simulation`], then `engine.rs`; its `instant` has the order of events at one instant.
//! `jobs.rs` is the life of a job, `dispatch.rs` has the switches of CPUs, `speed.rs` their speeds.

mod actions;
mod arrivals;
mod costs;
mod dispatch;
mod engine;
mod jobs;
mod requests;
mod reserve;
mod simulation;
mod speed;
mod state;
mod ticks;

pub use costs::QueueUse;
pub use shiftwork_machine::{Machine, Outcome, Workload};
pub use simulation::{Options, SimulatedMachine, Simulation};
