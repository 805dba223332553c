//! The search for a CPU for every task, where the heuristics find none.

use shiftwork_model::{CPUS_MAX, CpuSet, Utilization};

use super::{Bin, Onto};
use crate::Steps;
use crate::affinity::Bound;
use crate::exact::{Demand, Rate};

/// What the search found.
pub(super) enum Found {
    /// The group of each task, in the order of the tasks.
    Groups(Vec<usize>),
    /// There is none, for sure.
    Nothing,
    /// The steps were used up.
    StepLimit,
}

/// A group for every task by depth-first search: the tasks with the fewest groups first, among them
/// the largest; the fullest group first. Complete, so if it ends with nothing, there is nothing.
///
/// Two groups that every task may use alike and that are loaded alike are tried once, and a branch
/// is left when what remains of the groups, without those that are too full for even the smallest
/// task to come, is less than what the tasks to come need.
///
/// One step per group that is tried, and those of the tests there; exponential without a limit.
pub(super) fn search(tasks: &[Bound], onto: &Onto<'_>, steps: &mut Steps) -> Found {
    let mut search = Search::new(tasks, onto);
    match search.run(steps) {
        None => Found::StepLimit,
        Some(false) => Found::Nothing,
        Some(true) => Found::Groups(search.group_of),
    }
}

struct Search<'a> {
    tasks: &'a [Bound],
    /// Places in the order in which tasks are given groups.
    order: Vec<usize>,
    choices: Vec<Vec<usize>>,
    /// Groups of the same number are in the same affinities.
    kind: Vec<usize>,
    bins: Vec<Bin>,
    group_of: Vec<usize>,
    /// From each place in the order on: what the tasks need, and what the smallest of them does; in
    /// units, rounded down.
    to_come: Vec<(u128, u128)>,
}

impl<'a> Search<'a> {
    fn new(tasks: &'a [Bound], onto: &Onto<'_>) -> Self {
        let within = |bound: &Bound| -> Vec<usize> {
            let groups = onto.groups.iter().enumerate();
            let inside = groups.filter(|(_, group)| group.is_subset(&bound.cpus));
            inside.map(|(index, _)| index).collect()
        };
        let choices: Vec<Vec<usize>> = tasks.iter().map(within).collect();
        let utilization = |place: usize| {
            let task = &tasks[place].ranked.task;
            Utilization::new(task.cost, task.period)
        };
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by(|&a, &b| {
            let fewest = choices[a].len().cmp(&choices[b].len());
            fewest.then_with(|| utilization(b).cmp(&utilization(a)))
        });
        let mut to_come = vec![(0, u128::MAX); tasks.len() + 1];
        for at in (0..order.len()).rev() {
            let task = &tasks[order[at]].ranked.task;
            let mut demand = Demand::default();
            Rate::new(task.cost, task.period)
                .into_iter()
                .for_each(|rate| demand.add(rate));
            let (sum, least): (u128, u128) = to_come[at + 1];
            let units = demand.units_min();
            to_come[at] = (sum.saturating_add(units), least.min(units));
        }
        Self {
            order,
            kind: kinds(tasks, onto.groups),
            bins: onto
                .groups
                .iter()
                .map(|cpus| Bin::new(cpus, onto))
                .collect(),
            group_of: vec![usize::MAX; tasks.len()],
            choices,
            to_come,
            tasks,
        }
    }

    /// Whether all were given a group; `None` when out of steps.
    fn run(&mut self, steps: &mut Steps) -> Option<bool> {
        // By place in the order: the groups that are still to be tried, the next at the end.
        let mut open: Vec<Vec<usize>> = Vec::new();
        loop {
            let at = open.len();
            if at == self.order.len() {
                return Some(true);
            }
            steps.take(self.bins.len())?;
            open.push(self.candidates(at));
            // Back to the last task that has another choice.
            while !self.advance(&mut open, steps)? {
                open.pop();
                match open.len().checked_sub(1) {
                    None => return Some(false),
                    Some(before) => {
                        let group = self.group_of[self.order[before]];
                        self.bins[group].take_back();
                    }
                }
            }
        }
    }

    /// Gives the last task of those that are open the next group that takes it, if any does.
    fn advance(&mut self, open: &mut [Vec<usize>], steps: &mut Steps) -> Option<bool> {
        let at = open.len() - 1;
        let place = self.order[at];
        while let Some(group) = open[at].pop() {
            let task = &self.tasks[place].ranked;
            if self.bins[group].takes(task, steps)? {
                self.bins[group].put(task);
                self.group_of[place] = group;
                return Some(true);
            }
        }
        Some(false)
    }

    /// The groups worth trying, the fullest last.
    fn candidates(&self, at: usize) -> Vec<usize> {
        if !self.could_fit(at) {
            return Vec::new();
        }
        let all = &self.choices[self.order[at]];
        let mut distinct: Vec<usize> = Vec::new();
        for &group in all {
            let alike = |&other: &usize| {
                self.kind[other] == self.kind[group] && self.bins[other].is_like(&self.bins[group])
            };
            if !distinct.iter().any(alike) {
                distinct.push(group);
            }
        }
        distinct.sort_by_key(|&group| std::cmp::Reverse((self.bins[group].room(), group)));
        distinct
    }

    /// Whether the room that any of the tasks to come could use is enough for all of them.
    fn could_fit(&self, at: usize) -> bool {
        let (needed, least) = self.to_come[at];
        // Each load is rounded down by up to a unit per task, and so is `least`.
        let doubt = self.tasks.len() as u128;
        let rooms = self.bins.iter().map(|bin| bin.room());
        let usable = rooms.filter(|room| *room >= least);
        needed <= usable.fold(doubt, u128::saturating_add)
    }
}

/// A number per group, the same for groups that lie within the same affinities.
fn kinds(tasks: &[Bound], groups: &[CpuSet]) -> Vec<usize> {
    let mut kind = vec![0; groups.len()];
    let mut masks: Vec<&CpuSet> = tasks.iter().map(|bound| &bound.cpus).collect();
    masks.sort_unstable();
    masks.dedup();
    for mask in masks {
        // Numbers stay below the number of groups: each is split into at most two that exist.
        let split: Vec<(usize, bool)> = groups
            .iter()
            .zip(&kind)
            .map(|(group, &kind)| (kind, group.is_subset(mask)))
            .collect();
        let mut known = split.clone();
        known.sort_unstable();
        known.dedup();
        for (number, of) in kind.iter_mut().zip(&split) {
            *number = known.binary_search(of).unwrap_or(CPUS_MAX);
        }
        if known.len() == groups.len() {
            break;
        }
    }
    kind
}
