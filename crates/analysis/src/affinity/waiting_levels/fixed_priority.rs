//! Fixed priorities under the strong invariant.

use shiftwork_model::{Share, Span};

use super::levels::{Affinities, Program};
use super::window::Waiter;
use crate::affinity::by_priority::{Bound, by_priority, in_time};
use crate::affinity::interference::{Capped, Interferer};
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
    let family = Affinities::new(tasks.iter().map(|task| &task.cpus));
    let programs: Vec<Program> = (0..family.len())
        .map(|place| family.program(place))
        .collect();
    by_priority(tasks, supply, |place, known| {
        response(tasks, place, known, &programs[family.of(place)], steps)
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
    in_time(tasks, place, |place, known| {
        response(tasks, place, known, &program, steps)
    })
}

fn response(
    tasks: &[Bound],
    place: usize,
    known: &[Interferer],
    program: &Program,
    steps: &mut Steps,
) -> Option<u64> {
    let own = &known[place];
    let capped = |other: usize| {
        let is_urgent = tasks[other].ranked.priority <= tasks[place].ranked.priority;
        is_urgent.then_some(Capped {
            task: known[other],
            most: u64::MAX,
        })
    };
    Waiter::new(program).response((place, own.cost), (own.cost, own.response), capped, steps)
}
