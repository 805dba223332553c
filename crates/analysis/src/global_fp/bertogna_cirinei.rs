//! Global fixed priorities, hard: response times with carry-in of every task.

use shiftwork_model::Span;

use super::{in_order, preemptive_response};
use crate::{NotShown, Outcome, Ranked, Steps};

/// Bounds on the response times under global fixed priorities, in the order of the tasks; the most
/// urgent task that is not shown to be in time if there is one. Sufficient, not exact. Equal
/// priorities count as more urgent both ways.
///
/// Where priorities are distinct, [`super::guan()`] shows all that this does, with bounds that are no
/// longer.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension, constrained deadlines: a task with
/// D > T or C > D is not shown, nor are periods beyond [`Span::MAX`]. Time is whole nanoseconds.
///
/// # Cost
/// One step per pair of tasks and leap; pseudo-polynomial.
///
/// # Source
/// M. Bertogna, M. Cirinei, "Response-Time Analysis for globally scheduled Symmetric Multiprocessor
/// Platforms", RTSS 2007, for fixed priorities: the slack of more urgent tasks is known by the time
/// that a task is looked at, of equal ones it counts as zero.
pub fn bertogna_cirinei(
    tasks: &[Ranked],
    cpus: usize,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Span>> {
    in_order(tasks, cpus, steps, |rivals, steps| {
        preemptive_response(rivals.task(), cpus, steps, |length, _, works| {
            let all = rivals.urgent.iter().chain(rivals.equal());
            works.extend(all.map(|task| task.work_in(length)));
        })
    })
}
