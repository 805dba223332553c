//! What affinities take from a task set: the largest common factor on all costs that fits the CPUs with them and
//! without, and the change of one affinity that makes it largest.

use std::collections::BTreeSet;

use num_bigint::BigInt;
use num_rational::Ratio;
use shiftwork_model::{CpuId, CpuSet, Share, TaskId, TaskSet};

use super::{Groups, flow};
use crate::Steps;
use crate::exact::{Demand, Rate, beside, fraction};

/// By how much all costs could grow, whatever the scheduler, with the affinities of a task set and without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffinityLoss {
    /// The largest factor on all costs with which the utilizations fit the CPUs, below 1 if they do not.
    pub factor: Ratio<BigInt>,
    /// The same if every task could use every CPU.
    pub without: Ratio<BigInt>,
    /// What limits the factor; `None` if affinities take nothing, so that both factors are equal.
    pub bottleneck: Option<Bottleneck>,
    /// The best change of the affinity of one task, if any makes the factor larger; then that of all tasks with one
    /// affinity, if it makes it larger still.
    pub changes: Vec<Widening>,
}

/// Tasks that may run only on these CPUs and, with the factor, use them up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bottleneck {
    /// The tasks, ascending.
    pub tasks: Vec<TaskId>,
    /// All CPUs that any of them may use.
    pub cpus: CpuSet,
}

/// One CPU more for some tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Widening {
    /// One task, or all with one affinity, ascending.
    pub tasks: Vec<TaskId>,
    /// The CPU that they may use as well.
    pub cpu: CpuId,
    /// The largest factor on all costs then.
    pub factor: Ratio<BigInt>,
}

/// What the affinities of a task set cost it beside this reserve of each CPU. Exact. `None` if there is no task, or one
/// without cost, or one without a CPU of the platform.
///
/// A factor fits if no task needs more than a whole CPU and no set of CPUs less than the tasks need that may run nowhere
/// else (Hall's condition). For deadlines at the end of the period or later that is feasibility; with shorter
/// ones it is necessary. Of changes that are equally good, the first task and the lowest CPU are named.
///
/// # Assumes
/// Sporadic tasks, independent, CPUs alike.
///
/// # Cost
/// The factors: a few maximum flows, whatever the steps. Changes: until the steps are used up, a few sums for each task
/// in the bottleneck and each CPU outside of it that no other stands for, and a few flows for each that may be the best.
///
/// # Source
/// The condition: see [`flow`]. The factor: W. Dinkelbach, "On nonlinear fractional programming", Management Science
/// 13(7), 1967, in which each cut gives the next factor.
pub fn affinity_loss(set: &TaskSet, reserve: Share, steps: &mut Steps) -> Option<AffinityLoss> {
    let tasks = Tasks::of(set)?;
    let all = set.platform.all();
    let groups = tasks.groups(|place| tasks.masks[place]);
    let mut limits = Limits::new(&tasks, beside(reserve));
    let unlimited = &mut Steps::at_most(u64::MAX);
    let without = limits.largest(&tasks.groups(|_| all), None, unlimited)?;
    let with = limits.largest(&groups, None, unlimited)?;
    let mut loss = AffinityLoss {
        bottleneck: None,
        changes: Vec::new(),
        factor: with.factor,
        without: without.factor,
    };
    let Some(cpus) = with.full.filter(|_| loss.factor < loss.without) else {
        return Some(loss);
    };
    let inside = (0..tasks.masks.len()).filter(|&place| tasks.masks[place].is_subset(&cpus));
    let inside: Vec<usize> = inside.collect();
    // Wherever else the factor is to be larger, these CPUs have to be relieved.
    let outside = flow::cells(&[&tasks.masks[..], &[all, cpus]].concat());
    let outside = outside.iter().filter(|cell| !cell.intersects(&cpus));
    let search = Search {
        tasks: &tasks,
        cpus: outside.filter_map(CpuSet::lowest).collect(),
    };
    let mut best = loss.factor.clone();
    let groups = search.groups(&inside);
    for candidates in [search.single(&inside), groups] {
        if let Some(change) = search.best(&candidates, &best, &mut limits, steps) {
            best = change.factor.clone();
            loss.changes.push(change);
        }
    }
    loss.bottleneck = Some(Bottleneck {
        tasks: inside.into_iter().map(TaskId::from_index).collect(),
        cpus,
    });
    Some(loss)
}

/// The tasks of a set: what they need and where they may run, by place.
struct Tasks {
    rates: Vec<Rate>,
    masks: Vec<CpuSet>,
}

impl Tasks {
    fn of(set: &TaskSet) -> Option<Self> {
        let is_possible = |task: &shiftwork_model::Task| {
            !task.cost.is_zero() && task.affinity.cpus().intersects(&set.platform.all())
        };
        if set.tasks.is_empty() || !set.tasks.iter().all(is_possible) {
            return None;
        }
        let rates = set.tasks.iter();
        let rates: Option<_> = rates
            .map(|task| Rate::new(task.cost, task.period))
            .collect();
        let masks = set.tasks.iter();
        Some(Self {
            rates: rates?,
            masks: masks
                .map(|task| *task.affinity.cpus() & set.platform.all())
                .collect(),
        })
    }

    fn groups(&self, mask: impl Fn(usize) -> CpuSet) -> Groups {
        let mut groups = Groups::default();
        for (place, &rate) in self.rates.iter().enumerate() {
            groups.add(TaskId::from_index(place), mask(place), rate);
        }
        groups
    }
}

