//! Numbers known to lie between two floats: they decide a comparison whenever it is not a close one.
//!
//! A test computes both sides of its condition as [`Interval`]s. If these do not overlap, the
//! comparison has an answer, the same that exact fractions would give; if they do, it has none
//! (`None`) and the test asks exact integers or fractions. So a verdict never depends on floating
//! point, only its speed does.
//!
//! # Error bound
//! Every operation of [`Interval`] contains the true result: IEEE 754 rounds to the nearest float, so
//! that the true value lies between the two neighbours of the computed one, and these are the new
//! bounds. One operation widens an interval by no more than two units in the last place, a relative
//! 2^-51. What overflows, divides by something that may be zero, or is undefined, is bounded by
//! infinity, never by NaN.
//!
//! [`Interval::sum_over`] adds n floats that are not negative at the full speed of the machine and
//! bounds the error of all together: each term went through at most `roundings` + n - 1 roundings,
//! none of which changes it by more than a relative u = 2^-53. With N of them the true sum is at
//! least the computed one divided by (1 + u)^N, which is more than 1 - N u of it, and at most the
//! computed one divided by (1 - u)^N, which is less than 1 + 2 N u of it while N u <= 1/2.
//!
//! # How to use it
//! ```text
//! let sum = Interval::sum_over(tasks, RATIO, |task| ratio(task.cost_ns, task.period_ns));
//! let bound = Interval::of(cpus) - Interval::of(cpus - 1) * Interval::ratio(cost_ns, period_ns);
//! let holds = sum.at_most(bound).unwrap_or_else(|| exactly(tasks, cpus));
//! ```

use std::ops::{Add, Div, Mul, Sub};

/// How many roundings [`ratio`] may take: one per operand and one for the quotient.
pub(crate) const RATIO: usize = 3;

/// n/d as a float, within [`RATIO`] roundings of the true value. `d` above zero.
pub(crate) fn ratio(n: u64, d: u64) -> f64 {
    n as f64 / d as f64
}

/// A number that is known to be at least `low` and at most `high`. Neither is NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    low: f64,
    high: f64,
}

impl Interval {
    /// Nothing is known.
    pub(crate) const EVERYTHING: Self = Self {
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
    };

    /// A whole number.
    pub(crate) fn of(n: u128) -> Self {
        let nearest = n as f64;
        if n <= 1 << f64::MANTISSA_DIGITS {
            return Self {
                low: nearest,
                high: nearest,
            };
        }
        Self::around(nearest)
    }

    /// n/d; everything if `d` is zero.
    pub(crate) fn ratio(n: u128, d: u128) -> Self {
        Self::of(n) / Self::of(d)
    }

    /// The sum of what `term` says of all `items`: floats, not negative, none of them infinite, each
    /// within so many roundings of the term that is meant. One pass, in lanes that can be added at
    /// once.
    pub(crate) fn sum_over<T>(
        items: &[T],
        roundings: usize,
        mut term: impl FnMut(&T) -> f64,
    ) -> Self {
        const LANES: usize = 4;
        let mut lanes = [0.0; LANES];
        let (chunks, rest) = items.as_chunks::<LANES>();
        for chunk in chunks {
            for (lane, item) in lanes.iter_mut().zip(chunk) {
                *lane += term(item);
            }
        }
        let mut sum = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
        for item in rest {
            sum += term(item);
        }
        Self::within(sum, items.len() + roundings)
    }

    /// A number that is not negative and differs from `nearest` by so many roundings at most.
    pub(crate) fn within(nearest: f64, roundings: usize) -> Self {
        // Twice the unit roundoff for each: see the module.
        let error = roundings as f64 * f64::EPSILON;
        if nearest.is_nan() || error > 0.5 {
            return Self::EVERYTHING;
        }
        Self {
            low: (nearest * (1.0 - error)).next_down(),
            high: (nearest * (1.0 + error)).next_up(),
        }
    }

    /// A number that differs from `nearest` by `error` at most.
    pub(crate) fn about(nearest: f64, error: f64) -> Self {
        Self::between(nearest - error, nearest + error)
    }

    /// The result of one operation, rounded to the nearest.
    fn around(nearest: f64) -> Self {
        Self::between(nearest, nearest)
    }

