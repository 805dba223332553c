//! What runs in the kernel, through sched_ext: it decides itself, or carries out what an agent decides.
//!
//! `scheduler.rs` is the loaded scheduler and what it can be told, `machine.rs` the machine whose core
//! decides inside the kernel, `enactor.rs` the hands of an agent. Nothing here decides who runs.

mod enactor;
mod machine;
mod members;
mod scheduler;

pub(crate) use enactor::{EnactorBuilder, SchedExtOwner};
pub(crate) use machine::KernelMachine;
pub(crate) use scheduler::{Scheduler, SchedulerConfig};
