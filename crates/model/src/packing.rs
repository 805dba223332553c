//! Packing of tasks onto groups of CPUs: the one function that partitioned and clustered scheduling,
//! their analysis and the live machine share, so that what is analysed is what runs.

use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};

use num_bigint::BigInt;
use num_rational::Ratio;

use crate::affinity::Affinity;
use crate::cpu::CpuSet;
use crate::taskset::TaskSet;
use crate::utilization::Utilization;

/// Which of the groups with room takes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The first, in the given order.
    First,
    /// The one with the least room left; the first among equals.
    Best,
    /// The one with the most room left; the first among equals.
    Worst,
}

/// In which order tasks are packed, and onto which group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristic {
    /// Which group takes a task.
    pub fit: Fit,
    /// Whether tasks are packed by decreasing utilization (equal ones by index) rather than by index.
    pub decreasing: bool,
}

impl Heuristic {
    /// First fit, decreasing: what partitioned and clustered policies use.
    pub const FFD: Self = Self {
        fit: Fit::First,
        decreasing: true,
    };

    /// All six, by increasing index first.
    pub const ALL: [Self; 6] = {
        const fn of(fit: Fit, decreasing: bool) -> Heuristic {
            Heuristic { fit, decreasing }
        }
        [
            of(Fit::First, false),
            of(Fit::Best, false),
            of(Fit::Worst, false),
            of(Fit::First, true),
            of(Fit::Best, true),
            of(Fit::Worst, true),
        ]
    };

    /// The name of the test: `ff`, `bf`, `wf`, `ffd`, `bfd` or `wfd`.
    pub const fn name(self) -> &'static str {
        match (self.fit, self.decreasing) {
            (Fit::First, false) => "ff",
            (Fit::Best, false) => "bf",
            (Fit::Worst, false) => "wf",
            (Fit::First, true) => "ffd",
            (Fit::Best, true) => "bfd",
            (Fit::Worst, true) => "wfd",
        }
    }
}

/// What packing needs to know of a task.
#[derive(Clone, Copy, Debug)]
pub struct Parcel<'a> {
    /// C/T.
    pub utilization: Utilization,
    /// The CPUs that it may use.
    pub cpus: &'a CpuSet,
}

/// Which group every task was packed onto.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    /// By task index: the index of its group. `None`: the task's affinity holds no whole group.
    pub group_of: Vec<Option<usize>>,
    /// Tasks, by index, that fitted nowhere and went to the least loaded of their groups, in the
    /// order in which they were packed.
    pub overflowed: Vec<usize>,
}

impl Packing {
    /// Whether no group is loaded beyond its number of CPUs by a task that could not be placed.
    pub fn fits(&self) -> bool {
        self.overflowed.is_empty() && self.group_of.iter().all(Option::is_some)
    }
}

/// Packs the tasks of a set onto the groups (disjoint sets of CPUs), first fit, decreasing. See
/// [`pack_by`].
pub fn pack(set: &TaskSet, groups: &[CpuSet]) -> Packing {
    let tasks = set.tasks.iter().map(|task| Parcel {
        utilization: task.utilization(),
        cpus: task.affinity.cpus(),
    });
    pack_by(Heuristic::FFD, tasks, groups)
}

