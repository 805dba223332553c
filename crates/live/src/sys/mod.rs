//! System calls: safe functions around them, and all `unsafe` of this crate.
//!
//! What rustix makes safe is taken from there. No function here decides anything, and each returns
//! what the kernel said.

pub(crate) mod bpf;
pub(crate) mod clock;
pub(crate) mod memory;
pub(crate) mod peer;
pub(crate) mod process;
pub(crate) mod thread;
pub(crate) mod word;
