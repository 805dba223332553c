//! What is due in an interval, and how long intervals have to be looked at.
//!
//! [`load`](super::load()) and [`ffdbf`](super::ffdbf()) compare a demand that grows with the length t of an interval
//! with a multiple of t. From the longest interval that could violate that they come down: a demand
//! that is small enough for a shorter interval clears all down to that one.

use std::cmp::Ordering;

use shiftwork_model::Span;

use crate::filter::Interval;
use crate::{Sporadic, Steps};

use super::divisor::Divisor;
use super::{compare_utilization, fractions, utilization};

/// A task by what is due when: the first job after D, one more every T.
pub(super) struct Due {
    pub(super) cost: u64,
    deadline: u64,
    period: Divisor,
}

impl Due {
    pub(super) fn of(tasks: &[Sporadic]) -> Vec<Self> {
        let due = |task: &Sporadic| Self {
            cost: task.cost.as_ns(),
            deadline: task.deadline.as_ns(),
            period: Divisor::new(task.period.as_ns()),
        };
        tasks.iter().map(due).collect()
    }

    /// The cost of what is due within `length`, and how long after it the next job is due, which is
    /// more than 0. Costs are at most periods, so the former is at most `length` + T.
    #[inline]
    pub(super) const fn within(&self, length: u64) -> (u64, u64) {
        match length.checked_sub(self.deadline) {
            None => (0, self.deadline - length),
            Some(after_first) => {
                let (jobs, rest) = self.period.split(after_first);
                ((jobs + 1) * self.cost, self.period.by() - rest)
            }
        }
    }

    /// The last instant before `length` at which a job is due, 0 if there is none.
    pub(super) const fn before(&self, length: u64) -> u64 {
        match length.checked_sub(self.deadline) {
            None | Some(0) => 0,
            Some(after_first) => length - 1 - self.period.split(after_first - 1).1,
        }
    }
}

/// A multiple of t that a demand is compared with: so many CPUs' worth.
#[derive(Clone, Copy)]
pub(super) struct Capacity {
    pub(super) nearly: Interval,
    /// Numerator and denominator, the latter above zero.
    pub(super) exactly: (i128, u128),
}

/// The intervals that could violate a condition.
pub(super) enum Horizon {
    /// In the long run, some do: the utilization is too great.
    Overload,
    /// None can.
    None,
    /// None that is longer than this.
    UpTo(u64),
}

/// Which intervals can demand more than a capacity, if a task demands at most u t in an interval of
/// length t, and u (T - D) more if D < T. `None` when out of steps or beyond [`Span::MAX`].
///
/// The sum of all u (T - D) is used up after that sum divided by (capacity - U). If this is too long,
/// all repeats itself with the common multiple of the periods, after the longest deadline.
pub(super) fn horizon(
    tasks: &[Sporadic],
    capacity: Capacity,
    steps: &mut Steps,
) -> Option<Horizon> {
    steps.take(tasks.len())?;
    let sum = utilization(tasks);
    let ahead = tasks.iter().any(|task| task.deadline < task.period);
    let overload = match sum.at_most(capacity.nearly) {
        Some(fits) => !fits,
        None => compare_utilization(tasks, capacity.exactly, steps)? == Ordering::Greater,
    };
    if overload {
        return Some(Horizon::Overload);
    }
    if !ahead {
        return Some(Horizon::None);
    }
    let ahead = Interval::sum_over(tasks, 6, |task| {
        let gap = task.period.saturating_sub(task.deadline).as_ns() as f64;
        task.cost.as_ns() as f64 / task.period.as_ns() as f64 * gap
    });
    let idle = capacity.nearly - sum;
    let longest = (ahead / idle).high();
    if idle.low() > 0.0 && longest < Span::MAX.as_ns() as f64 {
        return Some(Horizon::UpTo(longest.ceil() as u64));
    }
    repetition(tasks, steps).map(Horizon::UpTo)
}

/// The common multiple of the periods and the longest deadline together.
fn repetition(tasks: &[Sporadic], steps: &mut Steps) -> Option<u64> {
    let periods: Vec<u64> = tasks.iter().map(|task| task.period.as_ns()).collect();
    let common = fractions::common_multiple(&periods, steps)?;
    let common = Span::from_ns(u64::try_from(common).ok()?);
    let deadline = tasks.iter().map(|task| task.deadline).max()?;
    let all = common + deadline;
    (all <= Span::MAX).then(|| all.as_ns())
}
