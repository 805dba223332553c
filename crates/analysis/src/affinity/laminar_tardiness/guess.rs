//! A guess at the least fixed point, with floats. Nothing depends on it but how good the bound is.

use super::bounds::{Bounds, Chosen};
use super::component::{Component, Node};
use super::explicit::by_depth;
use super::operator::Operator;
use crate::Steps;

/// F lowers the guess by about this part of the largest cost, or by what rounding may add if that is
/// more; so much above the least fixed point it is, and what of that further iterations keep.
const MARGIN: f64 = 1e-9;

/// After so many iterations the way that is left is guessed from the way that was gone, if it
/// shrinks evenly.
const EVEN_AFTER: u32 = 4;

/// Iterations from one start; in practice a few dozen are enough.
const ITERATIONS_MAX: u32 = 5_000;

/// After so many iterations it is seen whether other sets have become better.
const LOOK_EVERY: u32 = 64;

/// Where no node has more sets than this, all are looked at all the time.
const SETS_FEW: usize = 4;

/// Iterations go on where they are if other sets lower no value by more than this part of the largest.
const NEAR: f64 = 0.1;

/// Looks for a point that F lowers.
pub(super) struct Guesser<'a> {
    of: &'a Component,
    operator: Operator<'a, f64>,
    margin: f64,
    /// The sets that have decided something so far.
    chosen: Chosen,
    every: Chosen,
    /// F with every set, applied several times to zero: not above the least fixed point.
    below: Bounds<f64>,
}

/// Where iterations end.
enum End {
    /// They stand still.
    Still(Bounds<f64>),
    /// Sets that were not looked at are better: where F with all of them leads, and whether that is
    /// near.
    Better(Bounds<f64>, bool),
    /// There were too many.
    Nowhere,
}

impl<'a> Guesser<'a> {
    /// With the deadlines earlier by `shift` as priority points; `finest` is the unit of the grid on
    /// which the guess will be shown, in nanoseconds.
    pub(super) fn new(of: &'a Component, shift: u64, finest: f64) -> Self {
        let costs = of.tasks.iter().map(|member| member.task.cost.as_ns());
        // What rounding to the grid adds to a sum with one term per task.
        let rounding = 2.0 * finest * of.tasks.len() as f64;
        let all = |node: &Node| (0..node.sets.len()).collect();
        let every: Chosen = of.nodes.iter().map(all).collect();
        let chosen = match every.iter().all(|sets| sets.len() <= SETS_FEW) {
            true => every.clone(),
            false => vec![vec![0]; of.nodes.len()],
        };
        Self {
            of,
            operator: Operator::new(of, shift, |ns| ns as f64),
            margin: rounding.max(costs.max().unwrap_or(0) as f64 * MARGIN),
            chosen,
            every,
            below: Bounds::zero(of),
        }
    }

    /// The sets that decide something at the guess.
    pub(super) const fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    /// By how much F is to lower a guess.
    pub(super) const fn margin(&self) -> f64 {
        self.margin
    }

    /// Later guesses are lowered by more.
    pub(super) const fn widen(&mut self) {
        self.margin *= 4.0;
    }

    /// A point that F lowers, by about the margin: near the least fixed point, or else from above.
    /// `None`: the steps are used up.
    ///
    /// Of all the sets few decide anything. With too few of them the least fixed point may be far too
    /// high, and iterations from there need not come back: so where others are better by much, all
    /// begins again, from a point that is surely low enough.
    pub(super) fn converge(&mut self, steps: &mut Steps) -> Option<Bounds<f64>> {
        let mut start = Some(self.below.clone());
        loop {
            let from = match start.take() {
                Some(start) => start,
                None => self.rise(steps)?,
            };
            match self.iterate(from, steps)? {
                End::Still(bounds) => return Some(bounds),
                End::Nowhere => return self.descend(steps),
                End::Better(next, is_near) => start = is_near.then_some(next),
            }
        }
    }

    /// One iteration with every set from below.
    fn rise(&mut self, steps: &mut Steps) -> Option<Bounds<f64>> {
        self.below = self.lowered(&self.below.clone(), true, steps)?;
        self.choose_used();
        Some(self.below.clone())
    }

    /// From the bounds that there always are.
    fn descend(&mut self, steps: &mut Steps) -> Option<Bounds<f64>> {
        self.chosen.clone_from(&self.every);
        // Each node divides by its CPUs what is added to costs.
        let cpus = self.of.nodes[0].cpus as f64;
        let mut bounds = by_depth(self.of, 2.0 * cpus * self.margin);
        for _ in 0..ITERATIONS_MAX {
            let next = self.lowered(&bounds, true, steps)?;
            let change = difference(&next, &bounds);
            bounds = next;
            if change <= self.margin / 4.0 {
                break;
            }
        }
        Some(bounds)
    }

