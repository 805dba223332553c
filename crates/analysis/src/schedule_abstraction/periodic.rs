//! Periodic tasks: the jobs after which everything repeats.

use shiftwork_model::{Instant, Order, Span};

use super::explore::{JobRange, Late, explore};
use crate::{Outcome, Ranked, Steps};

/// A periodic task of which is known from when on it is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodicRange {
    /// The task: its cost is the greatest, its period exact; its deadline counts from the arrival.
    pub ranked: Ranked,
    /// The first arrival.
    pub offset: Span,
    /// The longest from an arrival to the release.
    pub jitter: Span,
    /// The least cost.
    pub least: Span,
}

/// Why periodic tasks are not shown to meet their deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMet {
    /// The task at this place, or all tasks together, are outside the domain.
    Outside {
        /// Its place among the tasks.
        place: usize,
    },
    /// A job may be late; see [`explore()`] for when it is.
    Late(Late),
}

/// Whether periodic tasks with these offsets meet all deadlines under non-preemptive global scheduling by this order;
/// how long their jobs take at most, by task, from their arrivals on. Orders by laxity, under which ranks change, are
/// outside the domain.
///
/// Let H be the least common multiple of the periods, and t a time at which all tasks have begun and no job may be
/// unfinished if all deadlines were met: t is an arrival of the task or not before the last deadline, for each task. What
/// happens from t to t + H then repeats for ever, so [`explore()`] is asked about all jobs that arrive before t + H. The first such
/// t within H is taken. If all offsets are zero there is one, 0; with other offsets there may be none, and nothing is
/// shown.
///
/// # Assumes
/// As [`explore()`]; constrained deadlines, C > 0, least cost up to C. What arrives from a time on is released by its deadline: jitter up to D.
///
/// # Cost
/// As [`explore()`], for up to twice H / T jobs of each task. A step is taken for each.
///
/// # Source
/// See the [module](super). That it is enough to look until t + H: no job lies across t or t + H.
pub fn np_periodic(
    tasks: &[PeriodicRange],
    order: Order,
    cpus: usize,
    steps: &mut Steps,
) -> Outcome<NotMet, Vec<Span>> {
    let is_outside = |task: &PeriodicRange| order.is_by_laxity() || !task.is_covered();
    if let Some(place) = tasks.iter().position(is_outside) {
        return Outcome::Fail(NotMet::Outside { place });
    }
    let Some(until) = repeats_from(tasks, steps) else {
        return Outcome::StepLimit;
    };
    let Some(until) = until else {
        return Outcome::Fail(NotMet::Outside { place: 0 });
    };
    let mut all = Vec::new();
    for task in tasks {
        let jobs = until
            .saturating_sub(task.offset.as_ns())
            .div_ceil(task.period());
        if steps
            .take(usize::try_from(jobs).unwrap_or(usize::MAX))
            .is_none()
        {
            return Outcome::StepLimit;
        }
        all.push(task.jobs(jobs, order, cpus));
    }
    match explore(&all, cpus, steps) {
        Outcome::Pass(longest) => Outcome::Pass(longest),
        Outcome::Fail(late) => Outcome::Fail(NotMet::Late(late)),
        Outcome::StepLimit => Outcome::StepLimit,
    }
}

impl PeriodicRange {
    const fn period(&self) -> u64 {
        self.ranked.task.period.as_ns()
    }

    fn is_covered(&self) -> bool {
        let task = &self.ranked.task;
        let is_constrained = task.cost <= task.deadline && task.deadline <= task.period;
        let is_short = task.period <= Span::MAX && self.offset <= Span::MAX;
        let ranges = self.least <= task.cost && self.jitter <= task.deadline;
        task.is_possible() && is_constrained && is_short && ranges
    }

    /// The first jobs.
    fn jobs(&self, count: u64, order: Order, cpus: usize) -> Vec<JobRange> {
        let Ranked { task, priority } = self.ranked;
        let job = |number: u64| {
            let arrival = Instant::from_ns(self.offset.as_ns() + number * self.period());
            let point = arrival + order.relative_deadline(task.cost, task.deadline, cpus);
            JobRange {
                release: [arrival, arrival + self.jitter],
                cost: [self.least, task.cost],
                deadline: arrival + task.deadline,
                rank: order.rank(point, priority),
            }
        };
        (0..count).map(job).collect()
    }

    /// Whether a job may be unfinished at this time, or a number of periods later.
    const fn lies_across(&self, at: u64) -> bool {
        let period = self.period();
        let phase = (at + period - self.offset.as_ns() % period) % period;
        0 < phase && phase < self.ranked.task.deadline.as_ns()
    }
}

/// The end of the first interval of the length of the hyperperiod after which everything repeats; `None` within if
/// there is none, or it is too long to be counted.
fn repeats_from(tasks: &[PeriodicRange], steps: &mut Steps) -> Option<Option<u64>> {
    let Some(cycle) = hyperperiod(tasks) else {
        return Some(None);
    };
    let begun = tasks
        .iter()
        .map(|task| (task.offset.as_ns() + 1).saturating_sub(task.period()));
    let begun = begun.max().unwrap_or(0);
    let mut best: Option<u64> = None;
    for task in tasks {
        // Its arrivals from there on, for one cycle.
        let ahead = begun.saturating_sub(task.offset.as_ns());
        let mut at = task.offset.as_ns() + ahead.next_multiple_of(task.period());
        while at < begun + cycle && best.is_none_or(|best| at < best) {
            steps.take(tasks.len())?;
            if !tasks.iter().any(|other| other.lies_across(at)) {
                best = Some(at);
            }
            at += task.period();
        }
    }
    Some(best.and_then(|at| at.checked_add(cycle)))
}

/// The least common multiple of the periods; `None` if that is longer than any span.
fn hyperperiod(tasks: &[PeriodicRange]) -> Option<u64> {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    tasks.iter().try_fold(1u64, |all, task| {
        let all = (all / gcd(all, task.period())).checked_mul(task.period())?;
        (all <= Span::MAX.as_ns()).then_some(all)
    })
}
