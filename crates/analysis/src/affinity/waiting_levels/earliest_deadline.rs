//! Earliest deadline first under the strong invariant.

use shiftwork_model::{Share, Span};

use super::earlier::{Delaying, Earlier};
use super::levels::{Affinities, Program};
use super::window::Waiter;
use crate::affinity::interference::{Capped, Interferer};
use crate::{NotShown, Outcome, Placed, Steps};

/// Whether every task is shown to meet its deadlines under strong EDF, with bounds on response times in the order
/// of the tasks. Sufficient, not exact.
///
/// While a job waits, all CPUs of a set that grows from its affinity execute jobs due no later, of tasks inside the set. How
/// long that can last is bounded for all such sets together. Response times grow from the costs until each is a bound if
/// all others are.
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
pub fn waiting_levels_edf(
    tasks: &[Placed],
    supply: Share,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Span>> {
    let mut known = Vec::with_capacity(tasks.len());
    for (place, placed) in tasks.iter().enumerate() {
        let task = Interferer::until_deadline(&placed.task, supply);
        match task.filter(|_| !placed.cpus.is_empty()) {
            Some(task) => known.push(task),
            None => return Outcome::Fail(NotShown { place }),
        }
    }
    let family = Affinities::new(tasks.iter().map(|task| &task.cpus));
    let programs: Vec<Program> = (0..family.len())
        .map(|place| family.program(place))
        .collect();
    let of: Vec<&Program> = (0..tasks.len())
        .map(|place| &programs[family.of(place)])
        .collect();
    let mut growing = Growing {
        waiters: of.iter().map(|program| Waiter::new(program)).collect(),
        programs: of,
        deadlines: known.iter().map(|task| task.response).collect(),
        known,
    };
    match growing.run(steps) {
        None => Outcome::StepLimit,
        Some(Some(not_shown)) => Outcome::Fail(not_shown),
        Some(None) => {
            let bounds = growing
                .known
                .iter()
                .map(|task| Span::from_ns(task.response));
            Outcome::Pass(bounds.collect())
        }
    }
}

/// Response times that grow from the costs until each is a bound if all others are.
struct Growing<'a> {
    programs: Vec<&'a Program>,
    waiters: Vec<Waiter<'a>>,
    known: Vec<Interferer>,
    deadlines: Vec<u64>,
}

impl Growing<'_> {
    /// Until nothing grows, or a task is not in time. `None` when out of steps.
    fn run(&mut self, steps: &mut Steps) -> Option<Option<NotShown>> {
        for task in &mut self.known {
            task.response = task.cost;
        }
        // What is due early depends on little else.
        let mut order: Vec<usize> = (0..self.known.len()).collect();
        order.sort_by_key(|&place| self.deadlines[place]);
        loop {
            let mut has_grown = false;
            for &place in &order {
                let response = self.response(place, steps)?;
                if response > self.deadlines[place] {
                    return Some(Some(NotShown { place }));
                }
                has_grown |= response > self.known[place].response;
                self.known[place].response = response;
            }
            if !has_grown {
                return Some(None);
            }
        }
    }

    fn response(&mut self, place: usize, steps: &mut Steps) -> Option<u64> {
        let (known, deadlines) = (&self.known, &self.deadlines);
        let capped = |other: usize| {
            let task = known[other];
            let slack = deadlines[other] - task.response;
            Some(Capped {
                task,
                most: task.work_due(deadlines[place], slack),
            })
        };
        let limits = (known[place].response, deadlines[place]);
        let own = (place, known[place].cost);
        let response = self.waiters[place].response(own, limits, capped, steps)?;
        if response <= deadlines[place] {
            return Some(response);
        }
        let delaying = |other: usize| Delaying {
            task: known[other],
            deadline: deadlines[other],
        };
        let is_in_time = match Earlier::new(self.programs[place], place, delaying) {
            Some(mut earlier) => earlier.is_in_time(steps)?,
            None => false,
        };
        Some(if is_in_time {
            deadlines[place]
        } else {
            response
        })
    }
}
