//! Concurrent ready and release queues of global real-time schedulers, usable alone.
//!
//! Owns the data structures that several CPUs share when they take jobs from one queue: who waits
//! ([`ready`]) and who is not released yet ([`release`]). It must never contain a clock, a thread, or what a job
//! is beyond how urgent it is and whose: time is an argument, and whoever arms timers is a trait.
//!
//! Start reading with [`ready::ReadyQueue`], then [`ready::Coarse`], the simplest that is mergeable.
//! [`job::Job`] says why nothing allocates.

pub mod heap;
pub mod job;
pub mod ready;
pub mod release;
mod sync;
mod tournament;

pub use heap::Heap;
pub use job::{Job, Key, Rank};
pub use ready::{KINDS, Kind, ReadyQueue};
pub use release::{ReleaseQueue, Timer};

#[cfg(test)]
mod judge;
