//! The tasks that one group of CPUs has been given, and whether it can take another.

use shiftwork_model::{CpuSet, Order, Share};

use super::Onto;
use crate::exact::{Demand, Rate, fit, units_of};
use crate::policy::ranks_by_deadline;
use crate::uniprocessor::{fp_rta, qpa};
use crate::{Outcome, Ranked, Sporadic, Steps};

/// One group.
///
/// Invariant: `used` and `dense` are the sums of C/T and of C / min(D, T) of the members.
#[derive(Clone, Debug)]
pub(super) struct Bin {
    cpus: usize,
    order: Order,
    supply: Share,
    members: Vec<Ranked>,
    used: Demand,
    dense: Demand,
}

impl Bin {
    pub(super) fn new(cpus: &CpuSet, onto: &Onto<'_>) -> Self {
        Self {
            cpus: cpus.len(),
            order: onto.order,
            supply: onto.supply,
            members: Vec::new(),
            used: Demand::default(),
            dense: Demand::default(),
        }
    }

    /// What is left of the supply, in units of [`units_of`], to a unit per member.
    pub(super) fn room(&self) -> u128 {
        let supplied = units_of(self.supply) * self.cpus as u128;
        supplied.saturating_sub(self.used.units_min())
    }

    pub(super) fn put(&mut self, task: &Ranked) {
        self.members.push(*task);
        rates(&task.task).into_iter().for_each(|[used, dense]| {
            self.used.add(used);
            self.dense.add(dense);
        });
    }

    /// Takes out the task that was put in last.
    pub(super) fn take_back(&mut self) {
        let Some(task) = self.members.pop() else {
            return;
        };
        rates(&task.task).into_iter().for_each(|[used, dense]| {
            self.used.remove(used);
            self.dense.remove(dense);
        });
    }

    /// Whether it can take the task beside those that it has; `None` when out of steps. Exact for a
    /// single CPU; for several, whether the utilizations fit.
    pub(super) fn takes(&mut self, task: &Ranked, steps: &mut Steps) -> Option<bool> {
        steps.take(1)?;
        self.put(task);
        let taken = self.holds(steps);
        self.take_back();
        taken
    }

    fn holds(&self, steps: &mut Steps) -> Option<bool> {
        if !fit([&self.used], self.cpus, self.supply) {
            return Some(false);
        }
        if self.cpus > 1 {
            return Some(true);
        }
        let met = match ranks_by_deadline(self.order) {
            true if fit([&self.dense], 1, self.supply) => true,
            true => {
                let tasks: Vec<Sporadic> = self.members.iter().map(|member| member.task).collect();
                decided(qpa(&tasks, self.supply, steps))?
            }
            false => decided(fp_rta(&self.members, self.supply, steps))?,
        };
        Some(met)
    }

    /// Whether the other can take whatever this one can.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let empty = self.members.is_empty() && other.members.is_empty();
        let only_sums_matter = ranks_by_deadline(self.order) && self.used == self.dense;
        self.cpus == other.cpus && (empty || only_sums_matter && self.used == other.used)
    }
}

fn decided<F>(outcome: Outcome<F>) -> Option<bool> {
    match outcome {
        Outcome::Pass(()) => Some(true),
        Outcome::Fail(_) => Some(false),
        Outcome::StepLimit => None,
    }
}

fn rates(task: &Sporadic) -> Option<[Rate; 2]> {
    Some([
        Rate::new(task.cost, task.period)?,
        Rate::new(task.cost, task.deadline.min(task.period))?,
    ])
}
