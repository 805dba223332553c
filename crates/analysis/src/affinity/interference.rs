//! How much of an interval a task can keep CPUs busy, and how long that delays another.

use shiftwork_model::{Share, Span};

use super::divisor::Divisor;
use crate::uniprocessor::time_for;
use crate::{Sporadic, Steps};

/// A task of which every job finishes within `response`. In nanoseconds, at most [`Span::MAX`], so
/// that sums of two are below 2^63.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interferer {
    pub(super) cost: u64,
    pub(super) period: Divisor,
    pub(super) response: u64,
}

/// The most work of one task that counts: what it does in the interval, but no more than `most`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capped {
    pub(super) task: Interferer,
    pub(super) most: u64,
}

impl Interferer {
    /// The initial bound of a task: if no deadline is missed, it finishes by its deadline.
    /// `None` if it cannot be, or if the deadline is beyond the period.
    pub(super) fn until_deadline(task: &Sporadic, supply: Share) -> Option<Self> {
        let cost = u64::try_from(time_for(task.cost.as_ns().into(), supply)?).ok()?;
        let (period, response) = (task.period.as_ns(), task.deadline.as_ns());
        let in_order = 0 < cost && cost <= response && response <= period;
        (in_order && task.period <= Span::MAX).then(|| Self {
            cost,
            period: Divisor::new(period),
            response,
        })
    }

    /// The most that it runs in an interval of this length, at most [`Span::MAX`].
    pub(super) const fn work_in(&self, length: u64) -> u64 {
        self.work_and_rise(length).0
    }

    /// The same, and for how much longer an interval it grows as fast as the interval.
    const fn work_and_rise(&self, length: u64) -> (u64, u64) {
        let reach = length + (self.response - self.cost);
        let (jobs, rest) = self.period.divide(reach);
        let carried_out = if rest < self.cost { rest } else { self.cost };
        (jobs * self.cost + carried_out, self.cost - carried_out)
    }

    /// The most that its jobs with deadlines up to `until` run from 0 on, if one of its deadlines is
    /// there. `slack` before its deadline at the latest, each of its jobs is done.
    pub(super) fn work_due(&self, until: u64, slack: u64) -> u64 {
        let (jobs, rest) = self.period.divide(until);
        jobs * self.cost + self.cost.min(rest.saturating_sub(slack))
    }
}

/// A response time of a task of this cost among others on so many CPUs, or something above `limit`;
/// `None` when out of steps. `cost` is above zero, `limit` at most [`Span::MAX`].
///
/// While the task waits, all the CPUs run others. So with x = R - C the bound is the least x with
/// x >= floor(sum of min(W_i, x + 1) / cpus). As the work W_i in R grows with R, the least x for the
/// work at a smaller R is still too small or just right: the search goes on from there, rather than
/// by single nanoseconds. Where the terms of as many others as CPUs grow as fast as R, what is too
/// small stays so until one of them stops.
pub(super) fn response_among(
    cost: u64,
    limit: u64,
    others: &[Capped],
    cpus: usize,
    steps: &mut Steps,
) -> Option<u64> {
    let mut works = vec![0; others.len()];
    let mut rises = vec![0; others.len()];
    let mut response = cost;
    while response <= limit {
        steps.take(others.len() + 1)?;
        for ((work, rise), other) in works.iter_mut().zip(&mut rises).zip(others) {
            let (all, more) = other.task.work_and_rise(response);
            *work = all.min(other.most);
            let uncounted = work.saturating_sub(response - cost + 1);
            *rise = more.min(other.most - *work) + uncounted;
        }
        if holds(cost, response, &works, cpus) {
            break;
        }
        let next = u128::from(cost) + least_delay(&mut works, cpus);
        let place = rises.len().checked_sub(cpus);
        let together = place.map_or(0, |place| *rises.select_nth_unstable(place).1);
        let next = next.max(u128::from(response) + u128::from(together) + 1);
        response = u64::try_from(next).unwrap_or(u64::MAX);
    }
    Some(response)
}

/// Whether the interference in so long a response, with this much work, allows it.
fn holds(cost: u64, response: u64, works: &[u64], cpus: usize) -> bool {
    let most = response - cost + 1;
    let delay: u128 = works.iter().map(|&work| u128::from(work.min(most))).sum();
    u128::from(cost) + delay / cpus.max(1) as u128 <= u128::from(response)
}

