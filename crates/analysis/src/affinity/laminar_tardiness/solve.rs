//! The least fixed point, nearly: guessed with floats, then shown with integers.

use super::bounds::{Bounds, Chosen};
use super::component::Component;
use super::explicit::{bi_level, by_depth};
use super::guess::{Guesser, Pace, difference};
use super::operator::Operator;
use super::reserved::Reserved;
use crate::Steps;

/// So many guesses, each lowered by more than the one before.
const GUESSES_MAX: u32 = 12;

/// Amounts in the proof stay below 2 to this, in units of the grid.
const BITS_MAX: i32 = 61;

/// The grid is never finer than this part of a nanosecond, as a power of two.
const FINEST: i32 = 16;

/// Where CPUs are unavailable, F lowers the guess by about this many nanoseconds.
const RESERVED_MARGIN_NS: f64 = 64.0;

/// So many iterations, and bounds up to a thousand times this or the longest period: others are of no
/// use.
const RESERVED_ITERATIONS_MAX: u32 = 2_000;
const RESERVED_MAX_NS: u64 = 1_000_000_000;

/// Bounds that hold, in units of 2^-`bits` nanoseconds, and `bits`.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    /// F of the point that was shown. F lowers it, or leaves it where it is.
    pub(super) bounds: Bounds<i128>,
    /// How fine the grid is.
    pub(super) bits: u32,
}

impl Shown {
    /// Theta, in nanoseconds, rounded up.
    pub(super) fn in_ns(&self) -> Vec<u128> {
        let up = (1u128 << self.bits) - 1;
        let late = self.bounds.late.iter().map(|late| late.unsigned_abs());
        late.map(|late| (late + up) >> self.bits).collect()
    }
}

/// Bounds that hold with the deadlines earlier by `shift` as priority points. `None` if the steps do
/// not suffice, or if amounts come near the limits of 64 bits.
pub(super) fn solve(of: &Component, shift: u64, steps: &mut Steps) -> Option<Shown> {
    let mut guesser = Guesser::new(of, shift, 1.0 / f64::from(1u32 << FINEST));
    for _ in 0..GUESSES_MAX {
        let bounds = guesser.converge(steps)?;
        if let Some(shown) = show(of, shift, &bounds, guesser.chosen(), steps)? {
            return Some(shown);
        }
        guesser.widen();
    }
    None
}

/// Likewise, without iteration: coarse, and nearly for free.
pub(super) fn solve_coarsely(of: &Component, shift: u64, steps: &mut Steps) -> Option<Shown> {
    let whole = vec![vec![0]; of.nodes.len()];
    let mut more = of.nodes[0].cpus as f64 * Guesser::new(of, shift, 1.0).margin();
    for _ in 0..GUESSES_MAX {
        let guesses = [bi_level(of, shift, more), Some(by_depth(of, more))];
        for guess in guesses.into_iter().flatten() {
            if let Some(Some(shown)) = show(of, shift, &guess, &whole, steps) {
                return Some(shown);
            }
        }
        more *= 4.0;
    }
    None
}

/// Bounds that hold where CPUs are unavailable now and then, with the deadlines earlier by `shift` as
/// priority points. `None` if the steps do not suffice or none were found: there need not be any.
pub(super) fn solve_reserved(of: &Component, shift: u64, steps: &mut Steps) -> Option<Shown> {
    let mut operator = Reserved::new(of, shift, |ns| ns as f64)?;
    let times = of.tasks.iter().map(|member| member.task.period.as_ns());
    let most = times.max().unwrap_or(0).max(RESERVED_MAX_NS) as f64 * 1000.0;
    let mut margin = RESERVED_MARGIN_NS;
    let (mut bounds, mut pace) = (Bounds::zero(of), Pace::new());
    for _ in 0..RESERVED_ITERATIONS_MAX {
        let mut next = operator.apply(&bounds, steps)?;
        next.values_mut().for_each(|value| *value += margin);
        if !next.values().all(|value| value < most) {
            return None;
        }
        let change = difference(&next, &bounds);
        if change > margin / 4.0 {
            bounds = pace.go_on(bounds, next, change);
            continue;
        }
        let (bits, point) = on_grid(of, &next)?;
        let mut exact = Reserved::new(of, shift, |ns| i128::from(ns) << bits)?;
        let lower = exact.apply(&point, steps)?;
        if lower.values().zip(point.values()).all(|(f, q)| f <= q) {
            let bounds = point;
            return Some(Shown { bounds, bits });
        }
        margin *= 4.0;
    }
    None
}

/// Whether F lowers this point, without a doubt; then F of it. `None` if the steps do not suffice or
/// amounts are too large.
///
/// Theorem 1 needs any bounds q of which F(q) <= q is certain, then F(q) bounds too. So nothing needs
/// to be right about the guess. The integers round each operation towards more, and F does not fall if
/// any amount in it rises: what they show of the rounded F holds for the true one.
fn show(
    of: &Component,
    shift: u64,
    bounds: &Bounds<f64>,
    chosen: &Chosen,
    steps: &mut Steps,
) -> Option<Option<Shown>> {
    let (bits, point) = on_grid(of, bounds)?;
    let mut operator = Operator::new(of, shift, |ns| i128::from(ns) << bits);
    let lower = operator.apply(&point, chosen, steps)?;
    let is_lower = lower.values().zip(point.values()).all(|(f, q)| f <= q);
    if !is_lower {
        return Some(None);
    }
    Some(Some(Shown {
        bounds: lower,
        bits,
    }))
}

/// The guess in whole units of 2^-bits nanoseconds, rounded up, and bits; `None` if amounts are too
/// large.
fn on_grid(of: &Component, bounds: &Bounds<f64>) -> Option<(u32, Bounds<i128>)> {
    let costs = of.tasks.iter().map(|member| member.task.cost.as_ns());
    let times = of.tasks.iter().map(|member| member.task.period.as_ns());
    let longest = costs.chain(times).max().unwrap_or(0) as f64;
    let largest = bounds.values().fold(longest, f64::max).max(1.0);
    let bits = FINEST.min(BITS_MAX - 1 - largest.log2().ceil() as i32);
    let bits = u32::try_from(bits).ok()?;
    let unit = (1u64 << bits) as f64;
    let rounded = |values: &[f64]| {
        values
            .iter()
            .map(|&ns| (ns * unit).ceil() as i128)
            .collect()
    };
    let bounds = Bounds {
        late: rounded(&bounds.late),
        blocked: rounded(&bounds.blocked),
        blocked_nearly_done: rounded(&bounds.blocked_nearly_done),
    };
    Some((bits, bounds))
}
