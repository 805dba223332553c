//! Linux machines: runs a task set for real.
//!
//! This crate owns three machines: the core decides inside the kernel (`kernel/`; its BPF programs are in
//! `bpf/`, what decides in them is `shiftwork-kernel-core`), or an agent with any policy does (`agent/`)
//! and is carried out by the same programs or by `SCHED_FIFO` (`fifo/`). It owns the threads and programs
//! that do the tasks' work, and what there is to know about the machine underneath. It must never decide
//! who runs: the core and the policies do. All system calls that need `unsafe` are in `sys/`.
//!
//! Start reading at [`Plan`], then `run.rs`, which is the way of a run from beginning to end. [`standing`] is the
//! in-kernel machine for threads that others made, without an end.

mod agent;
mod changes;
mod error;
mod event;
mod fifo;
pub mod host;
mod kernel;
mod machine;
mod overheads;
mod plan;
mod preflight;
pub mod probe;
mod run;
pub mod standing;
mod story;
mod sync;
mod sys;
mod ticker;
mod work;

pub use error::LiveError;
pub use overheads::Overheads;
pub use plan::{Attention, Backend, Options, Plan};
pub use run::{Ended, Progress, Report, run_while};
pub use sys::peer::{PeerCredentials, peer_credentials, peer_process};
pub use sys::thread::{Class, set_class};
