//! The bandwidth in use in clusters and on CPUs, and their limits.

use shiftwork_model::{CpuId, CpuSet, Share, TaskId};

use super::{Bandwidth, BandwidthScope, Cpusets, RequestRefused};

impl Cpusets {
    /// Total bandwidth of the present tasks of a cluster and of the departed servers that still count: the
    /// left side of condition (1). Zero if there is no such cluster.
    pub fn taken_of_cluster(&self, cluster: usize) -> Bandwidth {
        self.taken_of_cluster_without(cluster, None)
    }

    /// Total bandwidth of the present tasks that are bound to a CPU and of the departed servers that still
    /// count there: the left side of condition (2).
    pub fn taken_of_cpu(&self, cpu: CpuId) -> Bandwidth {
        self.taken_of_cpu_without(cpu, None)
    }

    /// The bandwidth that tasks may use on those of these CPUs that are online.
    pub fn limit(&self, cpus: &CpuSet) -> Bandwidth {
        self.limit_beside(self.reserve, cpus)
    }

    pub(super) fn limit_beside(&self, reserve: Share, cpus: &CpuSet) -> Bandwidth {
        let online = *cpus & self.online;
        let capacity = online.iter().map(|cpu| self.capacities[cpu.index()]).sum();
        Bandwidth::beside(reserve).on(capacity)
    }

    /// The same without `task`; its departed servers count.
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

    /// Checks condition (1) if the task uses `asked` of this cluster.
    pub(super) fn has_room(
        &self,
        task: TaskId,
        asked: Bandwidth,
        cluster: usize,
    ) -> Result<(), RequestRefused> {
        let cpus = self.clusters[cluster];
        let taken = self.taken_of_cluster_without(cluster, Some(task));
        let left = (taken, self.limit(&cpus));
        self.compare(
            task,
            asked,
            BandwidthScope::Cluster(cluster, Box::new(cpus)),
            left,
        )
    }

    /// Checks condition (2) if the task, bound to this CPU, uses `asked`. Always met without the repair.
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
        self.compare(task, asked, BandwidthScope::Cpu(cpu), left)
    }

    fn compare(
        &self,
        task: TaskId,
        asked: Bandwidth,
        scope: BandwidthScope,
        (taken, limit): (Bandwidth, Bandwidth),
    ) -> Result<(), RequestRefused> {
        if !self.is_controlled || taken + asked <= limit {
            return Ok(());
        }
        Err(RequestRefused::NoRoom {
            task: self.members[task.index()].name.clone(),
            asked,
            scope,
            left: limit.beyond(taken),
        })
    }

    /// Checks that the bandwidth in use there is at most `limit`.
    pub(super) fn suffices(
        &self,
        scope: BandwidthScope,
        limit: Bandwidth,
    ) -> Result<(), RequestRefused> {
        let needed = match &scope {
            BandwidthScope::Cluster(cluster, _) => self.taken_of_cluster(*cluster),
            BandwidthScope::Cpu(cpu) => self.taken_of_cpu(*cpu),
        };
        if !self.is_controlled || needed <= limit {
            return Ok(());
        }
        Err(RequestRefused::TooLittle {
            scope,
            needed,
            limit,
        })
    }
}
