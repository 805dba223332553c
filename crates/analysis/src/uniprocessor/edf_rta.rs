//! EDF on one CPU: worst-case response times.

use std::collections::BinaryHeap;
use std::ops::Range;

use shiftwork_model::{Share, Span};

use super::demand::{Line, Linear, busy_period, demand, last_deadline, next_deadline};
use super::{time_for, too_much};
use crate::response::as_spans;
use crate::{NotShown, Outcome, Sporadic, Steps};

/// The worst-case response times under EDF on one CPU of this supply, in the order of the tasks,
/// whether or not they are within the deadlines. Exact at supply 1; below 1, exact for a CPU that is
/// slower by that factor, rounded up. Fails if U exceeds the supply, with the first task that is too much.
///
/// A job that is due at the same instant as another counts as the later of the two. That is the least
/// upper bound under every rule for ties: where a rule prefers the job, it takes as long if it is
/// released an instant later. So under the rule of this project, with releases at whole nanoseconds, the
/// worst response is this one or one nanosecond less.
///
/// With all other tasks released at 0 and then as soon as they may, and a job of the task due at d, its
/// *finish* is the least t after its release by which all is done that is released before t and due by d,
/// where the jobs of the task itself count from 0 on. The worst response is the maximum of
/// finish - d + D over all deadlines d from D to the end of the longest busy period plus D.
/// The finish does not shrink as d grows, and is at most the time that all work takes which is due by d. So
/// no response in an interval of deadlines is longer than that of a job with the first of them and the finish of the
/// last. Intervals are halved, that with the longest such response first, until none can hold one that is
/// longer than what is known.
///
/// # Assumes
/// Sporadic tasks, or periodic ones of any offsets; independent, preemptive, no self-suspension; arbitrary
/// deadlines. The jobs of a task run one after the other.
///
/// # Cost
/// One step per task, examined deadline and iteration; pseudo-polynomial. At U = supply the busy period may be
/// as long as the least common multiple of the periods.
///
/// # Source
/// M. Spuri, "Analysis of Deadline Scheduled Real-Time Systems", INRIA RR-2772, 1996, with the
/// work of the task itself counted as in L. George, N. Rivierre, M. Spuri, "Preemptive and Non-Preemptive
/// Real-Time Uni-Processor Scheduling", INRIA RR-2966, 1996; the bound by the demand is that of N. Guan,
/// W. Yi, "General and Efficient Response Time Analysis for EDF Scheduling", DATE 2014.
pub fn edf_rta(
    tasks: &[Sporadic],
    supply: Share,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Span>> {
    if let Some(misfit) = too_much(tasks, supply) {
        return Outcome::Fail(misfit);
    }
    let Some(responses) = responses(tasks, supply, steps) else {
        return Outcome::StepLimit;
    };
    match as_spans(responses.into_iter()) {
        Ok(responses) => Outcome::Pass(responses),
        Err(misfit) => Outcome::Fail(misfit),
    }
}

fn responses(tasks: &[Sporadic], supply: Share, steps: &mut Steps) -> Option<Vec<u128>> {
    let line = match Line::of(tasks, supply) {
        Linear::Below(line) => Some(line),
        Linear::Overloaded | Linear::None => None,
    };
    // What may be left at most before the deadline of a job, so that no interval beyond counts.
    let slack = |task: &Sporadic| task.deadline_ns().saturating_sub(task.cost_ns());
    let slack = tasks.iter().map(slack).max().unwrap_or(0);
    let limit = line.as_ref().map(|line| line.leaves(slack + 1));
    let search = Search {
        tasks,
        supply,
        busy: busy_period(tasks, supply, limit, steps)?,
        line,
    };
    let places = 0..tasks.len();
    places.map(|place| search.response(place, steps)).collect()
}

/// The tasks, and how far one must look.
struct Search<'a> {
    tasks: &'a [Sporadic],
    supply: Share,
    /// The longest that the CPU is busy, or a length beyond which no response is the longest.
    busy: u128,
    line: Option<Line>,
}

