//! The kernel core: the C code in `core/` that decides inside the kernel, built natively.
//!
//! This crate owns that code. The live machine compiles it as BPF; this crate compiles it natively and
//! wraps it as a policy, so that a simulation under `strong-edf-kernel` runs the code that the kernel runs.
//! It must never decide anything in Rust; the reference implementation is in `shiftwork-policy`, and the
//! tests drive both in lockstep.
//!
//! Start reading at `core/core.h`, then [`Core`], the safe wrapper of its state. [`POLICIES`] lists the
//! policies that it implements.
#![no_std]

extern crate alloc;

mod native;
mod policy;
mod task;

pub use native::{
    ARRIVALS_MAX, CPUS_MAX, Core, CoreMutexes, CoreTriggers, MUTEXES_MAX, MutexNumber, SOURCES_MAX,
    UNLOCKS_MAX,
};
pub use policy::{KernelPolicy, POLICIES};
pub use task::{ServerRefused, TASKS_MAX, TaskNumber, TaskState, TaskView};

/// The folder of the C sources, for builds that compile them as BPF.
pub const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/core");
