//! Deadline misses on the page: the time that each missed job lost, and possible remedies, as
//! [`trace::explain`](shiftwork_trace::explain) attributes them.
//!
//! A loss without which the job would have been in time is marked as *alone* sufficient for the miss.

mod tally;
mod text;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use shiftwork_model::{JobId, Span};
use shiftwork_trace::explain::{Culprit, End, Explanation, LateJob, Part, Recording, Steps};

pub(crate) use tally::{Group, Tally};
pub(crate) use text::{
    Names, alone, label, miss_line, mutex_lines, remedy_lines, sentence, verdict,
};

/// Time that a job lost, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub kind: LossKind,
    pub time: Span,
}

/// The kinds of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LossKind {
    /// Its predecessor was not finished at its release.
    LatePredecessor,
    /// It executed longer than the declared cost.
    Overrun,
    /// Its CPU handled interrupts or scheduling.
    Overheads,
    /// Its task left while there was time before the deadline.
    TaskLeft,
    /// It suspended itself.
    Suspended,
    /// It waited for its budget.
    Throttled,
    /// It waited for a mutex.
    Blocked,
    /// It executed longer than its relative deadline, though within its cost.
    TooLong,
    /// All its CPUs ran more urgent jobs.
    MoreUrgent,
    /// The same, one of them beyond its declared cost.
    OtherOverrun,
    /// All its CPUs ran jobs of unknown rank.
    OtherWork,
    /// One of its CPUs was idle or ran a less urgent job, against the policy's promise.
    Stalled,
    /// The same, and nothing that is known of the policy excludes it.
    HeldBack,
    /// One of its CPUs was unavailable, the others ran other jobs.
    CpuAway,
}

impl LossKind {
    /// The loss by this part of a job's time; `None` if the job executed as declared.
    const fn of(part: Part, are_ranks_known: bool) -> Option<Self> {
        Some(match part {
            Part::Executing => return None,
            Part::CarryIn => Self::LatePredecessor,
            Part::OwnOverrun => Self::Overrun,
            Part::Interrupted => Self::Overheads,
            Part::Throttled => Self::Throttled,
            Part::Suspended => Self::Suspended,
            Part::Blocked(_) | Part::Spinning(_) => Self::Blocked,
            Part::Stalled => Self::Stalled,
            Part::HeldBack => Self::HeldBack,
            Part::Taken | Part::Offline | Part::Background => Self::CpuAway,
            Part::Overrun(_) | Part::MoreUrgent(_) if !are_ranks_known => Self::OtherWork,
            Part::Overrun(_) => Self::OtherOverrun,
            Part::MoreUrgent(_) => Self::MoreUrgent,
        })
    }
}

/// Culprits without which the job would have run while it waited for more urgent jobs. Their times may overlap.
const REMEDIES: [Culprit; 3] = [
    Culprit::NoShift,
    Culprit::NarrowAffinity,
    Culprit::NarrowPacking,
];

/// One missed deadline.
#[derive(Clone, Debug)]
pub(crate) struct Miss {
    pub late: LateJob,
    /// Longest first.
    pub losses: Vec<Loss>,
    /// The first of the unbroken row of late jobs that ends with this one, if its predecessor was late.
    pub late_since: Option<JobId>,
    /// The explanation with the cause; `None` if the promises of the policy are unknown, or it is not needed.
    pub explanation: Option<Explanation>,
}

