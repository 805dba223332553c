//! Tasks, and the jobs that they release.

use core::fmt;
use core::num::NonZeroU32;

use alloc::string::String;
use alloc::vec::Vec;

use crate::affinity::Affinity;
use crate::cpu::CpuId;
use crate::curve::ArrivalCurve;
use crate::resource::ResourceId;
use crate::thread::ThreadName;
use crate::time::{Instant, Span};
use crate::utilization::Utilization;

/// Index of a task in its task set. At most one job of a task is ready at a time, so inside a
/// policy it names that job too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(NonZeroU32);

impl TaskId {
    /// Follows every task of a task set; names none of them.
    pub const LAST: Self = Self(NonZeroU32::MAX);

    /// The task at this index.
    ///
    /// # Panics
    /// At an index that does not fit 32 bits.
    pub const fn from_index(index: usize) -> Self {
        assert!(
            index < u32::MAX as usize - 1,
            "a task set has fewer than 2^32 - 2 tasks"
        );
        match NonZeroU32::new(index as u32 + 1) {
            Some(number) => Self(number),
            None => unreachable!(),
        }
    }

    /// The index, to look a task up in a table.
    pub const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Shown as its index.
impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}", self.index())
    }
}

/// One job of a task; `number` counts from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    /// The task that released the job.
    pub task: TaskId,
    /// Which job of the task, from 1.
    pub number: u64,
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}.{}", self.task, self.number)
    }
}

/// A priority under fixed-priority scheduling: 1 is the most urgent of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u32);

impl Priority {
    /// The most urgent priority of a task.
    pub const MOST_URGENT: Self = Self(1);
    /// More urgent than that of any task: what a job is scheduled by that holds a mutex and must not be preempted.
    pub const NON_PREEMPTIVE: Self = Self(0);
    /// The least urgent priority, 2^31 - 1.
    pub const LEAST_URGENT: Self = Self(i32::MAX as u32);

    /// The priority with this number; `None` outside 1 to 2^31 - 1.
    pub const fn new(number: u32) -> Option<Self> {
        if number >= 1 && number <= i32::MAX as u32 {
            Some(Self(number))
        } else {
            None
        }
    }

    /// The number, 1 the most urgent of tasks.
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What an order needs to know of a ready job to rank it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The job's task.
    pub task: TaskId,
    /// When the job became ready: its release, or the end of what kept it from running since (the
    /// job before it, a suspension, throttling). A preemption does not change it.
    pub ready: Instant,
    /// The absolute deadline to schedule by: under GEL orders the priority point.
    pub deadline: Instant,
    /// The task's current fixed priority.
    pub priority: Priority,
}

/// Which triggers of several sources release a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// Each one releases a job.
    Any,
    /// One of every source together release a job: the first of each the first job, and so on.
    All,
}

/// What triggers the jobs of a task.
///
/// A job of a source triggers at its completion, or where its phases say so ([`Phase::Trigger`]), then possibly several
/// times. A job arrives, and is released, with the trigger that completes what [`join`](Self::join) wants. What is
/// triggered at one instant arrives after all completions of that instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// The tasks that trigger it: at least one, all different, and none that it triggers itself, directly or through
    /// others.
    pub sources: Vec<TaskId>,
    /// Which of their triggers release a job; the same for a single source.
    pub join: Join,
    /// How many triggers may wait at most until the job that they release begins, under [`Join::All`] of each source. A
    /// trigger that finds so many is lost. `None`: any number. At least one under [`Join::All`].
    pub queue: Option<u32>,
}

/// How the arrivals of a task follow its arrival curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Each as early as those before it allow.
    Earliest,
    /// Later than that by uniformly up to the shortest distance, from the seed.
    Random,
}

/// When the jobs of a task arrive, counted from the task's offset. They are released then, or later by up to
/// [`Task::jitter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Every period.
    Periodic,
    /// The period plus uniformly up to one period more, from the seed.
    Sporadic,
    /// At these instants, ascending and at least a period apart, and then never again.
    Releases(Vec<Instant>),
    /// No closer than this curve allows. The task's period is the shortest of its distances.
    Curve(ArrivalCurve, Pace),
    /// When jobs of other tasks trigger them. Such a task has no offset and no jitter of its own; its period says how far
    /// apart arrivals are in the mean ([`TaskSet::triggered_period`](crate::TaskSet::triggered_period)).
    Triggered(Trigger),
}

/// A stretch of what a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Computes for this long.
    Run(Span),
    /// Suspends itself for this long.
    Sleep(Span),
    /// Locks a mutex that the job does not hold, and waits until it can.
    Lock(ResourceId),
    /// Unlocks a mutex that the job holds.
    Unlock(ResourceId),
    /// Triggers a job of this task, of which the job's task is a source.
    Trigger(TaskId),
}

/// What a job really does, as opposed to what the task declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Runs for exactly the declared cost.
    Cost,
    /// Runs for this long; longer than the cost is an overrun.
    Constant(Span),
    /// Runs for a whole number of nanoseconds in this closed range, uniformly from the seed.
    Uniform(Span, Span),
    /// Runs as long as this list says, job by job, cyclically. Not empty.
    Trace(Vec<Span>),
    /// Runs, suspends itself, locks, unlocks and triggers by turns, every job alike. Not empty; each mutex that it locks it unlocks
    /// later.
    Phases(Vec<Phase>),
}

/// What happens to a job that has used up its budget and is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnOverrun {
    /// It waits until the budget is replenished.
    #[default]
    Throttle,
    /// It goes on; nothing is enforced.
    Continue,
    /// It goes on and its program gets a signal (live machines; simulated as `Continue`).
    Signal,
}

