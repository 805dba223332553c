//! What the walk over the records remembers of tasks and their runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use shiftwork_model::{Instant, NotReadyReason, ResourceId, Span};

use super::late_job::Sums;
use super::piece::Piece;
use super::timeline::TimelineBuilder;

/// A released job of some task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    pub number: u64,
    pub release: Instant,
    pub deadline: Instant,
    pub cost: Span,
}

/// The current stretch of a job on a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub number: u64,
    pub from: Instant,
    /// Time lost to overheads; assumed at the begin of the stretch, since the records do not have the instants.
    pub lost: Span,
}

impl Run {
    /// Start of the job's execution.
    pub fn begins(self) -> Instant {
        self.from + self.lost
    }

    pub fn executed(self, at: Instant) -> Span {
        at.late_since(self.begins())
    }
}

/// The history of a task, beyond its ready and running jobs.
#[derive(Clone, Debug)]
pub(super) struct TaskHistory {
    pub cost: Span,
    pub pending: VecDeque<Pending>,
    pub run: Option<Run>,
    /// Execution of a job before the current stretch.
    pub executed: (u64, Span),
    /// Execution since the last replenishment.
    pub consumed: Span,
    pub is_spent: bool,
    /// The reason why its job is not ready.
    pub reason: Option<NotReadyReason>,
    /// The mutex for which its job spins.
    pub spins: Option<ResourceId>,
    pub followed: Followed,
}

/// What is collected for the late jobs of a task.
#[derive(Clone, Debug, Default)]
pub(super) struct Followed {
    /// Numbers of the late jobs that have not ended.
    pub late: BTreeSet<u64>,
    /// Those of them to be explained, with their timelines from their releases on.
    pub explained: BTreeMap<u64, Option<TimelineBuilder>>,
    /// Late jobs to be explained as if due so much before their ends, whatever their deadlines are.
    pub excess: BTreeMap<u64, Span>,
    /// Of the oldest pending job.
    pub sums: Sums,
    /// The numbers of the first and the last job of each row that ends with a job to be explained.
    pub rows: Vec<(u64, u64)>,
    /// Such a row up to now with the pieces since its begin.
    pub row: Vec<Pending>,
    pub pieces: Vec<Piece>,
}

impl Followed {
    pub fn is_in_row(&self, number: u64) -> bool {
        let mut rows = self.rows.iter();
        rows.any(|&(first, last)| (first..=last).contains(&number))
    }

    pub fn end_row(&mut self) {
        self.row.clear();
        self.pieces.clear();
    }
}

impl TaskHistory {
    /// Number of the oldest pending job, if its time is to be divided: it is late, or in the row of one that is to be
    /// explained.
    pub fn followed_job(&self) -> Option<u64> {
        let number = self.pending.front()?.number;
        let followed = &self.followed;
        (followed.is_in_row(number) || followed.late.contains(&number)).then_some(number)
    }

    pub fn executed(&self, number: u64, at: Instant) -> Span {
        let before = if self.executed.0 == number {
            self.executed.1
        } else {
            Span::ZERO
        };
        let run = self.run.filter(|run| run.number == number);
        before + run.map_or(Span::ZERO, |run| run.executed(at))
    }

    pub fn cost(&self, number: u64) -> Span {
        let pending = self.pending.iter().find(|job| job.number == number);
        pending.map_or(self.cost, |job| job.cost)
    }

    /// The release of a pending job.
    pub fn release_of(&self, number: u64) -> Instant {
        let pending = self.pending.iter().find(|job| job.number == number);
        pending.map_or(Instant::ZERO, |job| job.release)
    }

    /// Execution until `at` that the pending job still needs. An unfinished job has at least a nanosecond left, also
    /// beyond its cost.
    pub fn left(&self, job: &Pending, at: Instant) -> Span {
        let left = job.cost.saturating_sub(self.executed(job.number, at));
        left.max(Span::from_ns(1))
    }

    /// Start of the running job's execution, and the instant at which it has executed its cost, if it continues
    /// from `at`.
    pub fn crossings(&self, at: Instant) -> Option<[Instant; 2]> {
        let run = self.run?;
        let begins = run.begins();
        let left = self
            .cost(run.number)
            .saturating_sub(self.executed(run.number, at));
        Some([begins, begins.max(at) + left])
    }

    pub fn stop(&mut self, number: u64, at: Instant) {
        let Some(run) = self.run.take_if(|run| run.number == number) else {
            return;
        };
        let executed = run.executed(at);
        self.consumed += executed;
        if self.executed.0 != number {
            self.executed = (number, Span::ZERO);
        }
        self.executed.1 += executed;
    }
}
