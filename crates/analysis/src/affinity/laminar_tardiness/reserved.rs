//! The operator of Theorem 4: from bounds to bounds, where CPUs are unavailable now and then.
//!
//! The names are those of `docs/theory/laminar-tardiness.md`, section 12.

use super::bounds::{Bounds, Chosen};
use super::component::{Component, Node};
use super::number::{Number, Rate};
use super::sums::Sums;
use crate::Steps;

/// F for one component and one choice of priority points.
pub(super) struct Reserved<'a, N> {
    of: &'a Component,
    sums: Sums<'a, N>,
    /// rho.
    lost: Rate,
    every: Chosen,
}

/// What is known once a node's tasks are not blocked from around it any more.
struct Alone<N> {
    /// A of the node.
    after: N,
    /// M then, of all nodes inside it and their sets.
    lags: Vec<Vec<N>>,
}

impl<'a, N: Number> Reserved<'a, N> {
    /// With the deadlines earlier by `shift` as priority points. `number` is an amount of nanoseconds,
    /// never less. `None` if CPUs are always available.
    pub(super) fn new(of: &'a Component, shift: u64, number: impl Fn(u64) -> N) -> Option<Self> {
        let share = of.unavailable?.share;
        let all = |node: &Node| (0..node.sets.len()).collect();
        Some(Self {
            of,
            sums: Sums::new(of, shift, number),
            lost: Rate::new(
                share.billionths().into(),
                shiftwork_model::Share::WHOLE.into(),
            ),
            every: of.nodes.iter().map(all).collect(),
        })
    }

    /// F. `None`: the steps are used up.
    ///
    /// # Cost
    /// As `Operator::apply` with all sets.
    pub(super) fn apply(&mut self, bounds: &Bounds<N>, steps: &mut Steps) -> Option<Bounds<N>> {
        self.sums.look_at(bounds);
        let mut next: Bounds<N> = Bounds::zero(self.of);
        for place in 1..self.of.nodes.len() {
            next.blocked[place] = self.blocked(bounds, place);
        }
        let mut alone = Vec::new();
        for place in 0..self.of.nodes.len() {
            let after = bounds.blocked[place];
            let lags = self.sums.lags(bounds, (place, after), &self.every, steps)?;
            alone.push(Alone { after, lags });
        }
        for task in 0..self.of.tasks.len() {
            let chain = &self.of.nodes[self.of.tasks[task].node].chain;
            let sets: usize = chain.iter().map(|above| self.every[above.node].len()).sum();
            steps.take(chain.len() * 3 * sets)?;
            let late = (0..chain.len()).map(|top| self.late(bounds, task, top, &alone));
            next.late[task] = late.reduce(N::or_less).unwrap_or(N::ZERO);
        }
        Some(next)
    }

    /// A: as late as any task of a node around this one may be.
    fn blocked(&self, bounds: &Bounds<N>, place: usize) -> N {
        let around = self.of.nodes[place].chain[1..].iter();
        let tasks = around.flat_map(|above| self.of.nodes[above.node].own.clone());
        tasks.fold(N::ZERO, |most, task| most.or_more(bounds.late[task]))
    }

    /// How late a task may be that is blocked, from A of a node around it on, only inside that node: the
    /// chain of Lemma 8 up to there.
    fn late(&self, bounds: &Bounds<N>, task: usize, top: usize, alone: &[Alone<N>]) -> N {
        let of = self.of;
        let member = &of.tasks[task];
        let chain = &of.nodes[member.node].chain[..=top];
        let Alone { after, lags } = &alone[chain[top].node];
        let slack = (bounds.late[task] - *after).or_zero().at_rate(self.lost) + self.sums.burst;
        // Per level: the work of its sets at that time with the task, and what CPUs are unavailable.
        let with_task = |level: usize, slack: N| {
            let above = chain[level];
            let sets = of.nodes[above.node].sets.iter().zip(&lags[above.node]);
            let sets = sets.filter(|(set, _)| set.has(above.branch));
            let works = sets.map(|(set, &lag)| lag + slack.times(set.cpus));
            works.reduce(N::or_less)
        };
        let beyond = (bounds.late[task] - self.sums.costs[task] - *after).or_zero();
        let own = beyond.at_rate(member.rate) + self.sums.costs[task];
        let least = (0..chain.len()).filter_map(|level| with_task(level, N::ZERO));
        let left = least.fold(own, N::or_less);
        let (mut work, mut late) = (left, left);
        for (level, above) in chain.iter().enumerate() {
            let node = &of.nodes[above.node];
            let alone = node.sets.iter().zip(&lags[above.node]).map(|(set, &lag)| {
                let all = lag + slack.times(set.cpus);
                let left = if set.has(above.branch) {
                    all - work
                } else {
                    all
                };
                left.shared_by(set.cpus)
            });
            let around = (level + 1..chain.len()).filter_map(|level| with_task(level, slack));
            let around = around.map(|all| (all - work).shared_by(node.cpus));
            let most = alone.chain(around).reduce(N::or_less).unwrap_or(N::ZERO);
            late += most.or_zero();
            work += most.or_zero().times(node.cpus);
        }
        late + *after
    }
}
