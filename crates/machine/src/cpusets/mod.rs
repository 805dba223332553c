//! Admission control of Linux's `SCHED_DEADLINE`: which tasks may enter or change, and the affinities that
//! result.
//!
//! The clusters are Linux's cpusets, each of them exclusive, as `SCHED_DEADLINE` needs them. `sums.rs` has
//! the two conditions, `requests.rs` the requests, `refused.rs` the reasons for refusals.

mod bandwidth;
mod refused;
mod requests;
mod sums;
#[cfg(test)]
mod tests;

pub use bandwidth::Bandwidth;
pub use refused::{BandwidthScope, RequestRefused};

use shiftwork_model::{Affinity, CpuId, CpuSet, Instant, Repairs, Share, TaskId, TaskSet};

use crate::ServerParameters;

/// The clusters, the tasks in each of them with their affinities, and the bandwidth that they use.
///
/// It answers *requests*. A refused request changes nothing; a granted one has taken effect here, and the
/// machine passes the change to the policy. Every task is in one cluster, also before it enters and after it
/// has left, as a thread is in a cpuset under any scheduling class. Only tasks that are *present*, from entry
/// to departure, use bandwidth. Cluster `i` stays cluster `i` when its CPUs change.
///
/// # The conditions
/// (1) All tasks of a cluster together use at most what the reserve leaves of its online CPUs: of their
/// capacities, if those differ. With [`Repairs::admission`] also (2): the tasks bound to one CPU together
/// use at most what the reserve leaves of it. Bandwidth is C/T, also where the deadline comes before the
/// end of the period.
///
/// # Affinities
/// An affinity is cut to the task's cluster. While admission is controlled, Linux refuses a task whose
/// affinity is a proper subset of its cluster, and any `sched_setaffinity` to such a subset; such affinities
/// require that the control is disabled (`sched_rt_runtime_us` = -1). Therefore, if a run begins with such
/// a task, admission control is off for the whole run: nothing is refused for load or for a narrow
/// affinity. With [`Repairs::admission`] it is always on, and each task is bound to one CPU or may use its
/// whole cluster.
///
/// # Departures
/// The bandwidth of a server that leaves counts until its zero-lag time, on the CPUs where it was. A task
/// that enters again before that gets a new server, as in the paper, so that both count. (Linux restores the
/// remaining budget of the old server and drops its bandwidth. By leaving and entering, a task of that
/// kernel can do what [`Repairs::no_changes`] forbids: keep a large budget and count with a small one.)
///
/// # Differences from Linux
/// Costs below 1024 ns and periods beyond Linux's limits are accepted. An affinity that contains all online
/// CPUs of the cluster, but not its offline CPUs, is a proper subset. A change of the reserve is
/// checked against capacities like every other request, where Linux counts CPUs.
///
/// # Cost
/// O(n + m) per request, for n present tasks and departed servers that still count, and m CPUs; a change of
/// clusters or of the reserve O(n + m) per cluster, and under the repaired admission per CPU. Only requests
/// allocate.
///
/// # Source
/// `sched_dl_overflow`, `__dl_overflow`, `dl_bw_deactivate`, `dl_cpuset_cpumask_can_shrink`,
/// `sched_dl_global_validate`, `cpuset_can_attach` and `__sched_setaffinity` of Linux; S. Tang, J. H.
/// Anderson, L. Abeni, RTNS 2021, Sections 2.3, 2.4, 3, 4.3 and 4.4.
#[derive(Clone, Debug)]
pub struct Cpusets {
    repairs: Repairs,
    /// Whether admission is controlled. Otherwise only invalid requests are refused.
    is_controlled: bool,
    reserve: Share,
    /// Indexed by CPU; 1024 is the fastest.
    capacities: Vec<u64>,
    online: CpuSet,
    /// Disjoint, none of them empty.
    clusters: Vec<CpuSet>,
    /// Indexed by task.
    members: Vec<Member>,
    /// Departed servers whose bandwidth still counts.
    former: Vec<Former>,
    now: Instant,
}

