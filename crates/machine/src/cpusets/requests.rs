//! The requests: entry, departure, changes of tasks, clusters, the reserve and CPUs.

use shiftwork_model::{Affinity, CpuId, CpuSet, Instant, Share, TaskId};

use super::{Bandwidth, BandwidthScope, Cpusets, Former, Member, RequestRefused};
use crate::ServerParameters;

/// The result of a request; the error has the reason for a refusal.
type Answer<T> = Result<T, RequestRefused>;

impl Cpusets {
    /// The task enters with its current parameters and affinity.
    ///
    /// # Errors
    /// If the task is present, if `SCHED_DEADLINE` does not accept its parameters or its affinity, or if its
    /// bandwidth does not fit.
    pub fn enter(&mut self, task: TaskId) -> Answer<()> {
        let member = &self.members[task.index()];
        if member.is_present {
            let task = member.name.clone();
            return Err(RequestRefused::Present { task });
        }
        check_parameters(member, member.parameters)?;
        self.check_shape(member, &member.affinity)?;
        self.check_online(member, &member.affinity)?;
        let asked = member.bandwidth();
        self.has_room(task, asked, member.cluster)?;
        self.has_room_on(task, asked, member.bound_to())?;
        self.members[task.index()].is_present = true;
        Ok(())
    }

    /// The task leaves. Its bandwidth counts before `until`: the
    /// [zero-lag time](crate::Server::zero_lag) of its server.
    ///
    /// # Errors
    /// If the task is not present.
    pub fn leave(&mut self, task: TaskId, until: Instant) -> Answer<()> {
        let now = self.now;
        let member = &mut self.members[task.index()];
        if !member.is_present {
            let task = member.name.clone();
            return Err(RequestRefused::Absent { task });
        }
        member.is_present = false;
        if until > now {
            self.former.push(Former {
                task,
                bandwidth: member.bandwidth(),
                cluster: member.cluster,
                bound_to: member.bound_to(),
                until,
            });
        }
        Ok(())
    }

    /// Changes the parameters of the task. Parameters of the same bandwidth are always accepted. A smaller
    /// bandwidth counts at once, as in Linux; this is how tasks can get more than they ask for (Example 1 of
    /// the paper). The parameters of a task that is not present are checked when it enters.
    ///
    /// # Errors
    /// For a present task: if the parameters are invalid or the bandwidth does not fit; with
    /// [`no_changes`](shiftwork_model::Repairs::no_changes) always.
    pub fn set_attributes(&mut self, task: TaskId, parameters: ServerParameters) -> Answer<()> {
        let member = &self.members[task.index()];
        if member.is_present {
            self.check_changeable(member, "parameters")?;
            check_parameters(member, parameters)?;
            let asked = Bandwidth::of(parameters.cost, parameters.period);
            if asked != member.bandwidth() {
                self.has_room(task, asked, member.cluster)?;
                self.has_room_on(task, asked, member.bound_to())?;
            }
        }
        self.members[task.index()].parameters = parameters;
        Ok(())
    }

    /// Restricts the task to those of these CPUs that are in its cluster; returns them.
    ///
    /// # Errors
    /// If there are none, or none that is online; for a present task, if it could not enter with the new
    /// affinity, and with [`no_changes`](shiftwork_model::Repairs::no_changes) always.
    pub fn set_affinity(&mut self, task: TaskId, to: &Affinity) -> Answer<Affinity> {
        let member = &self.members[task.index()];
        if member.is_present {
            self.check_changeable(member, "affinity")?;
        }
        let cluster = self.clusters[member.cluster];
        let Some(cut) = Affinity::new(*to.cpus() & cluster) else {
            return Err(RequestRefused::OutsideCluster {
                task: member.name.clone(),
                affinity: Box::new(*to),
                cluster: Box::new(cluster),
            });
        };
        self.check_online(member, &cut)?;
        if member.is_present {
            self.check_shape(member, &cut)?;
            if cut != member.affinity {
                self.has_room_on(task, member.bandwidth(), super::only(&cut))?;
            }
        }
        self.members[task.index()].affinity = cut;
        Ok(cut)
    }

