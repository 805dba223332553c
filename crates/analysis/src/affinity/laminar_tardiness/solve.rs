//! The least fixed point, nearly: guessed with floats, then shown with integers.

use super::bounds::{Bounds, Chosen};
use super::component::{Component, Node};
use super::number::Number;
use super::operator::Operator;
use crate::Steps;

/// F lowers the guess by about this part of the largest cost, or by what rounding may add if that is
/// more; so much above the least fixed point it is, and what of that further iterations keep.
const MARGIN: f64 = 1e-9;

/// After so many iterations the way that is left is guessed from the way that was gone, if it
/// shrinks evenly.
const EVEN_AFTER: u32 = 4;

/// Iterations for one guess; in practice a few dozen are enough.
const ITERATIONS_MAX: u32 = 5_000;

/// So many guesses, each with twice the margin of the one before.
const GUESSES_MAX: u32 = 12;

/// Amounts in the proof stay below 2 to this, in units of the grid.
const BITS_MAX: i32 = 61;

/// The grid is never finer than this part of a nanosecond, as a power of two.
const FINEST: i32 = 16;

/// How late each task may be, in units of 2^-`bits` nanoseconds, and `bits`.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    /// Theta.
    pub(super) late: Vec<i128>,
    /// How fine the grid is.
    pub(super) bits: u32,
}

/// Bounds that hold with the deadlines earlier by `shift` as priority points. `None` if the steps do
/// not suffice, or if amounts come near the limits of 64 bits.
///
/// Theorem 1 needs any bounds q of which F(q) <= q is certain, then F(q) bounds too. So the floats
/// need not be right. The integers round each operation towards more, and F does not fall if any
/// amount in it rises: what they show of the rounded F holds for the true one.
pub(super) fn solve(of: &Component, shift: u64, steps: &mut Steps) -> Option<Shown> {
    let mut guesser = Guesser::new(of, shift);
    let mut bounds = Bounds::zero(of);
    for _ in 0..GUESSES_MAX {
        bounds = guesser.converge(bounds, steps)?;
        if let Some(shown) = show(of, shift, &bounds, &guesser.chosen, steps)? {
            return Some(shown);
        }
        guesser.margin *= 2.0;
    }
    None
}

struct Guesser<'a> {
    operator: Operator<'a, f64>,
    margin: f64,
    chosen: Chosen,
    every: Chosen,
}

impl<'a> Guesser<'a> {
    fn new(of: &'a Component, shift: u64) -> Self {
        let costs = of.tasks.iter().map(|member| member.task.cost.as_ns());
        // What rounding to the grid adds to a sum with one term per task.
        let rounding = of.tasks.len() as f64 / f64::from(1u32 << (FINEST - 1));
        Self {
            operator: Operator::new(of, shift, |ns| ns as f64),
            margin: rounding.max(costs.max().unwrap_or(0) as f64 * MARGIN),
            chosen: vec![vec![0]; of.nodes.len()],
            every: every(of),
        }
    }

    /// A point that F lowers, by about the margin, from any start.
    fn converge(&mut self, start: Bounds<f64>, steps: &mut Steps) -> Option<Bounds<f64>> {
        let mut bounds = start;
        loop {
            bounds = self.iterate(bounds, steps)?;
            // Of all the sets few decide anything. The others come in only to find these.
            let next = self.operator.apply(&bounds, &self.every, steps)?;
            let is_lower = {
                let mut pairs = next.values().zip(bounds.values());
                pairs.any(|(next, now)| next < now - 2.0 * self.margin)
            };
            if !is_lower || !self.choose_used() {
                return Some(bounds);
            }
        }
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

    /// The same with the sets chosen so far.
    fn iterate(&mut self, start: Bounds<f64>, steps: &mut Steps) -> Option<Bounds<f64>> {
        let mut bounds = start;
        let (mut before, mut ratio_before, mut since) = (None, None, 0);
        for _ in 0..ITERATIONS_MAX {
            let mut next = self.operator.apply(&bounds, &self.chosen, steps)?;
            next.values_mut().for_each(|value| *value += self.margin);
            let pairs = next.values().zip(bounds.values());
            let change = pairs
                .map(|(next, now)| (next - now).abs())
                .fold(0.0, f64::max);
            if change <= self.margin / 4.0 {
                return Some(next);
            }
            since += 1;
            let ratio = before.map(|before: f64| change / before);
            let is_even = ratio
                .zip(ratio_before)
                .is_some_and(|(now, before): (f64, f64)| {
                    now < 0.9999 && (now - before).abs() < 0.1 * (1.0 - now)
                });
            if since >= EVEN_AFTER && is_even {
                let ratio = ratio.unwrap_or(0.0);
                let left = ratio / (1.0 - ratio);
                for (next, now) in next.values_mut().zip(bounds.values()) {
                    *next = (*next + (*next - now) * left).max(0.0);
                }
                (before, ratio_before, since) = (None, None, 0);
            } else {
                (before, ratio_before) = (Some(change), ratio);
            }
            bounds = next;
        }
        None
    }
}

/// All sets of each node.
fn every(of: &Component) -> Chosen {
    let all = |node: &Node| (0..node.sets.len()).collect();
    of.nodes.iter().map(all).collect()
}

/// Whether F lowers this point, without a doubt; then F of it.
fn show(
    of: &Component,
    shift: u64,
    bounds: &Bounds<f64>,
    chosen: &Chosen,
    steps: &mut Steps,
) -> Option<Option<Shown>> {
    let costs = of.tasks.iter().map(|member| member.task.cost.as_ns());
    let times = of.tasks.iter().map(|member| member.task.period.as_ns());
    let longest = costs.chain(times).max().unwrap_or(0) as f64;
    let largest = bounds.values().fold(longest, f64::max).max(1.0);
    let bits = FINEST.min(BITS_MAX - 1 - largest.log2().ceil() as i32);
    let Ok(bits) = u32::try_from(bits) else {
        return None;
    };
    let unit = (1u64 << bits) as f64;
    let on_grid = |values: &[f64]| {
        values
            .iter()
            .map(|&ns| (ns * unit).ceil() as i128)
            .collect()
    };
    let point = Bounds {
        late: on_grid(&bounds.late),
        blocked: on_grid(&bounds.blocked),
        blocked_nearly_done: on_grid(&bounds.blocked_nearly_done),
    };
    let mut operator = Operator::new(of, shift, |ns| i128::from(ns) << bits);
    let lower = operator.apply(&point, chosen, steps)?;
    if lower
        .values()
        .zip(point.values())
        .any(|(lower, point)| lower > point)
    {
        return Some(None);
    }
    Some(Some(Shown {
        late: lower.late.into_iter().map(Number::or_zero).collect(),
        bits,
    }))
}