impl Miss {
    fn new(late: LateJob, late_since: Option<JobId>, are_ranks_known: bool) -> Self {
        let mut losses: BTreeMap<LossKind, Span> = BTreeMap::new();
        let mut executing = Span::ZERO;
        for &(part, time) in &late.parts {
            match LossKind::of(part, are_ranks_known) {
                Some(kind) => *losses.entry(kind).or_default() += time,
                None => executing += time,
            }
        }
        let window = late.deadline.late_since(late.release);
        losses.insert(LossKind::TooLong, executing.saturating_sub(window));
        if late.end == End::Dropped {
            losses.insert(LossKind::TaskLeft, late.deadline.late_since(late.until));
        }
        losses.retain(|_, time| !time.is_zero());
        let loss = |(kind, time)| Loss { kind, time };
        let mut losses: Vec<Loss> = losses.into_iter().map(loss).collect();
        losses.sort_by_key(|loss| (core::cmp::Reverse(loss.time), loss.kind));
        Self {
            late,
            losses,
            late_since,
            explanation: None,
        }
    }

    /// Whether the job would have been in time with this much more time.
    pub fn explained_by(&self, time: Span) -> bool {
        !time.is_zero() && time >= self.late.tardiness() + self.late.remaining
    }

    /// Time on a CPU.
    pub fn executed(&self) -> Span {
        self.time_in(|part| matches!(part, Part::Executing | Part::OwnOverrun | Part::Interrupted))
    }

    /// Time in which it could have run and had no CPU.
    pub fn waited(&self) -> Span {
        // The parts are ordered: those of a ready job without a CPU come last.
        self.time_in(|part| part >= Part::Stalled)
    }

    fn time_in(&self, is_counted: impl Fn(Part) -> bool) -> Span {
        let parts = self.late.parts.iter().filter(|(part, _)| is_counted(*part));
        parts.fold(Span::ZERO, |sum, &(_, time)| sum + time)
    }
}

/// All data about misses in a report.
pub(crate) struct Misses {
    /// All misses of the run.
    pub total: u64,
    /// The first ones by deadline, explained one by one.
    pub first: Vec<Miss>,
    /// All explained misses in groups.
    pub tally: Tally,
    /// Number of misses in the tally; below `total` if explaining all would have taken too long.
    pub explained: u64,
}

/// Maximum number of steps for all explanations of a run together, so that an overloaded run is reported within seconds.
pub(crate) const STEPS_MAX: Steps = Steps {
    explained: 12_000_000,
    others: 4_000_000,
};

/// Finds why the jobs `late`, which are all late jobs of the run, missed their deadlines: of the first `keep` of them with
/// their causes. Misses beyond `steps_max` are only counted.
pub(crate) fn find(run: Recording<'_>, late: &[JobId], keep: usize, steps_max: Steps) -> Misses {
    let first = &late[..keep.min(late.len())];
    let late_since = rows(late);
    let mut misses = Misses {
        total: late.len() as u64,
        first: Vec::new(),
        tally: Tally::default(),
        explained: 0,
    };
    if late.is_empty() {
        return misses;
    }
    run.late_jobs(late, keep, steps_max, |job, explanation| {
        let row = late_since.binary_search_by_key(&job.job, |&(last, _)| last);
        let since = row.ok().map(|place| late_since[place].1);
        let mut miss = Miss::new(job, since, run.contract.is_some());
        misses.tally.add(&miss);
        misses.explained += 1;
        if first.contains(&miss.late.job) {
            miss.explanation = explanation.filter(|_| run.contract.is_some());
            misses.first.push(miss);
        }
    });
    let by_deadline = |miss: &Miss| (miss.late.deadline, miss.late.job);
    misses.first.sort_by_key(by_deadline);
    misses
}

/// The late jobs with late predecessors, ascending, each with the first of the unbroken row of late jobs that ends with it.
fn rows(late: &[JobId]) -> Vec<(JobId, JobId)> {
    let mut jobs = late.to_vec();
    jobs.sort_unstable();
    let mut rows: Vec<(JobId, JobId)> = Vec::new();
    for pair in jobs.windows(2) {
        if pair[0].task == pair[1].task && pair[0].number + 1 == pair[1].number {
            let before = rows.last().filter(|(last, _)| *last == pair[0]);
            let first = before.map_or(pair[0], |&(_, first)| first);
            rows.push((pair[1], first));
        }
    }
    rows
}