/// A task: what its file entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Unique in the task set.
    pub name: String,
    /// C: the worst-case execution time of a job, and the budget where one is enforced. Above zero.
    pub cost: Span,
    /// T: the least separation of arrivals, unless other tasks trigger them. Above zero. In the long run arrivals may be
    /// further apart: see [`utilization`](Self::utilization).
    pub period: Span,
    /// D, relative to an arrival; may be shorter or longer than the period. Above zero.
    pub deadline: Span,
    /// The earliest arrival.
    pub offset: Span,
    /// J: how long after its arrival a job is released at most, a whole number of ticks from the seed. Jobs are
    /// released in their order. Zero: at its arrival.
    pub jitter: Span,
    /// The CPUs the task may use.
    pub affinity: Affinity,
    /// `None`: by deadline, see [`TaskSet::priorities`](crate::TaskSet::priorities).
    pub priority: Option<Priority>,
    /// When jobs arrive.
    pub arrival: Arrival,
    /// Where the task is before it first runs, if its file says.
    pub start_cpu: Option<CpuId>,
    /// What a job really does.
    pub work: Work,
    /// What happens at the end of the budget.
    pub on_overrun: OnOverrun,
    /// The program to run on a live machine; empty for synthetic work.
    pub command: Vec<String>,
    /// The thread of a running program that the task stands for. A task with a [`command`](Self::command) has none.
    pub thread: Option<ThreadName>,
}

impl Task {
    /// A periodic task with an implicit deadline and without jitter that does exactly what it declares.
    pub fn periodic(name: &str, cost: Span, period: Span, affinity: Affinity) -> Self {
        Self {
            name: name.into(),
            cost,
            period,
            deadline: period,
            offset: Span::ZERO,
            jitter: Span::ZERO,
            affinity,
            priority: None,
            arrival: Arrival::Periodic,
            start_cpu: None,
            work: Work::Cost,
            on_overrun: OnOverrun::default(),
            command: Vec::new(),
            thread: None,
        }
    }

    /// For how long a job executes at most, by what it really does.
    pub fn longest_run(&self) -> Span {
        match &self.work {
            Work::Cost => self.cost,
            Work::Constant(run) | Work::Uniform(_, run) => *run,
            Work::Trace(runs) => runs.iter().copied().max().unwrap_or(Span::ZERO),
            Work::Phases(phases) => {
                let runs = phases.iter().map(|phase| match phase {
                    Phase::Run(run) => *run,
                    Phase::Sleep(_) | Phase::Lock(_) | Phase::Unlock(_) | Phase::Trigger(_) => {
                        Span::ZERO
                    }
                });
                runs.fold(Span::ZERO, |sum, run| (sum + run).min(Span::MAX))
            }
        }
    }

    /// Whether a job may use up its budget before it is done, and then has to wait.
    pub fn may_be_throttled(&self) -> bool {
        self.on_overrun == OnOverrun::Throttle && self.longest_run() > self.cost
    }

    /// The phases of every job; empty if jobs only compute.
    pub const fn phases(&self) -> &[Phase] {
        match &self.work {
            Work::Phases(phases) => phases.as_slice(),
            Work::Cost | Work::Constant(_) | Work::Uniform(..) | Work::Trace(_) => &[],
        }
    }

    /// Whether its jobs lock mutexes.
    pub fn locks(&self) -> bool {
        let mut phases = self.phases().iter();
        phases.any(|phase| matches!(phase, Phase::Lock(_)))
    }

    /// Whether its jobs lock this mutex.
    pub fn locks_one(&self, resource: ResourceId) -> bool {
        self.phases().contains(&Phase::Lock(resource))
    }

    /// The CPU that the task is bound to; `None` if it may use several.
    pub fn only_cpu(&self) -> Option<CpuId> {
        let mut cpus = self.affinity.cpus().iter();
        let first = cpus.next()?;
        cpus.next().is_none().then_some(first)
    }

    /// The curve that its arrivals keep to; `None` if they are a period apart or more, and nothing else is known.
    pub const fn curve(&self) -> Option<&ArrivalCurve> {
        match &self.arrival {
            Arrival::Curve(curve, _) => Some(curve),
            Arrival::Periodic
            | Arrival::Sporadic
            | Arrival::Releases(_)
            | Arrival::Triggered(_) => None,
        }
    }

    /// The mean separation of its arrivals in the long run if all are as early as possible, rounded up: its period, unless it
    /// has an arrival curve.
    pub fn mean_period(&self) -> Span {
        self.curve().map_or(self.period, ArrivalCurve::mean)
    }

    /// The longest time from one arrival to the next; `None` if there may be a last one, or others trigger its jobs.
    pub fn longest_gap(&self) -> Option<Span> {
        match &self.arrival {
            Arrival::Periodic => Some(self.period),
            Arrival::Sporadic => Some(self.period + self.period),
            Arrival::Curve(curve, Pace::Earliest) => Some(curve.longest_gap()),
            Arrival::Curve(curve, Pace::Random) => Some(curve.longest_gap() + self.period),
            Arrival::Releases(_) | Arrival::Triggered(_) => None,
        }
    }

    /// So much work every so often, in the long run: C in every T, or in the arrival curve's block of arrivals.
    pub fn long_run(&self) -> (Span, Span) {
        let curve = self.curve();
        curve.map_or((self.cost, self.period), |curve| curve.long_run(self.cost))
    }

    /// C/T, or by the arrival curve what follows from it in the long run.
    pub fn utilization(&self) -> Utilization {
        let (work, every) = self.long_run();
        Utilization::new(work, every).expect("a task's period is above zero")
    }
}
