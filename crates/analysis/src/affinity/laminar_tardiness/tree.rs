//! A component of nested affinities in the theorem's terms: nodes, the tasks that can block each
//! other, and the sets of tasks that are analysed together.

use std::ops::Range;

use shiftwork_model::{CPUS_MAX, CpuSet};

use super::number::Rate;
use super::sets::{Family, Loads};
use crate::affinity::{Group, Groups};
use crate::exact::Demand;
use crate::{Placed, Sporadic};

/// The tasks below one affinity that contains all of theirs.
///
/// Nodes are in preorder, so the nodes inside node `k` are `k + 1..nodes[k].end`. Tasks are in the
/// order of their nodes, so those of a whole subtree are a range, and a node's own come first in it.
#[derive(Debug)]
pub(super) struct Component {
    /// The tasks.
    pub(super) tasks: Vec<Member>,
    /// The affinities, the largest first.
    pub(super) nodes: Vec<Node>,
}

/// A task of a component.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// Its place among the tasks of the caller.
    pub(super) place: usize,
    /// What is known of it.
    pub(super) task: Sporadic,
    /// C/T.
    pub(super) rate: Rate,
    /// Its affinity.
    pub(super) node: usize,
    /// Whether others can take all its CPUs at once without help from above.
    pub(super) own_node_blocks: bool,
}

/// An affinity of some tasks.
#[derive(Debug)]
pub(super) struct Node {
    /// |g|.
    pub(super) cpus: usize,
    /// The smallest affinity around it.
    pub(super) parent: Option<usize>,
    /// Where it is among the children of its parent.
    pub(super) position: usize,
    /// The largest affinities inside it.
    pub(super) children: Vec<usize>,
    /// One past the last node inside it.
    pub(super) end: usize,
    /// Its own tasks.
    pub(super) own: Range<usize>,
    /// Its own tasks and those of all nodes inside it.
    pub(super) all: Range<usize>,
    /// Bl: the nodes around it that can block its tasks.
    pub(super) blockers: Vec<Above>,
    /// The node itself and all around it, from the inside.
    pub(super) chain: Vec<Above>,
    /// The admissible sets; the first removes nothing.
    pub(super) sets: Vec<Set>,
}

/// A node that contains another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Above {
    /// The node.
    pub(super) node: usize,
    /// Which of its children contains the other one; `None` if they are the same.
    pub(super) branch: Option<usize>,
}

/// The tasks of a node without those of some of its children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Set {
    /// By position of the child.
    pub(super) removed: Box<[bool]>,
    /// kappa: the CPUs of the node without those of the removed children.
    pub(super) cpus: usize,
    /// Lambda: one less than the sum of utilizations, rounded up.
    pub(super) running_max: usize,
}

impl Set {
    /// Whether the tasks below this child belong to the set; the node's own (`None`) always do.
    pub(super) fn has(&self, branch: Option<usize>) -> bool {
        branch.is_none_or(|position| !self.removed[position])
    }
}

/// The components of `groups`, which are laminar, fit, and hold `tasks` by their places.
///
/// # Cost
/// O(s + k d) for k affinities of s CPUs in all, nested d deep, and up to 256 sums of
/// utilizations per affinity.
pub(super) fn components(tasks: &[Placed], groups: &Groups) -> Vec<Component> {
    let masks = Masks::new(groups);
    let roots = (0..masks.list.len()).filter(|&place| masks.list[place].parent.is_none());
    roots
        .map(|root| {
            let mut builder = Builder {
                placed: tasks,
                masks: &masks,
                component: Component {
                    tasks: Vec::new(),
                    nodes: Vec::new(),
                },
                demands: Vec::new(),
            };
            builder.grow(root);
            builder.finish()
        })
        .collect()
}

/// The affinities with sizes and parents, the largest first, and the children of each.
struct Masks<'a> {
    list: Vec<Mask<'a>>,
    children: Vec<Vec<usize>>,
}

struct Mask<'a> {
    set: &'a CpuSet,
    group: &'a Group,
    cpus: usize,
    parent: Option<usize>,
}

impl<'a> Masks<'a> {
    fn new(groups: &'a Groups) -> Self {
        let masks = groups.iter().map(|(set, group)| Mask {
            set,
            group,
            cpus: set.len(),
            parent: None,
        });
        let mut list: Vec<Mask<'a>> = masks.collect();
        list.sort_by_key(|mask| std::cmp::Reverse(mask.cpus));
        let mut innermost: Vec<Option<usize>> = vec![None; CPUS_MAX];
        let mut children = vec![Vec::new(); list.len()];
        for (place, mask) in list.iter_mut().enumerate() {
            mask.parent = mask.set.lowest().and_then(|cpu| innermost[cpu.index()]);
            for cpu in mask.set.iter() {
                innermost[cpu.index()] = Some(place);
            }
            if let Some(parent) = mask.parent {
                children[parent].push(place);
            }
        }
        Self { list, children }
    }
}

