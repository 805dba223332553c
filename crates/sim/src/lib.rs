//! The simulated machine: exact integer time, deterministic, fast.
//!
//! This crate owns *when* things happen on a machine without noise. It must never decide who runs
//! (policies do), count or judge (the trace crate does), read a clock or start a thread.
//!
//! Start reading at [`Simulation`], then `engine.rs`, whose `instant` has the
//! order of things at one instant; `jobs.rs` is the life of a job, `dispatch.rs` what CPUs do, `speed.rs` how
//! fast.

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