/// A task, present or not.
///
/// Invariant: its affinity lies in its cluster.
#[derive(Clone, Debug)]
struct Member {
    name: String,
    parameters: ServerParameters,
    affinity: Affinity,
    cluster: usize,
    is_present: bool,
}

impl Member {
    fn bandwidth(&self) -> Bandwidth {
        Bandwidth::of(self.parameters.cost, self.parameters.period)
    }

    fn bound_to(&self) -> Option<CpuId> {
        only(&self.affinity)
    }
}

/// The bandwidth of a departed server, which counts before `until`.
#[derive(Clone, Debug)]
struct Former {
    task: TaskId,
    bandwidth: Bandwidth,
    cluster: usize,
    /// The CPU to which it was bound, if its affinity was one CPU.
    bound_to: Option<CpuId>,
    until: Instant,
}

/// The CPU of an affinity of one CPU.
fn only(affinity: &Affinity) -> Option<CpuId> {
    let cpu = affinity.cpus().lowest()?;
    (Affinity::pinned(cpu) == *affinity).then_some(cpu)
}

impl Cpusets {
    /// The clusters and tasks of this set, with all CPUs online. Tasks that do not enter later are present;
    /// no task is refused at the start, whatever the load. See [`Cpusets`] for when admission is not
    /// controlled.
    ///
    /// # Panics
    /// If the affinity of a task lies in no cluster, which the policies `dl-*` refuse.
    pub fn new(set: &TaskSet, repairs: Repairs) -> Self {
        let platform = &set.platform;
        let clusters = platform.clusters_or_one();
        let member = |id: TaskId| {
            let task = &set.tasks[id.index()];
            let within = |cluster: &CpuSet| task.affinity.cpus().is_subset(cluster);
            Member {
                name: task.name.clone(),
                parameters: ServerParameters {
                    cost: task.cost,
                    period: task.period,
                    deadline: task.deadline,
                },
                affinity: task.affinity,
                cluster: clusters
                    .iter()
                    .position(within)
                    .expect("policies take only affinities within a cluster"),
                is_present: !set.enters_later(id),
            }
        };
        let members: Vec<Member> = set.iter().map(|(id, _)| member(id)).collect();
        let is_narrow = |member: &Member| {
            member.is_present && *member.affinity.cpus() != clusters[member.cluster]
        };
        let fastest = Share::from_billionths(Share::WHOLE).expect("one is a share");
        let speed = |cpu: usize| platform.capacities.get(cpu).copied().unwrap_or(fastest);
        Self {
            repairs,
            is_controlled: repairs.admission || !members.iter().any(is_narrow),
            reserve: set.scheduler.reserve,
            capacities: (0..platform.cpus)
                .map(|cpu| bandwidth::capacity(speed(cpu)))
                .collect(),
            online: platform.all(),
            clusters,
            members,
            former: Vec::new(),
            now: Instant::ZERO,
        }
    }

    /// Advances the time to `now`: departed servers stop counting at their zero-lag times. An earlier instant
    /// than the last one changes nothing.
    pub fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.former.retain(|former| former.until > self.now);
    }

    /// Whether admission is controlled at all.
    pub const fn is_controlled(&self) -> bool {
        self.is_controlled
    }

    /// The clusters as they are now.
    pub fn clusters(&self) -> &[CpuSet] {
        &self.clusters
    }

    /// The CPUs that are online.
    pub const fn online(&self) -> &CpuSet {
        &self.online
    }

    /// The share of each CPU that is kept for work that is not real-time.
    pub const fn reserve(&self) -> Share {
        self.reserve
    }

    /// The index of the task's cluster, whether the task is present or not.
    pub fn cluster_of(&self, task: TaskId) -> usize {
        self.members[task.index()].cluster
    }

    /// The CPUs on which the task may run.
    pub fn affinity_of(&self, task: TaskId) -> &Affinity {
        &self.members[task.index()].affinity
    }

    /// Whether the task has entered and not left.
    pub fn is_present(&self, task: TaskId) -> bool {
        self.members[task.index()].is_present
    }
}
