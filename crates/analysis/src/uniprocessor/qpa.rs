//! EDF on one CPU, exact: quick processor-demand analysis.

use shiftwork_model::{Share, Span};

use super::{span, time_for};
use crate::exact::{Demand, Rate, fit, units_of, whole};
use crate::filter::{Interval, RATIO, ratio};
use crate::{Outcome, Sporadic, Steps};

/// More work is released and due within an interval than the CPU can do in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overfull {
    /// The length of the interval, from a synchronous release. Zero: already the utilization is
    /// above the supply, so some interval is overfull.
    pub length: Span,
    /// The work due in it.
    pub demand: Span,
}

/// Whether EDF meets all deadlines on one CPU of this supply. Exact for sporadic tasks at supply 1;
/// below 1, exact for a CPU that is slower by that factor.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension.
///
/// # Cost
/// One step per task where the densities fit; else one per task and examined point: few points in practice,
/// pseudo-polynomial at worst.
///
/// # Source
/// F. Zhang, A. Burns, "Schedulability Analysis for Real-Time Systems with EDF Scheduling", IEEE
/// Transactions on Computers 58(9), 2009, Theorem 5, with the smaller of the two bounds on what
/// must be examined: the synchronous busy period and L_a*.
pub fn qpa(tasks: &[Sporadic], supply: Share, steps: &mut Steps) -> Outcome<Overfull> {
    search(tasks, supply, steps).unwrap_or(Outcome::StepLimit)
}

fn search(tasks: &[Sporadic], supply: Share, steps: &mut Steps) -> Option<Outcome<Overfull>> {
    let hopeless = Outcome::Fail(Overfull {
        length: Span::ZERO,
        demand: Span::ZERO,
    });
    if tasks.is_empty() {
        return Some(Outcome::Pass(()));
    }
    if !tasks.iter().all(Sporadic::is_possible) || supply.billionths() == 0 {
        return Some(hopeless);
    }
    steps.take(tasks.len())?;
    if supply == whole() && densities_fit(tasks) {
        return Some(Outcome::Pass(()));
    }
    let linear = match linear_bound(tasks, supply) {
        Linear::Overloaded => return Some(hopeless),
        Linear::None => None,
        Linear::UpTo(bound) => Some(bound),
    };
    let horizon = busy_period(tasks, supply, linear, steps)?;
    let least = tasks.iter().map(Sporadic::deadline_ns).min()?;
    let mut at = match last_deadline(tasks, horizon.saturating_add(1)) {
        Some(at) => at,
        None => return Some(Outcome::Pass(())),
    };
    loop {
        steps.take(tasks.len())?;
        let demand = demand(tasks, at);
        let needed = time_for(demand, supply)?;
        if needed > at {
            return Some(Outcome::Fail(Overfull {
                length: span(at),
                demand: span(demand),
            }));
        }
        if needed <= least {
            return Some(Outcome::Pass(()));
        }
        at = match needed < at {
            true => needed,
            false => match last_deadline(tasks, at) {
                Some(before) => before,
                None => return Some(Outcome::Pass(())),
            },
        };
    }
}

/// Whether the sum of all C / min(D, T) is at most 1, as far as floats tell: then all deadlines are met.
fn densities_fit(tasks: &[Sporadic]) -> bool {
    let sum = Interval::sum_over(tasks, RATIO, |task| {
        ratio(task.cost.as_ns(), task.deadline.min(task.period).as_ns())
    });
    sum.at_most(Interval::of(1)) == Some(true)
}

/// The work that is released and due within `[0, at]` if all tasks start together.
fn demand(tasks: &[Sporadic], at: u128) -> u128 {
    let due = tasks.iter().filter(|task| task.deadline_ns() <= at);
    due.map(|task| ((at - task.deadline_ns()) / task.period_ns() + 1) * task.cost_ns())
        .sum()
}

/// The last deadline strictly before `before`.
fn last_deadline(tasks: &[Sporadic], before: u128) -> Option<u128> {
    let due = tasks.iter().filter(|task| task.deadline_ns() < before);
    due.map(|task| {
        let periods = (before - 1 - task.deadline_ns()) / task.period_ns();
        task.deadline_ns() + periods * task.period_ns()
    })
    .max()
}

/// What the utilization says about how far one must look.
enum Linear {
    /// The utilization is above the supply.
    Overloaded,
    /// It equals the supply, or is next to it: no bound from here.
    None,
    /// No interval longer than this is the first to be overfull.
    UpTo(u128),
}

/// L_a*: the demand stays below a line of slope U, which meets the supply here; rounded up, which
/// only makes more points be examined. Whole numbers of a fixed size, as a common denominator of
/// thousands of periods would have hundreds of thousands of digits.
fn linear_bound(tasks: &[Sporadic], supply: Share) -> Linear {
    let mut used = Demand::default();
    let (mut before, mut beyond) = (0u128, 0u128);
    for task in tasks {
        let (period, deadline) = (task.period_ns(), task.deadline_ns());
        let Some(rate) = Rate::new(task.cost, task.period) else {
            return Linear::Overloaded;
        };
        used.add(rate);
        // Products of two spans fit. Sums that do not are of tasks that are too much anyway.
        let more = (period.saturating_sub(deadline) * task.cost_ns()).div_ceil(period);
        let less = deadline.saturating_sub(period) * task.cost_ns() / period;
        before = before.saturating_add(more);
        beyond = beyond.saturating_add(less);
    }
    if !fit([&used], 1, supply) {
        return Linear::Overloaded;
    }
    let spare = units_of(supply).saturating_sub(used.units_max());
    if spare == 0 {
        return Linear::None;
    }
    let longest = tasks.iter().map(Sporadic::deadline_ns).max().unwrap_or(0);
    let above = before.saturating_sub(beyond);
    let crossing = match above.checked_mul(units_of(whole())) {
        Some(above) => above.div_ceil(spare),
        None => u128::MAX,
    };
    Linear::UpTo(crossing.max(longest))
}

/// The length of the synchronous busy period, or `limit` if that is shorter.
fn busy_period(
    tasks: &[Sporadic],
    supply: Share,
    limit: Option<u128>,
    steps: &mut Steps,
) -> Option<u128> {
    let limit = limit.unwrap_or(u128::MAX);
    let mut length = time_for(tasks.iter().map(Sporadic::cost_ns).sum(), supply)?;
    loop {
        if length >= limit {
            return Some(limit);
        }
        steps.take(tasks.len())?;
        let jobs = |task: &Sporadic| length.div_ceil(task.period_ns());
        let work = tasks.iter().try_fold(0u128, |sum, task| {
            sum.checked_add(jobs(task).checked_mul(task.cost_ns())?)
        })?;
        let next = time_for(work, supply)?;
        if next == length {
            return Some(length);
        }
        length = next;
    }
}
