//! Fixed priorities under affinities, hard.

use shiftwork_model::{CpuSet, Share, Span};

use super::interference::{Capped, Interferer, response_among};
use super::subsets::Ground;
use crate::{NotShown, Outcome, Ranked, Steps};

/// A task with its priority and the CPUs it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The task and its priority.
    pub ranked: Ranked,
    /// Its CPUs.
    pub cpus: CpuSet,
}

/// As [`reduction_fp`], without the bounds.
pub fn reduction(tasks: &[Bound], supply: Share, steps: &mut Steps) -> Outcome<NotShown> {
    match reduction_fp(tasks, supply, steps) {
        Outcome::Pass(_) => Outcome::Pass(()),
        Outcome::Fail(unshown) => Outcome::Fail(unshown),
        Outcome::StepLimit => Outcome::StepLimit,
    }
}

/// Whether every task is shown to meet its deadlines under fixed priorities, weak or strong, with
/// bounds on response times in the order of the tasks. Sufficient, not exact. Equal priorities count
/// as more urgent both ways.
///
/// While a task waits, all its CPUs run more urgent jobs, of tasks that share a CPU with it. So it
/// is delayed by at most the sum of what they do in the meantime, divided by the number of its CPUs;
/// and the same holds for any subset of its CPUs. First each task is looked at on all its CPUs; if
/// that does not show all, also on subsets, and the least bound counts: all subsets that make a
/// difference if there are few, else those that are left when CPU by CPU is dropped, each time that
/// with most work of its own.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension, no deadline beyond the period (such
/// a task is not shown, nor is one without a CPU). With a supply below 1, CPUs that are slower by that factor.
///
/// # Cost
/// One step per pair of tasks, subset and iteration; pseudo-polynomial.
///
/// # Source
/// A. Gujarati, F. Cerqueira, B. Brandenburg, "Multiprocessor real-time scheduling with arbitrary
/// processor affinities", Real-Time Systems 51(4), 2015; the interference is that of M. Bertogna,
/// M. Cirinei, "Response-Time Analysis for globally scheduled Symmetric Multiprocessor Platforms",
/// RTSS 2007.
pub fn reduction_fp(
    tasks: &[Bound],
    supply: Share,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Span>> {
    let whole = in_order(tasks, supply, Search::AllCpus, steps);
    match whole {
        Outcome::Fail(_) => in_order(tasks, supply, Search::Subsets, steps),
        decided => decided,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    AllCpus,
    Subsets,
}

/// The most urgent first, so that what delays a task is known better than its deadline.
fn in_order(
    tasks: &[Bound],
    supply: Share,
    search: Search,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Span>> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&place| tasks[place].ranked.priority);
    let of_task = |bound: &Bound| {
        let possible = !bound.cpus.is_empty();
        Interferer::until_deadline(&bound.ranked.task, supply).filter(|_| possible)
    };
    let known: Option<Vec<Interferer>> = tasks.iter().map(of_task).collect();
    let Some(mut known) = known else {
        let place = tasks.iter().position(|bound| of_task(bound).is_none());
        let place = place.unwrap_or_default();
        return Outcome::Fail(NotShown { place });
    };
    for place in order {
        match response(tasks, place, &known, search, steps) {
            None => return Outcome::StepLimit,
            Some(response) if response > known[place].response => {
                return Outcome::Fail(NotShown { place });
            }
            // From now on it interferes with the less urgent for no longer than this.
            Some(response) => known[place].response = response,
        }
    }
    let bounds = known.iter().map(|task| Span::from_ns(task.response));
    Outcome::Pass(bounds.collect())
}

/// A bound on the response time, something above the deadline if there is none.
fn response(
    tasks: &[Bound],
    place: usize,
    known: &[Interferer],
    search: Search,
    steps: &mut Steps,
) -> Option<u64> {
    let (own, cpus) = (&known[place], &tasks[place].cpus);
    let capped = |other: usize| Capped {
        task: known[other],
        most: u64::MAX,
    };
    let urgent = tasks.iter().enumerate().filter(|&(other, task)| {
        other != place
            && task.ranked.priority <= tasks[place].ranked.priority
            && task.cpus.intersects(cpus)
    });
    steps.take(tasks.len())?;
    if search == Search::AllCpus {
        let others: Vec<Capped> = urgent.map(|(other, _)| capped(other)).collect();
        return response_among(own.cost, own.response, &others, cpus.len(), steps);
    }
    let ground = Ground::new(cpus, urgent.map(|(other, task)| (other, &task.cpus)), steps)?;
    let weight = |other: usize| known[other].work_in(own.response).min(own.response);
    ground.least(own.response, weight, |cpus, others, limit| {
        let others: Vec<Capped> = others.iter().map(|&other| capped(other)).collect();
        response_among(own.cost, limit, &others, cpus, steps)
    })
}
