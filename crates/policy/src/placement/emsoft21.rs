//! Strong affinity scheduling as published for RTEMS (Dubey et al., EMSOFT 2021): a baseline.

use alloc::vec::Vec;

use shiftwork_model::{Affinity, CpuId, CpuSet, Job, Task, TaskId, TaskSet};

use super::Placement;
use super::support::cpus::check_cpus;
use super::support::mask::{Mask, cpus};
use super::support::ready::{Status, TaskTable};
use crate::error::PolicyError;
use crate::order::{FixedPriority, JobOrder, Ranking};
use crate::policy::{Switch, Switches};

/// Algorithms 1 (arrival) and 2 (departure) of Dubey et al. 2021 for fixed priorities.
///
/// Corrected where the published text does not work: Algorithm 1 advances its queue, gives the
/// arriving task its processor and moves the preempted one to the ready tasks; equal priorities do
/// not preempt; Algorithm 2 visits every task once and may find none. A change of priority or
/// affinity is a departure and an arrival, since RTEMS's own shortcuts break even the weak
/// invariant.
///
/// O(m²) per arrival and O(n m) per departure, as published.
#[derive(Debug)]
pub struct Emsoft21<M> {
    tasks: TaskTable,
    affinities: Vec<CpuSet>,
    masks: Vec<M>,
    /// Ready tasks, scheduled or not, in no order; `node_at[task]` is a task's place here.
    nodes: Vec<TaskId>,
    node_at: Vec<usize>,
    running: Vec<Option<TaskId>>,
    online: M,
    /// Scratch: the queue of processors of both algorithms.
    queue: Vec<CpuId>,
    /// Scratch, by processor: which task would take it (Algorithm 1).
    preempting_node: Vec<TaskId>,
    /// Scratch, by task: which processor it would take (Algorithm 2).
    to_preempt: Vec<CpuId>,
}

type Key = <FixedPriority as Ranking>::Key;

impl<M: Mask> Emsoft21<M> {
    /// All tasks known, no job ready.
    ///
    /// # Errors
    /// If an affinity names a CPU that the platform does not have.
    pub fn new(set: &TaskSet) -> Result<Self, PolicyError> {
        let count = set.platform.cpus;
        let mut policy = Self {
            tasks: TaskTable::default(),
            affinities: Vec::new(),
            masks: Vec::new(),
            nodes: Vec::new(),
            node_at: Vec::new(),
            running: alloc::vec![None; count],
            online: M::of(&set.platform.all()),
            queue: Vec::with_capacity(count),
            preempting_node: alloc::vec![TaskId::LAST; count],
            to_preempt: Vec::new(),
        };
        for (id, task) in set.iter() {
            policy.accepts_affinity(id, &task.name, &task.affinity)?;
            policy.enter(id, task);
        }
        Ok(policy)
    }

    fn key(&self, task: TaskId) -> Key {
        FixedPriority::key(&self.tasks.get(task).job)
    }

    /// The key of what runs on a processor; an idle one has the least urgent of all.
    fn key_on(&self, cpu: CpuId) -> Key {
        self.running[cpu.index()].map_or(FixedPriority::LAST, |task| self.key(task))
    }

    /// `Preempt(cpu, task)` of the paper.
    fn preempt(&mut self, cpu: CpuId, task: Option<TaskId>, out: &mut Switches) {
        let from = core::mem::replace(&mut self.running[cpu.index()], task);
        if let Some(task) = task {
            let entry = self.tasks.get_mut(task);
            entry.status = Status::Assigned(cpu);
            entry.last_cpu = Some(cpu);
        }
        out.push(Switch {
            cpu,
            from,
            to: task,
        });
    }

    /// Algorithm 1, lines 1 to 13: the reachable processor with the least urgent task.
    fn least_urgent_reachable(&mut self, arriving: TaskId) -> Option<CpuId> {
        self.queue.clear();
        let mut visited = self.masks[arriving.index()];
        for cpu in cpus(visited) {
            self.queue.push(cpu);
            self.preempting_node[cpu.index()] = arriving;
        }
        let mut to_preempt: Option<CpuId> = None;
        let mut front = 0;
        while let Some(&current) = self.queue.get(front) {
            front += 1;
            if to_preempt.is_none_or(|lowest| self.key_on(lowest) < self.key_on(current)) {
                to_preempt = Some(current);
            }
            let Some(task) = self.running[current.index()] else {
                continue;
            };
            for cpu in cpus(self.masks[task.index()].minus(visited)) {
                visited.insert(cpu);
                self.queue.push(cpu);
                self.preempting_node[cpu.index()] = task;
            }
        }
        to_preempt
    }

    /// Algorithm 2, lines 1 to 10: the most urgent ready task that can reach a free processor.
    fn most_urgent_reaching(&mut self, departed: CpuId) -> Option<TaskId> {
        self.queue.clear();
        self.queue.push(departed);
        let mut visited = M::single(departed);
        let mut highest: Option<TaskId> = None;
        let mut front = 0;
        while let Some(&cpu) = self.queue.get(front) {
            front += 1;
            for place in 0..self.nodes.len() {
                let task = self.nodes[place];
                if !self.masks[task.index()].contains(cpu) {
                    continue;
                }
                match self.tasks.status(task) {
                    Status::Assigned(on) if !visited.contains(on) => {
                        visited.insert(on);
                        self.queue.push(on);
                        self.to_preempt[task.index()] = cpu;
                    }
                    Status::Backlogged
                        if highest.is_none_or(|other| self.key(task) < self.key(other)) =>
                    {
                        highest = Some(task);
                        self.to_preempt[task.index()] = cpu;
                    }
                    _ => {}
                }
            }
        }
        highest
    }

