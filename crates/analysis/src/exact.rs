//! Exact sums of utilizations that grow and shrink, and exact comparisons of them with CPUs.
//!
//! Sums are kept twice: as a multiple of a tiny unit, rounded down, which nearly always decides, and
//! as costs by period, which decide the rest. There is no floating point.

use std::collections::BTreeMap;

use num_bigint::{BigInt, BigUint};
use num_rational::Ratio;
use shiftwork_model::{Share, Span, Task};

/// Units in a billionth of a CPU. A whole CPU has 10^9 x 2^34 units, just below 2^64, so that a
/// cost of 64 bits can be converted in 128 and a supply of whole billionths is a whole number.
const UNITS_LOG2: u32 = 34;

/// What one CPU supplies, in units.
pub(crate) fn units_of(supply: Share) -> u128 {
    u128::from(supply.billionths()) << UNITS_LOG2
}

/// A whole CPU.
pub(crate) const fn whole() -> Share {
    match Share::from_billionths(Share::WHOLE) {
        Some(whole) => whole,
        None => unreachable!(),
    }
}

/// What is left of a CPU beside a reserve.
pub(crate) fn beside(reserve: Share) -> Share {
    Share::from_billionths(Share::WHOLE - reserve.billionths())
        .expect("a whole minus a share is a share")
}

/// The supply as a fraction of a CPU.
pub(crate) fn fraction(supply: Share) -> Ratio<BigInt> {
    Ratio::new(supply.billionths().into(), Share::WHOLE.into())
}

/// So much work every so often: C/T, or C/D where density is meant. Exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    work_ns: u64,
    every_ns: u64,
}

impl Rate {
    /// `work` in each `every`; `None` if `every` is zero.
    pub const fn new(work: Span, every: Span) -> Option<Self> {
        if every.is_zero() {
            return None;
        }
        Some(Self {
            work_ns: work.as_ns(),
            every_ns: every.as_ns(),
        })
    }

    /// The utilization of a task, in the long run; `None` if its period is zero.
    pub(crate) fn of(task: &Task) -> Option<Self> {
        let (work, every) = task.long_run();
        Self::new(work, every)
    }

    /// Whether one CPU is too little. A job runs on one CPU at a time, so nothing helps then.
    pub const fn exceeds_one(self) -> bool {
        self.work_ns > self.every_ns
    }

    /// Whether this is more than the supply of one CPU.
    pub(crate) fn exceeds(self, supply: Share) -> bool {
        u128::from(self.work_ns) * u128::from(Share::WHOLE)
            > u128::from(self.every_ns) * u128::from(supply.billionths())
    }

    /// In units, rounded down.
    fn units(self) -> u128 {
        ((u128::from(self.work_ns) * u128::from(Share::WHOLE)) << UNITS_LOG2)
            / u128::from(self.every_ns)
    }

    /// As a fraction of one CPU.
    pub fn to_fraction(self) -> Ratio<BigInt> {
        Ratio::new(self.work_ns.into(), self.every_ns.into())
    }
}

/// The sum of the rates of some tasks.
///
/// Invariant: `units` is the sum of the rates in units, each rounded down, so the true sum is in
/// `[units, units + tasks]`; `work` has the same sum exactly, as work by period, without zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    units: u128,
    tasks: usize,
    work: BTreeMap<u64, u128>,
}

impl Demand {
    /// That of one task.
    pub(crate) fn of(rate: Rate) -> Self {
        let mut demand = Self::default();
        demand.add(rate);
        demand
    }

    /// Adds a task.
    pub fn add(&mut self, rate: Rate) {
        self.units = self.units.saturating_add(rate.units());
        self.tasks += 1;
        if rate.work_ns > 0 {
            *self.work.entry(rate.every_ns).or_default() += u128::from(rate.work_ns);
        }
    }

    /// Takes out a task that was added with this rate.
    ///
    /// # Panics
    /// In debug builds, if there was none.
    pub fn remove(&mut self, rate: Rate) {
        debug_assert!(self.tasks > 0, "only what was added is removed");
        self.units = self.units.saturating_sub(rate.units());
        self.tasks = self.tasks.saturating_sub(1);
        if let Some(work) = self.work.get_mut(&rate.every_ns) {
            *work = work.saturating_sub(u128::from(rate.work_ns));
            if *work == 0 {
                self.work.remove(&rate.every_ns);
            }
        }
    }

