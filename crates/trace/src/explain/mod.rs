//! What led to a deadline miss: where the time of the job went, and what is to attribution.
//!
//! [`explain`] sees the records of a window, as a flight recorder keeps them, and what the policy
//! promises ([`PolicyContract`]), nothing else. It charges every nanosecond from the release of the job to its
//! end to exactly one [`Part`]. Then it asks of each [`Culprit`] whether the job would have met its
//! deadline without it, and names the cause by a fixed rule, see [`Cause`]. `docs/explain.md` says the
//! same for users.
//!
//! `walk.rs` follows the records, `waiting.rs` says why a job that is ready does not run, `attribution.rs` holds
//! the rule, `text.rs` and `json.rs` what people and programs read.

mod attribution;
mod interrupted;
mod json;
mod text;
mod timeline;
mod waiting;
mod walk;

#[cfg(test)]
mod tests;

use std::fmt;

use shiftwork_model::{CpuSet, Instant, JobId, Record, Recorder, Span, TaskId, TaskSet};

use crate::check::PolicyContract;
use crate::jobs::{JobRow, Jobs};

pub use text::{readable, readable_at};
pub use timeline::{Occupant, Slice};

/// What a part of the time between a job's release and its end went into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The job before it, of its own task, was not finished.
    CarryIn,
    /// It executed, within its declared cost.
    Executing,
    /// It executed beyond its declared cost.
    OwnOverrun,
    /// It was on a CPU, and interrupts or scheduling itself had that CPU.
    Interrupted,
    /// Its budget was spent.
    Throttled,
    /// It suspended itself.
    Suspended,
    /// One of its CPUs was idle or ran somebody less urgent, against the policy's promise: nothing was
    /// decided for it, or not yet carried out.
    Stalled,
    /// One of its CPUs was idle or ran somebody less urgent, and the policy lets that be: no preemption,
    /// decisions at quantum boundaries only, no pull.
    HeldBack,
    /// A CPU that it could have got was taken by a higher scheduling class, all others rightly busy.
    Taken,
    /// The same with a CPU that was offline.
    Offline,
    /// The same with a CPU that background work had.
    Background,
    /// Its CPUs were with more urgent jobs, one of this task beyond its declared cost.
    Overrun(TaskId),
    /// Its CPUs were with more urgent jobs within their declared costs; the least urgent was of this task.
    MoreUrgent(TaskId),
}

/// What may be to attribution for a miss, in the order in which ties are broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Culprit {
    /// The task left, and its job was dropped.
    TaskLeft,
    /// CPUs were offline.
    CpuOffline,
    /// CPUs were taken by a higher scheduling class.
    CpuTaken,
    /// Nothing was decided for a job that could have run, or it was not carried out.
    Stall,
    /// Interrupts, or scheduling itself, had the CPU.
    Interrupts,
    /// The task itself needed more than its cost.
    OwnOverrun,
    /// Jobs of this task needed more than their cost.
    Overrun(TaskId),
    /// CPUs were given to background work.
    Reserve,
    /// Other CPUs were idle or ran somebody less urgent, and moving jobs would have made room. The policy does
    /// not do that.
    NoShift,
    /// Other CPUs were idle or ran somebody less urgent, outside of the affinity.
    NarrowAffinity,
    /// The same, inside the affinity and outside of where the policy has packed the task.
    NarrowPacking,
    /// The policy's rule let less urgent jobs go on, or CPUs be idle.
    Rule,
    /// More urgent jobs, all within their costs.
    Overload,
    /// The job's own suspensions.
    Suspension,
}

/// How far a culprit is from how things should be; the first level that holds a sufficient one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    /// Something happened that was not declared.
    Fault,
    /// It was set up like this.
    Setting,
    /// Everything was as declared, and is too much.
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
            | Self::Rule => Level::Setting,
            Self::Overload | Self::Suspension => Level::Demand,
        }
    }
}

/// How much later a culprit made the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The culprit.
    pub culprit: Culprit,
    /// The time that it took from the job, and from those of its task that it had to wait for. After the
    /// deadline only what they or more urgent jobs still had to do by then is counted: nobody who came
    /// later made it late.
    pub time: Span,
    /// On which CPUs that was; empty where no CPU is meant.
    pub cpus: CpuSet,
    /// Whether the deadline would have been met without it, all else being equal.
    pub suffices: bool,
}

/// Why the deadline was missed.
///
/// The rule: what was not as declared (a fault) goes before how things are set up, and that before what
/// is demanded. On the first of these levels on which some culprit alone would have been enough, the one
/// with the least time is the cause; equal times are decided by the order of [`Culprit`]. Before demand
/// comes the question whether faults and settings are enough together; so demand is to attribution only
/// where the job would have been late without any of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Without this one the deadline would have been met.
    One(Culprit),
    /// None alone is enough; these together are, by level and then with most time first, and none of them
    /// can be left out.
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

/// Where the time of a late job went, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The job.
    pub job: JobId,
    /// When it was released.
    pub release: Instant,
    /// When it was due.
    pub deadline: Instant,
    /// Its finish, or the end of what is known of it.
    pub until: Instant,
    /// Which of them that is.
    pub end: End,
    /// The release of the first of the row of late jobs of its task that ends in this one: what
    /// culprits did is counted from here.
    pub since: Instant,
    /// What its task still had to execute for it to be finished; zero if it is.
    pub remaining: Span,
    /// From the release to the end, in the order of [`Part`]; the times add up to exactly that span, and
    /// none is zero.
    pub parts: Vec<(Part, Span)>,
    /// Who may be to attribution, the longest time first.
    pub shares: Vec<Share>,
    /// The cause.
    pub cause: Cause,
    /// Who had which CPU of its affinity from the release to the end, by CPU and then by time.
    pub timeline: Vec<Slice>,
}

impl Explanation {
    /// How late it is, or at least is if it did not finish.
    pub const fn tardiness(&self) -> Span {
        self.until.late_since(self.deadline)
    }

    /// The time of this part; zero if there is none.
    pub fn time(&self, part: Part) -> Span {
        let found = self.parts.iter().find(|(other, _)| *other == part);
        found.map_or(Span::ZERO, |&(_, time)| time)
    }

    /// What it has of this culprit.
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
/// `contract` say what the policy promises. Records after `until` are not looked at. What was before
/// the window is unknown: the state at its beginning is taken to be that of the task-set file, all CPUs
/// there and nobody ready.
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
    let losses = interrupted::Losses::of(set, records);
    let mut walk = walk::Walk::new(set, contract, &losses, job);
    for record in records {
        if record.at > until || !walk.take(record) {
            break;
        }
    }
    let found = walk.finish(until).ok_or(ExplainError::Unknown { job })?;
    let deadline = found.deadline;
    let early = match found.end {
        End::Finished => found.until <= deadline,
        End::Dropped | End::Unfinished => deadline > until,
    };
    if early {
        return Err(ExplainError::OnTime { job, deadline });
    }
    Ok(attribution::explained(found))
}

/// The first jobs that missed their deadlines, by deadline and then by task, at most `most`. The records
/// end at `until`.
pub fn first_misses(set: &TaskSet, records: &[Record], until: Instant, most: usize) -> Vec<JobId> {
    let mut jobs: Jobs<Vec<JobRow>> = Jobs::new(set, Vec::new());
    for record in records {
        jobs.record(record.at, &record.what);
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
