//! Why a request is refused, in words.

use core::fmt;

use shiftwork_model::{Affinity, CpuId, CpuSet, Instant};

use super::Bandwidth;
use crate::ServerParameters;

/// Where bandwidth is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Everybody in this cluster, which has these CPUs.
    Cluster(usize, Box<CpuSet>),
    /// Everybody who is bound to this CPU.
    Cpu(CpuId),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(index, cpus) => write!(f, "cluster {index} {{{cpus}}}"),
            Self::Cpu(cpu) => write!(f, "CPU {cpu}"),
        }
    }
}

/// Why a request is refused. Each message says what was found and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestRefused {
    /// A task enters that takes part.
    Present {
        /// The task.
        task: String,
    },
    /// A task leaves that takes no part.
    Absent {
        /// The task.
        task: String,
    },
    /// Not C <= D <= T.
    Parameters {
        /// The task.
        task: String,
        /// What it asks for.
        parameters: ServerParameters,
    },
    /// Linux takes tasks only that may use all of their cluster.
    Narrow {
        /// The task.
        task: String,
        /// Where it may run, or wants to.
        affinity: Box<Affinity>,
        /// Its cluster.
        cluster: Box<CpuSet>,
    },
    /// The repaired admission takes tasks that are bound to one CPU as well, but no others.
    NeitherOneNorAll {
        /// The task.
        task: String,
        /// Where it may run, or wants to.
        affinity: Box<Affinity>,
        /// Its cluster.
        cluster: Box<CpuSet>,
    },
    /// No CPU of an affinity is in the task's cluster.
    OutsideCluster {
        /// The task.
        task: String,
        /// Where it wants to run.
        affinity: Box<Affinity>,
        /// Its cluster.
        cluster: Box<CpuSet>,
    },
    /// No CPU of an affinity is online.
    Offline {
        /// The task.
        task: String,
        /// Where it may run, or wants to.
        affinity: Box<Affinity>,
        /// Which CPUs of its cluster are online.
        online: Box<CpuSet>,
    },
    /// The task keeps its affinity and its parameters while it takes part.
    Fixed {
        /// The task.
        task: String,
        /// Which of them.
        what: &'static str,
    },
    /// There is no room for the task.
    NoRoom {
        /// The task.
        task: String,
        /// What it asks for.
        asked: Bandwidth,
        /// Where.
        place: Place,
        /// What is left there, without what the task has itself.
        left: Bandwidth,
    },
    /// There would be no room any more for those that are there.
    TooLittle {
        /// Where.
        place: Place,
        /// What is needed.
        needed: Bandwidth,
        /// What would be there.
        limit: Bandwidth,
    },
    /// A task is bound to the CPU that is to go.
    Bound {
        /// The CPU.
        cpu: CpuId,
        /// The task.
        task: String,
    },
    /// A cluster that is used would have, or has, no CPU online.
    NobodyOnline {
        /// Which.
        cluster: usize,
        /// Its CPUs.
        cpus: Box<CpuSet>,
    },
    /// There is no such cluster.
    NoSuchCluster {
        /// What was asked for.
        cluster: usize,
        /// How many there are.
        clusters: usize,
    },
    /// The task is in that cluster.
    SameCluster {
        /// The task.
        task: String,
        /// The cluster.
        cluster: usize,
    },
    /// A new cluster has no CPU, or there would be no cluster at all.
    EmptyCluster {
        /// Which.
        cluster: usize,
    },
    /// Two new clusters share a CPU.
    Overlap {
        /// The CPU.
        cpu: CpuId,
        /// Both clusters.
        clusters: [usize; 2],
    },
    /// A cluster would be gone, and a task is in it.
    Vanishes {
        /// Which.
        cluster: usize,
        /// The task.
        task: String,
    },
    /// A cluster would be gone, and what a task had there still counts.
    Lingers {
        /// Which.
        cluster: usize,
        /// The task.
        task: String,
        /// Until when.
        until: Instant,
    },
    /// There is no such CPU.
    NoSuchCpu {
        /// What was asked for.
        cpu: CpuId,
        /// How many there are.
        cpus: usize,
    },
    /// The CPU is what it is to become.
    Already {
        /// The CPU.
        cpu: CpuId,
        /// `offline` or `online`.
        state: &'static str,
    },
}