    /// Adds all tasks of another.
    pub fn merge(&mut self, other: &Self) {
        self.units = self.units.saturating_add(other.units);
        self.tasks += other.tasks;
        for (&period, &work) in &other.work {
            *self.work.entry(period).or_default() += work;
        }
    }

    /// How many tasks were added and not removed.
    pub const fn tasks(&self) -> usize {
        self.tasks
    }

    /// How many different periods there are.
    pub(crate) fn periods(&self) -> usize {
        self.work.len()
    }

    /// Not more than the sum, in units.
    pub(crate) const fn units_min(&self) -> u128 {
        self.units
    }

    /// Not less than the sum, in units.
    pub(crate) const fn units_max(&self) -> u128 {
        self.units.saturating_add(self.tasks as u128)
    }

    /// The sum as a reduced fraction of one CPU (`17/6`).
    ///
    /// O(p w) for p different periods with a common multiple of w words.
    pub fn to_fraction(&self) -> Ratio<BigInt> {
        let common = common_multiple([self]);
        Ratio::new(self.in_parts(&common).into(), common.into())
    }

    /// The sum in parts of a CPU; `parts` to the CPU, a multiple of all periods.
    pub(crate) fn in_parts(&self, parts: &BigUint) -> BigUint {
        self.work
            .iter()
            .map(|(&period, &work)| parts / period * work)
            .sum()
    }
}

/// Whether demands together are at most `cpus` CPUs of this supply. Exact.
///
/// O(number of demands) unless the answer hangs on less than a part in 2^64 per task.
pub(crate) fn fit<'a>(
    demands: impl IntoIterator<Item = &'a Demand> + Clone,
    cpus: usize,
    supply: Share,
) -> bool {
    let room = units_of(supply) * cpus as u128;
    let sum = |units: fn(&Demand) -> u128| {
        let demands = demands.clone().into_iter();
        demands.map(units).fold(0, u128::saturating_add)
    };
    if sum(Demand::units_max) <= room {
        return true;
    }
    if sum(Demand::units_min) > room {
        return false;
    }
    let common = common_multiple(demands.clone());
    let needed: BigUint = demands.into_iter().map(|one| one.in_parts(&common)).sum();
    needed * Share::WHOLE <= common * supply.billionths() * cpus
}

/// The least common multiple of all periods.
pub(crate) fn common_multiple<'a>(demands: impl IntoIterator<Item = &'a Demand>) -> BigUint {
    let mut periods: Vec<u64> = demands
        .into_iter()
        .flat_map(|demand| demand.work.keys().copied())
        .collect();
    periods.sort_unstable();
    periods.dedup();
    periods
        .into_iter()
        .fold(BigUint::from(1u8), |common, period| {
            let rest = u64::try_from(&common % period).expect("a remainder is below its divisor");
            common * (period / gcd(period, rest))
        })
}

const fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

/// An amount of CPUs that can be written as a decimal.
pub(crate) trait Decimal {
    /// The amount times 10^places, rounded down.
    fn scaled(&self, places: u32) -> BigUint;

    /// With up to so many places, two at least, rounded down.
    fn to_decimal(&self, places: u32) -> String {
        let scale = BigUint::from(10u8).pow(places);
        let scaled = self.scaled(places);
        let (whole, rest) = (&scaled / &scale, &scaled % &scale);
        let width = places as usize;
        let mut text = format!("{whole}.{:0>width$}", rest.to_string());
        let least = text.len() - places.saturating_sub(2) as usize;
        let end = text.trim_end_matches('0').len().max(least);
        text.truncate(end);
        text
    }
}

/// So many CPUs of this supply.
pub(crate) struct Supplied(pub(crate) usize, pub(crate) Share);

impl Decimal for Supplied {
    fn scaled(&self, places: u32) -> BigUint {
        BigUint::from(self.0) * self.1.billionths() * BigUint::from(10u8).pow(places) / Share::WHOLE
    }
}

