//! Global EDF, soft: the tardiness of every task beyond its own cost is bounded by one number.

use num_bigint::BigInt;
use num_rational::Ratio;
use shiftwork_model::Span;

use super::{as_spans, cpus_needed, demand};
use crate::filter::{Interval, RATIO, ratio};
use crate::{NotShown, Outcome, Sporadic, Steps};

/// Bounds on the response times under global EDF, in the order of the tasks, rounded up: T + C + x for
/// m CPUs, with
///
/// > x = max(0, (the L largest C - the least C) / (m - the L - 1 largest u)), L = ceil(U) - 1
///
/// and on one CPU T, as EDF is optimal there. A job that is tardy is so by the bound minus T at most.
/// Fails if U > m, with the first task that is too much.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension, implicit deadlines (a task with D other
/// than T, or C > T, is not shown).
///
/// # Cost
/// O(n) and one step per task, with floats whose error is bounded; where x is too close to a whole
/// number to round it, exact fractions, whose size is that of the least common multiple of the
/// periods.
///
/// # Source
/// U. Devi, J. Anderson, "Tardiness Bounds under Global EDF Scheduling on a Multiprocessor", RTSS 2005,
/// in the form of Corollary 4.11 of U. Devi, "Soft Real-Time Scheduling on Multiprocessors", PhD thesis,
/// University of North Carolina, 2006. L - 1 counts as 0 where U <= 1. On one CPU: C. Liu, J. Layland,
/// "Scheduling Algorithms for Multiprogramming in a Hard-Real-Time Environment", JACM 20(1), 1973.
pub fn devi_anderson(
    tasks: &[Sporadic],
    cpus: usize,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Span>> {
    bounds(tasks, cpus, steps, |costs, levels| {
        (cpus > 1).then(|| Excess {
            work: costs.largest(levels).saturating_sub(costs.least()),
            rates: levels.saturating_sub(1),
        })
    })
}

/// The same under global non-preemptive EDF: T + C + x, with
///
/// > x = (the most that may have to be done first - the least C) / (m - the L largest u)
///
/// where what may have to be done first is the larger of the m largest C, and the L largest plus the
/// m - L - 1 largest once more.
///
/// The published x has only the second of the two, and the L - 1 largest u. It is too small: with C, T of
/// 1, 2 and twice 100, 1000 on two CPUs (L = 0) it is 49.5, but if the long ones start first, a job of
/// the short one that comes then is 98 late, not at most 50.5.
///
/// Why this is enough: let d be the deadline of a job of task k, and let all jobs with earlier deadlines
/// be late by at most x + C. Let t be the last time up to d at which no job due by d waits although not
/// all CPUs run such jobs (or the start). Later jobs that run after t, the *blockers*, began before t,
/// and until d all CPUs run jobs due by d or blockers; so what is left of both at d, beyond what an ideal
/// schedule at rates u leaves, is at most what it was at t, and if that is at most m x + C_k the job is
/// late by no more than x + C_k, as in the preemptive case. If at most L jobs due by d run just before
/// t, they and the blockers are of m tasks at most, and each of the former lags behind by at most
/// C + x u. If more than L run, the lag cannot have grown since at most L did, when it was at most
/// the sum of their C + x u; and the blockers are at most m - L - 1.
///
/// # Assumes
/// As [`devi_anderson()`], but jobs run to their end once they have begun.
///
/// # Cost
/// As [`devi_anderson()`].
///
/// # Source
/// After U. Devi, J. Anderson, RTSS 2005, with the correction above.
pub fn devi_anderson_non_preemptive(
    tasks: &[Sporadic],
    cpus: usize,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Span>> {
    bounds(tasks, cpus, steps, |costs, levels| {
        let of_all = costs.largest(cpus);
        let of_some = costs.largest(levels) + costs.largest(cpus - levels - 1);
        Some(Excess {
            work: of_all.max(of_some).saturating_sub(costs.least()),
            rates: levels,
        })
    })
}

/// What x is the quotient of.
struct Excess {
    /// The numerator, in nanoseconds.
    work: u128,
    /// How many of the largest utilizations the denominator lacks.
    rates: usize,
}

/// `excess` says of the costs and of L what the bounds exceed T + C by; nothing if they are T.
fn bounds(
    tasks: &[Sporadic],
    cpus: usize,
    steps: &mut Steps,
    excess: impl FnOnce(&mut Costs, usize) -> Option<Excess>,
) -> Outcome<NotShown, Vec<Span>> {
    if steps.take(tasks.len()).is_none() {
        return Outcome::StepLimit;
    }
    if tasks.is_empty() {
        return Outcome::Pass(Vec::new());
    }
    if let Some(place) = tasks.iter().position(|task| task.deadline != task.period) {
        return Outcome::Fail(NotShown { place });
    }
    let needed = match cpus_needed(tasks, cpus) {
        Ok(needed) => needed,
        Err(not_shown) => return Outcome::Fail(not_shown),
    };
    let mut costs = Costs(tasks.iter().map(|task| task.cost.as_ns()).collect());
    let result = match excess(&mut costs, needed - 1) {
        None => as_spans(tasks.iter().map(Sporadic::period_ns)),
        Some(excess) => {
            let x = quotient(tasks, cpus, &excess);
            let bound = |task: &Sporadic| (task.period_ns() + task.cost_ns()).saturating_add(x);
            as_spans(tasks.iter().map(bound))
        }
    };
    match result {
        Ok(bounds) => Outcome::Pass(bounds),
        Err(not_shown) => Outcome::Fail(not_shown),
    }
}

/// The costs of the tasks, at least one, in any order.
struct Costs(Vec<u64>);

impl Costs {
    /// The sum of the `count` largest, or of all if there are fewer.
    fn largest(&mut self, count: usize) -> u128 {
        let count = count.min(self.0.len());
        if 0 < count && count < self.0.len() {
            self.0.select_nth_unstable_by(count - 1, |a, b| b.cmp(a));
        }
        self.0[..count].iter().map(|&cost| u128::from(cost)).sum()
    }

    fn least(&self) -> u128 {
        self.0.iter().min().copied().unwrap_or(0).into()
    }
}

/// x, rounded up.
fn quotient(tasks: &[Sporadic], cpus: usize, excess: &Excess) -> u128 {
    if excess.work == 0 {
        return 0;
    }
    let mut rates: Vec<f64> = tasks
        .iter()
        .map(|task| ratio(task.cost.as_ns(), task.period.as_ns()))
        .collect();
    let count = excess.rates.min(rates.len());
    if 0 < count && count < rates.len() {
        rates.select_nth_unstable_by(count - 1, |a, b| b.total_cmp(a));
    }
    // The largest of the floats need not be those of the fractions, but their sums differ by no more
    // than the floats do.
    let largest = Interval::sum_over(&rates[..count], RATIO, |&rate| rate);
    let x = Interval::of(excess.work) / (Interval::of(cpus as u128) - largest);
    x.ceil()
        .map_or_else(|| exact_quotient(tasks, cpus, excess), u128::from)
}

/// The same by fractions.
fn exact_quotient(tasks: &[Sporadic], cpus: usize, excess: &Excess) -> u128 {
    let mut by_rate: Vec<&Sporadic> = tasks.iter().collect();
    by_rate
        .sort_unstable_by(|a, b| (b.cost_ns() * a.period_ns()).cmp(&(a.cost_ns() * b.period_ns())));
    let largest = demand(by_rate.into_iter().take(excess.rates)).to_fraction();
    let left = Ratio::from(BigInt::from(cpus)) - largest;
    let x = Ratio::from(BigInt::from(excess.work)) / left;
    u128::try_from(x.ceil().to_integer()).unwrap_or(u128::MAX)
}
