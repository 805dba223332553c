//! The reasons for refused requests.

use core::fmt;

use shiftwork_model::{Affinity, CpuId, CpuSet, Instant};

use super::Bandwidth;
use crate::ServerParameters;

/// The tasks whose bandwidth is added up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BandwidthScope {
    /// All tasks of this cluster, which has these CPUs.
    Cluster(usize, Box<CpuSet>),
    /// All tasks bound to this CPU.
    Cpu(CpuId),
}

impl fmt::Display for BandwidthScope {
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
    /// The task that is to enter is present already.
    Present {
        /// The task.
        task: String,
    },
    /// The task that is to leave is not present.
    Absent {
        /// The task.
        task: String,
    },
    /// Not C <= D <= T.
    Parameters {
        /// The task.
        task: String,
        /// The requested parameters.
        parameters: ServerParameters,
    },
    /// Linux admits only tasks that may use all of their cluster.
    Narrow {
        /// The task.
        task: String,
        /// Its affinity, or the requested one.
        affinity: Box<Affinity>,
        /// Its cluster.
        cluster: Box<CpuSet>,
    },
    /// The repaired admission also admits tasks that are bound to one CPU, but no other affinities.
    NeitherOneNorAll {
        /// The task.
        task: String,
        /// Its affinity, or the requested one.
        affinity: Box<Affinity>,
        /// Its cluster.
        cluster: Box<CpuSet>,
    },
    /// No CPU of an affinity is in the task's cluster.
    OutsideCluster {
        /// The task.
        task: String,
        /// The requested affinity.
        affinity: Box<Affinity>,
        /// Its cluster.
        cluster: Box<CpuSet>,
    },
    /// No CPU of an affinity is online.
    Offline {
        /// The task.
        task: String,
        /// Its affinity, or the requested one.
        affinity: Box<Affinity>,
        /// The online CPUs of its cluster.
        online: Box<CpuSet>,
    },
    /// The affinity and the parameters of a present task are fixed.
    Fixed {
        /// The task.
        task: String,
        /// `affinity` or `parameters`.
        what: &'static str,
    },
    /// The bandwidth of the task does not fit.
    NoRoom {
        /// The task.
        task: String,
        /// Requested bandwidth.
        asked: Bandwidth,
        /// The cluster or CPU without room.
        scope: BandwidthScope,
        /// Bandwidth left there, not counting the task's own.
        left: Bandwidth,
    },
    /// The bandwidth in use would exceed the changed limit.
    TooLittle {
        /// The cluster or CPU whose limit changes.
        scope: BandwidthScope,
        /// Bandwidth in use.
        needed: Bandwidth,
        /// Bandwidth after the change.
        limit: Bandwidth,
    },
    /// A task is bound to the CPU that is to go offline.
    Bound {
        /// The CPU.
        cpu: CpuId,
        /// The task.
        task: String,
    },
    /// A cluster with tasks has, or would have, no online CPU.
    NoCpuOnline {
        /// The cluster.
        cluster: usize,
        /// Its CPUs.
        cpus: Box<CpuSet>,
    },
    /// There is no such cluster.
    NoSuchCluster {
        /// The requested cluster.
        cluster: usize,
        /// Number of clusters.
        clusters: usize,
    },
    /// The task is in that cluster already.
    SameCluster {
        /// The task.
        task: String,
        /// The cluster.
        cluster: usize,
    },
    /// A new cluster has no CPU, or there would be no cluster at all.
    EmptyCluster {
        /// The cluster.
        cluster: usize,
    },
    /// Two new clusters share a CPU.
    Overlap {
        /// The CPU.
        cpu: CpuId,
        /// Both clusters.
        clusters: [usize; 2],
    },
    /// A cluster with a task would be removed.
    Vanishes {
        /// The cluster.
        cluster: usize,
        /// The task.
        task: String,
    },
    /// A cluster would be removed in which the bandwidth of a departed server still counts.
    Lingers {
        /// The cluster.
        cluster: usize,
        /// The task that left.
        task: String,
        /// The end of that time.
        until: Instant,
    },
    /// There is no such CPU.
    NoSuchCpu {
        /// The requested CPU.
        cpu: CpuId,
        /// Number of CPUs.
        cpus: usize,
    },
    /// The CPU is in the requested state already.
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
                scope,
                left,
            } => write!(
                f,
                "task `{task}` asks for {asked} of a CPU, and {scope} has {left} left; up to that would be \
                 taken"
            ),
            Self::TooLittle {
                scope,
                needed,
                limit,
            } => write!(
                f,
                "{scope} would have {limit} of a CPU for tasks that take {needed}; tasks must leave or ask \
                 for less first"
            ),
            Self::Bound { cpu, task } => write!(
                f,
                "task `{task}` is bound to CPU {cpu}; it has to leave before that can go offline"
            ),
            Self::NoCpuOnline { cluster, cpus } => write!(
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
                "cluster {cluster} would be removed, but task `{task}` is in it; `move` it first"
            ),
            Self::Lingers {
                cluster,
                task,
                until,
            } => write!(
                f,
                "cluster {cluster} would be removed, but the bandwidth that task `{task}` had there counts until \
                 {until}; ask again then"
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
