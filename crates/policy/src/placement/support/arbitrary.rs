//! Common state of weak and strong scheduling under arbitrary affinities: the assignment of jobs to
//! CPUs, the masks of the tasks, and the waiting jobs.

use alloc::vec::Vec;

use shiftwork_model::{Affinity, CpuId, CpuSet, Job, Platform, Task, TaskId};

use super::backlogs::{Backlogs, MaskIndex};
use super::cpus::{CacheMates, check_cpus};
use super::mask::{Mask, cpus};
use super::ready::{Status, TaskTable};
use crate::error::PolicyError;
use crate::order::JobOrder;
use crate::policy::{Switch, Switches};

/// The CPUs with their jobs, the tasks with their masks, and the backlogged jobs.
///
/// Invariants: `idle` is what is online and runs nothing; `runner_masks[c]` is the mask of the job
/// on CPU c, empty if there is none; masks hold online CPUs only.
#[derive(Debug)]
pub(crate) struct Assignment<O: JobOrder, M> {
    pub tasks: TaskTable,
    pub backlogs: Backlogs<O, M>,
    pub idle: M,
    pub online: M,
    pub runner_masks: Vec<M>,
    runners: Vec<Option<TaskId>>,
    runner_keys: Vec<O::Key>,
    mask_of: Vec<MaskIndex>,
    affinities: Vec<CpuSet>,
    mates: Vec<M>,
}

impl<O: JobOrder, M: Mask> Assignment<O, M> {
    pub fn new(platform: &Platform) -> Self {
        let mates = CacheMates::new(platform);
        let mates_of = |cpu| mates.of(CpuId::from_index(cpu)).map_or(M::EMPTY, M::of);
        Self {
            tasks: TaskTable::default(),
            backlogs: Backlogs::new(),
            idle: M::of(&platform.all()),
            online: M::of(&platform.all()),
            runner_masks: alloc::vec![M::EMPTY; platform.cpus],
            runners: alloc::vec![None; platform.cpus],
            runner_keys: alloc::vec![O::FIRST; platform.cpus],
            mask_of: Vec::new(),
            affinities: Vec::new(),
            mates: (0..platform.cpus).map(mates_of).collect(),
        }
    }

    pub fn runner(&self, cpu: CpuId) -> Option<TaskId> {
        self.runners.get(cpu.index()).copied().flatten()
    }

    /// The key of the job on a CPU that runs one.
    #[inline]
    pub fn runner_key(&self, cpu: CpuId) -> O::Key {
        self.runner_keys[cpu.index()]
    }

    /// The CPUs that a task may use and that are online.
    #[inline]
    pub fn mask(&self, task: TaskId) -> M {
        self.backlogs.cpus(self.mask_of[task.index()])
    }

    pub fn is_online(&self, cpu: CpuId) -> bool {
        cpu.index() < self.runners.len() && self.online.contains(cpu)
    }

    pub fn accepts_affinity(&self, name: &str, affinity: &Affinity) -> Result<(), PolicyError> {
        check_cpus(self.runners.len(), name, affinity)
    }

    /// Takes in a task without a ready job.
    pub fn enter(&mut self, id: TaskId, task: &Task) {
        self.tasks.enter(id, task.start_cpu);
        self.backlogs.enter(id);
        while self.affinities.len() <= id.index() {
            self.affinities.push(CpuSet::EMPTY);
            self.mask_of.push(self.backlogs.join(M::EMPTY));
        }
        self.set_affinity(id, &task.affinity);
    }

    /// Notes a new affinity; the task's job must not be backlogged. A running job keeps its CPU.
    pub fn set_affinity(&mut self, task: TaskId, affinity: &Affinity) {
        self.affinities[task.index()] = *affinity.cpus();
        self.refresh_mask(task);
    }

    fn refresh_mask(&mut self, task: TaskId) {
        let mask = M::of(&self.affinities[task.index()]).and(self.online);
        if mask != self.mask(task) {
            self.mask_of[task.index()] = self.backlogs.join(mask);
        }
        if let Status::Assigned(cpu) = self.tasks.status(task) {
            self.runner_masks[cpu.index()] = mask;
        }
    }

    /// Takes the CPU away. Returns the job that ran there, ready and without a CPU.
    pub fn take_offline(&mut self, cpu: CpuId, out: &mut Switches) -> Option<Job> {
        let displaced = self.runner(cpu).map(|task| self.tasks.get(task).job);
        if let Some(job) = displaced {
            self.tasks.get_mut(job.task).status = Status::NotReady;
            self.assign(cpu, None, out);
        }
        self.online.remove(cpu);
        self.idle.remove(cpu);
        self.refresh_masks();
        displaced
    }

    /// Gives the CPU back, idle.
    pub fn bring_online(&mut self, cpu: CpuId) {
        self.online.insert(cpu);
        self.idle.insert(cpu);
        self.refresh_masks();
    }

    /// Every mask and every heap follows the CPUs online. O(n), off the dispatch path.
    fn refresh_masks(&mut self) {
        for task in (0..self.tasks.len()).map(TaskId::from_index) {
            let waits = self.tasks.status(task) == Status::Backlogged;
            if waits {
                self.take_from_backlog(task);
            }
            self.refresh_mask(task);
            if waits {
                self.add_to_backlog(task);
            }
        }
    }

    /// The job of the task waits from now on.
    pub fn add_to_backlog(&mut self, task: TaskId) {
        let entry = self.tasks.get_mut(task);
        entry.status = Status::Backlogged;
        self.backlogs
            .push(self.mask_of[task.index()], O::key(&entry.job));
    }

    /// The backlogged job of the task waits no more.
    pub fn take_from_backlog(&mut self, task: TaskId) {
        self.tasks.get_mut(task).status = Status::NotReady;
        self.backlogs.remove(self.mask_of[task.index()], task);
    }

    /// Ranks the task's assigned job anew, where it is.
    pub fn rerank_in_place(&mut self, cpu: CpuId, job: Job) {
        self.tasks.get_mut(job.task).job = job;
        self.runner_keys[cpu.index()] = O::key(&job);
    }

    /// Assigns a job, or none, to an online CPU. The caller handles the job that ran there.
    #[inline]
    pub fn assign(&mut self, cpu: CpuId, to: Option<TaskId>, out: &mut Switches) {
        let from = core::mem::replace(&mut self.runners[cpu.index()], to);
        match to {
            Some(task) => {
                self.idle.remove(cpu);
                let entry = self.tasks.get_mut(task);
                entry.status = Status::Assigned(cpu);
                entry.last_cpu = Some(cpu);
                self.runner_keys[cpu.index()] = O::key(&entry.job);
                self.runner_masks[cpu.index()] = self.mask(task);
            }
            None => {
                self.idle.insert(cpu);
                self.runner_masks[cpu.index()] = M::EMPTY;
            }
        }
        out.push(Switch { cpu, from, to });
    }

    /// From these CPUs the one to give to the task: the one it last used, else one that shares a
    /// cache with that, else the lowest.
    #[inline]
    pub fn choose(&self, among: M, task: TaskId) -> CpuId {
        if let Some(last) = self.tasks.get(task).last_cpu {
            if among.contains(last) {
                return last;
            }
            if let Some(near) = self.mates[last.index()].and(among).lowest() {
                return near;
            }
        }
        among.lowest().expect("there is a CPU to choose")
    }

    /// The CPU among these, all busy, with the least urgent job; `None` if there are none.
    #[inline]
    pub fn least_urgent(&self, among: M) -> Option<CpuId> {
        cpus(among).max_by_key(|&cpu| self.runner_key(cpu))
    }
}
