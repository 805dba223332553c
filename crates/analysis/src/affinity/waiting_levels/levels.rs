//! Where a task can wait, and which tasks can keep it waiting there.

use std::ops::Range;

use shiftwork_model::CpuSet;

use crate::affinity::parts::distinct;

/// The most levels that are distinguished; more are merged, which is sound.
pub(super) const LEVELS_MAX: usize = 6;

/// The most sets of CPUs that are looked at as levels before any are merged. If there are more, all are one.
const REACHES_MAX: usize = 64;

/// What the tasks of one affinity wait for: every moment at which one waits belongs to a level, and at it as
/// many tasks inside the level as it has CPUs execute, no more of any group than its capacity.
#[derive(Debug)]
pub(super) struct Program {
    /// By level, how many tasks execute while a task waits there.
    pub(super) sizes: Vec<i128>,
    /// The tasks inside some level. A group precedes its parent.
    pub(super) groups: Vec<Group>,
    /// Groups with the same levels: the levels, and which.
    pub(super) classes: Vec<(usize, Range<usize>)>,
    /// The places of the tasks, group by group.
    pub(super) places: Vec<usize>,
}

/// Tasks of one affinity.
#[derive(Debug)]
pub(super) struct Group {
    /// The levels that contain its affinity, as bits.
    pub(super) levels: usize,
    /// The most of it and of the groups below it that execute at a time: its number of CPUs.
    pub(super) capacity: i128,
    /// Whether its affinity contains that of the tasks that wait.
    pub(super) is_around: bool,
    /// A group with the same levels whose affinity contains this one.
    pub(super) parent: Option<usize>,
    /// Where its tasks are among those of the program.
    pub(super) members: Range<usize>,
}

/// Distinct affinities, the smallest first, and the tasks of each.
pub(super) struct Affinities<'a> {
    masks: Vec<(&'a CpuSet, Vec<usize>)>,
    /// By task the place of its affinity.
    of: Vec<usize>,
}

/// A level before its tasks are known.
struct Level {
    /// The CPUs that are busy while a task waits there.
    cpus: usize,
    /// All CPUs of the affinities of the tasks that keep them busy.
    around: CpuSet,
}

impl<'a> Affinities<'a> {
    /// The affinities of the tasks.
    pub(super) fn new(affinities: impl Iterator<Item = &'a CpuSet>) -> Self {
        let (of, masks) = distinct(affinities);
        let mut masks: Vec<(&CpuSet, Vec<usize>)> =
            masks.into_iter().map(|mask| (mask, Vec::new())).collect();
        for (place, &mask) in of.iter().enumerate() {
            masks[mask].1.push(place);
        }
        masks.sort_by_key(|(mask, members)| (mask.len(), members.first().copied()));
        let mut sorted = of;
        for (place, (_, members)) in masks.iter().enumerate() {
            members.iter().for_each(|&member| sorted[member] = place);
        }
        Self { masks, of: sorted }
    }

    /// The number of distinct affinities.
    pub(super) fn len(&self) -> usize {
        self.masks.len()
    }

    /// The place of a task's affinity.
    pub(super) fn of(&self, task: usize) -> usize {
        self.of[task]
    }

    /// The program of the tasks with the affinity at this place.
    ///
    /// # Cost
    /// O((r + k) k) comparisons of affinities for k of them and at most [`REACHES_MAX`] levels r before any are merged.
    pub(super) fn program(&self, place: usize) -> Program {
        let levels = self.levels(self.masks[place].0);
        let inside = |mask: &CpuSet| {
            let bit =
                |(level, one): (usize, &Level)| usize::from(mask.is_subset(&one.around)) << level;
            levels.iter().enumerate().map(bit).sum::<usize>()
        };
        let mut masks: Vec<(usize, &CpuSet, &[usize])> = self
            .masks
            .iter()
            .map(|(mask, members)| (inside(mask), *mask, members.as_slice()))
            .filter(|&(levels, ..)| levels > 0)
            .collect();
        masks.sort_by_key(|&(levels, ..)| levels);
        let (mut groups, mut places) = (Vec::new(), Vec::new());
        for (child, &(levels, mask, members)) in masks.iter().enumerate() {
            let begin = places.len();
            places.extend_from_slice(members);
            let is_parent =
                |&other: &usize| masks[other].0 == levels && mask.is_subset(masks[other].1);
            groups.push(Group {
                levels,
                capacity: mask.len() as i128,
                is_around: self.masks[place].0.is_subset(mask),
                parent: (child + 1..masks.len()).find(is_parent),
                members: begin..places.len(),
            });
        }
        let mut end = 0;
        let class = |class: &[Group]| {
            let begin = end;
            end += class.len();
            (class[0].levels, begin..end)
        };
        let classes = groups.chunk_by(|one, next| one.levels == next.levels);
        Program {
            classes: classes.map(class).collect(),
            sizes: levels.iter().map(|level| level.cpus as i128).collect(),
            groups,
            places,
        }
    }

    /// The levels at which a task with this affinity can wait, the smallest first: those of its reaches that other
    /// tasks can fill. Where there are too many, neighbours are merged: while a task waits at either, as many tasks
    /// inside the union execute as the smaller has CPUs.
    fn levels(&self, own: &CpuSet) -> Vec<Level> {
        let mut levels: Vec<Level> = self
            .reaches(own)
            .into_iter()
            .filter(|reach| self.tasks_inside(&reach.around) > reach.cpus)
            .collect();
        levels.sort_by_key(|level| level.cpus);
        while levels.len() > LEVELS_MAX {
            // Where the number of CPUs grows by the least factor.
            let loss = |&at: &usize| levels[at + 1].cpus * 1_000 / levels[at].cpus;
            let at = (0..levels.len() - 1).min_by_key(loss).unwrap_or(0);
            levels[at].around = levels[at].around | levels[at + 1].around;
            levels.remove(at + 1);
        }
        levels
    }

    /// What grows from this affinity by adding affinities that share a CPU: one after the other contains all sets of
    /// CPUs that can be the reach of a task. If there are too many, one that stands for all: its CPUs are those of
    /// the affinity, and its tasks are inside everything that can be reached.
    fn reaches(&self, own: &CpuSet) -> Vec<Level> {
        let mut reaches = vec![*own];
        let mut next = 0;
        while let Some(&from) = reaches.get(next) {
            next += 1;
            for (mask, _) in &self.masks {
                let union = from | **mask;
                if mask.intersects(&from) && !reaches.contains(&union) {
                    reaches.push(union);
                }
            }
            if reaches.len() > REACHES_MAX {
                let cpus = own.len();
                let around = self.component(own);
                return vec![Level { cpus, around }];
            }
        }
        let level = |around: CpuSet| Level {
            cpus: around.len(),
            around,
        };
        reaches.into_iter().map(level).collect()
    }

    /// All CPUs that affinities connect with these.
    fn component(&self, own: &CpuSet) -> CpuSet {
        let mut around = *own;
        loop {
            let touching = self
                .masks
                .iter()
                .filter(|(mask, _)| mask.intersects(&around));
            let grown = touching.fold(around, |all, (mask, _)| all | **mask);
            if grown == around {
                return around;
            }
            around = grown;
        }
    }

    fn tasks_inside(&self, cpus: &CpuSet) -> usize {
        let inside = self.masks.iter().filter(|(mask, _)| mask.is_subset(cpus));
        inside.map(|(_, members)| members.len()).sum()
    }
}
