//! Explanation of a deadline miss: the time of the job by activity, and the cause.
//!
//! [`explain`] uses only the records of a window, as a flight recorder keeps them, and the promises of the
//! policy ([`PolicyContract`]). It attributes every nanosecond from the release of the job to its
//! end to exactly one [`Part`]. Then it determines for each [`Culprit`] whether the job would have met its
//! deadline without it, and selects the cause by a fixed rule, see [`Cause`]. `docs/explain.md` is the
//! description for users.
//!
//! `walk.rs` follows the records, and `walk/waiting.rs` finds why a ready job does not run; `late_job.rs` holds the sums for
//! each late job, `mutex_wait.rs` what it waited for at mutexes, `attribution.rs` the rule, `text.rs` and `json.rs` the output. `origins.rs` says what triggered a job, and
//! `chain.rs` explains the longest times of chains by their jobs.

mod attribution;
mod chain;
mod history;
mod interrupted;
mod json;
mod late_job;
mod mutex_wait;
mod origins;
mod piece;
mod text;
mod timeline;
mod walk;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use shiftwork_model::{CpuSet, Instant, JobId, Record, Recorder, Span, TaskId, TaskSet};

use crate::check::PolicyContract;
use crate::jobs::{JobRow, Jobs};
use crate::packed::Records;

pub use chain::{ChainExplanation, ChainMiss, Link};
pub use late_job::{LateJob, Move, ShiftChain, Times};
pub use mutex_wait::MutexWait;
pub use origins::Origin;
pub use text::{readable, readable_at};
pub use timeline::{Occupant, Slice};

/// The activity to which a part of the time between a job's release and its end is attributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The previous job of its task was not finished.
    CarryIn,
    /// It executed, within its declared cost.
    Executing,
    /// It executed beyond its declared cost.
    OwnOverrun,
    /// It was on a CPU that handled interrupts or scheduling.
    Interrupted,
    /// Its budget was spent.
    Throttled,
    /// It suspended itself.
    Suspended,
    /// It waited for a mutex, which the other task held, if that is known.
    Blocked(Option<TaskId>),
    /// On a CPU, it spun for a mutex, which the other task held, if that is known.
    Spinning(Option<TaskId>),
    /// One of its CPUs was idle or ran a less urgent job, against the policy's promise: a decision was missing,
    /// or not yet carried out.
    Stalled,
    /// One of its CPUs was idle or ran a less urgent job, as the policy allows: no preemption, decisions at
    /// quantum boundaries only, no pull.
    HeldBack,
    /// A CPU that it could have got was taken by a higher scheduling class; all others ran more urgent jobs.
    Taken,
    /// The same with a CPU that was offline.
    Offline,
    /// The same with a CPU that ran background work.
    Background,
    /// Its CPUs ran more urgent jobs, one of them, of this task, beyond its declared cost.
    Overrun(TaskId),
    /// Its CPUs ran more urgent jobs within their declared costs; the least urgent was of this task.
    MoreUrgent(TaskId),
}

/// A possible cause of a miss, in the order in which ties are broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Culprit {
    /// The task left, and its job was dropped.
    TaskLeft,
    /// CPUs were offline.
    CpuOffline,
    /// CPUs were taken by a higher scheduling class.
    CpuTaken,
    /// There was no decision for a job that could have run, or it was not carried out.
    Stall,
    /// The CPU handled interrupts or scheduling.
    Interrupts,
    /// The task itself needed more than its cost.
    OwnOverrun,
    /// Jobs of this task needed more than their cost.
    Overrun(TaskId),
    /// CPUs were given to background work.
    Reserve,
    /// Other CPUs were idle or ran less urgent jobs, and shifts, which the policy does not make, would have
    /// made room.
    NoShift,
    /// Other CPUs were idle or ran less urgent jobs, outside of the affinity.
    NarrowAffinity,
    /// The same, inside the affinity and outside of the packing.
    NarrowPacking,
    /// The policy's rule let less urgent jobs continue, or CPUs idle.
    Rule,
    /// More urgent jobs, all within their costs.
    Overload,
    /// The job's own suspensions.
    Suspension,
    /// Mutexes that this task held, if it is known which did.
    Mutex(Option<TaskId>),
}

/// The level of a culprit; the first level with a sufficient culprit has the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    /// A deviation from the declarations.
    Fault,
    /// A property of the configuration.
    Setting,
    /// The declared demand is too high.
    Demand,
}