    /// F and the margin.
    fn lowered(
        &mut self,
        bounds: &Bounds<f64>,
        with_every_set: bool,
        steps: &mut Steps,
    ) -> Option<Bounds<f64>> {
        let sets = match with_every_set {
            true => &self.every,
            false => &self.chosen,
        };
        let mut next = self.operator.apply(bounds, sets, steps)?;
        next.values_mut().for_each(|value| *value += self.margin);
        Some(next)
    }

    /// Adds the sets that decided something. Whether there is a new one.
    fn choose_used(&mut self) -> bool {
        let mut is_new = false;
        for (chosen, used) in self.chosen.iter_mut().zip(&mut self.operator.used) {
            for (set, used) in used.iter_mut().enumerate() {
                if std::mem::take(used) && !chosen.contains(&set) {
                    chosen.push(set);
                    is_new = true;
                }
            }
        }
        is_new
    }

    /// Looks for sets that are not chosen and lower this point, which F leaves about where it is; then
    /// they are chosen.
    fn better(&mut self, bounds: &Bounds<f64>, steps: &mut Steps) -> Option<Option<End>> {
        if self.chosen == self.every {
            return Some(None);
        }
        let next = self.lowered(bounds, true, steps)?;
        let with_chosen = self.lowered(bounds, false, steps)?;
        let pairs = with_chosen.values().zip(next.values());
        let fall = pairs.map(|(now, next)| now - next).fold(0.0, f64::max);
        if fall <= 2.0 * self.margin || !self.choose_used() {
            return Some(None);
        }
        let largest = next.values().fold(0.0, f64::max);
        Some(Some(End::Better(next, fall <= NEAR * largest)))
    }

    /// F again and again, with the sets chosen so far.
    fn iterate(&mut self, start: Bounds<f64>, steps: &mut Steps) -> Option<End> {
        let mut bounds = start;
        let mut pace = Pace::new();
        for turn in 1..=ITERATIONS_MAX {
            let next = self.lowered(&bounds, false, steps)?;
            let change = difference(&next, &bounds);
            let is_still = change <= self.margin / 4.0;
            if (is_still || turn % LOOK_EVERY == 0)
                && let Some(better) = self.better(&next, steps)?
            {
                return Some(better);
            }
            if is_still {
                return Some(End::Still(next));
            }
            bounds = pace.go_on(bounds, next, change);
        }
        Some(End::Nowhere)
    }
}

/// The largest difference of any two values.
pub(super) fn difference(one: &Bounds<f64>, other: &Bounds<f64>) -> f64 {
    let pairs = one.values().zip(other.values());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// How fast iterations come to rest.
pub(super) struct Pace {
    /// The last change and its ratio to the one before.
    change: Option<f64>,
    ratio: Option<f64>,
    since: u32,
    even_after: u32,
    /// Where the last leap began, and the change there.
    leapt_from: Option<(Bounds<f64>, f64)>,
}

impl Pace {
    pub(super) const fn new() -> Self {
        Self {
            change: None,
            ratio: None,
            since: 0,
            even_after: EVEN_AFTER,
            leapt_from: None,
        }
    }

    /// Where to go on: at F of where it was, further on if changes shrink evenly, or back if the last
    /// leap led to a larger change.
    pub(super) fn go_on(
        &mut self,
        before: Bounds<f64>,
        next: Bounds<f64>,
        change: f64,
    ) -> Bounds<f64> {
        if let Some((from, change_there)) = self.leapt_from.take()
            && change > change_there
        {
            self.even_after = self.even_after.saturating_mul(2);
            self.forget();
            return from;
        }
        self.since += 1;
        let ratio = self.change.map(|before| change / before);
        let is_even = ratio
            .zip(self.ratio)
            .is_some_and(|(now, before)| now < 0.9999 && (now - before).abs() < 0.1 * (1.0 - now));
        if self.since < self.even_after || !is_even {
            (self.change, self.ratio) = (Some(change), ratio);
            return next;
        }
        let ratio = ratio.unwrap_or(0.0);
        let left = ratio / (1.0 - ratio);
        let mut further = next.clone();
        for (further, before) in further.values_mut().zip(before.values()) {
            *further = (*further + (*further - before) * left).max(0.0);
        }
        self.forget();
        self.leapt_from = Some((next, change));
        further
    }

    const fn forget(&mut self) {
        (self.change, self.ratio, self.since) = (None, None, 0);
    }
}
