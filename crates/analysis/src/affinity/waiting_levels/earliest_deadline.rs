//! Earliest deadline first under the strong invariant.

use shiftwork_model::{Share, Span};

use super::earlier::{Delaying, Earlier};
use super::levels::{Affinities, Program};
use super::window::{Others, Waiter};
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
    waiting_levels_edf_with_suspensions(tasks, &[], supply, steps)
}

/// As [`waiting_levels_edf`], of tasks of which a job may be suspended for so long in all, by task; beyond the end of the list
/// not at all. Costs do not include suspensions, bounds do.
///
/// # Assumes
/// As [`waiting_levels_edf`], but that a job may suspend itself at any times; these are whole nanoseconds, too. The strong
/// invariant speaks of jobs that are ready.
///
/// # Cost
/// As [`waiting_levels_edf`].
///
/// # Source
/// `docs/theory/suspensions.md`, Theorems 5 and 6, not refereed.
pub fn waiting_levels_edf_with_suspensions(
    tasks: &[Placed],
    suspensions: &[Span],
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
        others: Others::default(),
        deadlines: known.iter().map(|task| task.response).collect(),
        suspensions,
        known,
        grown: Vec::new(),
        shown: vec![None; tasks.len()],
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
    others: Others,
    known: Vec<Interferer>,
    deadlines: Vec<u64>,
    /// By task, how long a job is suspended at most; beyond the end not at all.
    suspensions: &'a [Span],
    /// The tasks that have grown, one after the other, and their responses before.
    grown: Vec<(usize, u64)>,
    /// By task, what its response was shown by last, and the length of `grown` then; `None` if it is not shown.
    shown: Vec<Option<(Shown, usize)>>,
}

/// How a response is shown to be a bound if those of the others are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// By the window that begins at the release.
    FromRelease,
    /// By windows that begin earlier.
    Earlier,
}

impl Growing<'_> {
    /// Until nothing grows, or a task is not in time. `None` when out of steps.
    fn run(&mut self, steps: &mut Steps) -> Option<Option<NotShown>> {
        for task in &mut self.known {
            task.response = task.cost;
        }
        let suspending = self.known.iter_mut().zip(self.suspensions);
        for (place, (task, suspension)) in suspending.enumerate() {
            task.response = task.cost.saturating_add(suspension.as_ns());
            if task.response > self.deadlines[place] {
                return Some(Some(NotShown { place }));
            }
        }
        // What is due early depends on little else.
        let mut order: Vec<usize> = (0..self.known.len()).collect();
        order.sort_by_key(|&place| self.deadlines[place]);
        loop {
            let before = self.grown.len();
            for &place in &order {
                if self.holds_still(place, steps)? {
                    continue;
                }
                let Some((response, shown)) = self.response(place, steps)? else {
                    return Some(Some(NotShown { place }));
                };
                self.shown[place] = Some((shown, self.grown.len()));
                if response > self.known[place].response {
                    self.grown.push((place, self.known[place].response));
                    self.known[place].response = response;
                }
            }
            if self.grown.len() == before {
                return Some(None);
            }
        }
    }

    /// Whether the response of a task is a bound still, as no other that has grown since it was shown executes more in its
    /// window. `None` when out of steps.
    fn holds_still(&self, place: usize, steps: &mut Steps) -> Option<bool> {
        let Some((shown, known)) = self.shown[place] else {
            return Some(false);
        };
        let mut grown = self.grown[known..].iter();
        if shown == Shown::Earlier {
            return Some(grown.all(|&(other, _)| other == place));
        }
        let length = self.known[place].response;
        let work = |other: usize, response: u64| {
            let task = Interferer {
                response,
                ..self.known[other]
            };
            let capped = capped(task, self.deadlines[other], self.deadlines[place]);
            capped.task.work_in(length).min(capped.most)
        };
        for &(other, before) in grown.filter(|&&(other, _)| other != place) {
            steps.take(1)?;
            if work(other, before) < work(other, self.known[other].response) {
                return Some(false);
            }
        }
        Some(true)
    }

    /// A bound on the response of a task, and what shows it; `None` within if none is.
    fn response(&mut self, place: usize, steps: &mut Steps) -> Option<Option<(u64, Shown)>> {
        let (known, deadlines) = (&self.known, &self.deadlines);
        let (own, deadline) = (known[place], deadlines[place]);
        let suspensions = self.suspensions;
        let suspended = |place: usize| suspensions.get(place).map_or(0, |most| most.as_ns());
        let capped = |other: usize| capped(known[other], deadlines[other], deadline);
        let response = self.waiters[place].response(
            &mut self.others,
            (place, own.cost + suspended(place)),
            (own.response, deadline),
            capped,
            steps,
        )?;
        if response <= deadline {
            return Some(Some((response, Shown::FromRelease)));
        }
        let delaying = |other: usize| Delaying {
            task: known[other],
            deadline: deadlines[other],
            suspended: suspended(other),
        };
        let is_in_time = match Earlier::new(self.programs[place], place, delaying) {
            Some(mut earlier) => earlier.is_in_time(steps)?,
            None => false,
        };
        Some(is_in_time.then_some((deadline, Shown::Earlier)))
    }
}

/// What a task with this deadline can do to jobs that are due `within` so long.
fn capped(task: Interferer, deadline: u64, within: u64) -> Capped {
    Capped {
        task,
        most: task.work_due(within, deadline - task.response),
    }
}