impl Culprit {
    const fn level(self) -> Level {
        match self {
            Self::TaskLeft
            | Self::CpuOffline
            | Self::CpuTaken
            | Self::Stall
            | Self::Interrupts
            | Self::OwnOverrun
            | Self::Overrun(_) => Level::Fault,
            Self::Reserve
            | Self::NoShift
            | Self::NarrowAffinity
            | Self::NarrowPacking
            | Self::Mutex(_)
            | Self::Rule => Level::Setting,
            Self::Overload | Self::Suspension => Level::Demand,
        }
    }
}

/// The delay that a culprit caused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The culprit.
    pub culprit: Culprit,
    /// The time that it took from the job, and from earlier jobs of its task. After the deadline only execution
    /// that was pending at the deadline counts, of these jobs or of more urgent ones: later releases did not
    /// cause the miss.
    pub time: Span,
    /// The CPUs concerned; empty if the culprit concerns none.
    pub cpus: CpuSet,
    /// Whether the deadline would have been met without it, all else being equal.
    pub suffices: bool,
}

/// The cause of a miss.
///
/// The rule: deviations from the declarations (faults) come before the configuration, and that before the
/// demand. On the first of these levels with a culprit that suffices alone, the one with the least time is the
/// cause; ties are broken by the order of [`Culprit`]. Before the demand, faults and settings together are
/// considered; so the demand is the cause only if the job would have been late without any of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Without this culprit the deadline would have been met.
    One(Culprit),
    /// No culprit suffices alone; these suffice together, by level and then with most time first, and none of
    /// them is dispensable.
    Several(Vec<Culprit>),
    /// The job's own execution, within its declared cost, does not fit before its deadline.
    OwnDemand,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It finished.
    Finished,
    /// Its task left.
    Dropped,
    /// It was not finished at the end of the window.
    Unfinished,
}

/// The explanation of a late job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
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
    /// The release of the first job in the row of late jobs of its task that ends with this one: the times of
    /// culprits count from here.
    pub since: Instant,
    /// Execution of its task that was left until its completion; zero if it completed.
    pub remaining: Span,
    /// The time from the release to the end, in the order of [`Part`]; the times add up to exactly that span, and
    /// none is zero.
    pub parts: Vec<(Part, Span)>,
    /// The culprits, the longest time first.
    pub shares: Vec<Share>,
    /// The cause.
    pub cause: Cause,
    /// The mutexes for which it waited, with their holders and what executed instead of these; the longest time first.
    pub mutexes: Vec<MutexWait>,
    /// The occupants of the CPUs of its affinity from the release to the end, by CPU and then by time.
    pub timeline: Vec<Slice>,
    /// What triggered it; `None` if its task arrives by time.
    pub origin: Option<Origin>,
    /// The intervals in which it was the oldest job of its task, without gaps up to the end.
    own: Vec<(Instant, Instant, Part)>,
}

impl Explanation {
    /// Its tardiness; a lower bound if it did not finish.
    pub const fn tardiness(&self) -> Span {
        self.until.late_since(self.deadline)
    }

    /// The time from `from` to `to`, both between the release and the end, as [`parts`](Self::parts) has it.
    fn parts_between(&self, from: Instant, to: Instant) -> Vec<(Part, Span)> {
        let mut parts: BTreeMap<Part, Span> = BTreeMap::new();
        let begin = self.own.first().map_or(self.until, |&(begin, ..)| begin);
        let carry_in = [(self.release, begin, Part::CarryIn)];
        for (begin, end, part) in carry_in.into_iter().chain(self.own.iter().copied()) {
            let time = end.min(to).late_since(begin.max(from));
            *parts.entry(part).or_default() += time;
        }
        parts.retain(|_, time| !time.is_zero());
        parts.into_iter().collect()
    }

    /// The time of this part; zero if there is none.
    pub fn time(&self, part: Part) -> Span {
        let found = self.parts.iter().find(|(other, _)| *other == part);
        found.map_or(Span::ZERO, |&(_, time)| time)
    }

    /// The delay by this culprit.
    pub fn share(&self, culprit: Culprit) -> Option<&Share> {
        self.shares.iter().find(|share| share.culprit == culprit)
    }
}

/// Why there is nothing to explain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplainError {
    /// The records do not hold the release of the job.
    Unknown {
        /// The job.
        job: JobId,
    },
    /// The job missed no deadline within the window.
    OnTime {
        /// The job.
        job: JobId,
        /// When it is due.
        deadline: Instant,
    },
}

