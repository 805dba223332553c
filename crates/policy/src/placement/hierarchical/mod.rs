//! Strong scheduling under laminar affinities: nested or disjoint, as caches, sockets and partitions
//! are.
//!
//! The tree of affinities is in `laminar.rs`, the sets of positions in `range_bits.rs`; this file
//! keeps the schedule.

mod range_bits;

use alloc::vec::Vec;

use shiftwork_model::{Affinity, CpuId, CpuSet, Job, Platform, Task, TaskId, TaskSet};

use self::range_bits::RangeBits;
use super::fewest_shifts::{Move, fewest_shifts};
use super::laminar::{Family, NodeId, Shape, ShapeNode};
use super::least_urgent::LeastUrgent;
use super::{Placement, check_cpus};
use crate::error::PolicyError;
use crate::order::JobOrder;
use crate::policy::{Switch, Switches};
use crate::ready::{Backlog, HeapPositions, Status, TaskTable};
use crate::tournament::Tournament;

/// Up to this many CPUs a victim is found by looking at all CPUs of its affinity, most often few.
const FEW: usize = 64;

/// What is scheduled and what waits below one affinity.
///
/// A node is *full* if it has as many scheduled jobs inside as CPUs online: then each of its CPUs
/// runs one of them, and nothing more fits.
#[derive(Debug)]
struct Node<O: JobOrder> {
    parent: Option<NodeId>,
    slot: usize,
    depth: usize,
    first: usize,
    last: usize,
    /// CPUs online.
    size: i32,
    /// Scheduled jobs whose affinity lies inside this one.
    count: i32,
    /// Waiting jobs with exactly this affinity.
    backlog: Backlog<O>,
    /// By child: its `best`, or nobody if the child is full.
    contenders: Tournament<O::Key>,
    /// The most urgent waiting job below that no full node further down blocks.
    best: O::Key,
}

impl<O: JobOrder> Node<O> {
    fn is_full(&self) -> bool {
        self.count == self.size
    }
}

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
    tasks: TaskTable,
    positions: HeapPositions,
    /// How many jobs are backlogged. While none is, there are counts to keep and nothing else.
    waiting: usize,
    node_of: Vec<NodeId>,
    shape: Shape,
    nodes: Vec<Node<O>>,
    platform: Platform,
    online: CpuSet,
    /// By position.
    runners: Vec<Option<TaskId>>,
    /// By position: the least urgent job wins. Read for full nodes only, where every online CPU has
    /// a job; others hold nobody.
    least: LeastUrgent<O::Key>,
    /// `taken[0]`: the free positions; `taken[d + 1]`: those that run a job of an affinity of depth d.
    taken: Vec<RangeBits>,
    /// By position: which set of `taken` it is in.
    taken_by: Vec<usize>,
    /// By CPU: the positions that share a cache with it; empty if nothing is known.
    mates: Vec<RangeBits>,
}

impl<O: JobOrder> Hierarchical<O> {
    /// All tasks known, no job ready.
    ///
    /// # Errors
    /// If two affinities overlap without nesting.
    pub fn new(name: &'static str, set: &TaskSet) -> Result<Self, PolicyError> {
        let family = Family::of(name, set)?;
        let mut policy = Self {
            name,
            shape: family.shape(set.platform.cpus),
            family,
            tasks: TaskTable::default(),
            positions: HeapPositions::default(),
            waiting: 0,
            node_of: Vec::new(),
            nodes: Vec::new(),
            online: set.platform.all(),
            platform: set.platform.clone(),
            runners: Vec::new(),
            least: LeastUrgent::new(1, FEW, O::FIRST),
            taken: Vec::new(),
            taken_by: Vec::new(),
            mates: Vec::new(),
        };
        for (id, task) in set.iter() {
            policy.note(id, task);
        }
        policy.rebuild(Vec::new());
        Ok(policy)
    }

    /// Makes room for a task, but finds no place in the tree for it.
    fn note(&mut self, id: TaskId, task: &Task) {
        self.tasks.enter(id, task.start_cpu);
        self.positions.enter(id);
        self.node_of.resize(self.tasks.len(), NodeId::ROOT);
    }

