//! The sums inside F: how far tasks may be behind, and for how long they keep a node busy.
//!
//! The names are those of `docs/theory/laminar-tardiness.md`, section 3.

use super::bounds::{Bounds, Chosen};
use super::component::{Component, Set};
use super::knapsack::{collect, merge};
use super::number::{Number, Rate};
use crate::Steps;

/// What lags are summed for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sum {
    /// M: all of a set's lag.
    Lag,
    /// Z: what keeps a node busy after a deadline.
    Busy,
}

/// The sums for one component and one choice of priority points.
pub(super) struct Sums<'a, N> {
    of: &'a Component,
    rates: Vec<Rate>,
    /// C of each task.
    pub(super) costs: Vec<N>,
    /// The fluid work of a job before it is released: C (1 - Y/T), zero if Y is at least T.
    early: Vec<N>,
    /// beta; zero if CPUs are always available.
    pub(super) burst: N,
    scratch: Scratch<N>,
}

/// Memory that every application of F uses again.
struct Scratch<N> {
    /// x of each task.
    beyond: Vec<N>,
    /// What a task adds if it does not run, and how much more if it does.
    waits: Vec<N>,
    gains: Vec<N>,
    /// Sums of `waits` of the tasks before.
    sums: Vec<N>,
    /// Per node: M at the time that is looked at.
    lags: Vec<N>,
    /// Per node and number of CPUs: the most that the tasks below it gain if they run on so many.
    arrays: Vec<Vec<N>>,
    /// The same of the own tasks of the node that is looked at.
    own: Vec<N>,
    best: Vec<N>,
    next: Vec<N>,
}

impl<N: Number> Scratch<N> {
    fn new(of: &Component) -> Self {
        let (tasks, nodes) = (of.tasks.len(), of.nodes.len());
        Self {
            beyond: vec![N::ZERO; tasks],
            waits: vec![N::ZERO; tasks],
            gains: vec![N::ZERO; tasks],
            sums: vec![N::ZERO; tasks + 1],
            lags: vec![N::ZERO; nodes],
            arrays: vec![Vec::new(); nodes],
            own: Vec::new(),
            best: Vec::new(),
            next: Vec::new(),
        }
    }
}

impl<'a, N: Number> Sums<'a, N> {
    /// With the deadlines earlier by `shift` as priority points. `number` is an amount of nanoseconds,
    /// never less.
    pub(super) fn new(of: &'a Component, shift: u64, number: impl Fn(u64) -> N) -> Self {
        let early = of.tasks.iter().map(|member| {
            let point = member.task.deadline.as_ns().saturating_sub(shift);
            let before = member.task.period.as_ns().saturating_sub(point);
            number(before).at_rate(member.rate)
        });
        let costs = of.tasks.iter().map(|member| member.task.cost.as_ns());
        Self {
            of,
            rates: of.tasks.iter().map(|member| member.rate).collect(),
            early: early.collect(),
            costs: costs.map(&number).collect(),
            burst: match of.unavailable {
                Some(unavailable) => number(unavailable.burst.as_ns()),
                None => N::ZERO,
            },
            scratch: Scratch::new(of),
        }
    }

    /// Takes over how late each task may be.
    pub(super) fn look_at(&mut self, bounds: &Bounds<N>) {
        for (task, beyond) in self.scratch.beyond.iter_mut().enumerate() {
            *beyond = (bounds.late[task] - self.costs[task]).or_zero();
        }
    }

    /// M `after` the deadline, for this node, all inside it and their chosen sets.
    pub(super) fn lags(
        &mut self,
        bounds: &Bounds<N>,
        (top, after): (usize, N),
        chosen: &Chosen,
        steps: &mut Steps,
    ) -> Option<Vec<Vec<N>>> {
        let of = self.of;
        let mut lags = vec![Vec::new(); of.nodes.len()];
        for node in (top..of.nodes[top].end).rev() {
            self.prepare(bounds, node, after, Sum::Lag, steps)?;
            for &set in &chosen[node] {
                let set = &of.nodes[node].sets[set];
                let lag = self.choose(node, set, set.running_max, steps)?;
                lags[node].push(lag + self.burst.times(set.cpus));
            }
            self.scratch.lags[node] = lags[node][0];
        }
        Some(lags)
    }

    /// kappa Z, for all nodes and chosen sets.
    pub(super) fn busy(
        &mut self,
        bounds: &Bounds<N>,
        chosen: &Chosen,
        lags: &[Vec<N>],
        steps: &mut Steps,
    ) -> Option<Vec<Vec<N>>> {
        let of = self.of;
        let mut busy = vec![Vec::new(); of.nodes.len()];
        for (place, node) in of.nodes.iter().enumerate() {
            if node.blockers.is_empty() {
                busy[place].clone_from(&lags[place]);
                continue;
            }
            let mut at = None;
            for &set in &chosen[place] {
                let whole = set == 0;
                let set = &node.sets[set];
                let longest = match whole {
                    true => bounds.blocked[place],
                    false => bounds.blocked[place].or_more(bounds.blocked_nearly_done[place]),
                };
                if at.is_none_or(|at| at != longest) {
                    self.lags_inside(bounds, place, longest, steps)?;
                    self.prepare(bounds, place, longest, Sum::Busy, steps)?;
                    at = Some(longest);
                }
                let work = self.choose(place, set, set.cpus - 1, steps)?;
                busy[place].push(longest.times(set.cpus) + work);
            }
        }
        Some(busy)
    }

