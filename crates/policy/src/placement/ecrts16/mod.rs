//! Hierarchical strong scheduling as published (Bonifaci et al., ECRTS 2016): a baseline.

mod queue;

use alloc::vec::Vec;

use shiftwork_model::{Affinity, CpuId, Job, Task, TaskId, TaskSet};

pub use self::queue::Queued;
use self::queue::{Links, Queue};
use super::Placement;
use super::support::cpus::check_cpus;
use super::support::laminar::{Family, NodeId, Shape};
use super::support::mask::{Mask, cpus};
use super::support::ready::{Status, TaskTable};
use crate::error::PolicyError;
use crate::policy::{Switch, Switches};

/// Which of the published algorithms gives the admitted tasks their processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assigner {
    /// Algorithm 4: any processor, level by level.
    LevelByLevel,
    /// Algorithm 6: the last-used processor where possible.
    LocalityAware,
}

#[derive(Debug)]
struct Node<O: Queued, M> {
    parent: Option<NodeId>,
    depth: usize,
    /// Length of the longest chain of affinities that ends here, from 1.
    level: usize,
    /// The processors of the affinity that are online.
    cpus: M,
    /// Those in no smaller affinity.
    own: M,
    size: usize,
    /// s[β]: the scheduled tasks whose affinities lie inside.
    scheduled: Vec<TaskId>,
    /// b[β]: the backlogged tasks with exactly this affinity.
    backlog: O::Queue,
}

/// Algorithms 3 (arrival), 5 (completion) and 6 or 4 (assignment), with processor sets as bitmaps.
///
/// Corrected where the published text does not work: a root for all processors exists; levels are
/// chain lengths, and Algorithm 4 concatenates the maximal proper sub-masks; jobs are totally ordered,
/// an equal that was ready before wins; empty queues are skipped in Algorithm 5; backlogged tasks can
/// depart; Algorithm 6 skips last processors that do not exist or lie outside the affinity, and the
/// times of last use of all running tasks are refreshed at every decision.
///
/// O(m) per arrival, O(log n + m²) per departure, as published.
#[derive(Debug)]
pub struct Ecrts16<O: Queued, M> {
    name: &'static str,
    assigner: Assigner,
    family: Family,
    tasks: TaskTable,
    links: <O::Queue as Queue<O>>::Links,
    node_of: Vec<NodeId>,
    shape: Shape,
    nodes: Vec<Node<O, M>>,
    height: usize,
    /// By task and depth: its place in s[β] of the affinity of that depth around it.
    places: Vec<usize>,
    /// By task: the decision at which it was last scheduled.
    last_t: Vec<u64>,
    decision: u64,
    online: M,
    cpu_count: usize,
    running: Vec<Option<TaskId>>,
    /// Scratch of the assignment algorithms, with room for every processor.
    sorted: Vec<TaskId>,
    level_ends: Vec<usize>,
    preferred: Vec<Option<TaskId>>,
    assigned: Vec<Option<TaskId>>,
    left_over: Vec<M>,
}

impl<O: Queued, M: Mask> Ecrts16<O, M> {
    /// All tasks known, no job ready.
    ///
    /// # Errors
    /// If two affinities overlap without nesting.
    pub fn new(name: &'static str, set: &TaskSet, assigner: Assigner) -> Result<Self, PolicyError> {
        let family = Family::of((name, O::ORDER), set)?;
        let count = set.platform.cpus;
        let mut policy = Self {
            name,
            assigner,
            shape: family.shape(count),
            family,
            tasks: TaskTable::default(),
            links: Default::default(),
            node_of: Vec::new(),
            nodes: Vec::new(),
            height: 1,
            places: Vec::new(),
            last_t: Vec::new(),
            decision: 0,
            online: M::of(&set.platform.all()),
            cpu_count: count,
            running: alloc::vec![None; count],
            sorted: Vec::with_capacity(count),
            level_ends: Vec::new(),
            preferred: alloc::vec![None; count],
            assigned: alloc::vec![None; count],
            left_over: Vec::new(),
        };
        let priorities = set.priorities();
        for (id, task) in set.iter() {
            policy.note(id, task);
            policy.tasks.get_mut(id).job.priority = priorities[id.index()];
        }
        policy.rebuild();
        Ok(policy)
    }

