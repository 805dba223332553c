//! Response times under fixed priorities, in the order of urgency.

use shiftwork_model::{CpuSet, Share, Span};

use super::interference::Interferer;
use crate::exact::whole;
use crate::{NotShown, Outcome, Ranked};

/// A task with its priority and the CPUs it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The task and its priority.
    pub ranked: Ranked,
    /// Its CPUs.
    pub cpus: CpuSet,
}

/// A task in the order of priority, and what is known when it is looked at.
pub(super) struct InOrder<'a> {
    /// Where the task is among all.
    pub(super) place: usize,
    /// By task: its response, or its deadline where that is not known.
    pub(super) known: &'a [Interferer],
    /// The places of the tasks at least as urgent, the task itself among them.
    pub(super) urgent: &'a [usize],
}

/// The most urgent first, so that what delays a task is known better than its deadline. `response` is asked for
/// a bound on the response time of a task, something above its deadline if there is none; `None` when out of steps.
pub(super) fn by_priority(
    tasks: &[Bound],
    supply: Share,
    mut response: impl FnMut(InOrder<'_>) -> Option<u64>,
) -> Outcome<NotShown, Vec<Span>> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    let priority = |&place: &usize| tasks[place].ranked.priority;
    order.sort_by_key(priority);
    let mut known = match until_deadlines(tasks, supply) {
        Ok(known) => known,
        Err(unshown) => return Outcome::Fail(unshown),
    };
    let mut end = 0;
    for alike in order.chunk_by(|one, next| priority(one) == priority(next)) {
        end += alike.len();
        for &place in alike {
            let task = InOrder {
                place,
                known: &known,
                urgent: &order[..end],
            };
            match response(task) {
                None => return Outcome::StepLimit,
                Some(response) if response > known[place].response => {
                    return Outcome::Fail(NotShown { place });
                }
                // From now on it interferes with the less urgent for no longer than this.
                Some(response) => known[place].response = response,
            }
        }
    }
    let bounds = known.iter().map(|task| Span::from_ns(task.response));
    Outcome::Pass(bounds.collect())
}

/// Whether the task at this place is in time if nothing is known of the others but that they are; `None` when out of
/// steps.
pub(super) fn in_time(
    tasks: &[Bound],
    place: usize,
    response: impl FnOnce(InOrder<'_>) -> Option<u64>,
) -> Option<bool> {
    let Ok(known) = until_deadlines(tasks, whole()) else {
        return Some(false);
    };
    let priority = |other: usize| tasks[other].ranked.priority;
    let urgent = (0..tasks.len()).filter(|&other| priority(other) <= priority(place));
    let urgent: Vec<usize> = urgent.collect();
    let task = InOrder {
        place,
        known: &known,
        urgent: &urgent,
    };
    Some(response(task)? <= known[place].response)
}

/// What is known before any response time is.
fn until_deadlines(tasks: &[Bound], supply: Share) -> Result<Vec<Interferer>, NotShown> {
    let known = tasks.iter().enumerate().map(|(place, bound)| {
        let task = Interferer::until_deadline(&bound.ranked.task, supply);
        task.filter(|_| !bound.cpus.is_empty())
            .ok_or(NotShown { place })
    });
    known.collect()
}