struct Builder<'a> {
    placed: &'a [Placed],
    masks: &'a Masks<'a>,
    component: Component,
    demands: Vec<&'a Demand>,
}

impl Builder<'_> {
    /// Adds the nodes of `root` and inside it, in preorder.
    fn grow(&mut self, root: usize) {
        // Not recursive: affinities may be nested as deep as there are CPUs.
        let mut open = vec![(root, None)];
        while let Some((mask, parent)) = open.pop() {
            let node = self.add(mask, parent);
            let inside = self.masks.children[mask].iter().rev();
            open.extend(inside.map(|&child| (child, Some(node))));
        }
        for node in (1..self.component.nodes.len()).rev() {
            let (end, last) = {
                let node = &self.component.nodes[node];
                (node.end, node.all.end)
            };
            let parent = self.component.nodes[node].parent;
            let parent = parent.expect("only the root has no parent");
            let parent = &mut self.component.nodes[parent];
            parent.end = parent.end.max(end);
            parent.all.end = parent.all.end.max(last);
        }
    }

    fn add(&mut self, mask: usize, parent: Option<usize>) -> usize {
        let Mask { group, cpus, .. } = self.masks.list[mask];
        let node = self.component.nodes.len();
        let first = self.component.tasks.len();
        for id in group.members() {
            let task = self.placed[id.index()].task;
            self.component.tasks.push(Member {
                place: id.index(),
                task,
                rate: Rate::new(task.cost.as_ns(), task.period.as_ns()),
                node,
                own_node_blocks: false,
            });
        }
        self.demands.push(group.demand());
        let mut position = 0;
        let mut chain = vec![Above { node, branch: None }];
        if let Some(parent) = parent {
            let around = &mut self.component.nodes[parent];
            position = around.children.len();
            around.children.push(node);
            let around = self.component.nodes[parent].chain.clone();
            let mut inner = position;
            for above in around {
                chain.push(Above {
                    node: above.node,
                    branch: Some(inner),
                });
                inner = self.component.nodes[above.node].position;
            }
        }
        let own = first..self.component.tasks.len();
        self.component.nodes.push(Node {
            cpus,
            parent,
            position,
            children: Vec::new(),
            end: node + 1,
            all: own.clone(),
            own,
            blockers: Vec::new(),
            chain,
            sets: Vec::new(),
        });
        node
    }

    fn finish(mut self) -> Component {
        self.find_blockers();
        let nodes = &self.component.nodes;
        let loads = Loads::new(nodes, &self.demands);
        let costs = |node: &Node| -> f64 {
            let tasks = &self.component.tasks[node.all.clone()];
            tasks.iter().map(|task| task.task.cost.as_ns() as f64).sum()
        };
        let costs: Vec<f64> = nodes.iter().map(costs).collect();
        let sets: Vec<Vec<Set>> = (0..nodes.len())
            .map(|node| Family::new(nodes, node, &loads).collect(&costs))
            .collect();
        for (node, sets) in self.component.nodes.iter_mut().zip(sets) {
            node.sets = sets;
        }
        self.component
    }

    /// Bl, by rank: how many tasks can run at the same time.
    fn find_blockers(&mut self) {
        let component = &mut self.component;
        let nodes = &component.nodes;
        let mut below = vec![0; nodes.len()];
        let mut ranks = vec![0; nodes.len()];
        for (place, node) in nodes.iter().enumerate().rev() {
            ranks[place] = node.cpus.min(node.own.len() + below[place]);
            if let Some(parent) = node.parent {
                below[parent] += ranks[place];
            }
        }
        let blockers: Vec<Vec<Above>> = nodes
            .iter()
            .map(|node| {
                // The rank of what is around, without the tasks of this node.
                let (mut before, mut without) = (node.chain[0].node, 0);
                let mut blocks = |above: &Above| {
                    let around = &nodes[above.node];
                    let others = below[above.node] - ranks[before] + without;
                    without = around.cpus.min(around.own.len() + others);
                    before = above.node;
                    without > around.cpus - node.cpus
                };
                let chain = node.chain[1..].iter();
                chain.copied().filter(|above| blocks(above)).collect()
            })
            .collect();
        for task in &mut component.tasks {
            let node = &nodes[task.node];
            task.own_node_blocks = node.own.len() - 1 + below[task.node] >= node.cpus;
        }
        for (node, blockers) in component.nodes.iter_mut().zip(blockers) {
            node.blockers = blockers;
        }
    }
}