    fn note(&mut self, id: TaskId, task: &Task) {
        self.tasks.enter(id, task.start_cpu);
        self.links.enter(id);

        self.node_of.resize(self.tasks.len(), NodeId::ROOT);
        self.last_t.resize(self.tasks.len(), 0);
    }

    /// Makes the tree of the current affinities and puts every ready job back where it was. Off the
    /// dispatch path.
    fn rebuild(&mut self) {
        self.shape = self.family.shape(self.cpu_count);
        self.nodes = self
            .shape
            .nodes
            .iter()
            .map(|node| Node {
                parent: node.parent,
                depth: node.depth,
                level: 1,
                cpus: M::of(&node.cpus).and(self.online),
                own: M::of(&node.cpus).and(self.online),
                size: cpus(M::of(&node.cpus).and(self.online)).count(),
                scheduled: Vec::with_capacity(node.cpus.len() + 1),
                backlog: O::Queue::default(),
            })
            .collect();
        for index in (1..self.nodes.len()).rev() {
            let (level, cpus) = (self.nodes[index].level, self.nodes[index].cpus);
            let parent = self.nodes[index]
                .parent
                .expect("only the root has no parent");
            let parent = &mut self.nodes[parent.index()];
            parent.level = parent.level.max(level + 1);
            parent.own = parent.own.minus(cpus);
        }
        self.height = self
            .nodes
            .iter()
            .map(|node| node.depth + 1)
            .max()
            .unwrap_or(1);
        self.level_ends = alloc::vec![0; self.nodes[0].level + 1];
        self.left_over = alloc::vec![M::EMPTY; self.nodes.len()];
        self.places = alloc::vec![0; self.tasks.len() * self.height];
        for (task, mask) in self.family.iter() {
            let node = self
                .shape
                .find(mask)
                .expect("the tree was made of these affinities");
            self.node_of[task.index()] = node;
            self.nodes[node.index()]
                .backlog
                .join(self.tasks.get(task).job.priority);
        }
        for task in (0..self.tasks.len()).map(TaskId::from_index) {
            match self.tasks.status(task) {
                Status::NotReady => {}
                Status::Backlogged => {
                    self.links.forget(task);
                    self.enqueue(task);
                }
                Status::Assigned(_) => self.insert_scheduled(task),
            }
        }
    }

    fn key(&self, task: TaskId) -> O::Key {
        O::key(&self.tasks.get(task).job)
    }

    /// `foreach γ ⊇ α: s[γ].Insert(T)`.
    fn insert_scheduled(&mut self, task: TaskId) {
        let mut next = Some(self.node_of[task.index()]);
        while let Some(id) = next {
            let node = &mut self.nodes[id.index()];
            self.places[task.index() * self.height + node.depth] = node.scheduled.len();
            node.scheduled.push(task);
            next = node.parent;
        }
    }

    /// `foreach γ ⊇ α: s[γ].Delete(T)`.
    fn delete_scheduled(&mut self, task: TaskId) {
        let mut next = Some(self.node_of[task.index()]);
        while let Some(id) = next {
            let node = &mut self.nodes[id.index()];
            let place = self.places[task.index() * self.height + node.depth];
            node.scheduled.swap_remove(place);
            if let Some(moved) = node.scheduled.get(place) {
                self.places[moved.index() * self.height + node.depth] = place;
            }
            next = node.parent;
        }
    }

