//! The demand of tasks under EDF on one CPU: how much is due within an interval, and how long an interval
//! may be of interest. All times are nanoseconds.

use shiftwork_model::Share;

use super::time_for;
use crate::Steps;
use crate::arrivals::Arriving;
use crate::exact::{Demand, fit, units_of, whole};

/// The work that is released and due within `[0, at]` if all tasks start together.
pub(super) fn demand(tasks: &[impl Arriving], at: u128) -> u128 {
    let due = tasks.iter().map(|one| {
        let (task, arrivals) = (one.task(), one.arrivals());
        arrivals.due_within(at, task.deadline_ns()) * task.cost_ns()
    });
    due.sum()
}

/// The last deadline strictly before `before`.
pub(super) fn last_deadline(tasks: &[impl Arriving], before: u128) -> Option<u128> {
    let last = before.checked_sub(1)?;
    let due = tasks.iter().filter_map(|one| {
        let (deadline, arrivals) = (one.task().deadline_ns(), one.arrivals());
        let jobs = arrivals.due_within(last, deadline);
        Some(deadline + arrivals.distance(jobs.checked_sub(1)?))
    });
    due.max()
}

/// The first deadline at `from` or later; `None` without tasks.
pub(super) fn next_deadline(tasks: &[impl Arriving], from: u128) -> Option<u128> {
    let due = tasks.iter().map(|one| {
        let (deadline, arrivals) = (one.task().deadline_ns(), one.arrivals());
        let earlier = arrivals.released_within(from.saturating_sub(deadline));
        deadline + arrivals.distance(earlier)
    });
    due.min()
}

/// How the demand compares with the supply in long intervals.
pub(super) enum Linear {
    /// The utilization is above the supply.
    Overloaded,
    /// It equals the supply, or is next to it, or a task has an arrival curve: no bound from here.
    None,
    /// It is below.
    Below(Line),
}

/// A line of slope U that the demand never exceeds in intervals of `longest` or more.
pub(super) struct Line {
    /// Its value at zero, rounded up.
    above: u128,
    /// The supply less U, in units, rounded down. Above zero.
    spare: u128,
    /// The longest deadline.
    longest: u128,
}

impl Line {
    /// The line of these tasks; whole numbers of a fixed size, as a common denominator of thousands of
    /// periods would have hundreds of thousands of digits.
    pub(super) fn of(tasks: &[impl Arriving], supply: Share) -> Linear {
        let mut used = Demand::default();
        let (mut before, mut beyond) = (0u128, 0u128);
        for one in tasks {
            let task = one.task();
            let (period, deadline) = (task.period_ns(), task.deadline_ns());
            let Some(rate) = one.rate() else {
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
        if tasks.iter().any(|one| one.curve().is_some()) {
            return Linear::None;
        }
        let deadlines = tasks.iter().map(|one| one.task().deadline_ns());
        let longest = deadlines.max().unwrap_or(0);
        match units_of(supply).saturating_sub(used.units_max()) {
            0 => Linear::None,
            spare => Linear::Below(Self {
                above: before.saturating_sub(beyond),
                spare,
                longest,
            }),
        }
    }

    /// A length such that every longer interval has at least `rest` of its time left when what is due
    /// in it is done; L_a* of QPA where `rest` is zero. Rounded up, which only makes more points be examined.
    pub(super) fn leaves(&self, rest: u128) -> u128 {
        let above = self.above.saturating_add(rest);
        let crossing = match above.checked_mul(units_of(whole())) {
            Some(above) => above.div_ceil(self.spare),
            None => u128::MAX,
        };
        crossing.max(self.longest)
    }
}

/// The length of the synchronous busy period, or `limit` if that is shorter.
pub(super) fn busy_period(
    tasks: &[impl Arriving],
    supply: Share,
    limit: Option<u128>,
    steps: &mut Steps,
) -> Option<u128> {
    let limit = limit.unwrap_or(u128::MAX);
    let mut length = time_for(tasks.iter().map(|one| one.task().cost_ns()).sum(), supply)?;
    loop {
        if length >= limit {
            return Some(limit);
        }
        steps.take(tasks.len())?;
        let work = tasks.iter().try_fold(0u128, |sum, one| {
            let jobs = one.arrivals().released_within(length);
            sum.checked_add(jobs.checked_mul(one.task().cost_ns())?)
        })?;
        let next = time_for(work, supply)?;
        if next == length {
            return Some(length);
        }
        length = next;
    }
}
