//! Concurrent ready and release queues of global real-time schedulers, usable alone.
//!
//! Owns the data structures that several CPUs share when they take jobs from one queue: who waits
//! ([`ready`]), who is not released yet ([`release`]), and who runs where ([`mapping`]), together as a
//! scheduler ([`scheduler`]). It must never contain a clock, or what a job is beyond how urgent it is and whose:
//! time is an argument, and whoever arms timers and interrupts CPUs is a trait. Threads are started by [`measure`]
//! alone.
//!
//! Start reading with [`ready::ReadyQueue`], then [`ready::Coarse`], the simplest that is mergeable.
//! [`job::Job`] says why nothing allocates.

pub mod heap;
pub mod job;
pub mod mapping;
pub mod measure;
pub mod ready;
pub mod release;
pub mod scheduler;
mod sync;
mod tournament;

pub use heap::Heap;
pub use job::{Job, Key, Rank};
pub use mapping::{Bell, Mapping};
pub use ready::{KINDS, Kind, ReadyQueue};
pub use release::{ReleaseQueue, Timer};
pub use scheduler::Scheduler;

#[cfg(test)]
mod judge;
