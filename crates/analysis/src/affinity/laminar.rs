//! Nested affinities: for every node of the tree, the tasks confined to its CPUs must fit there.

use shiftwork_model::{CPUS_MAX, CpuSet, Share};

use super::{Crowd, Group, Groups};
use crate::exact::{fit, units_of};

/// For each of these sets, which are distinct and in order of size, the largest first, the smallest
/// other that contains it. If two overlap without nesting, the place of the later one.
///
/// # Cost
/// O(s) for sets of s CPUs in all.
pub(super) fn parents<'a>(
    sets: impl Iterator<Item = &'a CpuSet>,
) -> Result<Vec<Option<usize>>, usize> {
    // The last set placed on each CPU. If the family is nested, it is the smallest so far, so a new
    // set lies inside it with all its CPUs; if the new set overlaps, its CPUs differ.
    let mut innermost: Vec<Option<usize>> = vec![None; CPUS_MAX];
    let parent = |(place, set): (usize, &CpuSet)| {
        let parent = set.lowest().and_then(|cpu| innermost[cpu.index()]);
        let mut around = set.iter().map(|cpu| innermost[cpu.index()].replace(place));
        match around.all(|around| around == parent) {
            true => Ok(parent),
            false => Err(place),
        }
    };
    sets.enumerate().map(parent).collect()
}

/// The distinct affinities as a forest: the parent of one is the smallest other that contains it.
///
/// Nodes are in order of size, the largest first, so a parent precedes its children.
#[derive(Clone, Debug)]
pub struct Tree<'a> {
    nodes: Vec<Node<'a>>,
}

#[derive(Clone, Debug)]
struct Node<'a> {
    mask: &'a CpuSet,
    group: &'a Group,
    cpus: usize,
    parent: Option<usize>,
}

impl<'a> Tree<'a> {
    /// The tree of these affinities; `None` if two of them overlap without nesting.
    ///
    /// # Cost
    /// O(k log k + s) for k affinities of s CPUs in all.
    pub fn new(groups: &'a Groups) -> Option<Self> {
        let mut nodes: Vec<Node<'a>> = groups
            .iter()
            .map(|(mask, group)| Node {
                mask,
                group,
                cpus: mask.len(),
                parent: None,
            })
            .collect();
        nodes.sort_by_key(|node| std::cmp::Reverse(node.cpus));
        let parents = parents(nodes.iter().map(|node| node.mask)).ok()?;
        for (node, parent) in nodes.iter_mut().zip(parents) {
            node.parent = parent;
        }
        Some(Self { nodes })
    }

    /// A node, one of the smallest, whose tasks and those below it need more than its CPUs supply.
    ///
    /// # Cost
    /// O(k) for k nodes, and exact fractions only where 64 binary places cannot decide.
    ///
    /// # Source
    /// Hall's condition for all sets of CPUs follows from that for the nodes: a set of tasks of a
    /// nested family splits by its largest affinities, which are disjoint. As sums per mask in
    /// V. Bonifaci, B. Brandenburg, G. D'Angelo, A. Marchetti-Spaccamela, "Multiprocessor Real-Time
    /// Scheduling with Hierarchical Processor Affinities", ECRTS 2016.
    pub fn shortage(&self, supply: Share) -> Option<Crowd> {
        let cpu = units_of(supply);
        let demands = self.nodes.iter().map(|node| node.group.demand());
        let mut sums: Vec<(u128, u128)> = demands
            .map(|demand| (demand.units_min(), demand.units_max()))
            .collect();
        for (place, node) in self.nodes.iter().enumerate().rev() {
            let (min, max) = sums[place];
            let room = cpu * node.cpus as u128;
            if min > room || (max > room && !self.fits(place, supply)) {
                return Some(self.crowd(place));
            }
            if let Some(parent) = node.parent {
                sums[parent].0 = sums[parent].0.saturating_add(min);
                sums[parent].1 = sums[parent].1.saturating_add(max);
            }
        }
        None
    }

    fn fits(&self, place: usize, supply: Share) -> bool {
        let demands = self.below(place).map(|node| node.group.demand());
        fit(demands, self.nodes[place].cpus, supply)
    }

    fn crowd(&self, place: usize) -> Crowd {
        let mut masks: Vec<CpuSet> = self.below(place).map(|node| *node.mask).collect();
        masks.sort_unstable();
        Crowd {
            masks,
            cpus: *self.nodes[place].mask,
        }
    }

    /// The node and all nodes inside it.
    fn below(&self, place: usize) -> impl Iterator<Item = &Node<'a>> + Clone {
        let mask = self.nodes[place].mask;
        let later = self.nodes[place..].iter();
        later.filter(|node| node.mask.is_subset(mask))
    }
}