    /// Makes the tree of the current affinities and puts all jobs where they were: `running[cpu]`
    /// on its CPU, the other backlogged ones into their heaps. Off the dispatch path.
    fn rebuild(&mut self, running: Vec<Option<TaskId>>) {
        self.shape = self.family.shape(self.platform.cpus);
        let online = self.online;
        let make = |node: &ShapeNode| Node {
            parent: node.parent,
            slot: node.slot,
            depth: node.depth,
            first: node.first,
            last: node.last,
            size: (node.cpus & online).len() as i32,
            count: 0,
            backlog: Backlog::default(),
            contenders: Tournament::new(node.children, O::LAST),
            best: O::LAST,
        };
        self.nodes = self.shape.nodes.iter().map(make).collect();
        let cpus = self.platform.cpus;
        let height = self
            .nodes
            .iter()
            .map(|node| node.depth + 1)
            .max()
            .unwrap_or(1);
        self.runners = alloc::vec![None; cpus];
        self.least = LeastUrgent::new(cpus, FEW, O::FIRST);
        self.taken = alloc::vec![RangeBits::default(); height + 1];
        self.taken_by = alloc::vec![0; cpus];
        self.note_mates();
        self.waiting = 0;
        for cpu in self.online.iter() {
            self.taken[0].insert(self.shape.position_of[cpu.index()]);
        }
        self.settle_tasks();
        for (index, task) in running.into_iter().enumerate() {
            let Some(task) = task else { continue };
            self.set_runner(self.shape.position_of[index], Some(task));
            self.climb(self.node_of[task.index()], None, 1);
        }
    }

    /// Finds the node of every task, makes room there, and queues the backlogged jobs.
    fn settle_tasks(&mut self) {
        let mut members = alloc::vec![0; self.nodes.len()];
        for (task, cpus) in self.family.iter() {
            let node = self
                .shape
                .find(cpus)
                .expect("the tree was made of these affinities");
            self.node_of[task.index()] = node;
            members[node.index()] += 1;
            self.nodes[node.index()]
                .backlog
                .reserve(members[node.index()]);
        }
        for task in (0..self.tasks.len()).map(TaskId::from_index) {
            if self.tasks.status(task) == Status::Backlogged {
                self.positions.forget(task);
                self.wait(task);
            }
        }
    }

    fn note_mates(&mut self) {
        if self.platform.caches.is_empty() {
            return;
        }
        let mates_of = |cpu| {
            let mut mates = RangeBits::default();
            for mate in self.platform.cache_mates(CpuId::from_index(cpu)).iter() {
                mates.insert(self.shape.position_of[mate.index()]);
            }
            mates
        };
        self.mates = (0..self.platform.cpus).map(mates_of).collect();
    }

    /// The smallest full affinity around `node`, itself included.
    #[inline]
    fn lowest_full(&self, node: NodeId) -> Option<NodeId> {
        let mut next = Some(node);
        while let Some(id) = next {
            let node = &self.nodes[id.index()];
            if node.is_full() {
                return Some(id);
            }
            next = node.parent;
        }
        None
    }

    /// Adds `change` to the scheduled jobs of `from` and all affinities around it below `stop`, and
    /// brings every `best` up to date. `stop` is full before and after, so nothing above it changes.
    #[inline]
    fn climb(&mut self, from: NodeId, stop: Option<NodeId>, change: i32) {
        let mut id = from;
        loop {
            let node = &mut self.nodes[id.index()];
            node.best = node.backlog.top().min(node.contenders.winner());
            if Some(id) == stop {
                return;
            }
            node.count += change;
            let contender = if node.is_full() { O::LAST } else { node.best };
            let (slot, Some(parent)) = (node.slot, node.parent) else {
                return;
            };
            self.nodes[parent.index()].contenders.set(slot, contender);
            id = parent;
        }
    }

    /// The same where no heap has changed.
    #[inline]
    fn count(&mut self, from: NodeId, stop: Option<NodeId>, change: i32) {
        if self.waiting > 0 {
            return self.climb(from, stop, change);
        }
        let mut next = Some(from);
        while let Some(id) = next.filter(|_| next != stop) {
            let node = &mut self.nodes[id.index()];
            node.count += change;
            next = node.parent;
        }
    }

    /// The job of the task is backlogged from now on; the caller climbs.
    #[inline]
    fn enqueue(&mut self, task: TaskId) -> NodeId {
        self.waiting += 1;
        let entry = self.tasks.get_mut(task);
        entry.status = Status::Backlogged;
        let node = self.node_of[task.index()];
        self.nodes[node.index()]
            .backlog
            .push(O::key(&entry.job), &mut self.positions);
        node
    }

    fn wait(&mut self, task: TaskId) {
        let node = self.enqueue(task);
        self.climb(node, None, 0);
    }

    /// Takes a backlogged job out of its heap; the caller climbs.
    #[inline]
    fn dequeue(&mut self, task: TaskId) -> NodeId {
        self.waiting -= 1;
        let node = self.node_of[task.index()];
        self.nodes[node.index()]
            .backlog
            .remove(task, &mut self.positions);
        self.tasks.get_mut(task).status = Status::NotReady;
        node
    }

