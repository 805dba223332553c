//! Fixed priorities under the strong invariant.

use shiftwork_model::{Share, Span};

use super::levels::{Affinities, Program};
use super::window::{Others, Waiter};
use crate::affinity::by_priority::{Bound, InOrder, by_priority, in_time};
use crate::affinity::interference::Capped;
use crate::{NotShown, Outcome, Steps};

/// Whether every task is shown to meet its deadlines under strong fixed priorities, with bounds on response times in
/// the order of the tasks. Sufficient, not exact. Equal priorities count as more urgent both ways.
///
/// As [`waiting_levels_edf`](super::waiting_levels_edf), from the most urgent task to the least.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension, no deadline beyond the period (such a task is not
/// shown, nor is one without a CPU); the strong invariant at every time. Any affinities. With a supply below 1, CPUs
/// that are slower by that factor.
///
/// # Cost
/// One step per other task, window and exchange of a cut; pseudo-polynomial. Integers throughout.
///
/// # Source
/// `docs/theory/waiting-levels.md`, not refereed; the bounds on what others execute are those of M. Bertogna,
/// M. Cirinei, "Response-Time Analysis for globally scheduled Symmetric Multiprocessor Platforms", RTSS 2007.
pub fn waiting_levels_fp(
    tasks: &[Bound],
    supply: Share,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Span>> {
    waiting_levels_fp_with_suspensions(tasks, &[], supply, steps)
}

/// As [`waiting_levels_fp`], of tasks of which a job may be suspended for so long in all, by task; beyond the end of the list
/// not at all. Costs do not include suspensions, bounds do.
///
/// # Assumes
/// As [`waiting_levels_fp`], but that a job may suspend itself at any times; these are whole nanoseconds, too. The strong
/// invariant speaks of jobs that are ready.
///
/// # Cost
/// As [`waiting_levels_fp`].
///
/// # Source
/// `docs/theory/suspensions.md`, Theorem 5, not refereed.
pub fn waiting_levels_fp_with_suspensions(
    tasks: &[Bound],
    suspensions: &[Span],
    supply: Share,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Span>> {
    let family = Affinities::new(tasks.iter().map(|task| &task.cpus));
    let programs: Vec<Program> = (0..family.len())
        .map(|place| family.program(place))
        .collect();
    let mut others = Others::default();
    by_priority(tasks, supply, |task| {
        let program = &programs[family.of(task.place)];
        let suspended = suspensions.get(task.place).map_or(0, |most| most.as_ns());
        response((tasks, suspended), &task, program, &mut others, steps)
    })
}

/// Whether the task at this place is in time, by the same condition with deadlines for the response times of the others;
/// `None` when out of steps.
pub(crate) fn waiting_levels_in_time(
    tasks: &[Bound],
    place: usize,
    steps: &mut Steps,
) -> Option<bool> {
    let family = Affinities::new(tasks.iter().map(|task| &task.cpus));
    let program = family.program(family.of(place));
    in_time(tasks, place, |task| {
        response((tasks, 0), &task, &program, &mut Others::default(), steps)
    })
}

/// A bound on the response time of a task of which a job is suspended for so long at most.
fn response(
    (tasks, suspended): (&[Bound], u64),
    task: &InOrder<'_>,
    program: &Program,
    others: &mut Others,
    steps: &mut Steps,
) -> Option<u64> {
    let (place, own) = (task.place, &task.known[task.place]);
    let priority = |place: usize| tasks[place].ranked.priority;
    let capped = |other: usize| Capped {
        task: task.known[other],
        most: match priority(other) <= priority(place) {
            true => u64::MAX,
            false => 0,
        },
    };
    let alone = own.cost.saturating_add(suspended);
    let limits = (alone, own.response);
    Waiter::new(program).response(others, (place, alone), limits, capped, steps)
}
