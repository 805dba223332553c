//! Deadline misses: the losses of time of each missed job, and possible remedies.
//!
//! The time of a missed job, from its release to its end, is divided without remainder: queued behind
//! its predecessor, suspended, throttled, executing, and ready without running. The last part is
//! divided further by the use of the job's CPUs. A part without which the job would have been in time is marked
//! as *alone* sufficient for the miss; nothing is reported that the records do not show. The cause is that of
//! [`trace::explain`](shiftwork_trace::explain).

mod account;
mod shift_chain;
mod tally;
mod text;

#[cfg(test)]
mod tests;

use shiftwork_model::{CpuId, CpuSet, Instant, JobId, Record, Span, TaskId, TaskSet};
use shiftwork_trace::check::PolicyContract;
use shiftwork_trace::explain::{self, Explanation};

use crate::timeline::{End, JobHistory, Timeline};

pub(crate) use tally::Tally;
pub(crate) use text::{Names, alone, label, miss_line, remedy_line, sentence, verdict};

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
    /// It had a CPU for longer than its work can take: scheduling and cache overheads.
    Overheads,
    /// Its task left while there was time before the deadline.
    TaskLeft,
    /// It suspended itself.
    Suspended,
    /// It waited for its budget.
    Throttled,
    /// It executed longer than its relative deadline, though within its cost.
    TooLong,
    /// All its CPUs ran more urgent jobs.
    MoreUrgent,
    /// One of its CPUs ran a less urgent job.
    LessUrgent,
    /// All its CPUs ran jobs of unknown rank.
    OtherWork,
    /// One of its CPUs was idle: overhead, reaction time, or a policy that leaves CPUs idle.
    IdleCpu,
    /// One of its CPUs was unavailable, the others ran other jobs.
    CpuAway,
}

/// A change that would have let the job run while it waited. Remedies may overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// CPUs that it may not use were idle.
    Wider {
        idle: CpuSet,
        time: Span,
        bound: Bound,
    },
    /// Shifts of running jobs within their affinities would have made room.
    Shift {
        moves: Vec<Move>,
        displaced: Option<JobId>,
        time: Span,
    },
}

/// The restriction that binds a job to its CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// The task's affinity.
    Affinity,
    /// The partition or cluster of the packing, which is narrower.
    Packing,
}

/// One step of a chain of shifts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub job: JobId,
    pub from: CpuId,
    pub to: CpuId,
}

/// A task that used the job's CPUs while the job was ready and did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blocker {
    pub task: TaskId,
    pub cpus: CpuSet,
    /// Summed over the CPUs, so it may exceed the waiting time.
    pub time: Span,
}

/// One missed deadline.
#[derive(Clone, Debug)]
pub(crate) struct Miss {
    pub job: JobId,
    pub release: Instant,
    pub deadline: Instant,
    pub end: End,
    pub until: Instant,
    pub executed: Span,
    /// Time in which it was ready and not running.
    pub waited: Span,
    /// For an unfinished job, the part of its declared cost that it had not executed.
    pub remaining: Span,
    /// Longest first.
    pub losses: Vec<Loss>,
    pub remedies: Vec<Remedy>,
    /// Longest first.
    pub blockers: Vec<Blocker>,
    /// The first of the unbroken row of late jobs that ends with this one, if its predecessor was late.
    pub late_since: Option<JobId>,
    /// The explanation with the cause; `None` if the promises of the policy are unknown, or it is not needed.
    pub explanation: Option<Explanation>,
}

impl Miss {
    /// Tardiness of the job; a lower bound for an unfinished one.
    pub fn tardiness(&self) -> Span {
        self.until.late_since(self.deadline)
    }

    /// Whether the job would have been in time with this much more time.
    pub fn explained_by(&self, time: Span) -> bool {
        !time.is_zero() && time >= self.tardiness() + self.remaining
    }
}

/// All data about misses in a report.
pub(crate) struct Misses {
    /// All misses of the run.
    pub total: u64,
    /// The first ones, explained one by one.
    pub first: Vec<Miss>,
    /// All explained misses in groups.
    pub tally: Tally,
    /// Number of misses in the tally; below `total` if explaining all would have taken too long.
    pub explained: u64,
}

/// The input of explanations.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub set: &'a TaskSet,
    pub records: &'a [Record],
    pub line: &'a Timeline,
    /// The promises of the policy, which are not in the records; without them the urgency of other work is unknown.
    pub contract: Option<&'a PolicyContract>,
}

impl Context<'_> {
    /// The CPUs that the policy let the task use just after this instant.
    pub fn cpus(&self, task: TaskId, at: Instant) -> CpuSet {
        let affinity = *self.line.affinity(task, at);
        let packing = self
            .contract
            .and_then(|contract| contract.packing.as_deref());
        let packed = packing.and_then(|packing| packing.get(task.index()));
        match packed.map(|packed| *packed.cpus() & affinity) {
            // A change of affinity may have moved the task out of its first partition.
            Some(cpus) if !cpus.is_empty() => cpus,
            _ => affinity,
        }
    }

    /// Whether `job` ranked before `other` just after this instant; `None` if that is unknown.
    fn before(&self, job: JobId, other: JobId, at: Instant) -> Option<bool> {
        let key = |job: JobId| {
            let rank = self.line.history(job)?.rank(at)?;
            let key = self.contract?.order.rank(rank.deadline, rank.priority);
            Some((key, rank.ready, job.task))
        };
        Some(key(job)? < key(other)?)
    }

    fn explanation(&self, job: JobId) -> Option<Explanation> {
        explain::explain(
            self.set,
            self.contract?,
            self.records,
            job,
            self.line.horizon,
        )
        .ok()
    }
}

/// Maximum number of steps (states of one CPU between two switches anywhere) for all explanations together, so
/// that an overloaded run is reported within seconds.
pub(crate) const STEPS_MAX: u64 = 10_000_000;

/// Finds and explains the misses of a run, the first `keep` of them (by deadline) one by one. Stops
/// explaining after `steps_max` steps.
pub(crate) fn find(context: Context<'_>, keep: usize, steps_max: u64) -> Misses {
    let horizon = context.line.horizon;
    let mut missed: Vec<(&JobHistory, Option<JobId>)> = Vec::new();
    for histories in &context.line.tasks {
        let mut late_since = None;
        for history in histories {
            if !history.missed(horizon) {
                late_since = None;
                continue;
            }
            missed.push((history, late_since));
            late_since = late_since.or(Some(history.job));
        }
    }
    missed.sort_by_key(|(history, _)| (history.deadline, history.job));
    let mut misses = Misses {
        total: missed.len() as u64,
        first: Vec::new(),
        tally: Tally::default(),
        explained: 0,
    };
    let mut steps = 0;
    for (history, late_since) in missed {
        if steps >= steps_max {
            break;
        }
        let mut miss = account::miss(context, history, late_since, &mut steps);
        misses.tally.add(&miss);
        misses.explained += 1;
        if misses.first.len() < keep {
            miss.explanation = context.explanation(miss.job);
            misses.first.push(miss);
        }
    }
    misses
}
