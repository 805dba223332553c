//! What the operator maps, and the sets of tasks that it looks at.

use super::component::Component;
use super::number::Number;

/// What F maps.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bounds<N> {
    /// Theta: by how much each task may be late.
    pub(super) late: Vec<N>,
    /// A: for how long after its deadline a job from below a node may be blocked from around it.
    pub(super) blocked: Vec<N>,
    /// A0: the same for jobs with hardly anything left to do.
    pub(super) blocked_nearly_done: Vec<N>,
}

impl<N: Number> Bounds<N> {
    /// No delay at all.
    pub(super) fn zero(of: &Component) -> Self {
        Self {
            late: vec![N::ZERO; of.tasks.len()],
            blocked: vec![N::ZERO; of.nodes.len()],
            blocked_nearly_done: vec![N::ZERO; of.nodes.len()],
        }
    }

    /// All of them.
    pub(super) fn values(&self) -> impl Iterator<Item = N> {
        let nodes = self.blocked.iter().chain(&self.blocked_nearly_done);
        self.late.iter().chain(nodes).copied()
    }

    /// All of them, to change.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut N> {
        let nodes = self.blocked.iter_mut().chain(&mut self.blocked_nearly_done);
        self.late.iter_mut().chain(nodes)
    }
}

/// Which admissible sets of each node are looked at, by place; the first always.
pub(super) type Chosen = Vec<Vec<usize>>;
