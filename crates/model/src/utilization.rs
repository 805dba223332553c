//! Exact utilizations, and sums of them against a capacity, without floating point.

use core::cmp::Ordering;

use alloc::vec::Vec;
use num_bigint::BigInt;
use num_rational::Ratio;

use crate::time::Span;

/// C/T of a task, exact.
#[derive(Clone, Copy, Debug)]
pub struct Utilization {
    cost: Span,
    period: Span,
}

impl Utilization {
    /// `cost` per `period`; `None` if the period is zero.
    pub fn new(cost: Span, period: Span) -> Option<Self> {
        (!period.is_zero()).then_some(Self { cost, period })
    }

    /// For reports only; never decide with it.
    pub fn as_f64(self) -> f64 {
        self.cost.as_ns() as f64 / self.period.as_ns() as f64
    }

    /// Whether the task alone needs more than one CPU.
    pub fn exceeds_one(self) -> bool {
        self.cost > self.period
    }

    pub(crate) fn as_ratio(self) -> Ratio<BigInt> {
        Ratio::new(self.cost.as_ns().into(), self.period.as_ns().into())
    }

    /// Largest multiple of 2^-64 that is not above the utilization, as that multiple. The
    /// utilization itself is less than one unit above.
    pub(crate) fn floor(self) -> u128 {
        let (cost, period) = (self.cost.as_ns(), self.period.as_ns());
        // Two divisions of 64 bits are several times faster than one of 128.
        if cost.max(period) >> 32 == 0 {
            let [high, rest] = [(cost << 32) / period, (cost << 32) % period];
            return u128::from(high) << 32 | u128::from((rest << 32) / period);
        }
        (u128::from(cost) << 64) / u128::from(period)
    }
}

impl PartialEq for Utilization {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Utilization {}

impl PartialOrd for Utilization {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Utilization {
    fn cmp(&self, other: &Self) -> Ordering {
        let product = |a: Span, b: Span| u128::from(a.as_ns()) * u128::from(b.as_ns());
        product(self.cost, other.period).cmp(&product(other.cost, self.period))
    }
}

/// A growing sum of utilizations that answers exactly whether one more still fits.
///
/// Keeps a fixed-point interval (each term is off by less than 2^-64) and falls back to exact
/// fractions only when the interval straddles the capacity, which in practice means equality.
#[derive(Clone, Debug, Default)]
pub struct CapacitySum {
    floor: u128,
    terms: Vec<Utilization>,
}

impl CapacitySum {
    /// Whether the sum with `more` added is at most `capacity` CPUs. Exact.
    pub fn fits(&self, more: Utilization, capacity: u64) -> bool {
        let low = self.floor.saturating_add(more.floor());
        let high = low.saturating_add(self.terms.len() as u128 + 1);
        let limit = u128::from(capacity) << 64;
        if high <= limit {
            return true;
        }
        if low > limit {
            return false;
        }
        let exact = self
            .terms
            .iter()
            .fold(more.as_ratio(), |sum, term| sum + term.as_ratio());
        exact <= Ratio::from_integer(capacity.into())
    }

    /// Adds a utilization, whether it fits or not.
    pub fn add(&mut self, more: Utilization) {
        self.floor = self.floor.saturating_add(more.floor());
        self.terms.push(more);
    }

    /// For ordering partitions by load, and for reports: the sum to within 2^-64 per term.
    pub fn floor(&self) -> u128 {
        self.floor
    }

    /// The exact sum as a reduced fraction (`17/6`), for reports.
    pub fn to_fraction(&self) -> Ratio<BigInt> {
        self.terms
            .iter()
            .fold(Ratio::from_integer(0.into()), |sum, term| {
                sum + term.as_ratio()
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn utilization(cost: u64, period: u64) -> Utilization {
        Utilization::new(Span::from_ns(cost), Span::from_ns(period)).unwrap()
    }

    #[test]
    fn three_thirds_fill_a_cpu_exactly() {
        let mut sum = CapacitySum::default();
        sum.add(utilization(1, 3));
        sum.add(utilization(1, 3));
        assert!(sum.fits(utilization(1, 3), 1));
        assert!(!sum.fits(utilization(333_333_334, 1_000_000_000), 1));
        sum.add(utilization(1, 3));
        assert!(!sum.fits(utilization(1, u64::MAX >> 2), 1));
        assert_eq!(sum.to_fraction().to_string(), "1");
    }

    #[test]
    fn rounding_down_is_the_same_by_either_way() {
        let edge = u64::from(u32::MAX);
        for cost in [0, 1, 2, 7, 1_000_003, edge - 1, edge] {
            for period in [1, 2, 3, 10, 1_000_003, edge - 1, edge] {
                let expected = (u128::from(cost) << 64) / u128::from(period);
                assert_eq!(utilization(cost, period).floor(), expected);
            }
        }
    }

    #[test]
    fn comparison_is_exact() {
        assert!(utilization(1, 3) > utilization(333_333_333, 1_000_000_000));
        assert_eq!(utilization(1, 3), utilization(2, 6));
    }
}
