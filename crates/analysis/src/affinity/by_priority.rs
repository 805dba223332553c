//! Response times under fixed priorities, in the order of urgency.

use shiftwork_model::{CpuSet, Share, Span};

use super::interference::Interferer;
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
    let mut known = Vec::with_capacity(tasks.len());
    for (place, bound) in tasks.iter().enumerate() {
        let task = Interferer::until_deadline(&bound.ranked.task, supply);
        match task.filter(|_| !bound.cpus.is_empty()) {
            Some(task) => known.push(task),
            None => return Outcome::Fail(NotShown { place }),
        }
    }
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
