//! By how much costs may grow, or must shrink, until a policy is just shown to schedule a task set.

use std::fmt;

use num_bigint::BigInt;
use num_rational::Ratio;
use shiftwork_model::{Arrival, Phase, Span, Task, TaskSet, Work};

use super::decide::Question;
use super::question::decide;
use super::{Answer, Candidate, Criterion};
use crate::pfair::Quanta;

/// A factor on costs, a fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor {
    numerator: u128,
    denominator: u128,
}

/// Factors are found to this part of one.
const RESOLUTION: u128 = 1_000_000;

/// Written as `18/17`, or `2`.
impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            _ => write!(f, "{}/{}", self.numerator, self.denominator),
        }
    }
}

impl Factor {
    pub(crate) fn new(numerator: u128, denominator: u128) -> Self {
        let common = gcd(numerator, denominator).max(1);
        Self {
            numerator: numerator / common,
            denominator: denominator / common,
        }
    }

    /// This factor, above zero: exactly if it is a fraction of 64-bit integers, else rounded down to a millionth.
    pub fn of(factor: &Ratio<BigInt>) -> Self {
        let exact = (factor.numer().try_into(), factor.denom().try_into());
        if let (Ok::<u64, _>(numerator), Ok::<u64, _>(denominator)) = exact {
            return Self::new(numerator.into(), denominator.into());
        }
        let millionths = factor.numer() * BigInt::from(RESOLUTION) / factor.denom();
        // A factor that is too long for this many CPUs is for costs of next to nothing.
        let most = u128::from(u64::MAX);
        Self::new(
            u128::try_from(&millionths).map_or(most, |some| some.min(most)),
            RESOLUTION,
        )
    }

    /// Whether it is this fraction or more.
    pub const fn is_at_least(self, numerator: u128, denominator: u128) -> bool {
        self.numerator * denominator >= numerator * self.denominator
    }

    /// With three decimal places, rounded down.
    pub fn to_decimal(self) -> String {
        let thousandths = self.numerator * 1_000 / self.denominator;
        format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
    }
}

const fn gcd(a: u128, b: u128) -> u128 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

/// The largest factor on all costs with which the policy is shown to meet the criterion. `candidate`
/// says where the policy binds the tasks of the set that it is given, which may depend on their costs.
/// `None` if no factor of a millionth or more is shown.
///
/// The factor is found to a millionth; of the fractions between the last that passes and the first that
/// fails the simplest is tried too, so that a limit such as 18/17 is found exactly. Where a test passes, fails and passes again as costs grow (as first fit may), one of the
/// places where it turns is found: of 1 or more exactly if the policy is shown to meet the criterion with the costs as they are.
///
/// # Cost
/// About 20 + log2(factor) times that of the tests until one passes.
pub fn largest_factor(
    set: &TaskSet,
    candidate: &mut dyn FnMut(&TaskSet) -> Candidate,
    criterion: Criterion,
    steps: u64,
) -> Option<Factor> {
    let mut passes = |factor: Factor| {
        let scaled = scaled(set, factor)?;
        is_shown(&scaled, &candidate(&scaled), criterion, steps).then_some(())
    };
    let (mut low, mut high) = (0, beyond(set)?);
    // What holds for the costs as they are counts, whatever holds for other factors.
    if RESOLUTION < high {
        match passes(Factor::new(RESOLUTION, RESOLUTION)) {
            Some(()) => low = RESOLUTION,
            None => high = RESOLUTION,
        }
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match passes(Factor::new(middle, RESOLUTION)) {
            Some(()) => low = middle,
            None => high = middle,
        }
    }
    if low == 0 {
        return None;
    }
    let found = Factor::new(low, RESOLUTION);
    let simplest = simplest(low, high);
    match passes(simplest) {
        Some(()) => Some(simplest),
        None => Some(found),
    }
}

/// Whether the policy is shown to meet the criterion; tests are asked only until that is known.
pub(super) fn is_shown(
    set: &TaskSet,
    candidate: &Candidate,
    criterion: Criterion,
    steps: u64,
) -> bool {
    let Ok(bound) = &candidate.bound else {
        return false;
    };
    let question = Question::new(candidate.traits, bound, criterion, steps);
    decide(set, &question).answer == Answer::Schedulable
}

/// A multiple of the resolution with which some task needs more than a CPU; `None` without tasks.
fn beyond(set: &TaskSet) -> Option<u128> {
    let most = |task: &Task| {
        let (cost, period) = task.long_run();
        u128::from(period.as_ns()) * RESOLUTION / u128::from(cost.as_ns().max(1)) + 1
    };
    set.tasks.iter().map(most).min()
}

/// The set with these costs: exactly, with all times counted in parts of a nanosecond, as many as the
/// denominator says; where that is too long for a span, with costs rounded up to nanoseconds, so that
/// what is shown of it holds for the exact product. `None` if one is then too long.
pub(crate) fn scaled(set: &TaskSet, factor: Factor) -> Option<TaskSet> {
    in_parts(set, factor).or_else(|| rounded_up(set, factor))
}