    /// M of all nodes inside this one, `after` the deadline.
    fn lags_inside(
        &mut self,
        bounds: &Bounds<N>,
        node: usize,
        after: N,
        steps: &mut Steps,
    ) -> Option<()> {
        let of = self.of;
        for inside in (node + 1..of.nodes[node].end).rev() {
            self.prepare(bounds, inside, after, Sum::Lag, steps)?;
            let set = &of.nodes[inside].sets[0];
            self.scratch.lags[inside] = self.choose(inside, set, set.running_max, steps)?;
        }
        Some(())
    }

    /// What the tasks below a node add `after` the deadline, waiting or running, and what nodes
    /// inside gain by the number of their CPUs. Needs the lags of these.
    fn prepare(
        &mut self,
        bounds: &Bounds<N>,
        node: usize,
        after: N,
        sum: Sum,
        steps: &mut Steps,
    ) -> Option<()> {
        let of = self.of;
        let around = &of.nodes[node];
        steps.take(around.all.len())?;
        let is_never_blocked = around.blockers.is_empty();
        let blocked = (bounds.blocked[node] - after).or_zero();
        let scratch = &mut self.scratch;
        scratch.sums[around.all.start] = N::ZERO;
        for task in around.all.clone() {
            let (rate, cost) = (self.rates[task], self.costs[task]);
            let beyond = scratch.beyond[task] - after;
            let running = match is_never_blocked {
                true => beyond.or_zero().at_rate(rate) + cost,
                false => (beyond.at_rate(rate) + cost).or_zero(),
            };
            let waits = match (sum, is_never_blocked) {
                (Sum::Busy, _) => cost,
                (Sum::Lag, false) => blocked.at_rate(rate) + cost,
                (Sum::Lag, true) => (self.early[task] + (N::ZERO - after).at_rate(rate)).or_zero(),
            };
            scratch.waits[task] = waits;
            scratch.gains[task] = running - waits;
            scratch.sums[task + 1] = scratch.sums[task] + waits;
        }
        for inside in (node + 1..around.end).rev() {
            self.array(inside, steps)?;
        }
        let gains = &self.scratch.gains[around.own.clone()];
        steps.take(gains.len())?;
        collect(gains, around.cpus, &mut self.scratch.own);
        Some(())
    }

    /// The array of a node inside: below all of its CPUs, what children and own tasks gain; with all
    /// of them the node may be full, which counts as its lag.
    fn array(&mut self, node: usize, steps: &mut Steps) -> Option<()> {
        let inside = &self.of.nodes[node];
        let scratch = &mut self.scratch;
        scratch.best.clear();
        scratch.best.resize(inside.cpus, N::ZERO);
        for &child in &inside.children {
            let array = &scratch.arrays[child];
            merge(&mut scratch.best, array, &mut scratch.next, steps)?;
        }
        let gains = &scratch.gains[inside.own.clone()];
        collect(gains, inside.cpus - 1, &mut scratch.own);
        merge(&mut scratch.best, &scratch.own, &mut scratch.next, steps)?;
        let waits = scratch.sums[inside.all.end] - scratch.sums[inside.all.start];
        let full = scratch.lags[node] - waits;
        let array = &mut scratch.arrays[node];
        array.clear();
        array.extend_from_slice(&scratch.best);
        array.push(scratch.best[inside.cpus - 1].or_more(full));
        Some(())
    }

    /// The largest sum over the configurations of a set, with so many CPUs. Needs what `prepare`
    /// leaves.
    fn choose(&mut self, node: usize, set: &Set, cpus: usize, steps: &mut Steps) -> Option<N> {
        let around = &self.of.nodes[node];
        let scratch = &mut self.scratch;
        let waits = |all: &std::ops::Range<usize>| scratch.sums[all.end] - scratch.sums[all.start];
        let mut sum = waits(&around.own);
        scratch.best.clear();
        scratch.best.resize(cpus + 1, N::ZERO);
        for (position, &child) in around.children.iter().enumerate() {
            if set.has(Some(position)) {
                sum += waits(&self.of.nodes[child].all);
                let array = &scratch.arrays[child];
                merge(&mut scratch.best, array, &mut scratch.next, steps)?;
            }
        }
        steps.take(scratch.own.len())?;
        let of_children = scratch.best.iter().rev();
        let both = of_children.zip(&scratch.own).map(|(&a, &b)| a + b);
        Some(sum + both.reduce(N::or_more).unwrap_or(N::ZERO))
    }
}