/// A factor, and the CPUs that are full with it; `None` if one task alone needs a whole CPU.
#[derive(Clone)]
struct Largest {
    factor: Ratio<BigInt>,
    full: Option<CpuSet>,
}

/// What limits factors, whatever the affinities.
struct Limits {
    supply: Ratio<BigInt>,
    /// With this factor the largest task needs a whole CPU.
    alone: Ratio<BigInt>,
    /// Sets of CPUs that limited some factor: with similar affinities they often do, too.
    crowded: BTreeSet<CpuSet>,
    /// Of one sum or one flow.
    steps: usize,
}

impl Limits {
    fn new(tasks: &Tasks, supply: Share) -> Self {
        let largest = tasks.rates.iter().map(|rate| rate.to_fraction()).max();
        let mut demand = Demand::default();
        tasks.rates.iter().for_each(|&rate| demand.add(rate));
        Self {
            supply: fraction(supply),
            alone: largest.map_or_else(|| BigInt::from(1).into(), |largest| largest.recip()),
            crowded: BTreeSet::new(),
            steps: tasks.rates.len() + demand.periods() * demand.periods(),
        }
    }

    /// The largest factor for these groups. What is returned may be larger than the largest if that is not above
    /// `enough`, which is then the case. `None` if the steps are used up.
    fn largest(
        &mut self,
        groups: &Groups,
        enough: Option<&Ratio<BigInt>>,
        steps: &mut Steps,
    ) -> Option<Largest> {
        let mut least = Largest {
            factor: self.alone.clone(),
            full: None,
        };
        let masks = groups.iter().map(|(mask, _)| *mask);
        let known: BTreeSet<CpuSet> = match enough {
            Some(_) => self.crowded.clone(),
            None => masks.chain(self.crowded.iter().copied()).collect(),
        };
        for cpus in known {
            steps.take(self.steps)?;
            self.lower(&mut least, groups, cpus);
        }
        while enough.is_none_or(|enough| least.factor > *enough) {
            steps.take(self.steps * groups.iter().count())?;
            let Some(crowd) = flow::shortage_at(groups, &(&self.supply / &least.factor)) else {
                break;
            };
            self.lower(&mut least, groups, crowd.cpus);
            self.crowded.insert(crowd.cpus);
        }
        self.crowded.extend(least.full);
        Some(least)
    }

    /// What these CPUs supply by what the tasks need that may use no others, if that is less, or as much on fewer CPUs.
    fn lower(&self, least: &mut Largest, groups: &Groups, cpus: CpuSet) {
        let mut needed = Demand::default();
        let inside = groups.iter().filter(|(mask, _)| mask.is_subset(&cpus));
        inside.for_each(|(_, group)| needed.merge(group.demand()));
        if needed.tasks() == 0 {
            return;
        }
        let factor = &self.supply * BigInt::from(cpus.len()) / needed.to_fraction();
        let is_smaller = || least.full.is_some_and(|full| cpus.len() < full.len());
        if factor < least.factor || factor == least.factor && is_smaller() {
            *least = Largest {
                factor,
                full: Some(cpus),
            };
        }
    }
}

/// Changes that may be tried.
struct Search<'a> {
    tasks: &'a Tasks,
    /// The CPUs that tasks may get, one of each kind.
    cpus: Vec<CpuId>,
}

impl Search<'_> {
    /// Each of these tasks alone, those that need as much on the same CPUs once; the largest first, which may win most.
    fn single(&self, inside: &[usize]) -> Vec<Vec<usize>> {
        let mut seen = Vec::new();
        let mut places: Vec<usize> = inside.to_vec();
        places.retain(|&place| {
            let kind = (self.tasks.rates[place], self.tasks.masks[place]);
            let is_new = !seen.contains(&kind);
            seen.push(kind);
            is_new
        });
        places.sort_by_key(|&place| std::cmp::Reverse(self.tasks.rates[place].to_fraction()));
        places.into_iter().map(|place| vec![place]).collect()
    }

    /// All of these tasks that have one affinity.
    fn groups(&self, inside: &[usize]) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for &place in inside {
            let mask = self.tasks.masks[place];
            match groups
                .iter_mut()
                .find(|one| self.tasks.masks[one[0]] == mask)
            {
                Some(group) => group.push(place),
                None => groups.push(vec![place]),
            }
        }
        groups
    }

    /// The change that makes the factor largest and larger than this; `None` if none does that was tried.
    fn best(
        &self,
        candidates: &[Vec<usize>],
        above: &Ratio<BigInt>,
        limits: &mut Limits,
        steps: &mut Steps,
    ) -> Option<Widening> {
        let mut best: Option<Widening> = None;
        for places in candidates {
            for &cpu in &self.cpus {
                let groups = self.tasks.groups(|place| {
                    let mask = self.tasks.masks[place];
                    match places.contains(&place) {
                        true => mask | CpuSet::single(cpu),
                        false => mask,
                    }
                });
                let enough = best.as_ref().map_or(above, |best| &best.factor);
                let Some(found) = limits.largest(&groups, Some(enough), steps) else {
                    return best;
                };
                if found.factor > *enough {
                    let tasks = places.iter().map(|&place| TaskId::from_index(place));
                    best = Some(Widening {
                        tasks: tasks.collect(),
                        cpu,
                        factor: found.factor,
                    });
                }
            }
        }
        best
    }
}