/// The least x with floor(sum of min(W_i, x + 1) / cpus) <= x: where at least as many tasks as CPUs have work left,
/// delay goes on. Leaves the W_i in another order.
fn least_delay(works: &mut [u64], cpus: usize) -> u128 {
    // y = x + 1 is the least with sum of min(W_i, y) < cpus y. It is above all but the cpus - 1 greatest of the W_i, and
    // only these have to be in order.
    let (mut below_sum, mut floor, mut rest) = (0u128, 0u128, &mut works[..]);
    if let Some(place) = rest.len().checked_sub(cpus) {
        let (less, &mut middle, greater) = rest.select_nth_unstable(place);
        below_sum = less.iter().map(|&work| u128::from(work)).sum::<u128>() + u128::from(middle);
        floor = middle.into();
        rest = greater;
    }
    rest.sort_unstable();
    // Between two neighbours of the W_i the sum is linear: those below are counted whole, `above` others by y.
    for (below, &work) in rest.iter().enumerate() {
        let work = u128::from(work);
        let above = rest.len() - below;
        let y = (below_sum / (cpus - above) as u128 + 1).max(floor + 1);
        if y <= work {
            return y - 1;
        }
        below_sum += work;
        floor = work;
    }
    (below_sum / cpus.max(1) as u128 + 1).max(floor + 1) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::RandomStream;

    /// The first job runs as late as its response allows, the others as soon as they come: the most
    /// that a window can catch, wherever it begins.
    fn most_work(task: &Interferer, period: u64, length: u64) -> u64 {
        let runs = |at: u64| {
            let late = task.response - task.cost <= at && at < task.response;
            let soon = at >= period && at % period < task.cost;
            late || soon
        };
        let in_window = |start: u64| (start..start + length).filter(|&at| runs(at)).count() as u64;
        (0..3 * period).map(in_window).max().unwrap()
    }

    #[test]
    fn the_work_in_an_interval_counts_a_job_carried_in() {
        for seed in 0..500 {
            let mut stream = RandomStream::new(seed, 35, 1);
            let period = 1 + stream.below(12);
            let cost = 1 + stream.below(period);
            let task = Interferer {
                cost,
                period: Divisor::new(period),
                response: cost + stream.below(period - cost + 1),
            };
            for length in cost..40 {
                let expected = most_work(&task, period, length);
                assert_eq!(
                    task.work_in(length),
                    expected,
                    "seed {seed}: {cost} every {period} within {}, in {length}",
                    task.response
                );
            }
        }
    }

    #[test]
    fn no_alignment_of_deadlines_has_more_work_due() {
        for seed in 0..500 {
            let mut stream = RandomStream::new(seed, 35, 2);
            let period = 1 + stream.below(12);
            let cost = 1 + stream.below(period);
            let slack = stream.below(period - cost + 1);
            let task = Interferer {
                cost,
                period: Divisor::new(period),
                response: period,
            };
            for until in 0..40 {
                // Each job runs as late as it may; what is before 0 does not count.
                let due = |last: u64| -> u64 {
                    let deadlines = (0..=last).rev().step_by(period as usize);
                    deadlines
                        .map(|deadline| cost.min(deadline.saturating_sub(slack)))
                        .sum()
                };
                let most = (0..=until).map(due).max().unwrap();
                assert_eq!(
                    task.work_due(until, slack),
                    most,
                    "seed {seed}: {cost} every {period}, slack {slack}, until {until}"
                );
            }
        }
    }

    #[test]
    fn the_least_delay_is_that_of_trying_every_one() {
        for seed in 0..3_000 {
            let mut stream = RandomStream::new(seed, 35, 0);
            let cpus = 1 + stream.below(4) as usize;
            let mut works: Vec<u64> = (0..stream.below(7)).map(|_| stream.below(12)).collect();
            let holds = |&x: &u128| {
                let delay: u128 = works.iter().map(|&work| (x + 1).min(work.into())).sum();
                delay / cpus as u128 <= x
            };
            let expected = (0..).find(holds);
            let found = least_delay(&mut works, cpus);
            assert_eq!(Some(found), expected, "seed {seed}: {works:?} on {cpus}");
        }
    }
}
