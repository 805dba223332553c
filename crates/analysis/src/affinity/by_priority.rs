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

/// The most urgent first, so that what delays a task is known better than its deadline. `response` is asked for
/// a bound on the response time of the task at a place, something above its deadline if there is none, and given
/// what is known; `None` when out of steps.
pub(super) fn by_priority(
    tasks: &[Bound],
    supply: Share,
    mut response: impl FnMut(usize, &[Interferer]) -> Option<u64>,
) -> Outcome<NotShown, Vec<Span>> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&place| tasks[place].ranked.priority);
    let mut known = match until_deadlines(tasks, supply) {
        Ok(known) => known,
        Err(unshown) => return Outcome::Fail(unshown),
    };
    for place in order {
        match response(place, &known) {
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

/// Whether the task at this place is in time if nothing is known of the others but that they are; `None` when out of
/// steps.
pub(super) fn in_time(
    tasks: &[Bound],
    place: usize,
    response: impl FnOnce(usize, &[Interferer]) -> Option<u64>,
) -> Option<bool> {
    match until_deadlines(tasks, whole()) {
        Ok(known) => Some(response(place, &known)? <= known[place].response),
        Err(_) => Some(false),
    }
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
