//! Linux machines: runs a task set for real.
//!
//! This crate owns the sched_ext machine (its BPF programs are in `bpf/`, and what decides in them is
//! `shiftwork-kernel-core`), the threads and programs that do the tasks' work, and what there is to know
//! about the machine underneath. It must never decide who runs: the core does. All system calls that
//! need `unsafe` are in `sys/`.
//!
//! Start reading at [`Plan`], then `run.rs`, which is the way of a run from beginning to end.

mod changes;
mod error;
pub mod host;
mod kernel;
mod plan;
mod prepare;
mod run;
mod sys;
mod ticker;
mod work;

pub use error::LiveError;
pub use plan::{Options, Plan};
pub use run::{Ended, Progress, Report, run_while};
