//! Global scheduling: the m most urgent jobs run, anywhere.

use alloc::boxed::Box;

use shiftwork_model::{Affinity, CpuId, Job, Task, TaskId, TaskSet};

use super::domains::{Domains, Preemption};
use super::{Placement, check_cpus};
use crate::error::PolicyError;
use crate::order::JobOrder;
use crate::policy::Switches;
use crate::ready::TaskTable;

/// The most urgent jobs run, on any CPU (Brandenburg et al., RTSS 2008). Takes tasks that may use
/// every CPU.
///
/// O(log n + log m) per event.
#[derive(Debug)]
pub struct Global<O: JobOrder> {
    name: &'static str,
    all: Affinity,
    domains: Domains<O>,
}

impl<O: JobOrder> Global<O> {
    /// The preemptive policy.
    ///
    /// # Errors
    /// If a task may not use every CPU.
    pub fn new(name: &'static str, set: &TaskSet) -> Result<Self, PolicyError> {
        Self::with(name, set, Preemption::Allowed)
    }

    /// The policy in which a running job keeps its CPU until it completes or blocks.
    ///
    /// # Errors
    /// If a task may not use every CPU.
    pub fn non_preemptive(name: &'static str, set: &TaskSet) -> Result<Self, PolicyError> {
        Self::with(name, set, Preemption::Never)
    }

    fn with(
        name: &'static str,
        set: &TaskSet,
        preemption: Preemption,
    ) -> Result<Self, PolicyError> {
        let all = set.platform.all();
        let mut global = Self {
            name,
            all: Affinity::new(all).expect("a platform has at least one CPU"),
            domains: Domains::new(&set.platform, &[all], preemption),
        };
        for (id, task) in set.iter() {
            global.accepts_affinity(id, &task.name, &task.affinity)?;
            global.enter(id, task);
        }
        Ok(global)
    }
}

impl<O: JobOrder> Placement for Global<O> {
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

    fn set_affinity(&mut self, _: TaskId, _: &Affinity, _: &mut Switches) {}

    fn enter(&mut self, id: TaskId, task: &Task) {
        self.domains.bind(id, 0, task.start_cpu);
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
        check_cpus(self.all.cpus().len(), name, affinity)?;
        if *affinity == self.all {
            return Ok(());
        }
        Err(PolicyError::NotGlobal {
            policy: self.name,
            task: name.into(),
            affinity: Box::new(*affinity),
        })
    }
}
