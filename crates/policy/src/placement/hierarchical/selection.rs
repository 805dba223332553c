//! Selection of the jobs to run: the tree of affinities with the running and waiting jobs below
//! each.

use alloc::vec::Vec;

use shiftwork_model::{CpuSet, TaskId};

use super::super::support::laminar::{Family, NodeId, Shape, ShapeNode};
use super::super::support::ready::{Backlog, HeapPositions};
use super::super::support::tournament::Tournament;
use crate::order::JobOrder;

/// What is scheduled and what waits below one affinity.
///
/// A node is *full* if it has as many scheduled jobs inside as CPUs online: then each of its CPUs
/// runs one of them, and nothing more fits.
#[derive(Debug)]
struct Node<O: JobOrder> {
    parent: Option<NodeId>,
    slot: usize,
    /// CPUs online.
    size: i32,
    /// Scheduled jobs whose affinity lies inside this one.
    count: i32,
    /// Waiting jobs with exactly this affinity.
    backlog: Backlog<O>,
    /// By child: its `best`, or no job if the child is full.
    contenders: Tournament<O::Key>,
    /// The most urgent waiting job below that no full node further down blocks.
    best: O::Key,
}

impl<O: JobOrder> Node<O> {
    fn is_full(&self) -> bool {
        self.count == self.size
    }
}

/// Which jobs are scheduled and which wait, by affinity; not where they run.
#[derive(Debug)]
pub(super) struct Selection<O: JobOrder> {
    nodes: Vec<Node<O>>,
    /// By task.
    node_of: Vec<NodeId>,
    positions: HeapPositions,
    /// How many jobs wait. While none does, there are counts to keep and nothing else.
    waiting: usize,
}

impl<O: JobOrder> Selection<O> {
    pub fn new() -> Self {
        Self {
            nodes: Vec::new(),
            node_of: Vec::new(),
            positions: HeapPositions::default(),
            waiting: 0,
        }
    }

    /// Makes room for a task, without a place in the tree.
    pub fn enter(&mut self, task: TaskId) {
        self.positions.enter(task);
        if self.node_of.len() <= task.index() {
            self.node_of.resize(task.index() + 1, NodeId::ROOT);
        }
    }

    /// Starts anew with this tree, with every task of the family in its place and no job ready.
    pub fn reset(&mut self, shape: &Shape, family: &Family, online: &CpuSet) {
        let make = |node: &ShapeNode| Node {
            parent: node.parent,
            slot: node.slot,
            size: (node.cpus & *online).len() as i32,
            count: 0,
            backlog: Backlog::default(),
            contenders: Tournament::new(node.children, O::LAST),
            best: O::LAST,
        };
        self.nodes = shape.nodes.iter().map(make).collect();
        self.waiting = 0;
        let mut members = alloc::vec![0; self.nodes.len()];
        for (task, cpus) in family.iter() {
            let node = shape
                .find(cpus)
                .expect("the tree was made of these affinities");
            self.positions.forget(task);
            self.node_of[task.index()] = node;
            members[node.index()] += 1;
            self.nodes[node.index()]
                .backlog
                .reserve(members[node.index()]);
        }
    }

    /// Moves a task without a ready job to another node, where `jobs` jobs may then wait.
    pub fn move_to(&mut self, task: TaskId, node: NodeId, jobs: usize) {
        self.node_of[task.index()] = node;
        self.nodes[node.index()].backlog.reserve(jobs);
    }

    /// The affinity of a task.
    #[inline]
    pub fn node_of(&self, task: TaskId) -> NodeId {
        self.node_of[task.index()]
    }

    /// The smallest full affinity around that of a task, itself included: all CPUs that the task's
    /// job could reach. `None` if there is room for it.
    #[inline]
    pub fn lowest_full(&self, task: TaskId) -> Option<NodeId> {
        let mut next = Some(self.node_of(task));
        while let Some(id) = next {
            let node = &self.nodes[id.index()];
            if node.is_full() {
                return Some(id);
            }
            next = node.parent;
        }
        None
    }

    /// The most urgent waiting job that fits beside what is scheduled.
    #[inline]
    pub fn best(&self) -> Option<O::Key> {
        let best = self.nodes[NodeId::ROOT.index()].best;
        (best != O::LAST).then_some(best)
    }

    /// A job that did not wait is scheduled, below `stop` (see [`Self::climb`]).
    #[inline]
    pub fn schedule(&mut self, task: TaskId, stop: Option<NodeId>) {
        self.count(self.node_of(task), stop, 1);
    }

    /// A scheduled job is scheduled no more, and does not wait either.
    #[inline]
    pub fn retire(&mut self, task: TaskId) {
        self.count(self.node_of(task), None, -1);
    }

    /// A scheduled job inside the full affinity `full` waits from now on; another is about to take
    /// its place.
    #[inline]
    pub fn give_up(&mut self, key: O::Key, full: NodeId) {
        let node = self.push(key);
        self.climb(node, Some(full), -1);
    }

    /// A job that is not scheduled waits from now on.
    pub fn wait(&mut self, key: O::Key) {
        let node = self.push(key);
        self.climb(node, None, 0);
    }

    /// A waiting job waits no more.
    pub fn withdraw(&mut self, task: TaskId) {
        let node = self.remove(task);
        self.climb(node, None, 0);
    }

    /// A waiting job, for which there is room, is scheduled.
    #[inline]
    pub fn admit(&mut self, task: TaskId) {
        let node = self.remove(task);
        self.climb(node, None, 1);
    }

    /// Adds a CPU to the smallest affinity that holds it and all around that, or takes it away
    /// (`change` is 1 or -1).
    pub fn resize(&mut self, owner: NodeId, change: i32) {
        let mut next = Some(owner);
        while let Some(id) = next {
            let node = &mut self.nodes[id.index()];
            node.size += change;
            next = node.parent;
        }
        self.climb(owner, None, 0);
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

    #[inline]
    fn push(&mut self, key: O::Key) -> NodeId {
        self.waiting += 1;
        let node = self.node_of(O::task(&key));
        self.nodes[node.index()]
            .backlog
            .push(key, &mut self.positions);
        node
    }

    #[inline]
    fn remove(&mut self, task: TaskId) -> NodeId {
        self.waiting -= 1;
        let node = self.node_of(task);
        self.nodes[node.index()]
            .backlog
            .remove(task, &mut self.positions);
        node
    }
}
