//! The affinities of tasks as a nested family, with the node of each task.

use shiftwork_model::CpuSet;

use super::laminar::parents;
use super::parts::distinct;

/// The distinct affinities of some tasks, which are nested.
///
/// Nodes are in order of size, the largest first, so a parent precedes its children.
#[derive(Clone, Debug)]
pub(super) struct Family {
    nodes: Vec<Node>,
    node_of: Vec<usize>,
}

/// One affinity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// |g|, above zero.
    pub(super) cpus: usize,
    /// The smallest affinity around it.
    pub(super) parent: Option<usize>,
}

impl Family {
    /// The family of these affinities, by task. Fails with the place of a task whose affinity is
    /// empty or overlaps another one without nesting.
    ///
    /// # Cost
    /// O(n + k log k + s), nearly, for n tasks with k distinct affinities that together have s CPUs.
    pub(super) fn of<'a>(affinities: impl Iterator<Item = &'a CpuSet>) -> Result<Self, usize> {
        let (mut node_of, distinct) = distinct(affinities);
        let first_of = |node: usize, node_of: &[usize]| {
            let mut places = node_of.iter();
            places.position(|&other| other == node).unwrap_or(0)
        };
        let mut order: Vec<(usize, usize)> =
            distinct.iter().map(|set| set.len()).zip(0..).collect();
        order.sort_unstable_by_key(|&(cpus, place)| (std::cmp::Reverse(cpus), place));
        if let Some(&(0, empty)) = order.last() {
            return Err(first_of(empty, &node_of));
        }
        let parents = parents(order.iter().map(|&(_, place)| distinct[place]))
            .map_err(|overlaps| first_of(order[overlaps].1, &node_of))?;
        let mut rank = vec![0; order.len()];
        for (node, &(_, place)) in order.iter().enumerate() {
            rank[place] = node;
        }
        node_of.iter_mut().for_each(|place| *place = rank[*place]);
        let nodes = order.iter().zip(parents);
        let node = |(&(cpus, _), parent)| Node { cpus, parent };
        Ok(Self {
            nodes: nodes.map(node).collect(),
            node_of,
        })
    }

    /// The nodes, parents before children.
    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node of each task.
    pub(super) fn node_of(&self) -> &[usize] {
        &self.node_of
    }
}
