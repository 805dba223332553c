//! What programs and the agent say to each other: the varlink interface `org.shiftwork.Agent`.
//!
//! This crate owns the words of the interface and a client that is as small as can be. It must never decide
//! anything, nor know the agent's inside. Start reading at `org.shiftwork.Agent.varlink`.

/// The interface, for whoever asks the agent what it understands.
pub const DESCRIPTION: &str = include_str!("org.shiftwork.Agent.varlink");
