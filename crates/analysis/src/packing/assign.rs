//! Affinities for tasks whose present ones ask too much.

use shiftwork_model::{Affinities, CpuSet, Placement, Share, TaskId};

use super::search::{Found, search};
use super::{Fit, Heuristic, Onto, pack};
use crate::admission::{Guarantee, Terms};
use crate::affinity::{Bound, Groups, laminar, reduction, reduction_edf};
use crate::exact::{Rate, beside};
use crate::{Outcome, Placed, Steps};

/// Affinities that make a task set schedulable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The CPUs of each task, in the order of the tasks, within those that it may use.
    pub cpus: Vec<CpuSet>,
    /// What the policy guarantees with them: deadlines, or bounded tardiness.
    pub guarantee: Guarantee,
}

/// Affinities for the tasks, each within those CPUs of `cpus` that it may use, under which the
/// policy of these terms guarantees as much as is found; `None` if nothing was found, which shows
/// only then that there is nothing if the demand does not fit at all.
///
/// In this order: one CPU for each task, by the heuristics and then by search, which finds it if
/// there is one and the steps last; then, unless the policy is partitioned, deadlines with few CPUs
/// for each task (one for all but those that find none, or the least clusters that will do), shown by
/// the reduction to global scheduling; then, under EDF with the strong invariant, bounded tardiness
/// with as many tasks as possible on one CPU. The same input gives the same answer.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension.
///
/// # Cost
/// At most `steps`, of which the search takes at most 4 million.
pub fn assign(
    tasks: &[Bound],
    cpus: &CpuSet,
    terms: Terms,
    steps: &mut Steps,
) -> Option<Assignment> {
    let tasks: Vec<Bound> = tasks
        .iter()
        .map(|bound| Bound {
            cpus: bound.cpus & *cpus,
            ..*bound
        })
        .collect();
    let supply = beside(terms.reserve);
    let groups = groups(&tasks)?;
    steps.take(tasks.len())?;
    if groups.shortage(supply).0.is_some() {
        return None;
    }
    let singles: Vec<CpuSet> = cpus.iter().map(CpuSet::single).collect();
    let plan = Plan {
        tasks: &tasks,
        terms,
        supply,
        singles: Onto {
            groups: &singles,
            order: terms.policy.order,
            supply,
        },
    };
    let one_each = |cpus| Assignment {
        cpus,
        guarantee: Guarantee::Hard,
    };
    if let Some(found) = plan.by_heuristics(steps) {
        return Some(one_each(found));
    }
    // The last resort comes before what may use up all steps.
    let is_partitioned = terms.policy.placement == Placement::Partitioned;
    let mostly_single = (!is_partitioned).then(|| plan.mostly_on_one_cpu(steps));
    let resort = mostly_single
        .as_ref()
        .and_then(|cpus| plan.with_bounded_tardiness(cpus.clone(), steps));
    if let Some(found) = plan.by_search(steps) {
        return Some(one_each(found));
    }
    plan.with_deadlines(mostly_single?, cpus, steps).or(resort)
}

/// The tasks by affinity; `None` if one of them cannot be or has no CPU.
fn groups(tasks: &[Bound]) -> Option<Groups> {
    let mut groups = Groups::default();
    for (index, bound) in tasks.iter().enumerate() {
        let task = &bound.ranked.task;
        let rate = Rate::new(task.cost, task.period)?;
        if !task.is_possible() || rate.exceeds_one() || bound.cpus.is_empty() {
            return None;
        }
        groups.add(TaskId::from_index(index), bound.cpus, rate);
    }
    Some(groups)
}

struct Plan<'a> {
    tasks: &'a [Bound],
    terms: Terms,
    supply: Share,
    singles: Onto<'a>,
}

