//! What becomes of requests under Linux's `SCHED_DEADLINE`: who may enter or change, and where everybody
//! may run afterwards.
//!
//! The clusters are Linux's cpusets, each of them exclusive, as `SCHED_DEADLINE` needs them. `sums.rs` has
//! the two conditions, `requests.rs` the requests, `refused.rs` what is said to those that are refused.

mod bandwidth;
mod refused;
mod requests;
mod sums;
#[cfg(test)]
mod tests;

pub use bandwidth::Bandwidth;
pub use refused::{Place, RequestRefused};

use shiftwork_model::{Affinity, CpuId, CpuSet, Instant, Repairs, Share, TaskId, TaskSet};

use crate::ServerParameters;

/// The clusters, who is in which of them with what affinity, and what they take of it.
///
/// It answers *requests*. One that is refused changes nothing; one that is granted has taken effect here, and
/// the machine tells the policy. Every task is in one cluster, also before it enters and after it left, as a
/// thread is in a cpuset whatever schedules it; but only who takes part takes bandwidth. Cluster `i` stays
/// cluster `i` when its CPUs change.
///
/// # The conditions
/// (1) All tasks of a cluster together take at most what the reserve leaves of its CPUs that are online: of
/// their capacities, if those differ. With [`Repairs::admission`] also (2): those that are bound to one
/// CPU take at most what the reserve leaves of it. Bandwidth is C/T, also where the deadline comes before the
/// end of the period.
///
/// # Affinities
/// An affinity is cut to the task's cluster. While admission is controlled, Linux refuses a task whose
/// affinity is less than its cluster, and any `sched_setaffinity` to less; whoever wants that has to
/// switch the control off (`sched_rt_runtime_us` = -1). Therefore a run that begins with a task whose
/// affinity is less than its cluster is one with the control switched off: nothing is refused for load or
/// because of a narrow affinity in it, from beginning to end. With [`Repairs::admission`] it is always on, and
/// tasks are bound to one CPU or free to use their whole cluster.
///
/// # What leaves
/// A server that leaves counts until its zero-lag time, on the CPUs where it was. A task that enters again
/// before that gets a new server, as in the paper, and so both count. (Linux gives it back what is left of the old
/// one, and forgets what the old one had asked for. So by leaving and entering a task of that kernel can do
/// what [`Repairs::no_changes`] forbids: keep a large budget and be counted with a small one.)
///
/// # Differences from Linux
/// Costs below 1024 ns and periods beyond its limits are taken. An affinity that is all of the cluster's CPUs
/// that are online, but not all of its CPUs, is less than the cluster. A change of the reserve is
/// checked against capacities like every other request, where Linux counts CPUs.
///
/// # Cost
/// O(n + m) a request, for n tasks and what lingers, and m CPUs; setting clusters or the reserve once for
/// each cluster, and under the repaired admission for each CPU. Only requests allocate.
///
/// # Source
/// `sched_dl_overflow`, `__dl_overflow`, `dl_bw_deactivate`, `dl_cpuset_cpumask_can_shrink`,
/// `sched_dl_global_validate`, `cpuset_can_attach` and `__sched_setaffinity` of Linux; S. Tang, J. H.
/// Anderson, L. Abeni, RTNS 2021, Sections 2.3, 2.4, 3, 4.3 and 4.4.
#[derive(Clone, Debug)]
pub struct Cpusets {
    repairs: Repairs,
    /// Whether anything is checked but what makes no sense at all.
    is_controlled: bool,
    reserve: Share,
    /// By CPU, 1024 for the fastest.
    capacities: Vec<u64>,
    online: CpuSet,
    /// Disjoint, none of them empty.
    clusters: Vec<CpuSet>,
    /// By task.
    members: Vec<Member>,
    /// What left and still counts.
    former: Vec<Former>,
    now: Instant,
}

/// A task, whether it takes part or not.
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

/// What a server had that left.
#[derive(Clone, Debug)]
struct Former {
    task: TaskId,
    bandwidth: Bandwidth,
    cluster: usize,
    /// The one CPU that it could use, if it was one.
    bound_to: Option<CpuId>,
    until: Instant,
}

/// The CPU, if there is only one.
fn only(affinity: &Affinity) -> Option<CpuId> {
    let cpu = affinity.cpus().lowest()?;
    (Affinity::pinned(cpu) == *affinity).then_some(cpu)
}

impl Cpusets {
    /// The clusters and tasks of this set, with all CPUs online; those that do not enter later take part. Nobody
    /// is refused at the start, whatever the load. See [`Cpusets`] for when nobody ever is.
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

    /// It is now so late: what left and counted until now counts no more. An earlier instant than the last
    /// one changes nothing.
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

    /// The share of each CPU that is kept for everything that is not real-time.
    pub const fn reserve(&self) -> Share {
        self.reserve
    }

    /// The index of the cluster that the task is in, whether it takes part or not.
    pub fn cluster_of(&self, task: TaskId) -> usize {
        self.members[task.index()].cluster
    }

    /// Where the task may run.
    pub fn affinity_of(&self, task: TaskId) -> &Affinity {
        &self.members[task.index()].affinity
    }

    /// Whether the task takes part.
    pub fn is_present(&self, task: TaskId) -> bool {
        self.members[task.index()].is_present
    }
}
