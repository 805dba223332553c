//! Concurrent ready and release queues of global real-time schedulers, usable alone.
//!
//! Owns the data structures that several CPUs share when they take jobs from one queue. It must never contain a clock, a thread, or what a job is beyond how urgent it is and whose.
//!
//! Start reading with [`heap::Heap`]. [`job::Job`] says why nothing allocates.

pub mod heap;
pub mod job;

pub use heap::Heap;
pub use job::{Job, Key, Rank};