impl Plan<'_> {
    fn by_heuristics(&self, steps: &mut Steps) -> Option<Vec<CpuSet>> {
        decreasing_first().find_map(|heuristic| {
            match pack(self.tasks, &self.singles, heuristic, steps) {
                Outcome::Pass(groups) => Some(self.cpus_of(&groups)),
                Outcome::Fail(_) | Outcome::StepLimit => None,
            }
        })
    }

    fn by_search(&self, steps: &mut Steps) -> Option<Vec<CpuSet>> {
        match search(self.tasks, &self.singles, &mut share_of(steps)) {
            Found::Groups(groups) => Some(self.cpus_of(&groups)),
            Found::Nothing | Found::StepLimit => None,
        }
    }

    fn cpus_of(&self, groups: &[usize]) -> Vec<CpuSet> {
        let cpus = groups.iter().map(|&group| self.singles.groups[group]);
        cpus.collect()
    }

    /// As few CPUs for each task as the reduction to global scheduling shows to be enough.
    fn with_deadlines(
        &self,
        mostly_single: Vec<CpuSet>,
        cpus: &CpuSet,
        steps: &mut Steps,
    ) -> Option<Assignment> {
        let mut proposals: Vec<Vec<CpuSet>> = vec![mostly_single];
        let mut size = 2;
        while size <= cpus.len() {
            proposals.extend(self.on_clusters(cpus, size, steps));
            size *= 2;
        }
        proposals.push(self.tasks.iter().map(|bound| bound.cpus).collect());
        let shown = |cpus: &Vec<CpuSet>| self.is_taken(cpus) && self.is_shown(cpus, steps);
        proposals.into_iter().find(shown).map(|cpus| Assignment {
            cpus,
            guarantee: Guarantee::Hard,
        })
    }

    /// Clusters of neighbours, the tasks spread evenly; `None` if a task's affinity has no whole one
    /// or there is no room.
    fn on_clusters(&self, cpus: &CpuSet, size: usize, steps: &mut Steps) -> Option<Vec<CpuSet>> {
        let all: Vec<_> = cpus.iter().collect();
        let clusters: Vec<CpuSet> = all
            .chunks(size)
            .map(|chunk| chunk.iter().copied().collect())
            .collect();
        let onto = Onto {
            groups: &clusters,
            ..self.singles
        };
        let evenly = Heuristic {
            fit: Fit::Worst,
            decreasing: true,
        };
        match pack(self.tasks, &onto, evenly, steps) {
            Outcome::Pass(groups) => {
                Some(groups.into_iter().map(|group| clusters[group]).collect())
            }
            Outcome::Fail(_) | Outcome::StepLimit => None,
        }
    }

    /// One CPU for each task that finds one, first fit, decreasing; all of its own for the others.
    fn mostly_on_one_cpu(&self, steps: &mut Steps) -> Vec<CpuSet> {
        let mut left: Vec<usize> = (0..self.tasks.len()).collect();
        let mut wide: Vec<usize> = Vec::new();
        loop {
            let tasks: Vec<Bound> = left.iter().map(|&place| self.tasks[place]).collect();
            match pack(&tasks, &self.singles, Heuristic::FFD, steps) {
                Outcome::Pass(groups) => {
                    let mut cpus: Vec<CpuSet> = self.tasks.iter().map(|bound| bound.cpus).collect();
                    for (place, group) in left.into_iter().zip(groups) {
                        cpus[place] = self.singles.groups[group];
                    }
                    return cpus;
                }
                // A task that fits on no CPU is not tried again.
                Outcome::Fail(unplaced) => wide.push(left.remove(unplaced.place)),
                Outcome::StepLimit => return self.tasks.iter().map(|bound| bound.cpus).collect(),
            }
        }
    }

    /// Whether the policy takes affinities of this shape.
    fn is_taken(&self, cpus: &[CpuSet]) -> bool {
        let nested = || laminar::Tree::new(&self.groups(cpus)).is_some();
        self.terms.policy.affinities != Affinities::Laminar || nested()
    }

    fn is_shown(&self, cpus: &[CpuSet], steps: &mut Steps) -> bool {
        let with = self.tasks.iter().zip(cpus);
        if self.terms.is_edf() {
            let tasks: Vec<Placed> = with
                .map(|(bound, &cpus)| Placed {
                    task: bound.ranked.task,
                    cpus,
                })
                .collect();
            matches!(reduction_edf(&tasks, self.supply, steps), Outcome::Pass(_))
        } else {
            let tasks: Vec<Bound> = with
                .map(|(bound, &cpus)| Bound { cpus, ..*bound })
                .collect();
            matches!(reduction(&tasks, self.supply, steps), Outcome::Pass(()))
        }
    }

    /// As few tasks on several CPUs as still fit, under EDF with the strong invariant and implicit
    /// deadlines, where all that fits has bounded tardiness.
    fn with_bounded_tardiness(
        &self,
        mut cpus: Vec<CpuSet>,
        steps: &mut Steps,
    ) -> Option<Assignment> {
        let shifts = self.terms.policy.placement.shifts();
        let implicit = |bound: &Bound| bound.ranked.task.deadline == bound.ranked.task.period;
        if !shifts || !self.terms.is_edf() || !self.tasks.iter().all(implicit) {
            return None;
        }
        // Some may have to leave their CPU to others that cannot go elsewhere.
        while let Some(crowd) = self.groups(&cpus).shortage(self.supply).0 {
            steps.take(self.tasks.len())?;
            let narrow = (0..cpus.len()).find(|&place| {
                cpus[place].is_subset(&crowd.cpus) && cpus[place] != self.tasks[place].cpus
            });
            let place = narrow?;
            cpus[place] = self.tasks[place].cpus;
        }
        self.is_taken(&cpus).then_some(Assignment {
            cpus,
            guarantee: Guarantee::BoundedTardiness,
        })
    }

    fn groups(&self, cpus: &[CpuSet]) -> Groups {
        let with = self.tasks.iter().zip(cpus);
        let bounds: Vec<Bound> = with
            .map(|(bound, &cpus)| Bound { cpus, ..*bound })
            .collect();
        groups(&bounds).unwrap_or_default()
    }
}

fn decreasing_first() -> impl Iterator<Item = Heuristic> {
    let of = |decreasing: bool| {
        Heuristic::ALL
            .into_iter()
            .filter(move |h| h.decreasing == decreasing)
    };
    of(true).chain(of(false))
}

/// The steps of the search: so many, or all that are left.
fn share_of(steps: &mut Steps) -> Steps {
    const MOST: usize = 4_000_000;
    let mut after = *steps;
    match after.take(MOST) {
        Some(()) => {
            *steps = after;
            Steps::at_most(MOST as u64)
        }
        None => std::mem::replace(steps, Steps::at_most(0)),
    }
}
