//! Fixed priorities under affinities, hard.

use shiftwork_model::{Share, Span};

use super::subsets::Ground;
use crate::affinity::by_priority::{Bound, InOrder, by_priority, in_time};
use crate::affinity::interference::{Capped, response_among};
use crate::{NotShown, Outcome, Steps};

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
    let mut searched =
        |search: Search| by_priority(tasks, supply, |task| response(tasks, &task, search, steps));
    match searched(Search::AllCpus) {
        Outcome::Fail(_) => searched(Search::Subsets),
        decided => decided,
    }
}

/// Whether the task at this place is in time, by the same condition with deadlines for the response times of the others;
/// `None` when out of steps.
pub(crate) fn reduction_in_time(tasks: &[Bound], place: usize, steps: &mut Steps) -> Option<bool> {
    in_time(tasks, place, |task| {
        response(tasks, &task, Search::Subsets, steps)
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    AllCpus,
    Subsets,
}

/// A bound on the response time, something above the deadline if there is none.
fn response(tasks: &[Bound], task: &InOrder<'_>, search: Search, steps: &mut Steps) -> Option<u64> {
    let (own, cpus) = (&task.known[task.place], &tasks[task.place].cpus);
    let capped = |other: usize| Capped {
        task: task.known[other],
        most: u64::MAX,
    };
    let urgent = task.urgent.iter().copied();
    let urgent = urgent.filter(|&other| other != task.place && tasks[other].cpus.intersects(cpus));
    steps.take(tasks.len())?;
    if search == Search::AllCpus {
        let mut others = Vec::with_capacity(task.urgent.len());
        others.extend(urgent.map(capped));
        return response_among(own.cost, own.response, &others, cpus.len(), steps);
    }
    let masks = urgent.map(|other| (other, &tasks[other].cpus));
    let ground = Ground::new(cpus, masks, steps)?;
    let weight = |other: usize| task.known[other].work_in(own.response).min(own.response);
    ground.least(own.response, weight, |cpus, others, limit| {
        let others: Vec<Capped> = others.iter().map(|&other| capped(other)).collect();
        response_among(own.cost, limit, &others, cpus, steps)
    })
}
