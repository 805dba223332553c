//! EDF on one CPU: whether tasks that suspend themselves within jobs meet their deadlines.

use super::Suspending;
use crate::exact::{Demand, Rate, units_of, whole};
use crate::{NotShown, Outcome, Steps};

/// Whether all jobs complete by their deadlines, whenever they suspend themselves. That a set does not pass shows nothing.
///
/// It passes if for each task k there are tasks A, k among them, so that for all L >= `D_k` the sum over the tasks i of A of
/// max(0, floor((L - D_i) / T_i) + 1) (C_i + S_i), and over the others of floor(L / T_i) C_i + min(C_i, L mod T_i), is at most L:
/// suspensions of the tasks of A count as computing, and the others may be late by theirs, up to their deadlines. With all tasks
/// in A, which is tried first, that is the demand of tasks that compute while they are suspended.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, on one CPU alone, with any deadlines. A job may suspend itself at any times. Equal
/// deadlines count as more urgent both ways.
///
/// # Cost
/// For each task a number of choices of A that is linear in the number of tasks; for each of them one step per task and length
/// that is looked at, few in practice, pseudo-polynomial.
///
/// # Source
/// Our own: `docs/theory/suspensions.md`, Theorem 3. It has for EDF the choice that J.-J. Chen, G. Nelissen, W.-H. Huang,
/// ECRTS 2016, have for fixed priorities.
pub fn edf_with_suspensions(tasks: &[Suspending], steps: &mut Steps) -> Outcome<NotShown> {
    for place in 0..tasks.len() {
        match Choice::find(tasks, place, steps) {
            None => return Outcome::StepLimit,
            Some(false) => return Outcome::Fail(NotShown { place }),
            Some(true) => {}
        }
    }
    Outcome::Pass(())
}

/// What becomes of one choice.
enum Found {
    /// All lengths are long enough.
    Fits,
    /// This length is not.
    Overfull(u128),
    /// No length is known from which on all are.
    Unbounded,
}

/// The tasks A for one task.
struct Choice<'a> {
    tasks: &'a [Suspending],
    /// The task k.
    own: usize,
    /// By task, whether it is in A.
    computes: Vec<bool>,
}

impl<'a> Choice<'a> {
    /// Whether a choice is found that shows the task to be in time; `None` when out of steps.
    ///
    /// Begins with those tasks of which the demand within the deadline is less that way, then with all. Where a length is too
    /// short, that task changes which wins most there, each at most once; and as long as no length is known to begin with, the
    /// task of A leaves that is suspended for most of its period.
    fn find(tasks: &'a [Suspending], own: usize, steps: &mut Steps) -> Option<bool> {
        if !tasks.iter().all(|it| it.ranked.task.is_possible()) {
            return Some(false);
        }
        let all = Self {
            tasks,
            own,
            computes: vec![true; tasks.len()],
        };
        let shortest = all.deadline();
        let computes = (0..tasks.len())
            .map(|place| !all.is_open(place) || all.gain(place, shortest) <= 0)
            .collect();
        let less = Self {
            tasks,
            own,
            computes,
        };
        for mut choice in [less, all] {
            let mut changed = vec![false; tasks.len()];
            loop {
                let change = match choice.look(steps)? {
                    Found::Fits => return Some(true),
                    Found::Overfull(length) => choice.best_change(&changed, length),
                    Found::Unbounded => choice.largest_suspension(),
                };
                let Some(place) = change else { break };
                choice.computes[place] = !choice.computes[place];
                changed[place] = true;
            }
        }
        Some(false)
    }

    fn deadline(&self) -> u128 {
        self.tasks[self.own].ranked.task.deadline_ns()
    }

    /// Whether there is a choice. A task that never suspends itself adds least in A.
    fn is_open(&self, place: usize) -> bool {
        place != self.own && !self.tasks[place].suspension.is_zero()
    }

    /// How much less the task adds to the sum if the choice for it changes.
    fn gain(&self, place: usize, length: u128) -> i128 {
        let adds =
            |computes| i128::try_from(self.adds(place, computes, length)).unwrap_or(i128::MAX);
        adds(self.computes[place]) - adds(!self.computes[place])
    }

