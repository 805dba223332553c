//! Mutexes that tasks share, and the protocols that bound how long a task waits for one.

use core::fmt;

use alloc::string::String;

use crate::cpu::CpuId;

/// Index of a resource in its task set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(u32);

impl ResourceId {
    /// The resource at this index.
    ///
    /// # Panics
    /// At an index that does not fit 32 bits.
    pub const fn from_index(index: usize) -> Self {
        assert!(
            index <= u32::MAX as usize,
            "a task set has fewer than 2^32 resources"
        );
        Self(index as u32)
    }

    /// The index, to look a resource up in a table.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Shown as its index.
impl fmt::Debug for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "R{}", self.0)
    }
}

/// By what a job is scheduled that holds a mutex.
///
/// A mutex that is unlocked passes to the most urgent of the jobs that wait for it, and of equally urgent ones to the one
/// that has waited longest; under [`Spin`](Self::Spin) and [`Fmlp`](Self::Fmlp) to that one in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Protocol {
    /// By its own priority or deadline.
    #[default]
    None,
    /// By the most urgent of its own and those of the jobs that wait for a mutex that it holds, which may have theirs
    /// by inheritance too (Sha, Rajkumar and Lehoczky 1990).
    Inheritance,
    /// As by [`Inheritance`](Self::Inheritance), and on more CPUs: a job that holds the mutex may use its own CPUs and those
    /// that the jobs that wait for it may use, which may have some by this protocol too (migratory priority inheritance;
    /// Brandenburg and Bastoni 2012).
    Migratory,
    /// From the moment when it locks: under fixed priorities by the most urgent priority of all tasks that use the mutex
    /// (immediate priority ceiling, `PTHREAD_PRIO_PROTECT`); under EDF by that moment plus the shortest relative deadline
    /// of these tasks, if that is earlier than its own (deadline floor; Burns, Gutiérrez, Aldea and González Harbour 2015).
    Ceiling,
    /// Before all others: from when it runs with the mutex until it has unlocked all that have this protocol or
    /// [`Spin`](Self::Spin), it is neither preempted nor moved to another CPU (Mok 1983).
    NonPreemptive,
    /// The same, and a job that waits for the mutex keeps its CPU: it spins there, is not preempted either, and executes
    /// nothing until the mutex passes to it, first come, first served (MSRP; Gai, Lipari and Di Natale 2001).
    Spin,
    /// Before all others of its CPU but for those that requested one with this protocol earlier: a job to which the mutex belongs is
    /// boosted, and jobs that wait suspend themselves, first come, first served (partitioned FMLP+; Brandenburg 2011). Each task
    /// that uses it is bound to one CPU.
    Fmlp,
    /// If tasks on several CPUs use it, it is *global*: a job to which it belongs is boosted, before all others of its CPU but for
    /// those of a more urgent remote ceiling, which is the most urgent priority of the tasks that use the mutex on other CPUs; jobs
    /// that wait suspend themselves, and the most urgent is next. If all its tasks share a CPU, as by
    /// [`Ceiling`](Self::Ceiling) (MPCP; Rajkumar 1990). Under fixed priorities; each task that uses it is bound to one CPU.
    Mpcp,
    /// If tasks use it that are not bound to this CPU, it is *global*: a job to which it belongs executes on this CPU, boosted, by the
    /// most urgent priority of the tasks that use the mutex. It locks one there if its own priority is more urgent than those of all
    /// global mutexes of the CPU that are locked; else it waits, suspended, and the most urgent job that waits for any of them is next
    /// when that holds. If all its tasks are bound to this CPU, as by [`Ceiling`](Self::Ceiling) (DPCP; Rajkumar, Sha and Lehoczky
    /// 1988). Under fixed priorities; each task that uses it is bound to one CPU.
    Dpcp(CpuId),
    /// As by [`Inheritance`](Self::Inheritance), and with a queue: so many jobs as there are CPUs that its tasks may use hold the
    /// mutex or wait for it first come, first served; of those that request it when the queue is full the most urgent is the next to
    /// join (OMLP; Brandenburg and Anderson 2010).
    Omlp,
}

impl Protocol {
    /// As files and messages have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Inheritance => "inheritance",
            Self::Migratory => "migratory",
            Self::Ceiling => "ceiling",
            Self::NonPreemptive => "non-preemptive",
            Self::Spin => "spin",
            Self::Fmlp => "fmlp+",
            Self::Mpcp => "mpcp",
            Self::Dpcp(_) => "dpcp",
            Self::Omlp => "omlp",
        }
    }

    /// Whether a job that holds the mutex is scheduled by the ranks of those that wait for it.
    pub const fn inherits(self) -> bool {
        matches!(self, Self::Inheritance | Self::Migratory | Self::Omlp)
    }

    /// Whether a job that holds the mutex may use CPUs of those that wait for it.
    pub const fn lends_cpus(self) -> bool {
        matches!(self, Self::Migratory)
    }

    /// Whether a job that runs with the mutex is not preempted.
    pub const fn is_non_preemptive(self) -> bool {
        matches!(self, Self::NonPreemptive | Self::Spin)
    }

    /// Whether a job to which the mutex belongs may be scheduled before all others of its CPU that are not boosted.
    pub const fn boosts(self) -> bool {
        matches!(self, Self::Fmlp | Self::Mpcp | Self::Dpcp(_))
    }

    /// Whether it is defined for fixed priorities alone.
    pub const fn needs_priorities(self) -> bool {
        matches!(self, Self::Mpcp | Self::Dpcp(_))
    }

    /// Whether a job must not suspend itself while it holds the mutex, nor wait for another one but by spinning.
    pub const fn may_not_suspend(self) -> bool {
        self.is_non_preemptive() || self.boosts()
    }
}

/// A mutex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Unique among the resources of the task set.
    pub name: String,
    /// By what its holder is scheduled.
    pub protocol: Protocol,
}
