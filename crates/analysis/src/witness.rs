//! What shows that something does not fit, as data; `admission` puts it into words.

use shiftwork_model::{CpuId, CpuSet, Share, Span, TaskId};

use crate::exact::{Demand, Rate};

/// The evidence for a "no". It can be checked by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Witness {
    /// A cost, period or deadline of zero: there is no such task.
    NoTask {
        /// The task.
        task: TaskId,
    },
    /// One task needs more than a whole CPU, and a job runs on one CPU at a time.
    Alone {
        /// The task.
        task: TaskId,
        /// C/T or C/D, above 1.
        needed: Rate,
    },
    /// A job may be released so late, and suspend itself for so long, that it takes longer than until its deadline even if
    /// nothing else executes.
    TooLong {
        /// The task.
        task: TaskId,
        /// From its arrival.
        least: Span,
        /// Its relative deadline.
        deadline: Span,
    },
    /// No CPU of the task's affinity is online.
    Nowhere {
        /// The task.
        task: TaskId,
    },
    /// These tasks may run only on these CPUs and need more than there is (Hall's condition fails).
    Crowd {
        /// The tasks, ascending.
        tasks: Vec<TaskId>,
        /// All CPUs that any of them may use.
        cpus: Box<CpuSet>,
        /// The sum of their utilizations.
        needed: Demand,
        /// What each of the CPUs supplies; in all it is less.
        supply: Share,
    },
    /// Under EDF on one CPU: jobs that are released and due within an interval are more than the
    /// CPU can do in it.
    Interval {
        /// The CPU.
        cpu: CpuId,
        /// The length of the interval, from a synchronous release.
        length: Span,
        /// The work that is due.
        demand: Span,
    },
    /// Under non-preemptive EDF on one CPU: the same, if a job that is due later has begun just before.
    Blocked {
        /// The task of that job; its deadline is beyond the interval.
        task: TaskId,
        /// The CPU.
        cpu: CpuId,
        /// The length of the interval, from a synchronous release of all others.
        length: Span,
        /// The work that is due, without that job.
        demand: Span,
    },
    /// Under fixed priorities: a job may finish after its deadline.
    Late {
        /// The task.
        task: TaskId,
        /// The CPU.
        cpu: CpuId,
        /// From the release; a lower bound of the worst response time, above the deadline.
        response: Span,
        /// Its relative deadline.
        deadline: Span,
    },
}

impl Witness {
    /// The times that it names.
    pub(crate) const fn spans(&mut self) -> [Option<&mut Span>; 2] {
        match self {
            Self::Interval { length, demand, .. } | Self::Blocked { length, demand, .. } => {
                [Some(length), Some(demand)]
            }
            Self::Late {
                response: time,
                deadline,
                ..
            }
            | Self::TooLong {
                least: time,
                deadline,
                ..
            } => [Some(time), Some(deadline)],
            Self::NoTask { .. }
            | Self::Alone { .. }
            | Self::Nowhere { .. }
            | Self::Crowd { .. } => [None, None],
        }
    }
}