fn in_parts(set: &TaskSet, factor: Factor) -> Option<TaskSet> {
    let mut scaled = set.clone();
    let quantum = Quanta::of(set, false).quantum;
    scaled.scheduler.quantum = Some(times(quantum, factor.denominator)?);
    // Costs need not be whole nanoseconds, and have to be whole ticks where these are longer.
    if scaled.platform.tick_unit > Span::from_ns(1) {
        scaled.platform.tick_unit = times(scaled.platform.tick_unit, factor.denominator)?;
    }
    for task in &mut scaled.tasks {
        task.cost = times(task.cost, factor.numerator)?;
        scale_phases(task, |phase, span| match phase {
            Phase::Run(_) => times(span, factor.numerator),
            _ => times(span, factor.denominator),
        })?;
        let times_of_task = [
            &mut task.period,
            &mut task.deadline,
            &mut task.offset,
            &mut task.jitter,
        ];
        for time in times_of_task {
            *time = times(*time, factor.denominator)?;
        }
        if let Arrival::Curve(curve, _) = &mut task.arrival {
            *curve = curve.scaled(|span| times(span, factor.denominator))?;
        }
    }
    Some(scaled)
}

/// `None` if it is longer than the longest span that a file can name.
fn times(span: Span, by: u128) -> Option<Span> {
    let product = u128::from(span.as_ns()).checked_mul(by)?;
    let product = u64::try_from(product).ok().map(Span::from_ns);
    product.filter(|&product| product <= Span::MAX)
}

fn rounded_up(set: &TaskSet, factor: Factor) -> Option<TaskSet> {
    let mut scaled = set.clone();
    let product = |span: Span| {
        let product = u128::from(span.as_ns()).checked_mul(factor.numerator)?;
        let product = product.div_ceil(factor.denominator).max(1);
        u64::try_from(product).ok().map(Span::from_ns)
    };
    for task in &mut scaled.tasks {
        task.cost = product(task.cost)?;
        scale_phases(task, |phase, span| match phase {
            Phase::Run(_) => product(span),
            _ => Some(span),
        })?;
    }
    Some(scaled)
}

/// Replaces the length of each run, by which sections that hold mutexes are as long as they are, and of each suspension of
/// the task's jobs; `None` if one is too long.
fn scale_phases(task: &mut Task, length: impl Fn(Phase, Span) -> Option<Span>) -> Option<()> {
    let Work::Phases(phases) = &mut task.work else {
        return Some(());
    };
    for phase in phases {
        let of = *phase;
        if let Phase::Run(span) | Phase::Sleep(span) = phase {
            *span = length(of, *span)?;
        }
    }
    Some(())
}

/// The fraction with the smallest denominator in [low, high) of the resolution, by descent in the tree of
/// Stern and Brocot; `high` is above `low`.
fn simplest(low: u128, high: u128) -> Factor {
    // Continued fractions: take whole parts off both ends until they differ.
    fn between(low: (u128, u128), high: (u128, u128)) -> (u128, u128) {
        let whole = low.0.div_ceil(low.1);
        // An integer in the interval is the simplest.
        if whole * high.1 < high.0 {
            return (whole, 1);
        }
        let part = low.0 / low.1;
        // Neither end is whole here, and both have this whole part: turn the rests over, which swaps them.
        let low_rest = (low.0 - part * low.1, low.1);
        let high_rest = (high.0 - part * high.1, high.1);
        let (n, d) = between_closed_above((high_rest.1, high_rest.0), (low_rest.1, low_rest.0));
        (part * n + d, n)
    }
    // The same in (low, high].
    fn between_closed_above(low: (u128, u128), high: (u128, u128)) -> (u128, u128) {
        let whole = low.0 / low.1 + 1;
        if whole * high.1 <= high.0 {
            return (whole, 1);
        }
        let part = low.0 / low.1;
        let low_rest = (low.0 - part * low.1, low.1);
        let high_rest = (high.0 - part * high.1, high.1);
        if low_rest.0 == 0 {
            // Everything just above a whole number: 1/n for the least n that is small enough.
            let n = high_rest.1.div_ceil(high_rest.0);
            return (part * n + 1, n);
        }
        let (n, d) = between((high_rest.1, high_rest.0), (low_rest.1, low_rest.0));
        (part * n + d, n)
    }
    let (numerator, denominator) = between((low, RESOLUTION), (high, RESOLUTION));
    Factor::new(numerator, denominator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simplest_fraction_is_that_of_trying_every_denominator() {
        let near = [
            0, 1, 2, 333_333, 499_999, 500_000, 666_666, 707_106, 999_999, 1_000_000,
        ];
        let far = [1_058_823, 1_414_213, 2_000_000, 3_141_592, 17_999_999];
        for low in near.into_iter().chain(far) {
            let found = simplest(low, low + 1);
            let (n, d) = (found.numerator, found.denominator);
            assert!(
                low * d <= n * RESOLUTION && n * RESOLUTION < (low + 1) * d,
                "{low}: {found}"
            );
            let smaller = (1..d).find(|&d| {
                let n = (low * d).div_ceil(RESOLUTION);
                n * RESOLUTION < (low + 1) * d
            });
            assert_eq!(smaller, None, "{low}: {found}");
        }
        assert_eq!(simplest(1_058_823, 1_058_824).to_string(), "18/17");
        assert_eq!(Factor::new(18, 17).to_decimal(), "1.058");
    }

    #[test]
    fn factors_of_long_fractions_are_rounded_down_to_a_millionth() {
        let big = BigInt::from(u64::MAX) * 3;
        let of = |numerator: BigInt, denominator: BigInt| {
            Factor::of(&Ratio::new(numerator, denominator)).to_string()
        };
        assert_eq!(of(18.into(), 17.into()), "18/17");
        assert_eq!(
            of(u64::MAX.into(), (u64::MAX - 1).into()),
            "18446744073709551615/18446744073709551614"
        );
        assert_eq!(of(2 * &big + 1, big), "2");
    }
}