    /// The job to admit when a CPU is free: `None` if nobody waits for it.
    #[inline]
    fn best(&self) -> Option<O::Key> {
        let best = self.nodes[NodeId::ROOT.index()].best;
        (best != O::LAST).then_some(best)
    }

    /// Admits a backlogged job for which there is room.
    #[inline]
    fn admit(&mut self, task: TaskId, out: &mut Switches) {
        let node = self.dequeue(task);
        self.climb(node, None, 1);
        self.place(task, out);
    }

    /// Marks a position as free for [`Self::place`] without telling anybody.
    #[inline]
    fn vacate(&mut self, position: usize) {
        self.taken[self.taken_by[position]].remove(position);
        self.taken[0].insert(position);
        self.taken_by[position] = 0;
    }

    /// Finds a CPU for an admitted job, shifting others if need be.
    #[inline]
    fn place(&mut self, task: TaskId, out: &mut Switches) {
        let mut moving = task;
        loop {
            let (position, depth) = self.position_for(moving);
            let displaced = self.runners[position];
            self.assign(position, Some(moving), out);
            if depth == 0 {
                return;
            }
            moving = displaced.expect("a position that is taken has a runner");
        }
    }

    /// A free position of the task's affinity (set 0 of `taken`), else one whose job has the largest
    /// affinity around it.
    #[inline]
    fn position_for(&self, task: TaskId) -> (usize, usize) {
        let node = &self.nodes[self.node_of[task.index()].index()];
        let last_cpu = self.tasks.get(task).last_cpu;
        let last = last_cpu.map(|cpu| self.shape.position_of[cpu.index()]);
        let last = last.filter(|position| (node.first..node.last).contains(position));
        for set in 0..=node.depth {
            let taken = &self.taken[set];
            if let Some(position) = last.filter(|&position| taken.contains(position)) {
                return (position, set);
            }
            if let Some(position) = taken.first_in(node.first, node.last) {
                return (self.near(taken, node, last_cpu).unwrap_or(position), set);
            }
        }
        unreachable!("an admitted job fits");
    }

    /// The first position of the set within the node that shares a cache with the CPU.
    #[inline]
    fn near(&self, set: &RangeBits, node: &Node<O>, cpu: Option<CpuId>) -> Option<usize> {
        let mates = self.mates.get(cpu?.index())?;
        set.first_in_both(mates, node.first, node.last)
    }

    #[inline]
    fn assign(&mut self, position: usize, to: Option<TaskId>, out: &mut Switches) {
        let from = self.set_runner(position, to);
        out.push(Switch {
            cpu: self.shape.cpu_at[position],
            from,
            to,
        });
    }

    #[inline]
    fn set_runner(&mut self, position: usize, to: Option<TaskId>) -> Option<TaskId> {
        let (set, key) = match to {
            Some(task) => {
                let cpu = self.shape.cpu_at[position];
                let entry = self.tasks.get_mut(task);
                entry.status = Status::Assigned(cpu);
                entry.last_cpu = Some(cpu);
                let node = &self.nodes[self.node_of[task.index()].index()];
                (node.depth + 1, O::key(&entry.job))
            }
            None => (0, O::FIRST),
        };
        if self.taken_by[position] != set {
            self.taken[self.taken_by[position]].remove(position);
            self.taken[set].insert(position);
            self.taken_by[position] = set;
        }
        self.least.set(position, key);
        core::mem::replace(&mut self.runners[position], to)
    }

    /// What every CPU runs, by CPU.
    fn snapshot(&self) -> Vec<Option<TaskId>> {
        self.shape
            .position_of
            .iter()
            .map(|&position| self.runners[position])
            .collect()
    }

    /// Keeps who is scheduled, but places them with the fewest shifts from `before`.
    fn replace_from(&mut self, before: &[Option<TaskId>], out: &mut Switches) {
        let usable = |task: TaskId| {
            let cpus = self.family.get(task).expect("a scheduled task takes part");
            (*cpus & self.online).iter().collect()
        };
        let last_cpu = |task: TaskId| self.tasks.get(task).last_cpu;
        let moves = fewest_shifts(before, &self.snapshot(), usable, last_cpu);
        for &Move { cpu, .. } in &moves {
            self.assign(self.shape.position_of[cpu.index()], None, out);
        }
        for &Move { cpu, to } in moves.iter().filter(|change| change.to.is_some()) {
            self.assign(self.shape.position_of[cpu.index()], to, out);
        }
    }