impl fmt::Display for ExplainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { job } => write!(
                f,
                "job {} of the task {:?} is not released within the records; records from its release on \
                 would be accepted",
                job.number, job.task
            ),
            Self::OnTime { job, deadline } => write!(
                f,
                "job {} of the task {:?}, due at {deadline}, has missed no deadline by the end of the \
                 records; a late job would be accepted",
                job.number, job.task
            ),
        }
    }
}

impl std::error::Error for ExplainError {}

/// Explains why `job` missed its deadline, from the records of a window that ends at `until`.
///
/// `contract` has the promises of the policy. Records after `until` are ignored. The time before the window is
/// unknown: the initial state is assumed to be that of the task-set file, with all CPUs available and no ready
/// job.
///
/// # Errors
/// If the job is not released within the window, or is not late.
///
/// # Cost
/// One step per record, and while jobs of its task are pending a step per CPU at each instant.
pub fn explain(
    set: &TaskSet,
    contract: &PolicyContract,
    records: &[Record],
    job: JobId,
    until: Instant,
) -> Result<Explanation, ExplainError> {
    let recording = Recording {
        set,
        contract: Some(contract),
        records: records.into(),
        until,
    };
    let mut found = None;
    walk::Walk::new(recording, &[job], 1, Steps::ALL)
        .run(recording, |_, why| found = found.take().or(why));
    let found = found.ok_or(ExplainError::Unknown { job })?;
    let deadline = found.deadline;
    let early = match found.end {
        End::Finished => found.until <= deadline,
        End::Dropped | End::Unfinished => deadline > until,
    };
    if early {
        return Err(ExplainError::OnTime { job, deadline });
    }
    Ok(found)
}

/// How many steps may be taken to explain late jobs: states of CPUs that are examined while such a job waits, and one for each
/// interval in which it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// For jobs to be explained.
    pub explained: u64,
    /// For the other late jobs.
    pub others: u64,
}

impl Steps {
    /// No limit.
    pub const ALL: Self = Self {
        explained: u64::MAX,
        others: u64::MAX,
    };

    /// For jobs of this kind.
    const fn of(&mut self, is_explained: bool) -> &mut u64 {
        match is_explained {
            true => &mut self.explained,
            false => &mut self.others,
        }
    }
}

/// A recorded run.
#[derive(Clone, Copy, Debug)]
pub struct Recording<'a> {
    /// Its task set.
    pub set: &'a TaskSet,
    /// The promises of the policy. Without them the urgency of jobs is unknown: all running jobs count as more urgent
    /// than a waiting one, and nothing is a stall.
    pub contract: Option<&'a PolicyContract>,
    /// Its records; those after `until` are ignored.
    pub records: Records<'a>,
    /// End of the run.
    pub until: Instant,
}

impl<'a> Recording<'a> {
    fn in_window(self) -> impl Iterator<Item = Cow<'a, Record>> {
        let records = self.records.iter();
        records.take_while(move |record| record.at <= self.until)
    }

    /// Calls `visit` with each of the late jobs `late`, in the order in which they end; with the explanation for the
    /// first `explained` of them, without a timeline. Omits jobs of either kind that had not ended when `steps` of it were taken.
    ///
    /// # Cost
    /// That of [`explain`], in two passes over the records for all of the jobs.
    pub fn late_jobs(
        self,
        late: &[JobId],
        explained: usize,
        steps: Steps,
        visit: impl FnMut(LateJob, Option<Explanation>),
    ) {
        let walk = walk::Walk::new(self, late, explained, steps);
        walk.without_timelines().run(self, visit);
    }
}

/// The first `most` jobs that missed their deadlines, by deadline and then by task. Records after `until` are ignored.
pub fn first_misses<'a>(
    set: &TaskSet,
    records: impl Into<Records<'a>>,
    until: Instant,
    most: usize,
) -> Vec<JobId> {
    let mut jobs: Jobs<Vec<JobRow>> = Jobs::new(set, Vec::new());
    let records = records.into().iter();
    for record in records.take_while(|record| record.at <= until) {
        jobs.record(record.at, &record.kind);
    }
    let mut late = jobs.finish(until);
    late.retain(|row| match row.finish {
        Some(finish) => finish > row.deadline,
        None => row.deadline <= until,
    });
    late.sort_by_key(|row| (row.deadline, row.job));
    late.truncate(most);
    late.iter().map(|row| row.job).collect()
}
