//! The records of a run. Every machine emits the same kinds of records, in the order of the events,
//! so that one set of counters and checkers applies to all machines.

use alloc::boxed::Box;

use crate::affinity::Affinity;
use crate::cpu::{CpuId, CpuSet};
use crate::resource::ResourceId;
use crate::task::{JobId, Priority, TaskId};
use crate::time::{Instant, Span};

/// Why a job that is not finished may not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReadyReason {
    /// It suspended itself.
    Suspended,
    /// Its budget is spent and not yet replenished.
    Throttled,
    /// It waits for this mutex.
    Blocked(ResourceId),
}

/// What a record of a run says.
///
/// A job is *pending* from `Released` to `Completed` (or `Left`), and *ready* from `Ready` to
/// `NotReady`, `Completed` or `Left`. The jobs of a task run one after the other: a job becomes
/// ready when it is released and the job before it is completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// A job was released; it is due at `deadline`.
    Released {
        /// The job.
        job: JobId,
        /// Arrival plus relative deadline; the job arrived when it was released, or earlier by the jitter of its task
        /// at most.
        deadline: Instant,
    },
    /// A job may run from now on.
    Ready {
        /// The job.
        job: JobId,
        /// The deadline that it is scheduled by: the job's own (under GEL orders its priority point), or after a
        /// replenishment a later one.
        deadline: Instant,
        /// The fixed priority that it is scheduled by.
        priority: Priority,
    },
    /// An unfinished job may not run any more.
    NotReady {
        /// The job.
        job: JobId,
        /// Why.
        reason: NotReadyReason,
    },
    /// A job finished.
    Completed {
        /// The job.
        job: JobId,
    },
    /// A CPU runs another job from now on (`None`: no real-time job).
    ///
    /// Several switches of one CPU at one instant are possible; the last one counts.
    Switched {
        /// The CPU.
        cpu: CpuId,
        /// What it ran.
        from: Option<JobId>,
        /// What it runs.
        to: Option<JobId>,
    },
    /// The time since the job's dispatch, or since its last record of this kind, in which the job
    /// had its CPU but did not execute: the CPU handled interrupts or executed the scheduler,
    /// including cache refills.
    ///
    /// Recorded at the instant at which the job leaves the CPU, or earlier. A machine that does not
    /// measure it emits no such record.
    Interrupted {
        /// The job.
        job: JobId,
        /// For how long, above zero.
        time: Span,
    },
    /// The job waits for the mutex and keeps its CPU, on which it executes nothing of its work until it holds the mutex.
    Spinning {
        /// The job.
        job: JobId,
        /// The mutex.
        resource: ResourceId,
    },
    /// The job holds the mutex from now on.
    Locked {
        /// The job.
        job: JobId,
        /// The mutex.
        resource: ResourceId,
    },
    /// The job holds the mutex no more.
    Unlocked {
        /// The job.
        job: JobId,
        /// The mutex.
        resource: ResourceId,
    },
    /// A job of a source of the task triggered it. `Released` follows at once if that releases a job.
    Triggered {
        /// The job that triggered it, which may have completed at this instant.
        by: JobId,
        /// The task.
        task: TaskId,
        /// Whether the trigger is lost, because too many wait already or the task takes no part.
        is_lost: bool,
    },
    /// The protocol of a mutex changes what the task's job is scheduled by, from now on. A job that becomes ready later
    /// says it again.
    RankChanged {
        /// The task.
        task: TaskId,
        /// The priority.
        priority: Priority,
        /// The deadline.
        deadline: Instant,
    },
    /// The job's budget is used up.
    BudgetSpent {
        /// The job.
        job: JobId,
    },
    /// The task has a full budget again, to be used before `deadline`.
    Replenished {
        /// The task.
        task: TaskId,
        /// The new budget.
        budget: Span,
        /// The new deadline to schedule by. A job that is ready is scheduled by it from now on.
        deadline: Instant,
    },
    /// The task takes part from now on.
    Entered {
        /// The task.
        task: TaskId,
    },
    /// The task takes no part any more; its pending jobs are dropped.
    Left {
        /// The task.
        task: TaskId,
    },
    /// The task asked for CPUs that it was not admitted for, and loses its part: [`Left`](Self::Left) follows. It
    /// goes on in the background until it is admitted for these CPUs, and may ask again.
    Demoted {
        /// The task.
        task: TaskId,
        /// The CPUs that it asked for; not all need be CPUs of the run.
        asked: Box<CpuSet>,
    },
    /// The task may use these CPUs from now on, by a change or by the protocol of a mutex.
    AffinitySet {
        /// The task.
        task: TaskId,
        /// The CPUs.
        affinity: Box<Affinity>,
    },
    /// The task has another fixed priority.
    PrioritySet {
        /// The task.
        task: TaskId,
        /// The priority.
        priority: Priority,
    },
    /// The task has other parameters, for jobs released from now on.
    AttributesSet {
        /// The task.
        task: TaskId,
        /// The cost.
        cost: Span,
        /// The period.
        period: Span,
        /// The relative deadline.
        deadline: Span,
    },
    /// The CPU is gone.
    CpuOffline {
        /// The CPU.
        cpu: CpuId,
    },
    /// The CPU is back.
    CpuOnline {
        /// The CPU.
        cpu: CpuId,
    },
    /// Work that the scheduler does not rule over has the CPU, such as a thread of a higher scheduling
    /// class; no job of the run can be on it. A CPU may be offline at the same time.
    CpuTaken {
        /// The CPU.
        cpu: CpuId,
    },
    /// The work that had taken the CPU has released it.
    CpuReturned {
        /// The CPU.
        cpu: CpuId,
    },
    /// Background work has the CPU; no real-time job may run on it.
    BackgroundStarted {
        /// The CPU.
        cpu: CpuId,
    },
    /// The CPU serves real-time jobs again.
    BackgroundEnded {
        /// The CPU.
        cpu: CpuId,
    },
    /// A timed action was refused.
    Refused {
        /// Index of the action in the task set.
        action: usize,
        /// Why, for people.
        reason: Box<str>,
    },
}

