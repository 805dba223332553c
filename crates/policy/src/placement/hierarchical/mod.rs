//! Strong scheduling under laminar affinities: nested or disjoint, as caches, sockets and partitions
//! are.
//!
//! `selection.rs` selects the jobs to run, `positions.rs` their CPUs; this file joins them. The
//! tree of affinities itself is in `laminar.rs`.

mod positions;
mod range_bits;
mod selection;

use shiftwork_model::{Affinity, CpuId, CpuSet, Job, Platform, Task, TaskId, TaskSet};

use self::positions::Positions;
use self::selection::Selection;
use super::Placement;
use super::support::cpus::check_cpus;
use super::support::fewest_shifts::{Move, fewest_shifts};
use super::support::laminar::Family;
use super::support::ready::{Status, TaskTable};
use crate::error::PolicyError;
use crate::order::JobOrder;
use crate::policy::{Switch, Switches};

/// No ready job waits while a chain of shifts from one of its CPUs leads to an idle CPU or to a less
/// urgent job (Def. II.2 of Bonifaci et al. 2016), for laminar affinities. The scheduled jobs are
/// exactly those of their Algorithms 1 and 2; the algorithm is ours.
///
/// *Arrival*: the lowest full ancestor of the job's affinity is the set of all CPUs it can reach, so
/// the least urgent job there is the only candidate to give way. *Departure*: every affinity around
/// the departed job has room again, so the one job to admit is the root's `best`. *Placement*: a
/// free CPU of the affinity, else one whose job has the largest affinity; that job is placed next,
/// which takes fewer steps than the tree is high and moves as few jobs as possible.
///
/// O(h log b + log n) per event for n tasks, a tree of height h and b children per node.
#[derive(Debug)]
pub struct Hierarchical<O: JobOrder> {
    name: &'static str,
    family: Family,
    platform: Platform,
    online: CpuSet,
    tasks: TaskTable,
    selection: Selection<O>,
    positions: Positions<O>,
}

impl<O: JobOrder> Hierarchical<O> {
    /// All tasks known, no job ready.
    ///
    /// # Errors
    /// If two affinities overlap without nesting.
    pub fn new(name: &'static str, set: &TaskSet) -> Result<Self, PolicyError> {
        let family = Family::of((name, O::ORDER), set)?;
        let online = set.platform.all();
        let shape = family.shape(set.platform.cpus);
        let mut policy = Self {
            name,
            positions: Positions::new(shape, &set.platform, &online),
            selection: Selection::new(),
            tasks: TaskTable::default(),
            family,
            platform: set.platform.clone(),
            online,
        };
        for (id, task) in set.iter() {
            policy.tasks.enter(id, task.start_cpu);
            policy.selection.enter(id);
        }
        policy.rebuild();
        Ok(policy)
    }

    /// Makes the tree of the current affinities and puts all jobs where they were: those that run on
    /// their CPUs, the others into their heaps. Off the dispatch path.
    fn rebuild(&mut self) {
        let running = self.positions.snapshot();
        let shape = self.family.shape(self.platform.cpus);
        self.selection.reset(&shape, &self.family, &self.online);
        self.positions = Positions::new(shape, &self.platform, &self.online);
        for task in (0..self.tasks.len()).map(TaskId::from_index) {
            if self.tasks.status(task) == Status::Backlogged {
                self.selection.wait(self.key(task));
            }
        }
        for (cpu, task) in running.into_iter().enumerate() {
            let Some(task) = task else { continue };
            let position = self.positions.position(CpuId::from_index(cpu));
            let runner = (self.key(task), self.selection.node_of(task));
            self.positions.set(position, Some(runner));
            self.selection.schedule(task, None);
        }
    }

    #[inline]
    fn key(&self, task: TaskId) -> O::Key {
        O::key(&self.tasks.get(task).job)
    }

    /// A job that is not scheduled waits from now on.
    fn wait(&mut self, task: TaskId) {
        self.tasks.get_mut(task).status = Status::Backlogged;
        self.selection.wait(self.key(task));
    }

    /// Admits a waiting job for which there is room, now that this position is given up.
    #[inline]
    fn admit(&mut self, next: &O::Key, position: usize, out: &mut Switches) {
        self.selection.admit(O::task(next));
        self.positions.vacate(position);
        self.place(O::task(next), out);
    }

    /// Finds a CPU for an admitted job, shifting others if need be.
    #[inline]
    fn place(&mut self, task: TaskId, out: &mut Switches) {
        let mut moving = task;
        loop {
            let last_cpu = self.tasks.get(moving).last_cpu;
            let (position, set) = self
                .positions
                .find(self.selection.node_of(moving), last_cpu);
            let displaced = self.positions.runner(position);
            self.assign(position, Some(moving), out);
            if set == 0 {
                return;
            }
            moving = displaced.expect("a position that is taken has a runner");
        }
    }

    #[inline]
    fn assign(&mut self, position: usize, to: Option<TaskId>, out: &mut Switches) {
        let cpu = self.positions.cpu(position);
        let runner = to.map(|task| {
            let entry = self.tasks.get_mut(task);
            entry.status = Status::Assigned(cpu);
            entry.last_cpu = Some(cpu);
            (O::key(&entry.job), self.selection.node_of(task))
        });
        let from = self.positions.set(position, runner);
        out.push(Switch { cpu, from, to });
    }

