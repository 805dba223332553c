//! The occupants of CPUs from the release of the job to its end.

use shiftwork_model::{CpuId, Instant, JobId};

/// The use of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// The CPU is idle.
    Idle,
    /// This job.
    Job(JobId),
    /// The CPU is offline.
    Offline,
    /// A higher scheduling class.
    Taken,
    /// Background work.
    Background,
}

/// An interval in which a CPU had the same occupant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The CPU.
    pub cpu: CpuId,
    /// Start of the interval.
    pub from: Instant,
    /// End of the interval.
    pub to: Instant,
    /// The occupant.
    pub occupant: Occupant,
    /// The CPU from which the job was shifted to this one, if it was.
    pub shifted_from: Option<CpuId>,
}

/// Merges stretches into slices.
#[derive(Clone, Debug, Default)]
pub(super) struct TimelineBuilder(Vec<Slice>);

impl TimelineBuilder {
    /// Adds the next stretch of this CPU. It extends the previous slice if nothing has changed.
    pub fn add(&mut self, next: Slice) {
        let last = self.0.iter_mut().rev().find(|slice| slice.cpu == next.cpu);
        match last {
            Some(last) if last.to == next.from && last.occupant == next.occupant => {
                last.to = next.to;
            }
            _ => self.0.push(next),
        }
    }

    /// All slices, by CPU and then by time.
    pub fn finish(mut self) -> Vec<Slice> {
        self.0.sort_by_key(|slice| (slice.cpu, slice.from));
        self.0
    }
}
