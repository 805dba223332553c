//! A component of nested affinities in the theorem's terms: nodes, the tasks that can block each
//! other, and the sets of tasks that are analysed together.

use std::ops::Range;

use shiftwork_model::{Share, Span};

use super::number::Rate;
use crate::Sporadic;

/// When CPUs are unavailable: in any interval of length L, each for at most `burst` + `share` L.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// rho, below 1.
    pub share: Share,
    /// beta.
    pub burst: Span,
}

impl Unavailable {
    /// What background work takes that gets the reserve's share of each `wait` for which it has waited: no
    /// more than that at once, and nothing in between for as long as `wait`, or at most once in each
    /// `wait`.
    pub fn by_reserve(reserve: Share, wait: Span) -> Self {
        let at_once = u128::from(wait.as_ns()) * u128::from(reserve.billionths());
        let rest = u128::from(Share::WHOLE - reserve.billionths());
        let burst = (at_once * rest).div_ceil(u128::from(Share::WHOLE).pow(2));
        Self {
            share: reserve,
            burst: Span::from_ns(burst as u64),
        }
    }
}

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
    /// When CPUs are unavailable; `None`: never.
    pub(super) unavailable: Option<Unavailable>,
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
    /// Lambda: one less than the sum of utilizations and of what CPUs are unavailable, rounded up.
    pub(super) running_max: usize,
}

impl Set {
    /// Whether the tasks below this child belong to the set; the node's own (`None`) always do.
    pub(super) fn has(&self, branch: Option<usize>) -> bool {
        branch.is_none_or(|position| !self.removed[position])
    }
}
