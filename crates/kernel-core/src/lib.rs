//! The kernel core: the C code in `core/` that decides inside the kernel, built natively.
//!
//! This crate owns that code, which is compiled as BPF by the live machine, and makes the same code a
//! policy here: what is simulated under `strong-edf-kernel` is what the kernel runs. It must never
//! decide anything in Rust; the reference implementation is in `shiftwork-policy`, and the tests drive
//! both in lockstep.
//!
//! Start reading at `core/core.h`, then [`Core`], the safe wrapper of its state. [`POLICIES`] are the
//! names it has as a policy.
#![no_std]

extern crate alloc;

mod native;
mod policy;

pub use native::{
    CPUS_MAX, Core, Order, ServerRefused, TASKS_MAX, TaskNumber, TaskState, TaskView,
};
pub use policy::{KernelPolicy, POLICIES};

/// The folder of the C sources, for whoever compiles them as BPF.
pub const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/core");
