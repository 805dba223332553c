//! Families of nested or disjoint affinities: the affinity of each task, and the tree that they
//! form before anything is scheduled in it.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use shiftwork_model::{Affinity, CpuId, CpuSet, Order, Task, TaskId, TaskSet, first_overlap};

use super::cpus::check_cpus;
use crate::error::PolicyError;

/// The affinities of the tasks that take part, laminar at all times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Family {
    names: Vec<String>,
    /// By task; `None` once it left.
    affinities: Vec<Option<CpuSet>>,
}

impl Family {
    /// The family of a task set.
    ///
    /// # Errors
    /// If two affinities overlap without nesting, or one names a CPU that does not exist.
    pub fn of(policy: (&'static str, Order), set: &TaskSet) -> Result<Self, PolicyError> {
        for task in &set.tasks {
            check_cpus(set.platform.cpus, &task.name, &task.affinity)?;
        }
        let mut family = Self::default();
        let masks = set.tasks.iter().map(|task| *task.affinity.cpus());
        let laminar = Shape::new(set.platform.cpus, masks).is_some();
        for (id, task) in set.iter() {
            if !laminar {
                family.accepts(policy, id, &task.name, &task.affinity)?;
            }
            family.enter(id, task);
        }
        Ok(family)
    }

    pub fn enter(&mut self, id: TaskId, task: &Task) {
        let count = self.names.len().max(id.index() + 1);
        self.names.resize(count, String::new());
        self.affinities.resize(count, None);
        self.names[id.index()].clone_from(&task.name);
        self.set(id, &task.affinity);
    }

    pub fn set(&mut self, task: TaskId, affinity: &Affinity) {
        self.affinities[task.index()] = Some(*affinity.cpus());
    }

    pub fn leave(&mut self, task: TaskId) {
        self.affinities[task.index()] = None;
    }

    /// The affinity of a task that takes part.
    pub fn get(&self, task: TaskId) -> Option<&CpuSet> {
        self.affinities.get(task.index())?.as_ref()
    }

    /// The tasks that take part, with their affinities.
    pub fn iter(&self) -> impl Iterator<Item = (TaskId, &CpuSet)> {
        let with_id = |(index, mask)| Some((TaskId::from_index(index), Option::as_ref(mask)?));
        self.affinities.iter().enumerate().filter_map(with_id)
    }

    /// The tree of the family on this many CPUs.
    pub fn shape(&self, cpus: usize) -> Shape {
        Shape::new(cpus, self.affinities.iter().flatten().copied())
            .expect("affinities are accepted only if the family stays laminar")
    }

    /// Whether the task may have this affinity beside the others.
    pub fn accepts(
        &self,
        (policy, order): (&'static str, Order),
        task: TaskId,
        name: &str,
        affinity: &Affinity,
    ) -> Result<(), PolicyError> {
        let overlaps = |mask: &CpuSet| first_overlap(&[*mask, *affinity.cpus()]).is_some();
        let Some((other, mask)) = self.iter().find(|(id, mask)| *id != task && overlaps(mask))
        else {
            return Ok(());
        };
        let name = self.names.get(task.index()).map_or(name, String::as_str);
        Err(PolicyError::NotLaminar {
            policy,
            order,
            first: (
                self.names[other.index()].clone(),
                Box::new(Affinity::new(*mask).expect("an affinity is never empty")),
            ),
            second: (name.to_string(), Box::new(*affinity)),
        })
    }
}

/// Index of a node; the root is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(u32);

impl NodeId {
    pub const ROOT: Self = Self(0);

    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One distinct affinity (the root: all CPUs, whether a task has them all or not).
#[derive(Clone, Debug)]
pub(crate) struct ShapeNode {
    pub cpus: CpuSet,
    /// The smallest larger affinity; `None` for the root.
    pub parent: Option<NodeId>,
    /// Which child of its parent it is.
    pub slot: usize,
    pub children: usize,
    /// 0 for the root.
    pub depth: usize,
    /// Its CPUs stand at the positions `first..last`.
    pub first: usize,
    pub last: usize,
}

/// A tree of nested affinities, with the CPUs lined up so that every affinity is one range of
/// *positions*.
///
/// ```text
///   root {0-5}            positions   0  1  2  3  4  5
///   |- {0,4}              CPUs        1  0  4  2  5  3
///   `- {2,3,5}                           {0,4} {2, 5,{3}}
///      `- {3}             CPU 1, in no smaller affinity, comes first
/// ```
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub nodes: Vec<ShapeNode>,
    /// By position.
    pub cpu_at: Vec<CpuId>,
    /// By CPU.
    pub position_of: Vec<usize>,
    /// By position: the smallest affinity that holds the CPU.
    pub owner_at: Vec<NodeId>,
}

impl Shape {
    /// The tree of these affinities on CPUs `0..cpus`; `None` if two overlap without nesting.
    ///
    /// O(d log d + h m) for d distinct affinities in a tree of height h.
    pub fn new(cpus: usize, masks: impl IntoIterator<Item = CpuSet>) -> Option<Self> {
        let mut masks: Vec<CpuSet> = masks.into_iter().collect();
        masks.push(CpuSet::first(cpus));
        masks.sort_by_cached_key(|mask| (core::cmp::Reverse(mask.len()), mask.lowest()));
        masks.dedup();
        let mut nodes: Vec<ShapeNode> = Vec::with_capacity(masks.len());
        let mut owner = alloc::vec![NodeId::ROOT; cpus];
        for mask in masks {
            let id = NodeId(nodes.len() as u32);
            let inside = owner[mask.lowest()?.index()];
            if mask.iter().any(|cpu| owner[cpu.index()] != inside) {
                return None;
            }
            mask.iter().for_each(|cpu| owner[cpu.index()] = id);
            let parent = (!nodes.is_empty()).then_some(inside);
            let (slot, depth) = parent.map_or((0, 0), |parent| {
                let parent = &mut nodes[parent.index()];
                parent.children += 1;
                (parent.children - 1, parent.depth + 1)
            });
            nodes.push(ShapeNode {
                cpus: mask,
                parent,
                slot,
                children: 0,
                depth,
                first: 0,
                last: 0,
            });
        }
        Some(Self::line_up(nodes, &owner))
    }

    /// Gives every node its range of positions: in the order of the nodes' paths, each CPU where
    /// the smallest affinity that holds it is.
    fn line_up(mut nodes: Vec<ShapeNode>, owner: &[NodeId]) -> Self {
        let path = |cpu: usize| {
            let ancestors =
                core::iter::successors(Some(owner[cpu]), |&id| nodes[id.index()].parent);
            let mut path: Vec<(Option<CpuId>, NodeId)> = ancestors
                .map(|id| (nodes[id.index()].cpus.lowest(), id))
                .collect();
            path.reverse();
            path
        };
        let mut cpu_at: Vec<CpuId> = (0..owner.len()).map(CpuId::from_index).collect();
        cpu_at.sort_by_cached_key(|cpu| (path(cpu.index()), *cpu));
        let mut position_of = alloc::vec![0; owner.len()];
        for (position, cpu) in cpu_at.iter().enumerate() {
            position_of[cpu.index()] = position;
        }
        for node in &mut nodes {
            let positions = || node.cpus.iter().map(|cpu| position_of[cpu.index()]);
            node.first = positions().min().unwrap_or(0);
            node.last = positions().max().map_or(0, |last| last + 1);
        }
        let owner_at = cpu_at.iter().map(|cpu| owner[cpu.index()]).collect();
        Self {
            nodes,
            cpu_at,
            position_of,
            owner_at,
        }
    }

    /// The node of exactly these CPUs.
    pub fn find(&self, cpus: &CpuSet) -> Option<NodeId> {
        let owner = self.owner_at[*self.position_of.get(cpus.lowest()?.index())?];
        core::iter::successors(Some(owner), |id| self.nodes[id.index()].parent)
            .find(|id| self.nodes[id.index()].cpus == *cpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(cpus: usize, masks: &[&str]) -> Option<Shape> {
        Shape::new(cpus, masks.iter().map(|mask| mask.parse().unwrap()))
    }

    #[test]
    fn every_affinity_is_one_range_of_positions() {
        let shape = shape(6, &["0,4", "2,3,5", "3", "2,3,5"]).unwrap();
        for node in &shape.nodes {
            let at: CpuSet = shape.cpu_at[node.first..node.last]
                .iter()
                .copied()
                .collect();
            assert_eq!(at, node.cpus);
            assert_eq!(node.last - node.first, node.cpus.len());
        }
        assert_eq!(shape.nodes.len(), 4);
        let depth = |mask: &str| {
            let id = shape.find(&mask.parse().unwrap()).unwrap();
            shape.nodes[id.index()].depth
        };
        assert_eq!(
            [depth("0-5"), depth("0,4"), depth("2,3,5"), depth("3")],
            [0, 1, 1, 2]
        );
        assert_eq!(shape.find(&"1".parse().unwrap()), None);
    }

    #[test]
    fn what_overlaps_without_nesting_is_no_tree() {
        assert!(shape(3, &["0-1", "1-2"]).is_none());
        assert!(shape(3, &["0-1", "2"]).is_some());
    }
}
