//! Partitioned scheduling, and clustered scheduling as its generalization to groups of CPUs.

use alloc::boxed::Box;
use alloc::vec::Vec;

use shiftwork_model::{Affinity, CpuId, CpuSet, Job, Task, TaskId, TaskSet};

use super::domains::{Domains, Preemption};
use super::packing::{groups_within, pack};
use super::{Placement, check_cpus};
use crate::error::PolicyError;
use crate::order::JobOrder;
use crate::policy::Switches;
use crate::ready::{Status, TaskTable};

/// Every task is packed onto one group of CPUs and scheduled globally within it: one CPU each under
/// partitioned scheduling, the platform's clusters under clustered scheduling.
///
/// O(log n + log c) per event for groups of c CPUs.
#[derive(Debug)]
pub struct Partitioned<O: JobOrder> {
    name: &'static str,
    groups: Vec<CpuSet>,
    cpus: usize,
    domains: Domains<O>,
}

impl<O: JobOrder> Partitioned<O> {
    /// One partition per CPU.
    ///
    /// # Errors
    /// If a task names a CPU that the platform does not have.
    pub fn new(name: &'static str, set: &TaskSet) -> Result<Self, PolicyError> {
        let groups = set.platform.all().iter().map(CpuSet::single).collect();
        Self::with(name, set, groups)
    }

    /// One group per cluster of the platform.
    ///
    /// # Errors
    /// If an affinity is no union of clusters.
    pub fn clustered(name: &'static str, set: &TaskSet) -> Result<Self, PolicyError> {
        Self::with(name, set, set.platform.clusters_or_one())
    }

    fn with(name: &'static str, set: &TaskSet, groups: Vec<CpuSet>) -> Result<Self, PolicyError> {
        let domains = Domains::new(&set.platform, &groups, Preemption::Allowed);
        let mut partitioned = Self {
            name,
            groups,
            cpus: set.platform.cpus,
            domains,
        };
        for (id, task) in set.iter() {
            partitioned.accepts_affinity(id, &task.name, &task.affinity)?;
        }
        let packing = pack(set, &partitioned.groups);
        for (id, task) in set.iter() {
            let group = packing.group_of[id.index()].expect("every affinity holds a whole group");
            partitioned.domains.bind(id, group, task.start_cpu);
        }
        Ok(partitioned)
    }

    /// A task whose new affinity holds its group stays there, any other goes to the first group of
    /// its affinity.
    fn group_for(&self, task: TaskId, affinity: &Affinity) -> usize {
        let candidates = groups_within(&self.groups, affinity);
        let known = task.index() < self.domains.tasks.len();
        let current = known.then(|| self.domains.domain_of(task));
        current
            .filter(|group| candidates.contains(group))
            .unwrap_or_else(|| {
                candidates
                    .first()
                    .copied()
                    .expect("the affinity was accepted")
            })
    }
}

impl<O: JobOrder> Placement for Partitioned<O> {
    fn tasks(&self) -> &TaskTable {
        &self.domains.tasks
    }

    fn tasks_mut(&mut self) -> &mut TaskTable {
        &mut self.domains.tasks
    }

    fn runner(&self, cpu: CpuId) -> Option<TaskId> {
        self.domains.runner(cpu)
    }

    fn arrive(&mut self, job: Job, out: &mut Switches) {
        self.domains.arrive(job, out);
    }

    fn depart(&mut self, task: TaskId, out: &mut Switches) {
        self.domains.depart(task, out);
    }

    fn rerank(&mut self, job: Job, out: &mut Switches) {
        self.domains.rerank(job, out);
    }

    fn set_affinity(&mut self, task: TaskId, affinity: &Affinity, out: &mut Switches) {
        let group = self.group_for(task, affinity);
        if group == self.domains.domain_of(task) {
            return;
        }
        let entry = *self.domains.tasks.get(task);
        self.domains.depart(task, out);
        self.domains.bind(task, group, entry.last_cpu);
        if entry.status != Status::NotReady {
            self.domains.arrive(entry.job, out);
        }
    }

    fn enter(&mut self, id: TaskId, task: &Task) {
        let group = self.group_for(id, &task.affinity);
        self.domains.bind(id, group, task.start_cpu);
    }

    fn cpu_offline(&mut self, cpu: CpuId, out: &mut Switches) {
        self.domains.cpu_offline(cpu, out);
    }

    fn cpu_online(&mut self, cpu: CpuId, out: &mut Switches) {
        self.domains.cpu_online(cpu, out);
    }

    fn is_online(&self, cpu: CpuId) -> bool {
        self.domains.is_online(cpu)
    }

    fn accepts_affinity(
        &self,
        _: TaskId,
        name: &str,
        affinity: &Affinity,
    ) -> Result<(), PolicyError> {
        check_cpus(self.cpus, name, affinity)?;
        let covered = groups_within(&self.groups, affinity)
            .into_iter()
            .fold(CpuSet::EMPTY, |covered, group| covered | self.groups[group]);
        if covered == *affinity.cpus() {
            return Ok(());
        }
        Err(PolicyError::NotClustered {
            policy: self.name,
            task: name.into(),
            affinity: Box::new(*affinity),
            clusters: self.groups.clone(),
        })
    }

    fn packed(&self) -> Option<Vec<Affinity>> {
        let group = |index| self.groups[self.domains.domain_of(TaskId::from_index(index))];
        (0..self.domains.tasks.len())
            .map(|index| Affinity::new(group(index)))
            .collect()
    }
}
