//! A machine where an agent decides: a thread of this process that runs a policy, on a CPU of its own.
//!
//! An [`Enactor`] reports to it what happens on the other CPUs, and enacts its decisions there: through
//! sched_ext, or by `SCHED_FIFO` priorities. So every policy runs live, exactly as the simulator runs it.
//!
//! `decider.rs` holds the decisions, without clock and threads; `thread.rs` is the loop of the agent's
//! thread; `machine.rs` is the side of the thread that started the agent, and `mailbox.rs` what lies between. Start
//! reading at `decider.rs`.
//!
//! # Source
//! The message-passing design of V. Bonifaci et al., ECRTS 2016, and of F. Cerqueira, M. Vanga,
//! B. Brandenburg, "Scaling Global Scheduling with Message Passing", RTAS 2014.

mod answer;
mod below;
pub(crate) mod channel;
mod decider;
mod enactor;
mod machine;
mod mailbox;
mod thread;

pub(crate) use answer::Answer;
pub(crate) use below::BelowAgent;
pub(crate) use enactor::{Enactor, Slot, TaskSnapshot, sort_by_time};
pub(crate) use machine::{AgentConfig, AgentMachine, EnactorOwner};
pub(crate) use thread::CpuYield;