    /// Moves the task to another cluster, all of which it may use; returns the CPUs of that cluster. The
    /// bandwidth of the task counts in the new cluster at once, and no longer in the old one; its server
    /// keeps the remaining budget and the deadline.
    ///
    /// # Errors
    /// If there is no such cluster, if the task is in it, if none of its CPUs is online, or if the bandwidth
    /// does not fit.
    pub fn move_to(&mut self, task: TaskId, cluster: usize) -> Answer<Affinity> {
        let member = &self.members[task.index()];
        let Some((cpus, whole)) = self.whole(cluster) else {
            return Err(RequestRefused::NoSuchCluster {
                cluster,
                clusters: self.clusters.len(),
            });
        };
        if member.cluster == cluster {
            let task = member.name.clone();
            return Err(RequestRefused::SameCluster { task, cluster });
        }
        if !cpus.intersects(&self.online) {
            let cpus = Box::new(cpus);
            return Err(RequestRefused::NoCpuOnline { cluster, cpus });
        }
        if member.is_present {
            self.has_room(task, member.bandwidth(), cluster)?;
        }
        let member = &mut self.members[task.index()];
        member.cluster = cluster;
        member.affinity = whole;
        Ok(whole)
    }

    /// Replaces the clusters. The affinity of every task in a cluster whose CPUs change becomes the whole
    /// new cluster; returns these tasks with their affinities. No task stays bound to a CPU there, so that
    /// condition (2) need not be checked.
    ///
    /// # Errors
    /// If a new cluster is empty, shares a CPU with another or contains a CPU that does not exist; if a task
    /// is in a cluster that would be removed; if a changed cluster is too small for its tasks.
    pub fn set_clusters(&mut self, clusters: &[CpuSet]) -> Answer<Vec<(TaskId, Affinity)>> {
        self.check_disjoint(clusters)?;
        self.check_remaining(clusters.len())?;
        let is_changed = |cluster: usize| self.clusters.get(cluster) != Some(&clusters[cluster]);
        let changed: Vec<usize> = (0..clusters.len()).filter(|&at| is_changed(at)).collect();
        for &cluster in &changed {
            let cpus = clusters[cluster];
            self.check_used(cluster, &cpus)?;
            let scope = BandwidthScope::Cluster(cluster, Box::new(cpus));
            self.suffices(scope, self.limit(&cpus))?;
        }
        self.clusters = clusters.to_vec();
        self.unbind_former(|former| changed.contains(&former.cluster));
        let mut moved = Vec::new();
        for (index, member) in self.members.iter_mut().enumerate() {
            if changed.contains(&member.cluster)
                && let Some(whole) = Affinity::new(clusters[member.cluster])
            {
                member.affinity = whole;
                moved.push((TaskId::from_index(index), whole));
            }
        }
        Ok(moved)
    }

    /// Changes the reserve of each CPU.
    ///
    /// # Errors
    /// If it leaves too little for the tasks of a cluster, or for those bound to a CPU.
    pub fn set_reserve(&mut self, reserve: Share) -> Answer<()> {
        for (cluster, cpus) in self.clusters.iter().enumerate() {
            let scope = BandwidthScope::Cluster(cluster, Box::new(*cpus));
            self.suffices(scope, self.limit_beside(reserve, cpus))?;
        }
        for cpu in self.online.iter().filter(|_| self.repairs.admission) {
            let limit = self.limit_beside(reserve, &CpuSet::single(cpu));
            self.suffices(BandwidthScope::Cpu(cpu), limit)?;
        }
        self.reserve = reserve;
        Ok(())
    }

    /// The CPU goes offline. Departed servers that were bound to it count in its cluster only.
    ///
    /// # Errors
    /// If there is no such CPU, if it is offline, if its cluster would be too small for its tasks or have no
    /// online CPU for them; with [`admission`](shiftwork_model::Repairs::admission) if a task is bound to it.
    pub fn cpu_offline(&mut self, cpu: CpuId) -> Answer<()> {
        self.check_cpu(cpu)?;
        if !self.online.contains(cpu) {
            let state = "offline";
            return Err(RequestRefused::Already { cpu, state });
        }
        let is_bound = |member: &&Member| member.is_present && member.bound_to() == Some(cpu);
        if self.repairs.admission
            && let Some(member) = self.members.iter().find(is_bound)
        {
            let task = member.name.clone();
            return Err(RequestRefused::Bound { cpu, task });
        }
        let holds = |cluster: &CpuSet| cluster.contains(cpu);
        if let Some(cluster) = self.clusters.iter().position(holds) {
            let cpus = self.clusters[cluster];
            let rest = cpus - CpuSet::single(cpu);
            self.check_used(cluster, &rest)?;
            let scope = BandwidthScope::Cluster(cluster, Box::new(cpus));
            self.suffices(scope, self.limit(&rest))?;
        }
        self.online.remove(cpu);
        self.unbind_former(|former| former.bound_to == Some(cpu));
        Ok(())
    }

    /// The CPU comes online again.
    ///
    /// # Errors
    /// If there is no such CPU, or if it is online.
    pub fn cpu_online(&mut self, cpu: CpuId) -> Answer<()> {
        self.check_cpu(cpu)?;
        if self.online.contains(cpu) {
            let state = "online";
            return Err(RequestRefused::Already { cpu, state });
        }
        self.online.insert(cpu);
        Ok(())
    }

