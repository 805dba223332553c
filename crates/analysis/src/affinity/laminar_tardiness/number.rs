//! The two kinds of numbers the operator is evaluated with: floats to guess, integers to show.

use std::ops::{Add, AddAssign, Sub, SubAssign};

/// C/T of a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    cost: i128,
    period: i128,
    float: f64,
}

impl Rate {
    /// `cost` in each `period`, which is above zero.
    pub(super) fn new(cost: u64, period: u64) -> Self {
        Self {
            cost: cost.into(),
            period: period.into(),
            float: cost as f64 / period as f64,
        }
    }
}

/// An amount of time. Products and quotients are never below the true ones, except for the rounding
/// error of floats.
pub(super) trait Number:
    Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self> + AddAssign + SubAssign
{
    /// No time.
    const ZERO: Self;

    /// The amount times the rate.
    fn at_rate(self, rate: Rate) -> Self;

    /// The amount divided by so many.
    fn shared_by(self, count: usize) -> Self;

    /// The amount so many times.
    fn times(self, count: usize) -> Self;

    /// The larger of the two.
    fn or_more(self, other: Self) -> Self {
        match self < other {
            true => other,
            false => self,
        }
    }

    /// The smaller of the two.
    fn or_less(self, other: Self) -> Self {
        match other < self {
            true => other,
            false => self,
        }
    }

    /// The amount, or zero if it is negative.
    fn or_zero(self) -> Self {
        self.or_more(Self::ZERO)
    }
}

impl Number for f64 {
    const ZERO: Self = 0.0;

    fn at_rate(self, rate: Rate) -> Self {
        self * rate.float
    }

    fn shared_by(self, count: usize) -> Self {
        self / count as Self
    }

    fn times(self, count: usize) -> Self {
        self * count as Self
    }
}

/// Rounds up. The caller keeps amounts below 2^62, so that products fit.
impl Number for i128 {
    const ZERO: Self = 0;

    fn at_rate(self, rate: Rate) -> Self {
        divided_up(self * rate.cost, rate.period)
    }

    fn shared_by(self, count: usize) -> Self {
        divided_up(self, count as Self)
    }

    fn times(self, count: usize) -> Self {
        self * count as Self
    }
}

/// The quotient, towards plus infinity; `by` is above zero.
fn divided_up(amount: i128, by: i128) -> i128 {
    // Division of 64 bits is several times faster, and nearly always enough.
    let (quotient, is_whole) = match (i64::try_from(amount), i64::try_from(by)) {
        (Ok(amount), Ok(by)) => (i128::from(amount / by), amount % by == 0),
        _ => {
            let quotient = amount / by;
            (quotient, quotient * by == amount)
        }
    };
    // A quotient of integers is cut towards zero, which is up already below zero.
    quotient + i128::from(amount > 0 && !is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_never_too_small_by_any_sign_and_size() {
        let factors = [1, 3, 1 << 40, 1 << 61];
        for (by, factor) in factors.iter().flat_map(|&by| factors.map(|f| (by, f))) {
            for offset in [-2, -1, 0, 1, 2] {
                for amount in [by * factor + offset, -by * factor + offset, offset] {
                    let up = divided_up(amount, by);
                    assert!(up * by >= amount, "{amount}/{by}");
                    assert!((up - 1) * by < amount, "{amount}/{by}");
                }
            }
        }
    }
}