    /// Of those that have not changed yet, the one whose change wins most, if any wins something.
    fn best_change(&self, changed: &[bool], length: u128) -> Option<usize> {
        let open = (0..self.tasks.len()).filter(|&place| self.is_open(place) && !changed[place]);
        let gains = open.map(|place| (self.gain(place, length), place));
        gains
            .filter(|&(gain, _)| gain > 0)
            .max()
            .map(|(_, place)| place)
    }

    /// The task of A that is suspended for most of its period.
    fn largest_suspension(&self) -> Option<usize> {
        let open =
            (0..self.tasks.len()).filter(|&place| self.is_open(place) && self.computes[place]);
        open.max_by_key(|&place| {
            let task = &self.tasks[place];
            u128::from(task.suspension.as_ns()) * 1_000_000 / task.ranked.task.period_ns()
        })
    }

    /// What the task adds to the sum.
    fn adds(&self, place: usize, computes: bool, length: u128) -> u128 {
        let of = &self.tasks[place];
        let (task, cost) = (&of.ranked.task, of.ranked.task.cost_ns());
        let period = task.period_ns();
        match computes {
            true => match length.checked_sub(task.deadline_ns()) {
                Some(beyond) => {
                    let computing = cost + u128::from(of.suspension.as_ns());
                    (beyond / period + 1).saturating_mul(computing)
                }
                None => 0,
            },
            false => (length / period)
                .saturating_mul(cost)
                .saturating_add((length % period).min(cost)),
        }
    }

    /// The sum; `None` if it is too large to matter.
    fn sum(&self, length: u128) -> Option<u128> {
        (0..self.tasks.len()).try_fold(0_u128, |sum, place| {
            sum.checked_add(self.adds(place, self.computes[place], length))
        })
    }

    /// Looks at lengths from the longest that matters down to the deadline. The sum never falls, so lengths between it and one
    /// that is long enough are long enough, too; and between two ends of what tasks add, the least lead is at one of these.
    fn look(&self, steps: &mut Steps) -> Option<Found> {
        steps.take(self.tasks.len())?;
        let Some(mut length) = self.longest() else {
            return Some(Found::Unbounded);
        };
        let shortest = self.deadline();
        length = length.max(shortest);
        loop {
            steps.take(self.tasks.len())?;
            match self.sum(length) {
                Some(sum) if sum < length => length = sum,
                Some(sum) if sum == length => match self.end_before(length) {
                    Some(end) => length = end,
                    None => return Some(Found::Fits),
                },
                _ => return Some(Found::Overfull(length)),
            }
            if length < shortest {
                // Between the end and the length before it the lead is least at one of both, and so from the deadline on.
                return Some(match self.sum(shortest) {
                    Some(sum) if sum <= shortest => Found::Fits,
                    _ => Found::Overfull(shortest),
                });
            }
        }
    }

    /// A length from which on all are long enough: the sum is below a line of slope U + the sum of S_i / T_i over A, whose value at zero is
    /// what jobs of A add early and what jobs of the others do beyond their rate. `None` if the slope is not below one.
    fn longest(&self) -> Option<u128> {
        let mut used = Demand::default();
        let mut above = 0_u128;
        for (of, &computes) in self.tasks.iter().zip(&self.computes) {
            let task = &of.ranked.task;
            let (period, deadline) = (task.period_ns(), task.deadline_ns());
            let (work, early) = match computes {
                true => (task.cost + of.suspension, period.saturating_sub(deadline)),
                false => (task.cost, period.saturating_sub(task.cost_ns())),
            };
            used.add(Rate::new(work, task.period)?);
            above = above.checked_add((early * u128::from(work.as_ns())).div_ceil(period))?;
        }
        let spare = units_of(whole()).checked_sub(used.units_max())?;
        match spare {
            0 => None,
            spare => Some(above.checked_mul(units_of(whole()))?.div_ceil(spare)),
        }
    }

    /// The last length before this one at which something that a task adds comes to its end.
    fn end_before(&self, length: u128) -> Option<u128> {
        let ends = self
            .tasks
            .iter()
            .zip(&self.computes)
            .filter_map(|(of, computes)| {
                let task = &of.ranked.task;
                let first = match computes {
                    true => task.deadline_ns(),
                    false => task.cost_ns(),
                };
                let beyond = (length - 1).checked_sub(first)?;
                Some(first + beyond / task.period_ns() * task.period_ns())
            });
        ends.max()
    }
}
