//! Weak scheduling under arbitrary affinities: no job shifts to make room.

use shiftwork_model::{Affinity, CpuId, Job, Task, TaskId, TaskSet};

use super::Placement;
use super::support::arbitrary::Assignment;
use super::support::mask::Mask;
use super::support::ready::{Status, TaskTable};
use crate::error::PolicyError;
use crate::order::JobOrder;
use crate::policy::Switches;

/// No ready job waits while one of its own CPUs is idle or runs a less urgent job (Def. II.1 of
/// Bonifaci et al. 2016): the priority-affinity scheduler of RTEMS, and Linux real-time scheduling.
///
/// Several sets of jobs can satisfy that. This policy chooses: an arriving job takes an idle CPU of
/// its affinity (the last-used, else one that shares a cache with it, else the lowest), else the
/// CPU with the least urgent job of its affinity if that is less urgent; a preempted job then looks
/// for a CPU like an arriving one. A free CPU goes to the most urgent waiting job that may use it.
///
/// O(m) per step; a chain of preemptions is at most m long, since each victim is less urgent.
#[derive(Debug)]
pub struct Weak<O: JobOrder, M> {
    cpus: Assignment<O, M>,
}

impl<O: JobOrder, M: Mask> Weak<O, M> {
    /// All tasks known, no job ready.
    ///
    /// # Errors
    /// If an affinity names a CPU that the platform does not have.
    pub fn new(set: &TaskSet) -> Result<Self, PolicyError> {
        let mut weak = Self {
            cpus: Assignment::new(&set.platform),
        };
        for (id, task) in set.iter() {
            weak.accepts_affinity(id, &task.name, &task.affinity)?;
            weak.enter(id, task);
        }
        Ok(weak)
    }

    /// Gives a free CPU to the most urgent waiting job that may use it, or leaves it idle.
    fn refill(&mut self, cpu: CpuId, out: &mut Switches) {
        let next = self
            .cpus
            .backlogs
            .most_urgent_on(M::single(cpu))
            .map(|key| O::task(&key));
        if let Some(task) = next {
            self.cpus.take_from_backlog(task);
        }
        self.cpus.assign(cpu, next, out);
    }
}

impl<O: JobOrder, M: Mask> Placement for Weak<O, M> {
    fn tasks(&self) -> &TaskTable {
        &self.cpus.tasks
    }

    fn tasks_mut(&mut self) -> &mut TaskTable {
        &mut self.cpus.tasks
    }

    fn runner(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpus.runner(cpu)
    }

    fn arrive(&mut self, job: Job, out: &mut Switches) {
        self.cpus.tasks.get_mut(job.task).job = job;
        let mut looking = job.task;
        loop {
            let mask = self.cpus.mask(looking);
            let idle = mask.and(self.cpus.idle);
            if !idle.is_empty() {
                let cpu = self.cpus.choose(idle, looking);
                return self.cpus.assign(cpu, Some(looking), out);
            }
            let key = O::key(&self.cpus.tasks.get(looking).job);
            let victim = self
                .cpus
                .least_urgent(mask)
                .filter(|&cpu| self.cpus.runner_key(cpu) > key);
            let Some(cpu) = victim else {
                return self.cpus.add_to_backlog(looking);
            };
            let preempted = self.cpus.runner(cpu).expect("the victim runs");
            self.cpus.assign(cpu, Some(looking), out);
            looking = preempted;
        }
    }

    fn depart(&mut self, task: TaskId, out: &mut Switches) {
        match self.cpus.tasks.status(task) {
            Status::NotReady => {}
            Status::Backlogged => self.cpus.take_from_backlog(task),
            Status::Assigned(cpu) => {
                self.cpus.tasks.get_mut(task).status = Status::NotReady;
                self.refill(cpu, out);
            }
        }
    }

    fn rerank(&mut self, job: Job, out: &mut Switches) {
        let Status::Assigned(cpu) = self.cpus.tasks.status(job.task) else {
            self.cpus.take_from_backlog(job.task);
            return self.arrive(job, out);
        };
        self.cpus.rerank_in_place(cpu, job);
        let next = self.cpus.backlogs.most_urgent_on(M::single(cpu));
        if next.is_some_and(|next| next < O::key(&job)) {
            self.refill(cpu, out);
            self.arrive(job, out);
        }
    }

    fn set_affinity(&mut self, task: TaskId, affinity: &Affinity, out: &mut Switches) {
        let job = self.cpus.tasks.get(task).job;
        match self.cpus.tasks.status(task) {
            Status::NotReady => self.cpus.set_affinity(task, affinity),
            Status::Assigned(cpu) if affinity.cpus().contains(cpu) => {
                self.cpus.set_affinity(task, affinity);
            }
            _ => {
                self.depart(task, out);
                self.cpus.set_affinity(task, affinity);
                self.arrive(job, out);
            }
        }
    }

    fn enter(&mut self, id: TaskId, task: &Task) {
        self.cpus.enter(id, task);
    }

    fn cpu_offline(&mut self, cpu: CpuId, out: &mut Switches) {
        if let Some(job) = self.cpus.take_offline(cpu, out) {
            self.arrive(job, out);
        }
    }

    fn cpu_online(&mut self, cpu: CpuId, out: &mut Switches) {
        self.cpus.bring_online(cpu);
        if self.cpus.backlogs.most_urgent_on(M::single(cpu)).is_some() {
            self.refill(cpu, out);
        }
    }

    fn is_online(&self, cpu: CpuId) -> bool {
        self.cpus.is_online(cpu)
    }

    fn accepts_affinity(
        &self,
        _: TaskId,
        name: &str,
        affinity: &Affinity,
    ) -> Result<(), PolicyError> {
        self.cpus.accepts_affinity(name, affinity)
    }
}
