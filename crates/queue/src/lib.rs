//! Concurrent ready and release queues of global real-time schedulers, usable alone.
//!
//! This crate owns the data structures that CPUs share when they take jobs from one queue: ready jobs
//! ([`ready`]), jobs that are not released yet ([`release`]), and the job-to-CPU mapping ([`mapping`]), together
//! as a scheduler ([`scheduler`]). It must never contain a clock, or properties of a job other than its key and
//! its task: time is an argument, and timers and interrupts are traits. Only [`measure`] starts threads.
//!
//! Start reading with [`ready::ReadyQueue`], then [`ready::Coarse`], the simplest mergeable queue.
//! [`job::Job`] explains why nothing allocates.
//!
//! ```
//! use shiftwork_queue::{Heap, Job, Rank, ReadyQueue, ready::Published};
//!
//! let job = |deadline_ns, task| Job::new(Rank { deadline_ns, release_ns: 0, task }, task);
//! let ready = Published::new(3);
//! // CPU 0 makes one job ready, then CPU 1 two that are released together.
//! ready.insert(0, job(50, 0));
//! let mut batch = Heap::from(job(30, 1));
//! batch.insert(job(70, 2));
//! ready.merge(1, batch);
//! // CPU 0 runs a job due at 40: only the job due at 30 preempts it.
//! let running = job(40, 9).key();
//! assert_eq!(ready.take_if_before(0, &running).map(|job| job.task()), Some(1));
//! assert!(ready.take_if_before(0, &running).is_none());
//! ```

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
pub use mapping::{Ipi, Mapping};
pub use ready::{QUEUE_KINDS, QueueKind, ReadyQueue};
pub use release::{ReleaseQueue, Timer};
pub use scheduler::Scheduler;

#[cfg(test)]
mod linearizability;
