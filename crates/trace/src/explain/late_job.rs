//! The use of the time of a late job.

use std::collections::BTreeMap;

use shiftwork_model::{CpuId, CpuSet, Instant, JobId, Span, TaskId};

use super::mutex_wait::{MutexSums, MutexWait};
use super::piece::Piece;
use super::{Culprit, End, Part};

/// A time and the CPUs concerned, by its reason.
pub type Times<K> = BTreeMap<K, (Span, CpuSet)>;

/// A late job, and the use of its time from its release to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateJob {
    /// The job.
    pub job: JobId,
    /// Its release.
    pub release: Instant,
    /// Its absolute deadline.
    pub deadline: Instant,
    /// Its completion, or the end of its records.
    pub until: Instant,
    /// How it ended at `until`.
    pub end: End,
    /// Execution of its task that was left until its completion; zero if it completed.
    pub remaining: Span,
    /// The time from the release to the end, in the order of [`Part`]; the times add up to exactly that span, and
    /// none is zero.
    pub parts: Vec<(Part, Span)>,
    /// The time in which its task had no unfinished earlier job, and the job would have run without the culprit.
    pub delays: Times<Culprit>,
    /// The time for which jobs of each task had CPUs that the policy lets it use while it was ready and did not run;
    /// summed over the CPUs.
    pub blockers: Times<TaskId>,
    /// The first shift chain that would have made room, if the policy does not make shifts.
    pub chain: Option<ShiftChain>,
    /// The mutexes for which it waited, the longest time first.
    pub mutexes: Vec<MutexWait>,
}

impl LateJob {
    /// Its tardiness; a lower bound if it did not finish.
    pub const fn tardiness(&self) -> Span {
        self.until.late_since(self.deadline)
    }
}

/// Shifts that would have given a waiting job a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShiftChain {
    /// The last job of the chain first, the order in which the shifts are carried out.
    pub moves: Vec<Move>,
    /// The job that would have lost its CPU at the end of the chain; `None` if that CPU was idle.
    pub displaced: Option<JobId>,
}

/// One shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The running job.
    pub job: JobId,
    /// Its CPU.
    pub from: CpuId,
    /// The CPU to which it would have shifted.
    pub to: CpuId,
}

/// The sums over the pieces of the oldest pending job of a task.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    pub parts: BTreeMap<Part, Span>,
    pub delays: Times<Culprit>,
    pub blockers: Times<TaskId>,
    pub chain: Option<ShiftChain>,
    pub mutexes: MutexSums,
}

impl Sums {
    pub fn add(&mut self, piece: &Piece) {
        let time = piece.to.late_since(piece.from);
        if time.is_zero() {
            return;
        }
        *self.parts.entry(piece.part).or_default() += time;
        for &(culprit, cpus) in &piece.without {
            add(&mut self.delays, culprit, time, cpus);
        }
    }

    /// The parts of the whole `lifetime` of the job: the time before it was the oldest is carry-in.
    pub fn parts_of(&self, lifetime: Span) -> Vec<(Part, Span)> {
        let own = self
            .parts
            .values()
            .fold(Span::ZERO, |sum, &time| sum + time);
        let carry_in = lifetime.saturating_sub(own);
        let carry_in = (!carry_in.is_zero()).then_some((Part::CarryIn, carry_in));
        let own = self.parts.iter().map(|(&part, &time)| (part, time));
        carry_in.into_iter().chain(own).collect()
    }
}

pub(super) fn add<K: Ord>(times: &mut Times<K>, reason: K, time: Span, cpus: CpuSet) {
    let (sum, all) = times.entry(reason).or_insert((Span::ZERO, CpuSet::EMPTY));
    *sum += time;
    *all = *all | cpus;
}