/// Packs tasks onto groups (disjoint sets of CPUs).
///
/// Tasks whose affinity holds exactly one group go there first. The others follow in the order of
/// the heuristic, each onto that group of its affinity that the heuristic chooses among those with
/// room, which is the number of CPUs less the sum of the utilizations there; one that fits nowhere
/// goes to the least loaded of its groups, since a simulation refuses no load. Exact: sums are kept
/// in units of 2^-64, rounded down, and compared as fractions where rounding could matter.
///
/// # Cost
/// O(n log n + n g) additions and comparisons for n tasks and g groups, and 16 g words of affinity for
/// every change of affinity from one task to the next. Two fractions are only compared if their
/// sums agree to a unit per task.
pub fn pack_by<'a>(
    heuristic: Heuristic,
    tasks: impl Iterator<Item = Parcel<'a>>,
    groups: &[CpuSet],
) -> Packing {
    let tasks: Vec<Parcel<'a>> = tasks.collect();
    let mut bins = Bins::new(&tasks, groups);
    let mut choices = Choices::default();
    let mut overflowed = Vec::new();
    let mut movable: Vec<(usize, usize)> = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.iter().enumerate() {
        let choice = choices.of(task.cpus, groups);
        match choices.of_choice[choice].as_slice() {
            [] => {}
            &[only] => {
                if !bins.has_room(only, index) {
                    overflowed.push(index);
                }
                bins.put(index, only);
            }
            _ => movable.push((index, choice)),
        }
    }
    if heuristic.decreasing {
        bins.sort_decreasing(&mut movable);
    }
    for (index, choice) in movable {
        let candidates = &choices.of_choice[choice];
        let group = bins.choose(heuristic.fit, candidates, index);
        if group.is_none() {
            overflowed.push(index);
        }
        bins.put(
            index,
            group.unwrap_or_else(|| bins.least_loaded(candidates)),
        );
    }
    Packing {
        group_of: bins.group_of,
        overflowed,
    }
}

/// The groups that lie within an affinity, in the given order.
pub fn groups_within(groups: &[CpuSet], affinity: &Affinity) -> Vec<usize> {
    within(groups, affinity.cpus())
}

fn within(groups: &[CpuSet], cpus: &CpuSet) -> Vec<usize> {
    (0..groups.len())
        .filter(|&group| groups[group].is_subset(cpus))
        .collect()
}

/// The groups within each affinity. Neighbours usually share one, so the last is looked at first.
#[derive(Default)]
struct Choices<'a> {
    masks: Vec<&'a CpuSet>,
    of_choice: Vec<Vec<usize>>,
}

impl<'a> Choices<'a> {
    /// The index of the groups within these CPUs.
    fn of(&mut self, cpus: &'a CpuSet, groups: &[CpuSet]) -> usize {
        /// Beyond so many affinities back, finding out anew is no slower than searching.
        const LOOKS: usize = 8;
        let known = self.masks.iter().rev().take(LOOKS);
        // Often it is the very same set, of many words.
        let is_it = |mask: &CpuSet| core::ptr::eq(mask, cpus) || mask == cpus;
        match known.copied().position(is_it) {
            Some(back) => self.masks.len() - 1 - back,
            None => {
                self.masks.push(cpus);
                self.of_choice.push(within(groups, cpus));
                self.masks.len() - 1
            }
        }
    }
}

/// One whole CPU, in units.
const CPU: u128 = 1 << 64;

/// What is in the groups so far.
///
/// Invariant: `loads[g]` is the sum of the utilizations of the tasks in group g, each rounded down
/// to units, so the true sum is in `[loads[g], loads[g] + counts[g]]`; `rooms[g]` is what it leaves of
/// the group, so the true room is not more.
struct Bins<'t, 'a> {
    tasks: &'t [Parcel<'a>],
    floors: Vec<u128>,
    capacities: Vec<u128>,
    loads: Vec<u128>,
    rooms: Vec<u128>,
    counts: Vec<u128>,
    group_of: Vec<Option<usize>>,
}

