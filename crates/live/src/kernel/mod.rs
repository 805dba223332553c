//! The sched_ext machine: the core decides inside the kernel, and this module feeds it and reads what
//! it tells.
//!
//! `event.rs` is the language of the trace, `machine.rs` the loaded scheduler and what it can be told,
//! `story.rs` makes records of events. Nothing here decides who runs.

mod event;
mod machine;
mod story;

pub(crate) use machine::{Machine, Parameters};
pub(crate) use story::Story;
