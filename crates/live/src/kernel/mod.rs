//! sched_ext: the programs in the kernel decide themselves, or enact the decisions of an agent.
//!
//! `scheduler.rs` is the loaded scheduler with its commands, `machine.rs` the machine with the core
//! that decides inside the kernel, `enactor.rs` the enactor of an agent. Nothing here decides which
//! task runs.

mod enactor;
mod machine;
mod members;
mod mutex_requests;
mod scheduler;
mod wakeups;

pub(crate) use enactor::{EnactorBuilder, SchedExtOwner};
pub(crate) use machine::KernelMachine;
pub(crate) use scheduler::{Scheduler, SchedulerConfig};
