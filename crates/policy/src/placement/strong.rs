//! Strong scheduling under arbitrary affinities: running jobs shift to make room.

use alloc::vec::Vec;

use shiftwork_model::{Affinity, CpuId, Job, Task, TaskId, TaskSet};

use super::Placement;
use super::support::arbitrary::Assignment;
use super::support::fewest_shifts::{Move, fewest_shifts};
use super::support::mask::{Mask, cpus};
use super::support::ready::{Status, TaskTable};
use crate::error::PolicyError;
use crate::order::JobOrder;
use crate::policy::Switches;

/// No ready job waits while a chain of shifts from one of its CPUs leads to an idle CPU or to a less
/// urgent job (Cerqueira et al., RTSS 2014; Def. II.2 of Bonifaci et al. 2016). Under EDF this is
/// SAPA-EDF of Tang et al. 2021. Takes any affinities.
///
/// The scheduled jobs are exactly the greedy set: most urgent first, keep a job if the kept set
/// still fits on the CPUs.
///
/// O(m) mask operations per step of a chain, and O(masks with a backlog) to find a job for a free
/// CPU.
#[derive(Debug)]
pub struct Strong<O: JobOrder, M> {
    cpus: Assignment<O, M>,
    /// Scratch of [`Self::levels_towards`]: `levels[k]` are the CPUs from which a chain of k shifts
    /// frees a CPU.
    levels: Vec<M>,
}

impl<O: JobOrder, M: Mask> Strong<O, M> {
    /// All tasks known, no job ready.
    ///
    /// # Errors
    /// If an affinity names a CPU that the platform does not have.
    pub fn new(set: &TaskSet) -> Result<Self, PolicyError> {
        let mut strong = Self {
            cpus: Assignment::new(&set.platform),
            levels: Vec::with_capacity(set.platform.cpus + 1),
        };
        for (id, task) in set.iter() {
            strong.accepts_affinity(id, &task.name, &task.affinity)?;
            strong.enter(id, task);
        }
        Ok(strong)
    }

    /// All CPUs that chains of shifts lead to from `start`.
    fn reachable(&self, start: M) -> M {
        let mut reached = start;
        let mut frontier = start;
        while !frontier.is_empty() && !reached.intersects(self.cpus.idle) {
            let next = cpus(frontier).fold(M::EMPTY, |next, cpu| {
                next.or(self.cpus.runner_masks[cpu.index()])
            });
            frontier = next.minus(reached);
            reached = reached.or(next);
        }
        reached
    }

    /// Sorts CPUs by how many shifts it takes from there to free one of `target`, until one of
    /// `wanted` is found or, if there is none, all CPUs are sorted. Returns the sorted CPUs.
    fn levels_towards(&mut self, target: M, wanted: M) -> M {
        self.levels.clear();
        self.levels.push(target);
        let busy = self.cpus.online.minus(self.cpus.idle);
        let mut sorted = target;
        let mut last = target;
        while !last.is_empty() && !last.intersects(wanted) {
            let mut next = M::EMPTY;
            for cpu in cpus(busy.minus(sorted)) {
                if self.cpus.runner_masks[cpu.index()].intersects(last) {
                    next.insert(cpu);
                }
            }
            self.levels.push(next);
            sorted = sorted.or(next);
            last = next;
        }
        sorted
    }

    /// The most urgent backlogged job that can be placed if this CPU is given up, with the levels
    /// towards the CPU sorted as far as that job needs.
    fn next_for(&mut self, cpu: CpuId) -> Option<O::Key> {
        // More often than not the most urgent of all is not far, and the search can stop there.
        let most_urgent = self.cpus.backlogs.most_urgent()?;
        let mask = self.cpus.mask(O::task(&most_urgent));
        let sorted = self.levels_towards(M::single(cpu), mask);
        if sorted.intersects(mask) {
            return Some(most_urgent);
        }
        self.cpus.backlogs.most_urgent_on(sorted)
    }

    /// Places a job along the shortest chain that [`Self::levels_towards`] found. The CPU at the end
    /// of the chain is idle, or its job has been taken out already.
    fn place(&mut self, task: TaskId, out: &mut Switches) {
        let mask = self.cpus.mask(task);
        let level = self.levels.iter().position(|level| level.intersects(mask));
        let mut level = level.expect("a chain leads from the job to the CPU that it may take");
        let mut moving = task;
        loop {
            let among = self.cpus.mask(moving).and(self.levels[level]);
            let cpu = self.cpus.choose(among, moving);
            let displaced = self.cpus.runner(cpu);
            self.cpus.assign(cpu, Some(moving), out);
            if level == 0 {
                return;
            }
            moving = displaced.expect("a CPU within a chain is busy");
            level -= 1;
        }
    }

