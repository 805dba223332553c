//! The requests.

use shiftwork_model::{Affinity, CpuId, CpuSet, Instant, Share, TaskId};

use super::{Bandwidth, Cpusets, Former, Member, Place, RequestRefused};
use crate::ServerParameters;

/// A request that is refused says why, in its own words.
type Answer<T> = Result<T, RequestRefused>;

impl Cpusets {
    /// The task starts to take part, with the parameters and the affinity that it has.
    ///
    /// # Errors
    /// If it does already, if its parameters or its affinity make no sense to `SCHED_DEADLINE`, or if there
    /// is no room.
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

    /// The task takes no part any more. What it had counts before `until`: the
    /// [zero-lag time](crate::Server::zero_lag) of its server.
    ///
    /// # Errors
    /// If it takes no part.
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

    /// The task has other parameters. Those that ask for as much as before are always taken; those that ask
    /// for less count at once, as in Linux, which is how tasks can get more than they ask for (Example 1 of
    /// the paper). What a task that takes no part asks for is looked at when it enters.
    ///
    /// # Errors
    /// If the parameters make no sense or there is no room; with
    /// [`no_changes`](shiftwork_model::Repairs::no_changes) always, while it takes part.
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

    /// The task may use those of these CPUs that are in its cluster, and no others; returns them.
    ///
    /// # Errors
    /// If there are none, or none that is online; while it takes part, if that is an affinity with which it
    /// could not enter, and with [`no_changes`](shiftwork_model::Repairs::no_changes) always.
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

    /// The task moves to another cluster and may use all of it; returns its CPUs. What it takes counts there
    /// at once, and where it was no more; its server keeps what is left of its budget, and its deadline.
    ///
    /// # Errors
    /// If there is no such cluster, if the task is in it, if none of its CPUs is online, or if there is no room.
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
            return Err(RequestRefused::NobodyOnline { cluster, cpus });
        }
        if member.is_present {
            self.has_room(task, member.bandwidth(), cluster)?;
        }
        let member = &mut self.members[task.index()];
        member.cluster = cluster;
        member.affinity = whole;
        Ok(whole)
    }

    /// The clusters are these from now on. Every task of a cluster whose CPUs change may use all of the new
    /// one, whatever it could use before; returns who that is, and where each may run. Nobody is bound to a CPU
    /// there any more, so that condition (2) does not matter.
    ///
    /// # Errors
    /// If a new cluster is empty, shares a CPU with another or names one that does not exist; if a task is in
    /// a cluster that would be gone; if a cluster that changes is too small for its tasks.
    pub fn set_clusters(&mut self, clusters: &[CpuSet]) -> Answer<Vec<(TaskId, Affinity)>> {
        self.check_disjoint(clusters)?;
        self.check_remaining(clusters.len())?;
        let is_changed = |cluster: usize| self.clusters.get(cluster) != Some(&clusters[cluster]);
        let changed: Vec<usize> = (0..clusters.len()).filter(|&at| is_changed(at)).collect();
        for &cluster in &changed {
            let cpus = clusters[cluster];
            self.check_used(cluster, &cpus)?;
            let place = Place::Cluster(cluster, Box::new(cpus));
            self.suffices(place, self.limit(&cpus))?;
        }
        self.clusters = clusters.to_vec();
        self.unbind_former(|former| changed.contains(&former.cluster));
        let mut told = Vec::new();
        for (index, member) in self.members.iter_mut().enumerate() {
            if changed.contains(&member.cluster)
                && let Some(whole) = Affinity::new(clusters[member.cluster])
            {
                member.affinity = whole;
                told.push((TaskId::from_index(index), whole));
            }
        }
        Ok(told)
    }

    /// The reserve of each CPU is another one.
    ///
    /// # Errors
    /// If it leaves too little for a cluster, or for those who are bound to a CPU.
    pub fn set_reserve(&mut self, reserve: Share) -> Answer<()> {
        for (cluster, cpus) in self.clusters.iter().enumerate() {
            let place = Place::Cluster(cluster, Box::new(*cpus));
            self.suffices(place, self.limit_beside(reserve, cpus))?;
        }
        for cpu in self.online.iter().filter(|_| self.repairs.admission) {
            let limit = self.limit_beside(reserve, &CpuSet::single(cpu));
            self.suffices(Place::Cpu(cpu), limit)?;
        }
        self.reserve = reserve;
        Ok(())
    }

    /// The CPU goes offline. What was bound to it and left counts in its cluster only.
    ///
    /// # Errors
    /// If there is no such CPU, if it is offline, if its cluster would be too small for its tasks or have no CPU
    /// left for them, and with [`admission`](shiftwork_model::Repairs::admission) if a task is bound to it.
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
            let place = Place::Cluster(cluster, Box::new(cpus));
            self.suffices(place, self.limit(&rest))?;
        }
        self.online.remove(cpu);
        self.unbind_former(|former| former.bound_to == Some(cpu));
        Ok(())
    }

    /// The CPU comes back.
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

    /// What these had counts in their clusters only.
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

    /// Whether a task of this cluster may take part with this affinity, which is within it.
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

    /// Whether one of these CPUs is online, if somebody takes part in the cluster that they are to be.
    fn check_used(&self, cluster: usize, cpus: &CpuSet) -> Answer<()> {
        let is_used = |member: &Member| member.is_present && member.cluster == cluster;
        if cpus.intersects(&self.online) || !self.members.iter().any(is_used) {
            return Ok(());
        }
        let cpus = Box::new(*cpus);
        Err(RequestRefused::NobodyOnline { cluster, cpus })
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

    /// Whether nobody needs the clusters from `count` on.
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

/// `__checkparam_dl` of Linux, but for its least and greatest times.
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