    /// Algorithm 3 without its last step: admits the task, and returns the task that it displaces
    /// (possibly itself).
    fn admit(&mut self, task: TaskId) -> Option<TaskId> {
        let mut beta = self.node_of[task.index()];
        while self.nodes[beta.index()].scheduled.len() < self.nodes[beta.index()].size {
            match self.nodes[beta.index()].parent {
                Some(parent) => beta = parent,
                None => break,
            }
        }
        self.insert_scheduled(task);
        let node = &self.nodes[beta.index()];
        if node.scheduled.len() <= node.size {
            return None;
        }
        let least = node
            .scheduled
            .iter()
            .copied()
            .max_by_key(|&other| self.key(other));
        let leaving = least.expect("the list holds at least the new task");
        self.delete_scheduled(leaving);
        Some(leaving)
    }

    fn enqueue(&mut self, task: TaskId) {
        let key = self.key(task);
        self.tasks.get_mut(task).status = Status::Backlogged;
        self.nodes[self.node_of[task.index()].index()]
            .backlog
            .insert(key, &mut self.links);
    }

    fn dequeue(&mut self, task: TaskId) {
        let key = self.key(task);
        self.nodes[self.node_of[task.index()].index()]
            .backlog
            .delete(key, &mut self.links);
    }

    /// Algorithm 5 from line 4: every affinity offers its most urgent backlogged task.
    fn offer_all(&mut self) {
        for index in 0..self.nodes.len() {
            let Some(key) = self.nodes[index].backlog.find_max(&self.links) else {
                continue;
            };
            let task = O::task(&key);
            match self.admit(task) {
                Some(leaving) if leaving == task => {}
                leaving => {
                    self.dequeue(task);
                    if let Some(leaving) = leaving {
                        self.enqueue(leaving);
                    }
                }
            }
        }
    }

    /// The admitted tasks in increasing order of their affinities' levels (counting sort).
    fn sort_by_level(&mut self) {
        let admitted = &self.nodes[NodeId::ROOT.index()].scheduled;
        let level = |task: &TaskId| self.nodes[self.node_of[task.index()].index()].level;
        self.level_ends.fill(0);
        admitted
            .iter()
            .for_each(|task| self.level_ends[level(task)] += 1);
        let mut end = 0;
        for count in &mut self.level_ends {
            end += core::mem::replace(count, end);
        }
        self.sorted.clear();
        self.sorted.resize(admitted.len(), TaskId::LAST);
        for task in admitted {
            let place = &mut self.level_ends[level(task)];
            self.sorted[*place] = *task;
            *place += 1;
        }
    }

    /// Algorithm 6.
    fn assign_locality_aware(&mut self) {
        self.sort_by_level();
        let mut available = self.online;
        let mut reserved = M::EMPTY;
        self.preferred.fill(None);
        for &task in &self.sorted {
            let mask = self.nodes[self.node_of[task.index()].index()].cpus;
            let last = self
                .tasks
                .get(task)
                .last_cpu
                .filter(|&cpu| mask.contains(cpu));
            let Some(cpu) = last else { continue };
            let preferred = &mut self.preferred[cpu.index()];
            if preferred.is_none_or(|other| self.last_t[other.index()] < self.last_t[task.index()])
            {
                *preferred = Some(task);
                reserved.insert(cpu);
            }
        }
        for &task in &self.sorted {
            let mask = self.nodes[self.node_of[task.index()].index()].cpus;
            let valid = available.and(mask);
            let last =
                self.tasks.get(task).last_cpu.filter(|&cpu| {
                    valid.contains(cpu) && self.preferred[cpu.index()] == Some(task)
                });
            let cpu = last
                .or_else(|| valid.minus(reserved).lowest())
                .or_else(|| valid.lowest())
                .expect("the admitted tasks fit (Lemma III.1)");
            available.remove(cpu);
            self.assigned[cpu.index()] = Some(task);
        }
    }