impl Search<'_> {
    /// The worst-case response time of the task at this place; `None` when out of steps.
    fn response(&self, place: usize, steps: &mut Steps) -> Option<u128> {
        let deadline = self.tasks[place].deadline_ns();
        // The response of the job released together with all others, to begin with.
        let mut worst = self.finish(place, deadline, 0, steps)?;
        let mut intervals = BinaryHeap::from([self.all(deadline, worst, steps)?]);
        // None of the others may have a longer response either.
        while let Some(found) = intervals.pop().filter(|one| one.response > worst) {
            steps.take(3 * self.tasks.len())?;
            let from = next_deadline(self.tasks, found.from)?;
            let until = found
                .until
                .min((found.above + deadline).saturating_sub(worst));
            if until <= from {
                continue;
            }
            let middle = from + (until - from) / 2;
            let due = last_deadline(self.tasks, middle + 1)?;
            let (mut above, mut below) = (self.needed(due)?.min(found.above), found.below);
            let released = due - deadline;
            if above > released + worst {
                below = self.finish(place, due, found.below, steps)?;
                above = below;
                worst = worst.max(below - released);
            }
            let lower = Interval::new(from..due, found.below..above, deadline);
            let upper = Interval::new(due + 1..until, below..found.above, deadline);
            intervals.extend([lower, upper].into_iter().flatten());
        }
        Some(worst)
    }

    /// All deadlines beyond the first of a task, one response of which is known, that matter.
    fn all(&self, deadline: u128, known: u128, steps: &mut Steps) -> Option<Interval> {
        steps.take(self.tasks.len())?;
        let rest = deadline.saturating_sub(known) + 1;
        let by_line = self
            .line
            .as_ref()
            .map_or(u128::MAX, |line| line.leaves(rest));
        let last = by_line.min(deadline.checked_add(self.busy)?);
        let above = self.needed(last)?;
        Some(Interval {
            response: u128::MAX,
            from: deadline + 1,
            until: last.checked_add(1)?,
            below: known,
            above,
        })
    }

    /// The time that all work takes that is due by then.
    fn needed(&self, due: u128) -> Option<u128> {
        time_for(demand(self.tasks, due), self.supply)
    }

    /// When the job of the task at this place is finished that is due then: `below` or later.
    fn finish(&self, place: usize, due: u128, below: u128, steps: &mut Steps) -> Option<u128> {
        let own = &self.tasks[place];
        let released = due - own.deadline_ns();
        let others = self.tasks.iter().enumerate();
        let others = others.filter(|&(other, task)| other != place && task.deadline_ns() <= due);
        let others: Vec<Rival> = others.map(|(_, task)| Rival::of(task, due)).collect();
        let own_work = Rival::of(own, due).most;
        // If the CPU has idled before the release, the job still takes so long where the others are released like
        // this: what counts is the first time after the release at which all is done.
        let mut finish = below.max(released + time_for(own.cost_ns(), self.supply)?);
        loop {
            steps.take(others.len() + 1)?;
            let work = others.iter().map(|other| other.released_before(finish));
            match time_for(own_work + work.sum::<u128>(), self.supply)? {
                next if next <= finish => return Some(finish),
                next => finish = next,
            }
        }
    }
}

/// Deadlines of jobs of one task, at which they may be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Interval {
    /// No response of a job due in the interval is longer, unless it is no longer than the time for its cost.
    response: u128,
    /// The first and the one after the last.
    from: u128,
    until: u128,
    /// No job due in the interval finishes earlier, nor, unless it takes no longer than its cost, later.
    below: u128,
    above: u128,
}

impl Interval {
    /// Jobs of a task of this deadline that are due at these times and finish at those; `None` if there are none.
    fn new(due: Range<u128>, finish: Range<u128>, deadline: u128) -> Option<Self> {
        let response = (finish.end + deadline).checked_sub(due.start)?;
        (!due.is_empty()).then_some(Self {
            response,
            from: due.start,
            until: due.end,
            below: finish.start,
            above: finish.end,
        })
    }
}

/// A task as it delays a job.
struct Rival {
    cost: u128,
    period: u128,
    /// The work of all its jobs that are due in time.
    most: u128,
}

impl Rival {
    /// Of a task that is released at 0 and then as soon as it may, with a deadline up to `due`.
    fn of(task: &Sporadic, due: u128) -> Self {
        let jobs = (due - task.deadline_ns()) / task.period_ns() + 1;
        Self {
            cost: task.cost_ns(),
            period: task.period_ns(),
            most: jobs * task.cost_ns(),
        }
    }

    const fn released_before(&self, time: u128) -> u128 {
        let released = time.div_ceil(self.period) * self.cost;
        if released < self.most {
            released
        } else {
            self.most
        }
    }
}
