//! The demand of tasks under EDF on one CPU: how much is due within an interval, and how long an interval
//! may be of interest. All times are nanoseconds.

use shiftwork_model::Share;

use super::time_for;
use crate::exact::{Demand, Rate, fit, units_of, whole};
use crate::{Sporadic, Steps};

/// The work that is released and due within `[0, at]` if all tasks start together.
pub(super) fn demand(tasks: &[Sporadic], at: u128) -> u128 {
    let due = tasks.iter().filter(|task| task.deadline_ns() <= at);
    due.map(|task| ((at - task.deadline_ns()) / task.period_ns() + 1) * task.cost_ns())
        .sum()
}

/// The last deadline strictly before `before`.
pub(super) fn last_deadline(tasks: &[Sporadic], before: u128) -> Option<u128> {
    let due = tasks.iter().filter(|task| task.deadline_ns() < before);
    due.map(|task| {
        let periods = (before - 1 - task.deadline_ns()) / task.period_ns();
        task.deadline_ns() + periods * task.period_ns()
    })
    .max()
}

/// What the utilization says about how far one must look.
pub(super) enum Linear {
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
pub(super) fn linear_bound(tasks: &[Sporadic], supply: Share) -> Linear {
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
pub(super) fn busy_period(
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