    /// Adds a CPU to all affinities that hold it, or takes it away (`change` is 1 or -1).
    fn resize(&mut self, position: usize, change: i32) {
        let mut next = Some(self.shape.owner_at[position]);
        while let Some(id) = next {
            let node = &mut self.nodes[id.index()];
            node.size += change;
            next = node.parent;
        }
        self.climb(self.shape.owner_at[position], None, 0);
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
        self.shape
            .position_of
            .get(cpu.index())
            .and_then(|&position| self.runners[position])
    }

    #[inline]
    fn arrive(&mut self, job: Job, out: &mut Switches) {
        self.tasks.get_mut(job.task).job = job;
        let node = self.node_of[job.task.index()];
        let Some(full) = self.lowest_full(node) else {
            self.count(node, None, 1);
            return self.place(job.task, out);
        };
        let around = &self.nodes[full.index()];
        let victim = self.least.key_in(around.first, around.last);
        if victim <= O::key(&job) {
            return self.wait(job.task);
        }
        let preempted = O::task(&victim);
        let Status::Assigned(cpu) = self.tasks.status(preempted) else {
            unreachable!("the least urgent job of a full affinity is assigned");
        };
        let given_up = self.enqueue(preempted);
        self.climb(given_up, Some(full), -1);
        self.count(node, Some(full), 1);
        self.vacate(self.shape.position_of[cpu.index()]);
        self.place(job.task, out);
    }

    #[inline]
    fn depart(&mut self, task: TaskId, out: &mut Switches) {
        match self.tasks.status(task) {
            Status::NotReady => {}
            Status::Backlogged => {
                let node = self.dequeue(task);
                self.climb(node, None, 0);
            }
            Status::Assigned(cpu) => {
                self.tasks.get_mut(task).status = Status::NotReady;
                self.count(self.node_of[task.index()], None, -1);
                let position = self.shape.position_of[cpu.index()];
                match self.best() {
                    None => self.assign(position, None, out),
                    Some(next) => {
                        self.vacate(position);
                        self.admit(O::task(&next), out);
                    }
                }
            }
        }
    }

    fn rerank(&mut self, job: Job, out: &mut Switches) {
        let Status::Assigned(cpu) = self.tasks.status(job.task) else {
            self.depart(job.task, out);
            return self.arrive(job, out);
        };
        let position = self.shape.position_of[cpu.index()];
        let node = self.node_of[job.task.index()];
        self.tasks.get_mut(job.task).job = job;
        self.least.set(position, O::key(&job));
        self.climb(node, None, -1);
        match self.best().filter(|next| *next < O::key(&job)) {
            None => self.climb(node, None, 1),
            Some(next) => {
                self.vacate(position);
                self.admit(O::task(&next), out);
                self.wait(job.task);
            }
        }
    }

    fn set_affinity(&mut self, task: TaskId, affinity: &Affinity, out: &mut Switches) {
        let entry = *self.tasks.get(task);
        let before = self.snapshot();
        self.depart(task, out);
        self.family.set(task, affinity);
        match self.shape.find(affinity.cpus()) {
            Some(node) => {
                self.node_of[task.index()] = node;
                self.nodes[node.index()].backlog.reserve(self.tasks.len());
            }
            None => self.rebuild(self.snapshot()),
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
        self.note(id, task);
        self.family.enter(id, task);
        self.rebuild(self.snapshot());
    }

    fn leave(&mut self, task: TaskId) {
        self.family.leave(task);
    }

    fn cpu_offline(&mut self, cpu: CpuId, out: &mut Switches) {
        let position = self.shape.position_of[cpu.index()];
        let displaced = self.runners[position];
        if let Some(task) = displaced {
            self.tasks.get_mut(task).status = Status::NotReady;
            self.climb(self.node_of[task.index()], None, -1);
            self.assign(position, None, out);
        }
        self.online.remove(cpu);
        self.taken[0].remove(position);
        self.resize(position, -1);
        // Everybody else is still scheduled as the definition says: the affinities that were full
        // still are, so one arrival is all there is to do.
        if let Some(task) = displaced {
            self.arrive(self.tasks.get(task).job, out);
        }
    }

    fn cpu_online(&mut self, cpu: CpuId, out: &mut Switches) {
        let position = self.shape.position_of[cpu.index()];
        self.online.insert(cpu);
        self.taken[0].insert(position);
        self.resize(position, 1);
        if let Some(next) = self.best() {
            self.admit(O::task(&next), out);
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
        self.family.accepts(self.name, task, name, affinity)
    }
}
