//! The operator F of the theorem: from bounds that hold to bounds that hold.
//!
//! The names are those of `docs/theory/laminar-tardiness.md`, section 3.

use super::bounds::{Bounds, Chosen};
use super::component::{Above, Component};
use super::number::Number;
use super::sums::Sums;
use crate::Steps;

/// F for one component and one choice of priority points.
pub(super) struct Operator<'a, N> {
    of: &'a Component,
    sums: Sums<'a, N>,
    /// C - Y or zero: nothing finishes before it was worked on.
    least: Vec<N>,
    /// The cheapest task below each node.
    cheapest: Vec<N>,
    /// Which sets decided something since the caller last looked.
    pub(super) used: Vec<Vec<bool>>,
}

/// What is known of each node and set.
struct Values<N> {
    /// M at the deadline, by place in `chosen`.
    lags: Vec<Vec<N>>,
    /// kappa Z, likewise.
    busy: Vec<Vec<N>>,
}

impl<'a, N: Number> Operator<'a, N> {
    /// With the deadlines earlier by `shift` as priority points, which changes no priority. `number`
    /// is an amount of nanoseconds, never less.
    pub(super) fn new(of: &'a Component, shift: u64, number: impl Fn(u64) -> N) -> Self {
        let least = of.tasks.iter().map(|member| {
            let point = member.task.deadline.as_ns().saturating_sub(shift);
            number(member.task.cost.as_ns().saturating_sub(point))
        });
        let least = least.collect();
        let sums = Sums::new(of, shift, number);
        let cheapest = of.nodes.iter().map(|node| {
            let below = sums.costs[node.all.clone()].iter().copied();
            below.reduce(N::or_less).unwrap_or(N::ZERO)
        });
        Self {
            of,
            least,
            cheapest: cheapest.collect(),
            sums,
            used: of
                .nodes
                .iter()
                .map(|node| vec![false; node.sets.len()])
                .collect(),
        }
    }

    /// F, with these sets of each node. `None`: the steps are used up.
    ///
    /// # Cost
    /// O(sets x (children x CPUs of a child x CPUs) + tasks log tasks) for each node and each of the
    /// times 0, A and A0 of those around it.
    pub(super) fn apply(
        &mut self,
        bounds: &Bounds<N>,
        chosen: &Chosen,
        steps: &mut Steps,
    ) -> Option<Bounds<N>> {
        self.sums.look_at(bounds);
        let lags = self.sums.lags(bounds, (0, N::ZERO), chosen, steps)?;
        let busy = self.sums.busy(bounds, chosen, &lags, steps)?;
        let values = Values { lags, busy };
        let mut next: Bounds<N> = Bounds::zero(self.of);
        for node in 1..self.of.nodes.len() {
            let (rho, of) = (self.cheapest[node], self.of);
            steps.take(2 * sets_of(&of.nodes[node].blockers, chosen))?;
            for &above in &of.nodes[node].blockers {
                let blocked = self.blocking(&values, chosen, above, rho);
                next.blocked[node] = next.blocked[node].or_more(blocked);
                let longer = self.blocking(&values, chosen, above, N::ZERO);
                let most = &mut next.blocked_nearly_done[node];
                *most = most.or_more(longer);
            }
        }
        for node in 0..self.of.nodes.len() {
            let remaining = self.remaining(&values, chosen, node);
            // The sets of tasks that may block, and the chain.
            let sets = 2 * sets_of(&self.of.nodes[node].chain, chosen);
            for task in self.of.nodes[node].own.clone() {
                steps.take(sets)?;
                next.late[task] = self.late(&values, chosen, task, &remaining);
            }
        }
        Some(next)
    }

