//! Pieces of the time of a late job.

use shiftwork_model::{CpuSet, Instant};

use super::{Culprit, Part};

/// An interval in which the state of the task's oldest pending job had one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub from: Instant,
    pub to: Instant,
    /// The job.
    pub number: u64,
    pub part: Part,
    /// Culprits; without any one of them the job would have run in this interval.
    pub without: Vec<(Culprit, CpuSet)>,
    /// The last release of one of the blocking jobs.
    pub youngest: Instant,
}