impl Decimal for Demand {
    /// Exact; by fractions only where the sums in units leave a doubt.
    fn scaled(&self, places: u32) -> BigUint {
        let ten = BigUint::from(10u8).pow(places);
        let cpu = u128::from(Share::WHOLE) << UNITS_LOG2;
        let [low, high] = [self.units_min(), self.units_max()].map(|units| units * &ten / cpu);
        if low == high {
            return low;
        }
        let common = common_multiple([self]);
        self.in_parts(&common) * ten / common
    }
}

/// `needed` and `available`, of which the first is more, as decimals that differ: two places, and
/// more only where two give equal numbers. Rounded down, except that a difference below 10^-12
/// is written as such.
pub(crate) fn side_by_side(needed: &impl Decimal, available: &impl Decimal) -> (String, String) {
    for places in 2..=12 {
        if needed.scaled(places) > available.scaled(places) {
            return (needed.to_decimal(places), available.to_decimal(places));
        }
    }
    let less = available.to_decimal(12);
    (format!("a trace more than {less}"), less)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(work: u64, every: u64) -> Rate {
        Rate::new(Span::from_ns(work), Span::from_ns(every)).unwrap()
    }

    fn demand(rates: &[(u64, u64)]) -> Demand {
        let mut demand = Demand::default();
        rates.iter().for_each(|&(c, t)| demand.add(rate(c, t)));
        demand
    }

    #[test]
    fn what_fills_a_cpu_exactly_fits_and_the_least_more_does_not() {
        let thirds = demand(&[(1, 3), (1, 3), (1, 3)]);
        assert!(fit([&thirds], 1, whole()));
        let trace = demand(&[(1, u64::MAX)]);
        assert!(!fit([&thirds, &trace], 1, whole()));
        assert!(fit([&thirds, &trace], 2, whole()));
        assert!(fit(
            [&demand(&[(19, 20)])],
            1,
            beside(Share::DEFAULT_RESERVE)
        ));
        assert!(!fit(
            [&demand(&[(19, 20), (1, u64::MAX)])],
            1,
            beside(Share::DEFAULT_RESERVE)
        ));
    }

    #[test]
    fn the_longest_spans_overflow_nothing() {
        let longest = demand(&[(u64::MAX, u64::MAX), (u64::MAX, u64::MAX)]);
        assert!(fit([&longest], 2, whole()));
        assert!(!fit([&longest], 1, whole()));
    }

    #[test]
    fn what_is_removed_leaves_no_trace() {
        let mut sum = demand(&[(1, 3), (2, 7)]);
        sum.add(rate(5, 7));
        sum.add(rate(1, 11));
        sum.remove(rate(1, 11));
        sum.remove(rate(5, 7));
        assert_eq!(sum, demand(&[(1, 3), (2, 7)]));
        assert_eq!(sum.to_fraction().to_string(), "13/21");
    }

    #[test]
    fn decimals_show_which_is_more() {
        for (needed, supply, shown) in [
            (
                &[(11, 10), (1, 1)][..],
                Share::WHOLE - 50_000_000,
                ("2.10", "1.90"),
            ),
            (
                &[(19_001, 10_000)],
                Share::WHOLE - 50_000_000,
                ("1.9001", "1.90"),
            ),
        ] {
            let supplied = Supplied(2, Share::from_billionths(supply).unwrap());
            let (more, less) = side_by_side(&demand(needed), &supplied);
            assert_eq!((more.as_str(), less.as_str()), shown);
        }
        let trace = demand(&[(19, 10), (1, u64::MAX)]);
        assert_eq!(
            side_by_side(&trace, &Supplied(2, beside(Share::DEFAULT_RESERVE))),
            ("a trace more than 1.90".into(), "1.90".into())
        );
    }

    #[test]
    fn what_sums_to_a_round_number_is_written_as_one() {
        assert_eq!(demand(&[(4, 3), (1, 3), (1, 3)]).to_decimal(2), "2.00");
        assert_eq!(demand(&[(1, 3)]).to_decimal(5), "0.33333");
        assert_eq!(demand(&[]).to_decimal(2), "0.00");
    }
}
