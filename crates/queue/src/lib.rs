//! Concurrent ready and release queues of global real-time schedulers, usable alone.
//!
//! Owns the data structures that several CPUs share when they take jobs from one queue: who waits
//! ([`ready`]). It must never contain a clock, a thread, or what a job is beyond how urgent it is and whose.
//!
//! Start reading with [`ready::ReadyQueue`], then [`ready::Coarse`], the simplest that is mergeable.
//! [`job::Job`] says why nothing allocates.

pub mod heap;
pub mod job;
pub mod ready;
mod sync;
mod tournament;

pub use heap::Heap;
pub use job::{Job, Key, Rank};
pub use ready::{KINDS, Kind, ReadyQueue};

#[cfg(test)]
mod judge;
