//! Fixed priorities under affinities, hard: each task as if scheduled globally on its own CPUs.

use shiftwork_model::{CpuSet, Share, Span};

use crate::uniprocessor::time_for;
use crate::{NotShown, Outcome, Ranked, Steps};

/// A task with its priority and the CPUs it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The task and its priority.
    pub ranked: Ranked,
    /// Its CPUs.
    pub cpus: CpuSet,
}

/// Whether every task is shown to meet its deadlines under fixed priorities, weak or strong.
/// Sufficient, not exact. Equal priorities count as more urgent both ways.
///
/// While a task waits, all its CPUs run more urgent jobs, of tasks that share a CPU with it. So it
/// is delayed by at most the sum of what they do in the meantime, divided by the number of its CPUs.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension, no deadline beyond the period (such
/// a task is not shown). With a supply below 1, CPUs that are slower by that factor.
///
/// # Cost
/// One step per pair of tasks and iteration; pseudo-polynomial.
///
/// # Source
/// A. Gujarati, F. Cerqueira, B. Brandenburg, "Multiprocessor real-time scheduling with arbitrary
/// processor affinities", Real-Time Systems 51(4), 2015, with each task's own affinity as the set of
/// CPUs; the interference is that of M. Bertogna, M. Cirinei, "Response-Time Analysis for globally
/// scheduled Symmetric Multiprocessor Platforms", RTSS 2007.
pub fn reduction(tasks: &[Bound], supply: Share, steps: &mut Steps) -> Outcome<NotShown> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&place| tasks[place].ranked.priority);
    let mut known: Vec<Option<Interferer>> = Vec::with_capacity(tasks.len());
    for bound in tasks {
        known.push(Interferer::until_deadline(bound, supply));
    }
    for place in order {
        let Some(own) = known[place] else {
            return Outcome::Fail(NotShown { place });
        };
        let urgent = tasks.iter().enumerate().filter(|&(other, task)| {
            other != place
                && task.ranked.priority <= tasks[place].ranked.priority
                && task.cpus.intersects(&tasks[place].cpus)
        });
        let urgent: Option<Vec<Interferer>> = urgent.map(|(other, _)| known[other]).collect();
        let Some(urgent) = urgent else {
            return Outcome::Fail(NotShown { place });
        };
        match own.response_among(&urgent, tasks[place].cpus.len(), steps) {
            None => return Outcome::StepLimit,
            Some(response) if response > own.response => return Outcome::Fail(NotShown { place }),
            // From now on it interferes with the less urgent for no longer than this.
            Some(response) => known[place] = Some(Interferer { response, ..own }),
        }
    }
    Outcome::Pass(())
}

/// A task of which every job finishes within `response`. In nanoseconds, at most [`Span::MAX`], so
/// that sums of two need no more than 64 bits; division of more is several times slower.
#[derive(Clone, Copy)]
struct Interferer {
    cost: u64,
    period: u64,
    response: u64,
}

impl Interferer {
    /// All that is known before the task is looked at: if nobody misses, it is done by its deadline.
    /// `None` if it cannot be.
    fn until_deadline(bound: &Bound, supply: Share) -> Option<Self> {
        let task = &bound.ranked.task;
        let cost = u64::try_from(time_for(task.cost.as_ns().into(), supply)?).ok()?;
        let (period, response) = (task.period.as_ns(), task.deadline.as_ns());
        let in_order = 0 < cost && cost <= response && response <= period;
        (in_order && task.period <= Span::MAX).then_some(Self {
            cost,
            period,
            response,
        })
    }

    /// The most that it runs in an interval of this length.
    const fn work_in(&self, length: u64) -> u64 {
        let reach = length + (self.response - self.cost);
        let (jobs, rest) = (reach / self.period, reach % self.period);
        let carried_out = if rest < self.cost { rest } else { self.cost };
        jobs * self.cost + carried_out
    }

    /// The response time among more urgent tasks, or one above `response`.
    ///
    /// With x = R - C, the bound is the least x with x >= floor(sum of min(W_i, x + 1) / cpus). As
    /// the work W_i in R grows with R, the least x for the work at a smaller R is still too small
    /// or just right: the search goes on from there, rather than by single nanoseconds.
    fn response_among(&self, urgent: &[Self], cpus: usize, steps: &mut Steps) -> Option<u64> {
        let mut works = vec![0; urgent.len()];
        let mut response = self.cost;
        while response <= self.response {
            steps.take(urgent.len() + 1)?;
            for (work, task) in works.iter_mut().zip(urgent) {
                *work = task.work_in(response);
            }
            if self.holds(response, &works, cpus) {
                break;
            }
            works.sort_unstable();
            let next = u128::from(self.cost) + least_delay(&works, cpus);
            response = u64::try_from(next).unwrap_or(u64::MAX);
        }
        Some(response)
    }

    /// Whether the interference in so long a response, with this much work, allows it.
    fn holds(&self, response: u64, works: &[u64], cpus: usize) -> bool {
        let most = response - self.cost + 1;
        let delay: u128 = works.iter().map(|&work| u128::from(work.min(most))).sum();
        u128::from(self.cost) + delay / cpus.max(1) as u128 <= u128::from(response)
    }
}

/// The least x with floor(sum of min(W_i, x + 1) / cpus) <= x, for ascending W_i: where at least as
/// many tasks as CPUs have work left, delay goes on.
fn least_delay(works: &[u64], cpus: usize) -> u128 {
    // y = x + 1 is the least with sum of min(W_i, y) < cpus y. Between two neighbours of the W_i
    // the sum is linear: those below are counted whole, `above` others by y.
    let mut below_sum = 0;
    let mut floor = 0;
    for (below, &work) in works.iter().enumerate() {
        let work = u128::from(work);
        let above = works.len() - below;
        if above < cpus {
            let y = (below_sum / (cpus - above) as u128 + 1).max(floor + 1);
            if y <= work {
                return y - 1;
            }
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
    fn most_work(task: &Interferer, length: u64) -> u64 {
        let runs = |at: u64| {
            let late = task.response - task.cost <= at && at < task.response;
            let soon = at >= task.period && at % task.period < task.cost;
            late || soon
        };
        let in_window = |start: u64| (start..start + length).filter(|&at| runs(at)).count() as u64;
        (0..3 * task.period).map(in_window).max().unwrap()
    }

    #[test]
    fn the_work_in_an_interval_counts_a_job_carried_in() {
        for seed in 0..500 {
            let mut stream = RandomStream::new(seed, 35, 1);
            let period = 1 + stream.below(12);
            let cost = 1 + stream.below(period);
            let task = Interferer {
                cost,
                period,
                response: cost + stream.below(period - cost + 1),
            };
            for length in cost..40 {
                let expected = most_work(&task, length);
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
    fn the_least_delay_is_that_of_trying_every_one() {
        for seed in 0..3_000 {
            let mut stream = RandomStream::new(seed, 35, 0);
            let cpus = 1 + stream.below(4) as usize;
            let mut works: Vec<u64> = (0..stream.below(7)).map(|_| stream.below(12)).collect();
            works.sort_unstable();
            let holds = |&x: &u128| {
                let delay: u128 = works.iter().map(|&work| (x + 1).min(work.into())).sum();
                delay / cpus as u128 <= x
            };
            let expected = (0..).find(holds);
            let found = least_delay(&works, cpus);
            assert_eq!(Some(found), expected, "seed {seed}: {works:?} on {cpus}");
        }
    }
}
