//! Bandwidths, rounded and added as Linux does.

use core::fmt;
use core::iter::Sum;
use core::ops::Add;

use shiftwork_model::{Share, Span};

/// A bandwidth in units of 2^-20 of a CPU, Linux's precision (`BW_SHIFT`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bandwidth(u128);

/// Bits after the binary point.
const BITS: u32 = 20;

/// The capacity of the fastest CPU in Linux (`SCHED_CAPACITY_SCALE`).
const FASTEST: u64 = 1 << 10;

impl Bandwidth {
    /// No bandwidth.
    pub const NONE: Self = Self(0);

    /// `units` times 2^-20 of a CPU.
    pub const fn from_units(units: u128) -> Self {
        Self(units)
    }

    /// The units of 2^-20 of a CPU.
    pub const fn units(self) -> u128 {
        self.0
    }

    /// `cost` per `period`, rounded down: `to_ratio` of Linux, but without its overflow above 4.8 hours.
    /// [`NONE`](Self::NONE) if the period is zero.
    pub fn of(cost: Span, period: Span) -> Self {
        let units = u128::from(cost.as_ns()) << BITS;
        Self(units.checked_div(period.as_ns().into()).unwrap_or(0))
    }

    /// The bandwidth of one CPU without the reserve, rounded down.
    pub fn beside(reserve: Share) -> Self {
        let left = u128::from(Share::WHOLE - reserve.billionths());
        Self((left << BITS) / u128::from(Share::WHOLE))
    }

    /// This bandwidth on each of several CPUs with the total capacity `capacity`: `cap_scale` of Linux.
    pub fn on(self, capacity: u64) -> Self {
        Self(self.0 * u128::from(capacity) / u128::from(FASTEST))
    }

    /// The difference to `less`; zero if `less` is greater.
    pub const fn beyond(self, less: Self) -> Self {
        Self(self.0.saturating_sub(less.0))
    }
}

/// The capacity of a CPU as a whole number, 1024 for the fastest, at least 1.
pub(super) fn capacity(speed: Share) -> u64 {
    let scaled = u64::from(speed.billionths()) * FASTEST / u64::from(Share::WHOLE);
    scaled.max(1)
}

impl Add for Bandwidth {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Bandwidth {
    fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
        terms.fold(Self::NONE, Add::add)
    }
}

/// Writes a number of CPUs, rounded down to seven places: unequal bandwidths have unequal texts.
impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PLACES: u128 = 10_000_000;
        let fraction = ((self.0 & ((1 << BITS) - 1)) * PLACES) >> BITS;
        let text = format!("{}.{fraction:07}", self.0 >> BITS);
        f.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidths_equal_those_of_linux() {
        let of = |cost, period| Bandwidth::of(Span::from_ns(cost), Span::from_ns(period)).units();
        assert_eq!(of(1, 2), 524_288);
        assert_eq!(of(94, 100), 985_661);
        assert_eq!(of(1, 0), 0);
        assert_eq!(of(u64::MAX, u64::MAX), 1 << 20);
        let limit = Bandwidth::beside(Share::DEFAULT_RESERVE);
        assert_eq!(limit.units(), (950_000 << 20) / 1_000_000);
        assert_eq!(limit.on(3 * 1024).units(), 3 * 996_147);
        assert_eq!(limit.on(1024 + 512).units(), 996_147 * 3 / 2);
    }

    #[test]
    fn unequal_bandwidths_have_unequal_texts() {
        let texts = |units| Bandwidth::from_units(units).to_string();
        assert_eq!(texts(1 << 20), "1");
        assert_eq!(texts(0), "0");
        assert_eq!(texts(10 << 20), "10");
        assert_eq!(texts(3 << 18), "0.75");
        assert_eq!([texts(996_146), texts(996_147)], ["0.9499988", "0.9499998"]);
        for units in (1 << 20) - 2_000..(1 << 20) + 2_000 {
            assert_ne!(texts(units), texts(units + 1));
        }
    }

    #[test]
    fn capacity_of_the_fastest_cpu_is_1024() {
        let of = |billionths| capacity(Share::from_billionths(billionths).unwrap());
        assert_eq!([of(1_000_000_000), of(500_000_000), of(1)], [1024, 512, 1]);
    }
}
