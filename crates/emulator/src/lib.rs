//! Boots a stock Debian kernel in QEMU, runs one program in it and returns its exit status.
//!
//! Owns everything between "this test needs a kernel with `sched_ext`" and the exit status: which
//! kernels and which QEMU are fetched and from where ([`debian`]), where they are kept ([`cache`]),
//! which of them are usable ([`kernel`]), the file system that the kernel boots into
//! ([`initramfs`]), with nothing in it or a whole Debian system ([`Base`]), the process that is PID 1 or a
//! unit in there ([`guest`]), and the conversation between the two sides ([`channel`]). Nothing on the machine is changed but one folder in the user's cache, and
//! nothing needs privileges.
//!
//! It must never know what is tested: it carries files in, output and files out.
//!
//! Start reading at [`Emulator::boot`]. The program that boots must call
//! [`guest::serve_if_first`] at its start: it is also the first process of the guest.

pub mod cache;
pub mod channel;
pub mod debian;
pub mod guest;
pub mod initramfs;
pub mod kernel;

mod base;
mod boot;
mod boot_error;
mod qemu;
mod unavailable;

pub use base::Base;
pub use boot::{Boot, CarriedFile, Collected, Exit};
pub use boot_error::BootError;
pub use kernel::{Kernel, KernelChoice};
pub use qemu::{Accel, Emulator};
pub use unavailable::Unavailable;
