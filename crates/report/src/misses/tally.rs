//! Groups of the misses of a run.

use std::collections::BTreeMap;

use shiftwork_model::{JobId, Span, TaskId};
use shiftwork_trace::explain::Culprit;

use super::{LossKind, Miss};

/// Misses of one task with the same main loss.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub misses: u64,
    pub worst: Option<(Span, JobId)>,
    /// Total time of that loss.
    pub lost: Span,
    blockers: BTreeMap<TaskId, Span>,
    /// Numbers of misses that a shift, or a wider affinity, would have avoided by the time that it gives.
    pub shift_helps: u64,
    pub wider_helps: u64,
}

impl Group {
    /// Adds the misses of another group.
    fn merge(&mut self, other: &Self) {
        self.misses += other.misses;
        self.lost += other.lost;
        if other.worst.map(|(late, _)| late) > self.worst.map(|(late, _)| late) {
            self.worst = other.worst;
        }
        for (&task, &time) in &other.blockers {
            *self.blockers.entry(task).or_default() += time;
        }
        self.shift_helps += other.shift_helps;
        self.wider_helps += other.wider_helps;
    }

    /// The tasks that used the jobs' CPUs longest, at most `most`.
    pub fn blockers(&self, most: usize) -> Vec<(TaskId, Span)> {
        let mut blockers: Vec<_> = self
            .blockers
            .iter()
            .map(|(&task, &time)| (task, time))
            .collect();
        blockers.sort_by_key(|&(task, time)| (core::cmp::Reverse(time), task));
        blockers.truncate(most);
        blockers
    }
}

/// Misses in groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    groups: BTreeMap<(TaskId, Option<LossKind>), Group>,
    /// Number of misses of jobs with a predecessor that was in time: each begins a row of late jobs.
    pub rows: u64,
}

impl Tally {
    pub(super) fn add(&mut self, miss: &Miss) {
        let most = miss.losses.first();
        self.rows += u64::from(miss.late_since.is_none());
        let key = (miss.late.job.task, most.map(|loss| loss.kind));
        let group = self.groups.entry(key).or_default();
        group.misses += 1;
        group.lost += most.map_or(Span::ZERO, |loss| loss.time);
        let worst = Some((miss.late.tardiness(), miss.late.job));
        if worst.map(|(late, _)| late) > group.worst.map(|(late, _)| late) {
            group.worst = worst;
        }
        for (&task, &(time, _)) in &miss.late.blockers {
            *group.blockers.entry(task).or_default() += time;
        }
        let helps = |culprit| {
            let delay = miss.late.delays.get(&culprit);
            delay.is_some_and(|&(time, _)| miss.explained_by(time))
        };
        let wider = helps(Culprit::NarrowAffinity) || helps(Culprit::NarrowPacking);
        group.shift_helps += u64::from(helps(Culprit::NoShift));
        group.wider_helps += u64::from(wider);
    }

    /// The groups of all tasks together by main loss, each with the number of tasks in it; most misses first.
    pub fn by_loss(&self) -> Vec<(Option<LossKind>, usize, Group)> {
        let mut losses: BTreeMap<Option<LossKind>, (usize, Group)> = BTreeMap::new();
        for (&(_, kind), group) in &self.groups {
            let (tasks, all) = losses.entry(kind).or_default();
            *tasks += 1;
            all.merge(group);
        }
        let mut losses: Vec<_> = losses
            .into_iter()
            .map(|(kind, (tasks, group))| (kind, tasks, group))
            .collect();
        losses.sort_by_key(|(kind, _, group)| (core::cmp::Reverse(group.misses), *kind));
        losses
    }

    /// Number of tasks with misses.
    pub fn tasks(&self) -> usize {
        let mut tasks: Vec<TaskId> = self.groups.keys().map(|&(task, _)| task).collect();
        tasks.dedup();
        tasks.len()
    }

    /// The groups, most misses first.
    pub fn groups(&self) -> Vec<(TaskId, Option<LossKind>, &Group)> {
        let mut groups: Vec<_> = self
            .groups
            .iter()
            .map(|(&(task, kind), group)| (task, kind, group))
            .collect();
        groups.sort_by_key(|&(task, kind, group)| (core::cmp::Reverse(group.misses), task, kind));
        groups
    }
}
