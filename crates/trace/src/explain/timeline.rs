//! Who had which CPU while the job was under way.

use shiftwork_model::{CpuId, Instant, JobId};

/// Who has a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// Nobody.
    Idle,
    /// This job.
    Job(JobId),
    /// It is offline.
    Offline,
    /// A higher scheduling class.
    Taken,
    /// Background work.
    Background,
}

/// A stretch of time in which a CPU had the same occupant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The CPU.
    pub cpu: CpuId,
    /// From when on.
    pub from: Instant,
    /// Until when.
    pub to: Instant,
    /// Who had it.
    pub occupant: Occupant,
    /// If the job was shifted to here: from where.
    pub shifted_from: Option<CpuId>,
}

/// Puts slices together from stretches.
#[derive(Debug, Default)]
pub(super) struct TimelineBuilder(Vec<Slice>);

impl TimelineBuilder {
    /// The next stretch of this CPU. It goes on with the one before it if nothing has changed.
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
