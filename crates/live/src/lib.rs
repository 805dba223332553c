//! Linux machines: runs a task set for real.
//!
//! This crate owns three machines. The core decides inside the kernel (`kernel/`; its BPF programs
//! are in `bpf/`, their decisions in `shiftwork-kernel-core`), or an agent decides by any policy
//! (`agent/`), and the same programs or `SCHED_FIFO` priorities (`fifo/`) enact its decisions. The
//! crate also owns the threads and programs that do the work of the tasks, and the facts about the
//! machine that it runs on. It must never decide which task runs: the core and the policies do. All
//! system calls that need `unsafe` are in `sys/`.
//!
//! Start reading at [`Plan`], then `run.rs`, a run from beginning to end. [`standing`] is the in-kernel machine
//! without an end, for existing threads.

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
mod sync;
mod sys;
mod ticker;
mod translate;
mod work;

pub use error::LiveError;
pub use overheads::Overheads;
pub use plan::{Attention, Backend, Options, Plan};
pub use run::{Ended, Progress, Report, run_while};
pub use sys::peer::{
    PeerCredentials, ask_for_credentials, peer_credentials, peer_process, receive_from,
};
pub use sys::thread::{Class, set_class};
