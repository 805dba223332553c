//! What is taken of clusters and CPUs, and what they have.

use shiftwork_model::{CpuId, CpuSet, Share, TaskId};

use super::{Bandwidth, Cpusets, Place, RequestRefused};

impl Cpusets {
    /// What the tasks of a cluster and those that left it take together: the left side of condition (1).
    /// None if there is no such cluster.
    pub fn taken_of_cluster(&self, cluster: usize) -> Bandwidth {
        self.taken_of_cluster_without(cluster, None)
    }

    /// What the tasks that are bound to a CPU and those that left it take together: the left side of
    /// condition (2).
    pub fn taken_of_cpu(&self, cpu: CpuId) -> Bandwidth {
        self.taken_of_cpu_without(cpu, None)
    }

    /// What there is of these CPUs for tasks, as far as they are online.
    pub fn limit(&self, cpus: &CpuSet) -> Bandwidth {
        self.limit_beside(self.reserve, cpus)
    }

    pub(super) fn limit_beside(&self, reserve: Share, cpus: &CpuSet) -> Bandwidth {
        let online = *cpus & self.online;
        let capacity = online.iter().map(|cpu| self.capacities[cpu.index()]).sum();
        Bandwidth::beside(reserve).on(capacity)
    }

    /// The same, `task` not counted; what it left behind is.
    fn taken_of_cluster_without(&self, cluster: usize, task: Option<TaskId>) -> Bandwidth {
        let present = self.present_but(task);
        let present = present.filter(|member| member.cluster == cluster);
        let former = self.former.iter();
        let former = former.filter(|former| former.cluster == cluster);
        let present: Bandwidth = present.map(super::Member::bandwidth).sum();
        present + former.map(|former| former.bandwidth).sum()
    }

    fn taken_of_cpu_without(&self, cpu: CpuId, task: Option<TaskId>) -> Bandwidth {
        let present = self.present_but(task);
        let present = present.filter(|member| member.bound_to() == Some(cpu));
        let former = self.former.iter();
        let former = former.filter(|former| former.bound_to == Some(cpu));
        let present: Bandwidth = present.map(super::Member::bandwidth).sum();
        present + former.map(|former| former.bandwidth).sum()
    }

    fn present_but(&self, task: Option<TaskId>) -> impl Iterator<Item = &super::Member> {
        let members = self.members.iter().enumerate();
        members
            .filter(move |(index, member)| {
                member.is_present && task.is_none_or(|task| task.index() != *index)
            })
            .map(|(_, member)| member)
    }

    /// Condition (1) with the task taking `asked` of this cluster.
    pub(super) fn has_room(
        &self,
        task: TaskId,
        asked: Bandwidth,
        cluster: usize,
    ) -> Result<(), RequestRefused> {
        let cpus = self.clusters[cluster];
        let taken = self.taken_of_cluster_without(cluster, Some(task));
        let left = (taken, self.limit(&cpus));
        self.compare(task, asked, Place::Cluster(cluster, Box::new(cpus)), left)
    }

    /// Condition (2) with the task, bound to this CPU, taking `asked`. Always met without the repair.
    pub(super) fn has_room_on(
        &self,
        task: TaskId,
        asked: Bandwidth,
        cpu: Option<CpuId>,
    ) -> Result<(), RequestRefused> {
        let Some(cpu) = cpu.filter(|_| self.repairs.admission) else {
            return Ok(());
        };
        let taken = self.taken_of_cpu_without(cpu, Some(task));
        let left = (taken, self.limit(&CpuSet::single(cpu)));
        self.compare(task, asked, Place::Cpu(cpu), left)
    }

    fn compare(
        &self,
        task: TaskId,
        asked: Bandwidth,
        place: Place,
        (taken, limit): (Bandwidth, Bandwidth),
    ) -> Result<(), RequestRefused> {
        if !self.is_controlled || taken + asked <= limit {
            return Ok(());
        }
        Err(RequestRefused::NoRoom {
            task: self.members[task.index()].name.clone(),
            asked,
            place,
            left: limit.beyond(taken),
        })
    }

    /// Whether what is taken there is at most `limit`.
    pub(super) fn suffices(&self, place: Place, limit: Bandwidth) -> Result<(), RequestRefused> {
        let needed = match &place {
            Place::Cluster(cluster, _) => self.taken_of_cluster(*cluster),
            Place::Cpu(cpu) => self.taken_of_cpu(*cpu),
        };
        if !self.is_controlled || needed <= limit {
            return Ok(());
        }
        Err(RequestRefused::TooLittle {
            place,
            needed,
            limit,
        })
    }
}
