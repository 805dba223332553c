//! How components are made of task sets: the tree of affinities, its tasks, and which nodes block.

use shiftwork_model::{CpuSet, Share};

use super::component::{Above, Component, Member, Node, Set, Unavailable};
use super::number::Rate;
use super::sets::{Family, Loads};
use crate::Placed;
use crate::affinity::laminar::parents;
use crate::affinity::{Group, Groups};
use crate::exact::Demand;

/// The components of `groups`, which are laminar, fit where CPUs are `unavailable`, and hold `tasks` by
/// their places.
///
/// # Cost
/// O(s + k d) for k affinities of s CPUs in all, nested d deep, and up to 256 sums of
/// utilizations per affinity.
pub(super) fn components(
    tasks: &[Placed],
    groups: &Groups,
    unavailable: Option<Unavailable>,
) -> Vec<Component> {
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
                    unavailable,
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
        let parents = parents(list.iter().map(|mask| mask.set)).expect("the groups are laminar");
        let mut children = vec![Vec::new(); list.len()];
        for (place, parent) in parents.into_iter().enumerate() {
            list[place].parent = parent;
            if let Some(parent) = parent {
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
        match self.component.unavailable {
            None => self.find_blockers(),
            Some(_) => self.admit_all_blockers(),
        }
        let nodes = &self.component.nodes;
        let nothing = Share::from_billionths(0).expect("nothing is a share");
        let lost = self
            .component
            .unavailable
            .map_or(nothing, |cpus| cpus.share);
        let loads = Loads::new(nodes, &self.demands, lost);
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

    /// Where CPUs may be unavailable, any task may be blocked by any node around it.
    fn admit_all_blockers(&mut self) {
        for node in &mut self.component.nodes {
            node.blockers = node.chain[1..].to_vec();
        }
        for task in &mut self.component.tasks {
            task.own_node_blocks = true;
        }
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