impl fmt::Display for RequestRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Present { task } => write!(f, "task `{task}` takes part already"),
            Self::Absent { task } => write!(f, "task `{task}` takes no part"),
            Self::Parameters { task, parameters } => write!(
                f,
                "task `{task}` asks for {} within {} in each {}; its cost may be at most its deadline, and \
                 that at most its period",
                parameters.cost, parameters.deadline, parameters.period
            ),
            Self::Narrow {
                task,
                affinity,
                cluster,
            } => write!(
                f,
                "CPUs {{{affinity}}} of task `{task}` are less than its cluster {{{cluster}}}; \
                 SCHED_DEADLINE takes only tasks that may use all of it, as long as it controls admission"
            ),
            Self::NeitherOneNorAll {
                task,
                affinity,
                cluster,
            } => write!(
                f,
                "CPUs {{{affinity}}} of task `{task}` are neither one CPU nor all of its cluster \
                 {{{cluster}}}; either would be taken"
            ),
            Self::OutsideCluster {
                task,
                affinity,
                cluster,
            } => write!(
                f,
                "none of CPUs {{{affinity}}} is in the cluster {{{cluster}}} of task `{task}`; name one \
                 of these, or `move` the task to another cluster"
            ),
            Self::Offline {
                task,
                affinity,
                online,
            } => write!(
                f,
                "none of CPUs {{{affinity}}} of task `{task}` is online; of its cluster {{{online}}} are"
            ),
            Self::Fixed { task, what } => write!(
                f,
                "task `{task}` keeps the {what} with which it entered; `leave`, change it, and `enter` again"
            ),
            Self::NoRoom {
                task,
                asked,
                place,
                left,
            } => write!(
                f,
                "task `{task}` asks for {asked} of a CPU, and {place} has {left} left; up to that would be \
                 taken"
            ),
            Self::TooLittle {
                place,
                needed,
                limit,
            } => write!(
                f,
                "{place} would have {limit} of a CPU for tasks that take {needed}; some have to leave or ask \
                 for less before"
            ),
            Self::Bound { cpu, task } => write!(
                f,
                "task `{task}` is bound to CPU {cpu}; it has to leave before that can go offline"
            ),
            Self::NobodyOnline { cluster, cpus } => write!(
                f,
                "no CPU of cluster {cluster} {{{cpus}}} would be online; tasks that use it need one"
            ),
            Self::NoSuchCluster { cluster, clusters } => write!(
                f,
                "there is no cluster {cluster}; the clusters are 0 to {}",
                clusters.saturating_sub(1)
            ),
            Self::SameCluster { task, cluster } => write!(
                f,
                "task `{task}` is in cluster {cluster} already; it can move to another one"
            ),
            Self::EmptyCluster { cluster } => write!(
                f,
                "cluster {cluster} would have no CPU; each cluster needs one at least"
            ),
            Self::Overlap {
                cpu,
                clusters: [one, other],
            } => write!(
                f,
                "CPU {cpu} would be in clusters {one} and {other}; a CPU can be in one only"
            ),
            Self::Vanishes { cluster, task } => write!(
                f,
                "cluster {cluster} would be gone, and task `{task}` is in it; `move` it before"
            ),
            Self::Lingers {
                cluster,
                task,
                until,
            } => write!(
                f,
                "cluster {cluster} would be gone, and what task `{task}` had there counts until {until}; \
                 ask again then"
            ),
            Self::NoSuchCpu { cpu, cpus } => write!(
                f,
                "there is no CPU {cpu}; the CPUs are 0 to {}",
                cpus.saturating_sub(1)
            ),
            Self::Already { cpu, state } => write!(f, "CPU {cpu} is {state} already"),
        }
    }
}

impl core::error::Error for RequestRefused {}