    /// Keeps the set of scheduled jobs, but places them with the fewest shifts from `before`.
    fn replace_from(&mut self, before: &[Option<TaskId>], out: &mut Switches) {
        let usable = |task: TaskId| {
            let cpus = self.family.get(task).expect("a scheduled task takes part");
            (*cpus & self.online).iter().collect()
        };
        let last_cpu = |task: TaskId| self.tasks.get(task).last_cpu;
        let moves = fewest_shifts(before, &self.positions.snapshot(), usable, last_cpu);
        for &Move { cpu, .. } in &moves {
            self.assign(self.positions.position(cpu), None, out);
        }
        for &Move { cpu, to } in moves.iter().filter(|change| change.to.is_some()) {
            self.assign(self.positions.position(cpu), to, out);
        }
    }
}

impl<O: JobOrder> Placement for Hierarchical<O> {
    fn tasks(&self) -> &TaskTable {
        &self.tasks
    }

    fn tasks_mut(&mut self) -> &mut TaskTable {
        &mut self.tasks
    }

    fn runner(&self, cpu: CpuId) -> Option<TaskId> {
        (cpu.index() < self.platform.cpus)
            .then(|| self.positions.runner(self.positions.position(cpu)))
            .flatten()
    }

    #[inline]
    fn arrive(&mut self, job: Job, out: &mut Switches) {
        self.tasks.get_mut(job.task).job = job;
        let Some(full) = self.selection.lowest_full(job.task) else {
            self.selection.schedule(job.task, None);
            return self.place(job.task, out);
        };
        let victim = self.positions.least_urgent(full);
        if victim <= O::key(&job) {
            return self.wait(job.task);
        }
        let preempted = self.tasks.get_mut(O::task(&victim));
        let Status::Assigned(cpu) = preempted.status else {
            unreachable!("the least urgent job of a full affinity is assigned");
        };
        preempted.status = Status::Backlogged;
        self.selection.give_up(victim, full);
        self.selection.schedule(job.task, Some(full));
        self.positions.vacate(self.positions.position(cpu));
        self.place(job.task, out);
    }

    #[inline]
    fn depart(&mut self, task: TaskId, out: &mut Switches) {
        let entry = self.tasks.get_mut(task);
        let status = core::mem::replace(&mut entry.status, Status::NotReady);
        match status {
            Status::NotReady => {}
            Status::Backlogged => self.selection.withdraw(task),
            Status::Assigned(cpu) => {
                self.selection.retire(task);
                let position = self.positions.position(cpu);
                match self.selection.best() {
                    None => self.assign(position, None, out),
                    Some(next) => self.admit(&next, position, out),
                }
            }
        }
    }

    fn rerank(&mut self, job: Job, out: &mut Switches) {
        let Status::Assigned(cpu) = self.tasks.status(job.task) else {
            self.depart(job.task, out);
            return self.arrive(job, out);
        };
        let (position, key) = (self.positions.position(cpu), O::key(&job));
        self.tasks.get_mut(job.task).job = job;
        self.positions.rerank(position, key);
        self.selection.retire(job.task);
        match self.selection.best().filter(|next| *next < key) {
            None => self.selection.schedule(job.task, None),
            Some(next) => {
                self.admit(&next, position, out);
                self.wait(job.task);
            }
        }
    }

    fn set_affinity(&mut self, task: TaskId, affinity: &Affinity, out: &mut Switches) {
        let entry = *self.tasks.get(task);
        let before = self.positions.snapshot();
        self.depart(task, out);
        self.family.set(task, affinity);
        match self.positions.shape.find(affinity.cpus()) {
            Some(node) => self.selection.move_to(task, node, self.tasks.len()),
            None => self.rebuild(),
        }
        if entry.status == Status::NotReady {
            return;
        }
        self.arrive(entry.job, out);
        if matches!(entry.status, Status::Assigned(_)) {
            self.replace_from(&before, out);
        }
    }

    fn enter(&mut self, id: TaskId, task: &Task) {
        self.tasks.enter(id, task.start_cpu);
        self.selection.enter(id);
        self.family.enter(id, task);
        self.rebuild();
    }

    fn leave(&mut self, task: TaskId) {
        self.family.leave(task);
    }

    fn cpu_offline(&mut self, cpu: CpuId, out: &mut Switches) {
        let position = self.positions.position(cpu);
        let displaced = self.positions.runner(position);
        if let Some(task) = displaced {
            self.tasks.get_mut(task).status = Status::NotReady;
            self.selection.retire(task);
            self.assign(position, None, out);
        }
        self.online.remove(cpu);
        self.positions.close(position);
        let owner = self.positions.shape.owner_at[position];
        self.selection.resize(owner, -1);
        // All other jobs are still scheduled as the definition says: the affinities that were full
        // still are, so one arrival is sufficient.
        if let Some(task) = displaced {
            self.arrive(self.tasks.get(task).job, out);
        }
    }

    fn cpu_online(&mut self, cpu: CpuId, out: &mut Switches) {
        let position = self.positions.position(cpu);
        self.online.insert(cpu);
        self.positions.open(position);
        let owner = self.positions.shape.owner_at[position];
        self.selection.resize(owner, 1);
        if let Some(next) = self.selection.best() {
            self.admit(&next, position, out);
        }
    }

    fn is_online(&self, cpu: CpuId) -> bool {
        self.online.contains(cpu)
    }

    fn accepts_affinity(
        &self,
        task: TaskId,
        name: &str,
        affinity: &Affinity,
    ) -> Result<(), PolicyError> {
        check_cpus(self.platform.cpus, name, affinity)?;
        self.family
            .accepts((self.name, O::ORDER), task, name, affinity)
    }
}