impl<'t, 'a> Bins<'t, 'a> {
    fn new(tasks: &'t [Parcel<'a>], groups: &[CpuSet]) -> Self {
        Self {
            tasks,
            floors: tasks.iter().map(|task| task.utilization.floor()).collect(),
            capacities: groups.iter().map(|cpus| cpus.len() as u128).collect(),
            loads: alloc::vec![0; groups.len()],
            rooms: groups.iter().map(|cpus| cpus.len() as u128 * CPU).collect(),
            counts: alloc::vec![0; groups.len()],
            group_of: alloc::vec![None; tasks.len()],
        }
    }

    fn put(&mut self, task: usize, group: usize) {
        self.loads[group] = self.loads[group].saturating_add(self.floors[task]);
        self.rooms[group] = self.rooms[group].saturating_sub(self.floors[task]);
        self.counts[group] += 1;
        self.group_of[task] = Some(group);
    }

    /// Whether the task still fits there.
    fn has_room(&self, group: usize, task: usize) -> bool {
        let Some(left) = self.rooms[group].checked_sub(self.floors[task]) else {
            return false;
        };
        // With the task there is one rounding more.
        if left > self.counts[group] {
            return true;
        }
        let more = self.tasks[task].utilization.as_ratio();
        self.exact_load(group) + more <= ratio(self.capacities[group])
    }

    /// The group with room that the fit prefers.
    fn choose(&self, fit: Fit, candidates: &[usize], task: usize) -> Option<usize> {
        let least = self.floors[task];
        let mut open = candidates
            .iter()
            .copied()
            .filter(|&group| self.rooms[group] >= least);
        let preferred = match fit {
            Fit::First => return open.find(|&group| self.has_room(group, task)),
            Fit::Best => Ordering::Less,
            Fit::Worst => Ordering::Greater,
        };
        // Among rooms that are further apart than all rounding there is no doubt.
        let doubt = self.tasks.len() as u128;
        let first = open.find(|&group| self.has_room(group, task))?;
        Some(open.fold(first, |best, group| {
            let (room, most) = (self.rooms[group], self.rooms[best]);
            let hopeless = match fit {
                Fit::Worst => room + doubt < most,
                _ => room > most + doubt,
            };
            let better = !hopeless && self.compare_room(group, best) == preferred;
            match better && self.has_room(group, task) {
                true => group,
                false => best,
            }
        }))
    }

    /// Which of two groups has less room. Neither is overloaded.
    fn compare_room(&self, a: usize, b: usize) -> Ordering {
        let doubt = self.counts[a].max(self.counts[b]);
        if doubt == 0 || self.rooms[a].abs_diff(self.rooms[b]) > doubt {
            return self.rooms[a].cmp(&self.rooms[b]);
        }
        let room = |group: usize| ratio(self.capacities[group]) - self.exact_load(group);
        room(a).cmp(&room(b))
    }

    /// By decreasing utilization; equal ones stay in their order.
    fn sort_decreasing(&self, tasks: &mut Vec<(usize, usize)>) {
        // Utilization and place in one word: such keys are sorted fastest.
        let place_bits = usize::BITS - tasks.len().leading_zeros();
        let coarse = |task: usize| {
            let word = u64::try_from(self.floors[task]).unwrap_or(u64::MAX);
            !word >> place_bits << place_bits
        };
        let keys = tasks.iter().enumerate();
        let mut keys: Vec<u64> = keys
            .map(|(place, &(task, _))| coarse(task) | place as u64)
            .collect();
        keys.sort_unstable();
        let place_of = |&key: &u64| (key & ((1 << place_bits) - 1)) as usize;
        let mut sorted: Vec<(usize, usize)> = keys.iter().map(|key| tasks[place_of(key)]).collect();
        // Those with the same word may still differ.
        let exactly = |&(task, _): &(usize, usize)| Reverse(self.tasks[task].utilization);
        sorted
            .chunk_by_mut(|a, b| coarse(a.0) == coarse(b.0))
            .filter(|run| run.len() > 1)
            .for_each(|run| run.sort_by_key(exactly));
        *tasks = sorted;
    }

    /// By load per CPU, to a unit; the first among equals.
    fn least_loaded(&self, candidates: &[usize]) -> usize {
        candidates
            .iter()
            .copied()
            .min_by_key(|&group| self.loads[group] / self.capacities[group].max(1))
            .expect("there is a candidate")
    }

    fn exact_load(&self, group: usize) -> Ratio<BigInt> {
        let members = self.group_of.iter().zip(self.tasks);
        members
            .filter(|(of, _)| **of == Some(group))
            .fold(ratio(0), |sum, (_, task)| sum + task.utilization.as_ratio())
    }
}

fn ratio(whole: u128) -> Ratio<BigInt> {
    Ratio::from_integer(whole.into())
}

#[cfg(test)]
mod tests;
