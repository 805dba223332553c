//! How a global scheduler is built: what tells implementations of one algorithm apart.

use shiftwork_model::CpuId;

/// How the ready queue is kept, and what of it is locked at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyQueue {
    /// One mergeable heap under one lock.
    Coarse,
    /// A mergeable heap for each CPU, and a master heap of their most urgent jobs; each under its lock.
    Hierarchical,
    /// One heap with a lock for each node, which cannot be merged.
    Fine,
}

/// Who handles the interrupts by which jobs are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupts {
    /// Whichever CPU they reach.
    Global,
    /// This CPU, which runs no jobs.
    Dedicated(CpuId),
}

/// The structure of an implementation. It decides nothing, except that a dedicated CPU runs no jobs; a
/// simulated machine charges overheads by it.
///
/// # Source
/// B. Brandenburg, J. Anderson, "On the Implementation of Global Real-Time Schedulers", RTSS 2009.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structure {
    /// The ready queue.
    pub queue: ReadyQueue,
    /// Who is interrupted by releases.
    pub interrupts: Interrupts,
}