    /// Makes these departed servers count in their clusters only.
    fn unbind_former(&mut self, which: impl Fn(&Former) -> bool) {
        for former in &mut self.former {
            if which(former) {
                former.bound_to = None;
            }
        }
    }

    /// The CPUs of a cluster, also as an affinity.
    fn whole(&self, cluster: usize) -> Option<(CpuSet, Affinity)> {
        let cpus = *self.clusters.get(cluster)?;
        Some((cpus, Affinity::new(cpus)?))
    }

    fn check_cpu(&self, cpu: CpuId) -> Answer<()> {
        let cpus = self.capacities.len();
        if cpu.index() < cpus {
            Ok(())
        } else {
            Err(RequestRefused::NoSuchCpu { cpu, cpus })
        }
    }

    fn check_changeable(&self, member: &Member, what: &'static str) -> Answer<()> {
        let task = member.name.clone();
        match self.repairs.no_changes {
            true => Err(RequestRefused::Fixed { task, what }),
            false => Ok(()),
        }
    }

    /// Checks whether the task may be present with this affinity, which lies in its cluster.
    fn check_shape(&self, member: &Member, affinity: &Affinity) -> Answer<()> {
        let cpus = self.clusters[member.cluster];
        let is_one = self.repairs.admission && super::only(affinity).is_some();
        if !self.is_controlled || is_one || *affinity.cpus() == cpus {
            return Ok(());
        }
        let (task, affinity) = (member.name.clone(), Box::new(*affinity));
        let cluster = Box::new(cpus);
        Err(match self.repairs.admission {
            true => RequestRefused::NeitherOneNorAll {
                task,
                affinity,
                cluster,
            },
            false => RequestRefused::Narrow {
                task,
                affinity,
                cluster,
            },
        })
    }

    fn check_online(&self, member: &Member, affinity: &Affinity) -> Answer<()> {
        if affinity.cpus().intersects(&self.online) {
            return Ok(());
        }
        Err(RequestRefused::Offline {
            task: member.name.clone(),
            affinity: Box::new(*affinity),
            online: Box::new(self.clusters[member.cluster] & self.online),
        })
    }

    /// Checks that one of these CPUs is online, if the cluster that gets them has a present task.
    fn check_used(&self, cluster: usize, cpus: &CpuSet) -> Answer<()> {
        let is_used = |member: &Member| member.is_present && member.cluster == cluster;
        if cpus.intersects(&self.online) || !self.members.iter().any(is_used) {
            return Ok(());
        }
        let cpus = Box::new(*cpus);
        Err(RequestRefused::NoCpuOnline { cluster, cpus })
    }

    fn check_disjoint(&self, clusters: &[CpuSet]) -> Answer<()> {
        if clusters.is_empty() {
            return Err(RequestRefused::EmptyCluster { cluster: 0 });
        }
        let all = CpuSet::first(self.capacities.len());
        for (other, cpus) in clusters.iter().enumerate() {
            if cpus.is_empty() {
                return Err(RequestRefused::EmptyCluster { cluster: other });
            }
            if let Some(cpu) = (*cpus - all).lowest() {
                self.check_cpu(cpu)?;
            }
            for (one, earlier) in clusters[..other].iter().enumerate() {
                if let Some(cpu) = (*earlier & *cpus).lowest() {
                    let clusters = [one, other];
                    return Err(RequestRefused::Overlap { cpu, clusters });
                }
            }
        }
        Ok(())
    }

    /// Checks that the clusters from `count` on have no tasks, and no departed servers that still count.
    fn check_remaining(&self, count: usize) -> Answer<()> {
        if let Some(member) = self.members.iter().find(|member| member.cluster >= count) {
            return Err(RequestRefused::Vanishes {
                cluster: member.cluster,
                task: member.name.clone(),
            });
        }
        match self.former.iter().find(|former| former.cluster >= count) {
            Some(former) => Err(RequestRefused::Lingers {
                cluster: former.cluster,
                task: self.members[former.task.index()].name.clone(),
                until: former.until,
            }),
            None => Ok(()),
        }
    }
}

/// `__checkparam_dl` of Linux, without its limits for cost and period.
fn check_parameters(member: &Member, parameters: ServerParameters) -> Answer<()> {
    let in_order =
        parameters.cost <= parameters.deadline && parameters.deadline <= parameters.period;
    if in_order && !parameters.cost.is_zero() {
        return Ok(());
    }
    Err(RequestRefused::Parameters {
        task: member.name.clone(),
        parameters,
    })
}