    /// Algorithm 4.
    fn assign_level_by_level(&mut self) {
        for index in (0..self.nodes.len()).rev() {
            let node = &self.nodes[index];
            let mut list = self.left_over[index].or(node.own);
            for &task in &node.scheduled {
                if self.node_of[task.index()].index() == index {
                    let cpu = list.lowest().expect("the admitted tasks fit (Lemma III.1)");
                    list.remove(cpu);
                    self.assigned[cpu.index()] = Some(task);
                }
            }
            self.left_over[index] = M::EMPTY;
            if let Some(parent) = node.parent {
                self.left_over[parent.index()] = self.left_over[parent.index()].or(list);
            }
        }
    }

    /// Gives the admitted tasks their processors, and says what changed.
    fn reassign(&mut self, out: &mut Switches) {
        self.assigned.fill(None);
        match self.assigner {
            Assigner::LevelByLevel => self.assign_level_by_level(),
            Assigner::LocalityAware => self.assign_locality_aware(),
        }
        self.decision += 1;
        for index in 0..self.running.len() {
            let cpu = CpuId::from_index(index);
            let (from, to) = (self.running[index], self.assigned[index]);
            if let Some(task) = to {
                self.last_t[task.index()] = self.decision;
                let entry = self.tasks.get_mut(task);
                entry.status = Status::Assigned(cpu);
                entry.last_cpu = Some(cpu);
            }
            if from != to {
                self.running[index] = to;
                out.push(Switch { cpu, from, to });
            }
        }
    }

    fn resize(&mut self, out: &mut Switches) {
        self.rebuild();
        self.offer_all();
        self.reassign(out);
    }
}

impl<O: Queued, M: Mask> Placement for Ecrts16<O, M> {
    fn tasks(&self) -> &TaskTable {
        &self.tasks
    }

    fn tasks_mut(&mut self) -> &mut TaskTable {
        &mut self.tasks
    }

    fn runner(&self, cpu: CpuId) -> Option<TaskId> {
        self.running.get(cpu.index()).copied().flatten()
    }

    fn arrive(&mut self, job: Job, out: &mut Switches) {
        self.tasks.get_mut(job.task).job = job;
        let leaving = self.admit(job.task);
        if let Some(leaving) = leaving {
            self.enqueue(leaving);
        }
        if leaving != Some(job.task) {
            self.reassign(out);
        }
    }

    fn depart(&mut self, task: TaskId, out: &mut Switches) {
        match self.tasks.status(task) {
            Status::NotReady => {}
            Status::Backlogged => {
                self.dequeue(task);
                self.tasks.get_mut(task).status = Status::NotReady;
            }
            Status::Assigned(_) => {
                self.delete_scheduled(task);
                self.tasks.get_mut(task).status = Status::NotReady;
                self.offer_all();
                self.reassign(out);
            }
        }
    }

    fn rerank(&mut self, job: Job, out: &mut Switches) {
        self.depart(job.task, out);
        self.arrive(job, out);
    }

    fn set_affinity(&mut self, task: TaskId, affinity: &Affinity, out: &mut Switches) {
        let entry = *self.tasks.get(task);
        self.depart(task, out);
        self.family.set(task, affinity);
        self.rebuild();
        if entry.status != Status::NotReady {
            self.arrive(entry.job, out);
        }
    }

    fn enter(&mut self, id: TaskId, task: &Task) {
        self.note(id, task);
        self.family.enter(id, task);
        self.rebuild();
    }

    fn leave(&mut self, task: TaskId) {
        self.family.leave(task);
    }

    fn cpu_offline(&mut self, cpu: CpuId, out: &mut Switches) {
        self.online.remove(cpu);
        if let Some(task) = self.running[cpu.index()] {
            self.delete_scheduled(task);
            self.enqueue(task);
        }
        self.resize(out);
    }

    fn cpu_online(&mut self, cpu: CpuId, out: &mut Switches) {
        self.online.insert(cpu);
        self.resize(out);
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
        check_cpus(self.cpu_count, name, affinity)?;
        self.family
            .accepts((self.name, O::ORDER), task, name, affinity)
    }
}