    /// Whether the affinity has this CPU, and none that the task may not use already.
    fn only_narrows(&self, task: TaskId, cpu: CpuId, affinity: &Affinity) -> bool {
        let mask = M::of(affinity.cpus()).and(self.cpus.online);
        mask.contains(cpu) && mask.minus(self.cpus.mask(task)).is_empty()
    }

    /// The jobs that were assigned, before a change that concerns more than one job.
    fn snapshot(&self) -> Vec<Option<TaskId>> {
        (0..self.cpus.runner_masks.len())
            .map(|cpu| self.cpus.runner(CpuId::from_index(cpu)))
            .collect()
    }

    /// Keeps the set of scheduled jobs, but places them with the fewest shifts from `before`.
    fn replace_from(&mut self, before: &[Option<TaskId>], out: &mut Switches) {
        let mask = |task: TaskId| cpus(self.cpus.mask(task)).collect();
        let moves = fewest_shifts(before, &self.snapshot(), mask, |task| {
            self.cpus.tasks.get(task).last_cpu
        });
        for &Move { cpu, .. } in &moves {
            self.cpus.assign(cpu, None, out);
        }
        for &Move { cpu, to } in moves.iter().filter(|change| change.to.is_some()) {
            self.cpus.assign(cpu, to, out);
        }
    }
}

impl<O: JobOrder, M: Mask> Placement for Strong<O, M> {
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
        let mask = self.cpus.mask(job.task);
        let idle = mask.and(self.cpus.idle);
        if !idle.is_empty() {
            let cpu = self.cpus.choose(idle, job.task);
            return self.cpus.assign(cpu, Some(job.task), out);
        }
        let reached = self.reachable(mask);
        let idle = reached.and(self.cpus.idle);
        if !idle.is_empty() {
            self.levels_towards(idle, mask);
            return self.place(job.task, out);
        }
        let victim = self
            .cpus
            .least_urgent(reached)
            .filter(|&cpu| self.cpus.runner_key(cpu) > O::key(&job));
        match victim {
            None => self.cpus.add_to_backlog(job.task),
            Some(cpu) => {
                let preempted = self.cpus.runner(cpu).expect("the victim runs");
                self.levels_towards(M::single(cpu), mask);
                self.place(job.task, out);
                self.cpus.add_to_backlog(preempted);
            }
        }
    }

    fn depart(&mut self, task: TaskId, out: &mut Switches) {
        let cpu = match self.cpus.tasks.status(task) {
            Status::NotReady => return,
            Status::Backlogged => return self.cpus.take_from_backlog(task),
            Status::Assigned(cpu) => cpu,
        };
        self.cpus.tasks.get_mut(task).status = Status::NotReady;
        match self.next_for(cpu) {
            None => self.cpus.assign(cpu, None, out),
            Some(next) => {
                self.cpus.take_from_backlog(O::task(&next));
                self.place(O::task(&next), out);
            }
        }
    }

    fn rerank(&mut self, job: Job, out: &mut Switches) {
        let Status::Assigned(cpu) = self.cpus.tasks.status(job.task) else {
            self.cpus.take_from_backlog(job.task);
            return self.arrive(job, out);
        };
        self.cpus.rerank_in_place(cpu, job);
        // Only a job that the departure of this one would admit can be more urgent now.
        let next = self.next_for(cpu).filter(|next| *next < O::key(&job));
        if let Some(next) = next {
            self.cpus.take_from_backlog(O::task(&next));
            self.place(O::task(&next), out);
            self.cpus.add_to_backlog(job.task);
        }
    }

    fn set_affinity(&mut self, task: TaskId, affinity: &Affinity, out: &mut Switches) {
        let job = self.cpus.tasks.get(task).job;
        match self.cpus.tasks.status(task) {
            Status::NotReady => self.cpus.set_affinity(task, affinity),
            Status::Backlogged => {
                self.cpus.take_from_backlog(task);
                self.cpus.set_affinity(task, affinity);
                self.arrive(job, out);
            }
            Status::Assigned(cpu) if self.only_narrows(task, cpu, affinity) => {
                // It stays, and cannot make room for a job for which it could not before.
                self.cpus.set_affinity(task, affinity);
            }
            Status::Assigned(_) => {
                let before = self.snapshot();
                self.depart(task, out);
                self.cpus.set_affinity(task, affinity);
                self.arrive(job, out);
                self.replace_from(&before, out);
            }
        }
    }

    fn enter(&mut self, id: TaskId, task: &Task) {
        self.cpus.enter(id, task);
    }

    fn cpu_offline(&mut self, cpu: CpuId, out: &mut Switches) {
        // All other jobs are still placed as the definition says: one arrival is sufficient.
        if let Some(job) = self.cpus.take_offline(cpu, out) {
            self.arrive(job, out);
        }
    }

    fn cpu_online(&mut self, cpu: CpuId, out: &mut Switches) {
        self.cpus.bring_online(cpu);
        if let Some(next) = self.next_for(cpu) {
            self.cpus.take_from_backlog(O::task(&next));
            self.place(O::task(&next), out);
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
