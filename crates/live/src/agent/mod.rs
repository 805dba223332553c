//! A machine where an agent decides: a thread of ours that owns a policy, on a CPU of its own.
//!
//! What happens on the other CPUs is reported to it, and what it decides is carried out there by an
//! [`Enactor`]: through sched_ext, or by the fixed priorities of `SCHED_FIFO`. So every policy runs live,
//! exactly as the simulator runs it.
//!
//! `decider.rs` is what is decided, without a clock and without threads; `thread.rs` the life of the
//! agent; `machine.rs` the side of whoever started it. Start reading at `decider.rs`.
//!
//! # Source
//! The message-passing design of V. Bonifaci et al., ECRTS 2016, and of F. Cerqueira, M. Vanga,
//! B. Brandenburg, "Scaling Global Scheduling with Message Passing", RTAS 2014.

pub(crate) mod channel;
mod decider;
mod enactor;
mod machine;
mod thread;

pub(crate) use enactor::{Enactor, Slot, TaskSnapshot};
pub(crate) use machine::{AgentConfig, AgentMachine, EnactorOwner};
pub(crate) use thread::CpuYield;