    /// Y: how long after its deadline a job with `rho` left to do may be blocked by `above`.
    fn blocking(&mut self, values: &Values<N>, chosen: &Chosen, above: Above, rho: N) -> N {
        let sets = &self.of.nodes[above.node].sets;
        self.least_of(above.node, chosen, |at, set| {
            let set = &sets[set];
            let left = match set.has(above.branch) {
                true => values.busy[above.node][at] - rho,
                false => values.busy[above.node][at],
            };
            Some(left.shared_by(set.cpus))
        })
    }

    /// The least over the chosen sets of a node, and notes which it was.
    fn least_of(
        &mut self,
        node: usize,
        chosen: &Chosen,
        mut value: impl FnMut(usize, usize) -> Option<N>,
    ) -> N {
        let mut least = None;
        for (at, &set) in chosen[node].iter().enumerate() {
            let value = value(at, set);
            let is_less = |value: &N| least.is_none_or(|(least, _)| *value < least);
            least = value.filter(is_less).map(|value| (value, set)).or(least);
        }
        let (least, set) = least.expect("the set that removes nothing has every task");
        self.used[node][set] = true;
        least
    }

    /// What may be left of a job of a node's own, and of what goes with it, at its deadline, as the
    /// sets of a node around it or of those beyond say, by the place of that node in the chain. The
    /// first is B.
    fn remaining(&mut self, values: &Values<N>, chosen: &Chosen, node: usize) -> Vec<N> {
        let of = self.of;
        let chain = of.nodes[node].chain.iter();
        let mut remaining: Vec<N> = chain
            .map(|&above| {
                let sets = &of.nodes[above.node].sets;
                self.least_of(above.node, chosen, |at, set| {
                    let has = sets[set].has(above.branch);
                    has.then(|| values.lags[above.node][at])
                })
            })
            .collect();
        for level in (1..remaining.len()).rev() {
            remaining[level - 1] = remaining[level - 1].or_less(remaining[level]);
        }
        remaining
    }

    /// Theta.
    fn late(&mut self, values: &Values<N>, chosen: &Chosen, task: usize, remaining: &[N]) -> N {
        let member = &self.of.tasks[task];
        let node = &self.of.nodes[member.node];
        let cost = self.sums.costs[task];
        let own = node.chain[..1].iter().filter(|_| member.own_node_blocks);
        let blockers: Vec<Above> = own.chain(&node.blockers).copied().collect();
        let least = self.least[task];
        if blockers.is_empty() {
            return least;
        }
        let left = cost.or_less(remaining[0]);
        let longest = blockers
            .into_iter()
            .map(|above| self.blocking(values, chosen, above, cost));
        let longest = longest.reduce(N::or_more).unwrap_or(N::ZERO);
        let by_blocker = (longest + cost).or_more(left);
        let by_chain = self.by_chain(values, chosen, task, left, remaining);
        by_blocker.or_less(by_chain).or_more(least)
    }

    /// Chain: for how long can the nodes around a task be full after its deadline, one after the
    /// other?
    fn by_chain(
        &mut self,
        values: &Values<N>,
        chosen: &Chosen,
        task: usize,
        left: N,
        remaining: &[N],
    ) -> N {
        let of = self.of;
        let chain = &of.nodes[of.tasks[task].node].chain;
        let (mut work, mut late) = (left, left);
        for (level, &above) in chain.iter().enumerate() {
            let node = &of.nodes[above.node];
            let alone = self.least_of(above.node, chosen, |at, set| {
                let set = &node.sets[set];
                let lag = values.lags[above.node][at];
                let left = match set.has(above.branch) {
                    true => lag - work,
                    false => lag,
                };
                Some(left.shared_by(set.cpus))
            });
            let most = match remaining.get(level + 1) {
                Some(&around) => alone.or_less((around - work).shared_by(node.cpus)),
                None => alone,
            };
            late += most.or_zero();
            work += most.or_zero().times(node.cpus);
        }
        late
    }
}

/// How many sets of these nodes are looked at.
fn sets_of(nodes: &[Above], chosen: &Chosen) -> usize {
    nodes.iter().map(|above| chosen[above.node].len()).sum()
}