    /// From the least and the greatest result, each rounded to the nearest.
    fn between(least: f64, greatest: f64) -> Self {
        if least.is_nan() || greatest.is_nan() {
            return Self::EVERYTHING;
        }
        Self {
            low: least.next_down(),
            high: greatest.next_up(),
        }
    }

    /// The greater one of two numbers.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            low: self.low.max(other.low),
            high: self.high.max(other.high),
        }
    }

    /// Not more than the number.
    pub(crate) const fn low(self) -> f64 {
        self.low
    }

    /// Not less than the number.
    pub(crate) const fn high(self) -> f64 {
        self.high
    }

    /// Whether this is <= `other`; `None` if that hangs on digits that are not known.
    pub(crate) fn at_most(self, other: Self) -> Option<bool> {
        if self.high <= other.low {
            return Some(true);
        }
        (self.low > other.high).then_some(false)
    }

    /// Whether this is < `other`; `None` if that hangs on digits that are not known.
    pub(crate) fn below(self, other: Self) -> Option<bool> {
        other.at_most(self).map(|at_most| !at_most)
    }

    /// The larger of the two numbers.
    pub(crate) const fn at_least(self, other: Self) -> Self {
        Self {
            low: self.low.max(other.low),
            high: self.high.max(other.high),
        }
    }

    /// Rounded up to a whole number, which is not negative; `None` if that hangs on digits that are
    /// not known or is 2^53 and more.
    pub(crate) fn ceil(self) -> Option<u64> {
        let (low, high) = (self.low.ceil(), self.high.ceil());
        let exact = 0.0 <= low && low == high && high < (1u64 << f64::MANTISSA_DIGITS) as f64;
        exact.then_some(high as u64)
    }
}

impl Add for Interval {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::between(self.low + other.low, self.high + other.high)
    }
}

impl Sub for Interval {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::between(self.low - other.high, self.high - other.low)
    }
}

impl Mul for Interval {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        if self.low >= 0.0 && other.low >= 0.0 {
            return Self::between(self.low * other.low, self.high * other.high);
        }
        let products = [
            self.low * other.low,
            self.low * other.high,
            self.high * other.low,
            self.high * other.high,
        ];
        Self::hull(products)
    }
}

/// Everything if the divisor may be zero.
impl Div for Interval {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        if self.low >= 0.0 && other.low > 0.0 {
            return Self::between(self.low / other.high, self.high / other.low);
        }
        if other.low <= 0.0 && other.high >= 0.0 {
            return Self::EVERYTHING;
        }
        let quotients = [
            self.low / other.low,
            self.low / other.high,
            self.high / other.low,
            self.high / other.high,
        ];
        Self::hull(quotients)
    }
}