impl RecordKind {
    /// The deadline that it says, to count it from another origin.
    pub const fn deadline_mut(&mut self) -> Option<&mut Instant> {
        match self {
            Self::Released { deadline, .. }
            | Self::Ready { deadline, .. }
            | Self::RankChanged { deadline, .. }
            | Self::Replenished { deadline, .. } => Some(deadline),
            _ => None,
        }
    }

    /// The tasks that it is about, to give them other numbers; a switch or a trigger is about two.
    pub const fn tasks_mut(&mut self) -> [Option<&mut TaskId>; 2] {
        const fn of(job: &mut Option<JobId>) -> Option<&mut TaskId> {
            match job {
                Some(job) => Some(&mut job.task),
                None => None,
            }
        }
        match self {
            Self::Released { job, .. }
            | Self::Ready { job, .. }
            | Self::NotReady { job, .. }
            | Self::Completed { job }
            | Self::Interrupted { job, .. }
            | Self::Spinning { job, .. }
            | Self::Locked { job, .. }
            | Self::Unlocked { job, .. }
            | Self::BudgetSpent { job } => [Some(&mut job.task), None],
            Self::Switched { from, to, .. } => [of(from), of(to)],
            Self::Triggered { by, task, .. } => [Some(&mut by.task), Some(task)],
            Self::Replenished { task, .. }
            | Self::RankChanged { task, .. }
            | Self::Entered { task }
            | Self::Left { task }
            | Self::Demoted { task, .. }
            | Self::AffinitySet { task, .. }
            | Self::PrioritySet { task, .. }
            | Self::AttributesSet { task, .. } => [Some(task), None],
            Self::CpuOffline { .. }
            | Self::CpuOnline { .. }
            | Self::CpuTaken { .. }
            | Self::CpuReturned { .. }
            | Self::BackgroundStarted { .. }
            | Self::BackgroundEnded { .. }
            | Self::Refused { .. } => [None, None],
        }
    }
}

/// One record of a run: what happened, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The instant.
    pub at: Instant,
    /// What happened.
    pub kind: RecordKind,
}

/// Consumes the records of a run as they are made: a counter, a checker, a writer, or several of them.
pub trait Recorder {
    /// Takes one record. Instants never decrease.
    fn record(&mut self, at: Instant, kind: &RecordKind);
}

/// Keeps nothing.
impl Recorder for () {
    fn record(&mut self, _: Instant, _: &RecordKind) {}
}

/// Keeps everything.
impl Recorder for alloc::vec::Vec<Record> {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        self.push(Record {
            at,
            kind: kind.clone(),
        });
    }
}

/// Passes on to both.
impl<A: Recorder, B: Recorder> Recorder for (A, B) {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        self.0.record(at, kind);
        self.1.record(at, kind);
    }
}

/// Passes on if there is one.
impl<R: Recorder> Recorder for Option<R> {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        if let Some(recorder) = self {
            recorder.record(at, kind);
        }
    }
}

impl<R: Recorder + ?Sized> Recorder for &mut R {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        (**self).record(at, kind);
    }
}
