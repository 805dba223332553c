//! System calls: safe functions around them, and all `unsafe` of this crate.
//!
//! Calls that rustix makes safe are used from there. No function here decides anything, and each returns
//! the result of the kernel.

pub(crate) mod bpf;
pub(crate) mod clock;
pub(crate) mod memory;
pub(crate) mod peer;
pub(crate) mod process;
pub(crate) mod thread;
pub(crate) mod word;
