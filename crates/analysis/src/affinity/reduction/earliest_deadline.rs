//! Earliest deadline first under affinities, hard.

use shiftwork_model::{Share, Span};

use super::subsets::Ground;
use crate::affinity::interference::{Capped, Interferer, response_among};
use crate::{NotShown, Outcome, Placed, Steps};

/// Whether every task is shown to meet its deadlines under EDF, weak or strong, with bounds on
/// response times in the order of the tasks. Sufficient, not exact.
///
/// While a task waits, all its CPUs run jobs that are due no later, of tasks that share a CPU with
/// it; the same holds for any subset of its CPUs. What such a task does meanwhile is bounded by its
/// work in an interval as long as the response, and by what is due until the deadline. Both shrink
/// with every task that is shown to be done some time before its deadline, so the tasks are looked
/// at again and again, first on all their CPUs and then, if that does not show all, on subsets (see
/// [`reduction_fp`](super::reduction_fp)).
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension, no deadline beyond the period (such
/// a task is not shown, nor is one without a CPU). With a supply below 1, CPUs that are slower by that factor.
///
/// # Cost
/// One step per pair of tasks, subset, iteration and round; pseudo-polynomial.
///
/// # Source
/// A. Gujarati, F. Cerqueira, B. Brandenburg, "Multiprocessor real-time scheduling with arbitrary
/// processor affinities", Real-Time Systems 51(4), 2015, with the test of M. Bertogna, M. Cirinei,
/// "Response-Time Analysis for globally scheduled Symmetric Multiprocessor Platforms", RTSS 2007,
/// which bounds the interference of each task by itself, as the reduction requires.
pub fn reduction_edf(
    tasks: &[Placed],
    supply: Share,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Span>> {
    let of_task = |placed: &Placed| {
        let possible = !placed.cpus.is_empty();
        Interferer::until_deadline(&placed.task, supply).filter(|_| possible)
    };
    if let Some(place) = tasks.iter().position(|placed| of_task(placed).is_none()) {
        return Outcome::Fail(NotShown { place });
    }
    let known: Vec<Interferer> = tasks.iter().filter_map(of_task).collect();
    let mut rounds = Rounds {
        tasks,
        deadlines: known.iter().map(|task| task.response).collect(),
        shown: vec![false; tasks.len()],
        known,
    };
    match rounds.run(steps) {
        None => Outcome::StepLimit,
        Some(()) => match rounds.shown.iter().position(|shown| !shown) {
            Some(place) => Outcome::Fail(NotShown { place }),
            None => Outcome::Pass(
                rounds
                    .known
                    .iter()
                    .map(|task| Span::from_ns(task.response))
                    .collect(),
            ),
        },
    }
}

/// Bounds so far: as long as no deadline has been missed, each job of task i finishes within
/// `known[i].response`, initially its deadline.
struct Rounds<'a> {
    tasks: &'a [Placed],
    known: Vec<Interferer>,
    deadlines: Vec<u64>,
    /// Whether the task's response was derived, rather than taken for granted.
    shown: Vec<bool>,
}

impl Rounds<'_> {
    /// Until all are shown or nothing changes. `None` when out of steps.
    fn run(&mut self, steps: &mut Steps) -> Option<()> {
        while self.round(steps, Self::on_all_cpus)? {}
        if !self.all_shown() {
            while self.round(steps, Self::on_subsets)? {}
        }
        Some(())
    }

    fn all_shown(&self) -> bool {
        self.shown.iter().all(|&shown| shown)
    }

    /// Looks at every task once. Whether looking again could show more.
    fn round(
        &mut self,
        steps: &mut Steps,
        response: fn(&Self, usize, &mut Steps) -> Option<u64>,
    ) -> Option<bool> {
        let mut changed = false;
        for place in 0..self.tasks.len() {
            let response = response(self, place, steps)?;
            if response <= self.known[place].response {
                changed |= response < self.known[place].response;
                self.shown[place] = true;
                self.known[place].response = response;
            }
        }
        Some(changed && !self.all_shown())
    }

    fn on_all_cpus(&self, place: usize, steps: &mut Steps) -> Option<u64> {
        steps.take(self.tasks.len())?;
        let cpus = &self.tasks[place].cpus;
        let others: Vec<Capped> = self
            .others(place)
            .map(|other| self.capped(other, place))
            .collect();
        let own = &self.known[place];
        response_among(own.cost, own.response, &others, cpus.len(), steps)
    }

    fn on_subsets(&self, place: usize, steps: &mut Steps) -> Option<u64> {
        steps.take(self.tasks.len())?;
        let own = &self.known[place];
        let others = self.others(place);
        let masks = others.map(|other| (other, &self.tasks[other].cpus));
        let ground = Ground::new(&self.tasks[place].cpus, masks, steps)?;
        let weight = |other: usize| self.capped(other, place).most.min(self.deadlines[place]);
        ground.least(own.response, weight, |cpus, others, limit| {
            let others: Vec<Capped> = others
                .iter()
                .map(|&other| self.capped(other, place))
                .collect();
            response_among(own.cost, limit, &others, cpus, steps)
        })
    }

    /// The other tasks that share a CPU with the task.
    fn others(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        let cpus = &self.tasks[place].cpus;
        let others = (0..self.tasks.len()).filter(move |&other| other != place);
        others.filter(move |&other| self.tasks[other].cpus.intersects(cpus))
    }

    /// What `other` can do to the jobs of the task here.
    fn capped(&self, other: usize, place: usize) -> Capped {
        let task = self.known[other];
        let slack = self.deadlines[other] - task.response;
        Capped {
            task,
            most: task.work_due(self.deadlines[place], slack),
        }
    }
}