impl Interval {
    /// From all extreme results, each rounded to the nearest.
    fn hull(results: [f64; 4]) -> Self {
        // `min` and `max` of floats pass over NaN, which must not be lost.
        if results.iter().any(|result| result.is_nan()) {
            return Self::EVERYTHING;
        }
        let least = results.into_iter().fold(f64::INFINITY, f64::min);
        let greatest = results.into_iter().fold(f64::NEG_INFINITY, f64::max);
        Self::between(least, greatest)
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;
    use num_rational::Ratio;
    use shiftwork_model::RandomStream;

    use super::*;

    type Exact = Ratio<BigInt>;

    /// A finite float as the fraction that it is.
    fn exact(float: f64) -> Exact {
        let bits = float.to_bits();
        let exponent = i32::try_from(bits >> 52 & 0x7ff).unwrap();
        let fraction = bits & ((1 << 52) - 1);
        let mantissa = fraction | u64::from(exponent > 0) << 52;
        let power = exponent.max(1) - 1075;
        let scale = BigInt::from(2).pow(power.unsigned_abs());
        let size = match power >= 0 {
            true => Exact::from(BigInt::from(mantissa) * scale),
            false => Exact::new(mantissa.into(), scale),
        };
        if float < 0.0 { -size } else { size }
    }

    fn contains(interval: Interval, value: &Exact) -> bool {
        let low = interval.low == f64::NEG_INFINITY || exact(interval.low) <= *value;
        let high = interval.high == f64::INFINITY || *value <= exact(interval.high);
        low && high
    }

    /// Of every size up to 2^128.
    fn number(stream: &mut RandomStream) -> u128 {
        let bits = u128::from(stream.bits()) << 64 | u128::from(stream.bits());
        bits >> stream.below(128)
    }

    #[test]
    fn what_is_computed_contains_what_is_true() {
        for seed in 0..300 {
            let mut stream = RandomStream::new(seed, 60, 0);
            let mut known = Interval::of(1);
            let mut truth = Exact::from(BigInt::from(1));
            for step in 0..12 {
                let (n, d) = (number(&mut stream), number(&mut stream).max(1));
                let (next, value) = (
                    Interval::ratio(n, d),
                    Exact::new(BigInt::from(n), BigInt::from(d)),
                );
                let zero = value == Exact::from(BigInt::ZERO);
                (known, truth) = match stream.below(4) {
                    0 => (known + next, truth + value),
                    1 => (known - next, truth - value),
                    2 => (known * next, truth * value),
                    _ if !zero => (known / next, truth / value),
                    _ => (known, truth),
                };
                assert!(
                    contains(known, &truth),
                    "seed {seed}, step {step}: {known:?} {truth}"
                );
            }
        }
    }

    #[test]
    fn sums_contain_what_is_true_and_are_narrow() {
        for seed in 0..100 {
            let mut stream = RandomStream::new(seed, 60, 1);
            let terms: Vec<(u64, u64)> = (0..stream.below(24))
                .map(|_| {
                    let size = stream.below(63);
                    (stream.bits() >> size, (stream.bits() >> size).max(1))
                })
                .collect();
            let known = Interval::sum_over(&terms, RATIO, |&(n, d)| ratio(n, d));
            let truth: Exact = terms
                .iter()
                .map(|&(n, d)| Exact::new(n.into(), d.into()))
                .sum();
            assert!(contains(known, &truth), "seed {seed}: {known:?} {truth}");
            assert!(
                known.high - known.low <= 1e-12 * known.high.max(1e-200),
                "seed {seed}: {known:?}"
            );
        }
    }

    #[test]
    fn close_comparisons_have_no_answer_and_others_the_true_one() {
        let third = Interval::ratio(1, 3);
        let whole = third + third + third;
        assert_eq!(whole.at_most(Interval::of(1)), None);
        assert_eq!(whole.below(Interval::of(1)), None);
        assert_eq!(whole.at_most(Interval::ratio(1001, 1000)), Some(true));
        assert_eq!(whole.below(Interval::ratio(999, 1000)), Some(false));
        assert_eq!(Interval::of(7).at_most(Interval::of(7)), Some(true));
        assert_eq!(Interval::of(7).below(Interval::of(7)), Some(false));
    }

    #[test]
    fn nothing_is_known_of_what_is_undefined() {
        let zero = Interval::of(0);
        assert_eq!(zero / zero, Interval::EVERYTHING);
        assert_eq!(
            Interval::of(1) / (Interval::of(1) - Interval::of(1)),
            Interval::EVERYTHING
        );
        assert_eq!(Interval::EVERYTHING * zero, Interval::EVERYTHING);
        assert_eq!(
            Interval::EVERYTHING - Interval::EVERYTHING,
            Interval::EVERYTHING
        );
        assert_eq!(Interval::EVERYTHING.at_most(zero), None);
        let huge = Interval::of(u128::MAX) * Interval::of(u128::MAX);
        let huge = huge * huge * huge * huge * huge;
        assert!(huge.low() < f64::INFINITY && huge.high() == f64::INFINITY);
    }

    #[test]
    fn only_a_known_number_is_rounded() {
        assert_eq!(Interval::ratio(7, 2).ceil(), Some(4));
        assert_eq!(Interval::of(4).ceil(), Some(4));
        assert_eq!((Interval::ratio(4, 3) * Interval::of(3)).ceil(), None);
        assert_eq!(Interval::of(1 << 60).ceil(), None);
        assert_eq!((Interval::of(1) - Interval::of(3)).ceil(), None);
    }
}
