//! Bounds on the responses of tasks on CPUs that are each scheduled alone by fixed priorities, which share mutexes and are suspended while they wait.
//!
//! `docs/theory/blocking.md`, "Jobs that are boosted by ceilings", "Jobs that are suspended while they are blocked" and "Sections that come while a job is pending", has the
//! theorems.

use shiftwork_model::{CpuId, Share, Span, Task};

use super::sum;
use crate::uniprocessor::{fp_response_time, too_much};
use crate::{Sporadic, Steps};

/// What finding the responses of all tasks together may take.
pub(super) const STEPS: u64 = 5_000_000;

/// What each job of a task takes of something while it is pending.
#[derive(Clone, Copy)]
pub(super) struct Load {
    period: Span,
    response: Span,
    each: Span,
}

impl Load {
    /// `None` if it is nothing.
    pub(super) fn new(period: Span, response: Span, each: Span) -> Option<Self> {
        (!each.is_zero()).then_some(Self {
            period,
            response,
            each,
        })
    }

    /// What it is in the long run.
    const fn sporadic(&self) -> Sporadic {
        Sporadic {
            cost: self.each,
            period: self.period,
            deadline: self.period,
        }
    }

    /// What jobs take that are pending in a window of this length; `None` if it is too much to count.
    pub(super) fn within(&self, window: Span) -> Option<Span> {
        let jobs = pending_in(window, self.response, self.period);
        let all = jobs.checked_mul(self.each.as_ns().into())?;
        u64::try_from(all).ok().map(Span::from_ns)
    }
}

/// How many jobs are pending at most in a window of this length, if each is for no longer than this response; both are unknown at [`Span::MAX`].
pub(super) fn pending_in(window: Span, response: Span, period: Span) -> u128 {
    if window == Span::MAX || response == Span::MAX {
        return u128::MAX;
    }
    let window = u128::from(window.as_ns()) + u128::from(response.as_ns());
    window.div_ceil(u128::from(period.as_ns().max(1)))
}

/// The least window that is as long as this and what these take in it; `None` if there is none up to the limit, or not within the steps.
pub(super) fn least(
    (first, limit): (Span, Span),
    loads: &[Load],
    steps: &mut Steps,
) -> Option<Span> {
    // None is left of a CPU that they take in the long run.
    let tasks: Vec<Sporadic> = loads.iter().map(Load::sporadic).collect();
    let less = Share::from_billionths(Share::WHOLE - 1)?;
    if too_much(&tasks, less).is_some() {
        return None;
    }
    let mut window = first;
    loop {
        steps.take(loads.len() + 1)?;
        let next = loads.iter().try_fold(first, |sum, load| {
            let all = sum.as_ns().checked_add(load.within(window)?.as_ns())?;
            Some(Span::from_ns(all))
        })?;
        if next <= window {
            return Some(window);
        }
        if next > limit {
            return None;
        }
        window = next;
    }
}

/// What mutexes do to the jobs of tasks, if the responses are no longer than supposed.
pub(super) trait Delays {
    /// The tasks. A place is one in this order.
    fn tasks(&self) -> &[Task];

    /// The priority of the task at this place, as a level: the less, the more urgent.
    fn level(&self, place: usize) -> u64;

    /// How long requests keep back a job of this task on the CPU, where it counts as computing beside less urgent ones.
    fn longer(&self, place: usize, cpu: CpuId) -> Span;

    /// How long a job of this task is kept back on the CPU, but for what tasks of other CPUs execute there.
    fn added(&self, place: usize, cpu: CpuId) -> Span;

    /// The same where the others are suspended while they wait.
    fn kept_back(&self, place: usize, cpu: CpuId) -> Span {
        self.added(place, cpu)
    }

    /// How long a job of this task executes on its own CPU.
    fn executes(&self, place: usize) -> Span;

    /// What tasks of other CPUs execute on this one.
    fn visiting(&self, cpu: CpuId) -> Vec<Load>;

    /// How long these do so while jobs of the priority of this task, or a higher one, are pending.
    fn guests(&self, place: usize, cpu: CpuId, steps: &mut Steps) -> Option<Span>;
}

/// A bound on the responses of the task at this place on any of its CPUs, if these are bounds on those of all; `None` if none is known, or not
/// within the steps.
pub(super) fn response(
    delays: &impl Delays,
    place: usize,
    responses: &[Span],
    steps: &mut Steps,
) -> Option<Span> {
    let mut worst = Span::ZERO;
    for cpu in delays.tasks()[place].affinity.cpus().iter() {
        let suspended = suspended(delays, (place, cpu), responses, steps);
        let computing = computing(delays, (place, cpu), steps);
        worst = worst.max(suspended.into_iter().chain(computing).min()?);
    }
    Some(worst)
}

/// The same on one CPU where the others there are suspended while they wait, if it is within the period; `None` elsewhere.
fn suspended(
    delays: &impl Delays,
    (place, cpu): (usize, CpuId),
    responses: &[Span],
    steps: &mut Steps,
) -> Option<Span> {
    let urgent = urgent(delays, place, cpu).map(|(other, task)| {
        let executes = delays.executes(other);
        let late = responses[other].saturating_sub(executes);
        (responses[other] <= task.period).then(|| Load::new(task.period, late, executes))
    });
    let urgent: Vec<Option<Load>> = urgent.collect::<Option<_>>()?;
    let loads = urgent.into_iter().flatten().chain(delays.visiting(cpu));
    let own = &delays.tasks()[place];
    let first = sum([own.cost, delays.kept_back(place, cpu)]);
    let found = least((first, own.period), &loads.collect::<Vec<_>>(), steps)?;
    (found <= own.period).then_some(found)
}

/// The same where they compute while they wait; of any length.
fn computing(
    delays: &impl Delays,
    (place, cpu): (usize, CpuId),
    steps: &mut Steps,
) -> Option<Span> {
    let guests = delays.guests(place, cpu, steps)?;
    let added = sum([delays.added(place, cpu), guests]);
    let urgent = urgent(delays, place, cpu);
    let urgent = urgent.map(|(other, task)| longer(task, delays.longer(other, cpu)));
    let urgent: Vec<Sporadic> = urgent.collect();
    let own = &delays.tasks()[place];
    fp_response_time(longer(own, added), &urgent, steps)
}

/// The task as a sporadic one that computes for so much more.
pub(super) fn longer(task: &Task, more: Span) -> Sporadic {
    let mut task = Sporadic::from(task);
    task.cost = sum([task.cost, more]);
    task
}

/// The others that may be on this CPU and have at least the priority of the task at this place.
fn urgent(delays: &impl Delays, place: usize, cpu: CpuId) -> impl Iterator<Item = (usize, &Task)> {
    let level = delays.level(place);
    let all = delays.tasks().iter().enumerate();
    all.filter(move |(other, task)| {
        *other != place && delays.level(*other) <= level && task.affinity.cpus().contains(cpu)
    })
}