    /// Algorithm 2 as a whole, for an idle processor.
    fn refill(&mut self, free: CpuId, out: &mut Switches) {
        let Some(highest) = self.most_urgent_reaching(free) else {
            return self.preempt(free, None, out);
        };
        let mut task = highest;
        loop {
            let cpu = self.to_preempt[task.index()];
            let next = self.running[cpu.index()];
            self.preempt(cpu, Some(task), out);
            if cpu == free {
                return;
            }
            task = next.expect("a processor on the way is busy");
        }
    }

    fn add_node(&mut self, task: TaskId) {
        self.node_at[task.index()] = self.nodes.len();
        self.nodes.push(task);
    }

    fn remove_node(&mut self, task: TaskId) {
        let place = self.node_at[task.index()];
        self.nodes.swap_remove(place);
        if let Some(moved) = self.nodes.get(place) {
            self.node_at[moved.index()] = place;
        }
        self.tasks.get_mut(task).status = Status::NotReady;
    }

    fn refresh_mask(&mut self, task: TaskId) {
        self.masks[task.index()] = M::of(&self.affinities[task.index()]).and(self.online);
    }

    fn refresh_all_masks(&mut self) {
        (0..self.tasks.len())
            .map(TaskId::from_index)
            .for_each(|task| self.refresh_mask(task));
    }
}

impl<M: Mask> Placement for Emsoft21<M> {
    fn tasks(&self) -> &TaskTable {
        &self.tasks
    }

    fn tasks_mut(&mut self) -> &mut TaskTable {
        &mut self.tasks
    }

    fn runner(&self, cpu: CpuId) -> Option<TaskId> {
        self.running.get(cpu.index()).copied().flatten()
    }

    /// Algorithm 1.
    fn arrive(&mut self, job: Job, out: &mut Switches) {
        let arriving = job.task;
        self.tasks.get_mut(arriving).job = job;
        self.tasks.get_mut(arriving).status = Status::Backlogged;
        self.add_node(arriving);
        let victim = self.least_urgent_reachable(arriving);
        let Some(mut cpu) = victim.filter(|&cpu| self.key_on(cpu) > self.key(arriving)) else {
            return;
        };
        if let Some(lowest) = self.running[cpu.index()] {
            self.tasks.get_mut(lowest).status = Status::Backlogged;
        }
        loop {
            let task = self.preempting_node[cpu.index()];
            let from = self.tasks.status(task);
            self.preempt(cpu, Some(task), out);
            match from {
                Status::Assigned(next) => cpu = next,
                _ => return,
            }
        }
    }

    fn depart(&mut self, task: TaskId, out: &mut Switches) {
        let status = self.tasks.status(task);
        if status == Status::NotReady {
            return;
        }
        self.remove_node(task);
        if let Status::Assigned(cpu) = status {
            self.refill(cpu, out);
        }
    }

    fn rerank(&mut self, job: Job, out: &mut Switches) {
        self.depart(job.task, out);
        self.arrive(job, out);
    }

    fn set_affinity(&mut self, task: TaskId, affinity: &Affinity, out: &mut Switches) {
        let entry = *self.tasks.get(task);
        self.depart(task, out);
        self.affinities[task.index()] = *affinity.cpus();
        self.refresh_mask(task);
        if entry.status != Status::NotReady {
            self.arrive(entry.job, out);
        }
    }

    fn enter(&mut self, id: TaskId, task: &Task) {
        self.tasks.enter(id, task.start_cpu);
        self.affinities.resize(self.tasks.len(), CpuSet::EMPTY);
        self.masks.resize(self.tasks.len(), M::EMPTY);
        self.node_at.resize(self.tasks.len(), 0);
        self.to_preempt
            .resize(self.tasks.len(), CpuId::from_index(0));
        self.nodes.reserve(self.tasks.len() - self.nodes.len());
        self.affinities[id.index()] = *task.affinity.cpus();
        self.refresh_mask(id);
    }

    fn cpu_offline(&mut self, cpu: CpuId, out: &mut Switches) {
        let displaced = self.running[cpu.index()];
        self.online.remove(cpu);
        self.refresh_all_masks();
        if let Some(task) = displaced {
            self.remove_node(task);
            self.preempt(cpu, None, out);
            self.arrive(self.tasks.get(task).job, out);
        }
    }

    fn cpu_online(&mut self, cpu: CpuId, out: &mut Switches) {
        self.online.insert(cpu);
        self.refresh_all_masks();
        self.refill(cpu, out);
    }

    fn is_online(&self, cpu: CpuId) -> bool {
        self.online.contains(cpu)
    }

    fn accepts_affinity(
        &self,
        _: TaskId,
        name: &str,
        affinity: &Affinity,
    ) -> Result<(), PolicyError> {
        check_cpus(self.running.len(), name, affinity)
    }
}
