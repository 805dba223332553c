//! Quanta allocated to subtasks by PD2.

use std::cmp::Reverse;
use std::collections::VecDeque;

use shiftwork_model::{CpuSet, Instant, RecordKind, TaskId};

use super::PfairShare;
use crate::check::Findings;
use crate::check::state::State;

/// The key of PD2: the deadline; the b-bit; among subtasks with b-bit 1 the later group deadline. The rest breaks
/// ties: the beginning of the window, then the task.
type Key = (u128, bool, Reverse<u128>, u128, usize);

/// The slots of a run, by the definition: in each slot the first subtasks in PD2's order of those whose windows
/// have begun, as many as there are CPUs.
///
/// # Source
/// J. Anderson, A. Srinivasan, "Mixed Pfair/ERfair Scheduling of Asynchronous Periodic Tasks", Journal of
/// Computer and System Sciences 68(1), 2004.
#[derive(Clone, Debug)]
pub(super) struct Subtasks {
    length: u64,
    early_release: bool,
    tasks: Vec<Task>,
    groups: Vec<Group>,
}

#[derive(Clone, Debug)]
struct Task {
    /// e and p, the weight.
    quanta: u128,
    slots: u128,
    /// The jobs that have not received all their quanta: the slot in which the windows of each begin.
    jobs: VecDeque<u128>,
    /// Number of quanta that the first of them has received.
    had: u128,
    /// The slot before which no window of the next job begins.
    not_before: u128,
}

#[derive(Clone, Debug)]
struct Group {
    cpus: CpuSet,
    members: Vec<usize>,
    /// The tasks that PD2 selects for the current slot.
    chosen: Vec<usize>,
    /// The tasks with a quantum of it, and the CPUs on which it has begun.
    began: Vec<usize>,
    begun: CpuSet,
    slot: u64,
    /// Whether the windows are known.
    is_checked: bool,
}

impl Task {
    /// The next subtask, if it may have the slot.
    fn next(&self, index: usize, slot: u128, early_release: bool) -> Option<Key> {
        let (e, p) = (self.quanta, self.slots);
        let seen = *self.jobs.front()?;
        let number = self.had + 1;
        let release = seen + self.had * p / e;
        let from = if early_release { seen } else { release };
        let after = (number * p).div_ceil(e);
        let overlaps = !(number * p).is_multiple_of(e);
        let group = match overlaps {
            true if e >= p => u128::MAX,
            // As published: ceil(ceil(ceil(i/w) (1 - w)) / (1 - w)).
            true if 2 * e >= p => seen + ((after * (p - e)).div_ceil(p) * p).div_ceil(p - e),
            _ => 0,
        };
        let key = (seen + after, !overlaps, Reverse(group), release, index);
        (from <= slot).then_some(key)
    }
}

impl Subtasks {
    pub fn new(length: u64, shares: &[PfairShare], early_release: bool) -> Self {
        let task = |share: &PfairShare| Task {
            quanta: share.quanta.max(1).into(),
            slots: share.slots.max(1).into(),
            jobs: VecDeque::new(),
            had: 0,
            not_before: 0,
        };
        let mut groups: Vec<Group> = Vec::new();
        for (index, share) in shares.iter().enumerate() {
            match groups.iter_mut().find(|group| group.cpus == share.group) {
                Some(group) => group.members.push(index),
                None => groups.push(Group {
                    cpus: share.group,
                    members: vec![index],
                    chosen: Vec::new(),
                    began: Vec::new(),
                    begun: CpuSet::EMPTY,
                    slot: 0,
                    is_checked: true,
                }),
            }
        }
        Self {
            length,
            early_release,
            tasks: shares.iter().map(task).collect(),
            groups,
        }
    }

    /// Takes a record of the instant.
    pub fn take(&mut self, at: Instant, kind: &RecordKind) {
        match *kind {
            RecordKind::Released { job, .. } => {
                let Some(task) = self.tasks.get_mut(job.task.index()) else {
                    return;
                };
                let seen = u128::from(at.as_ns().div_ceil(self.length.max(1)));
                let seen = seen.max(task.not_before);
                task.not_before = seen + task.slots;
                task.jobs.push_back(seen);
            }
            RecordKind::Ready { .. }
            | RecordKind::Completed { .. }
            | RecordKind::Switched { .. }
            | RecordKind::Interrupted { .. }
            | RecordKind::Demoted { .. }
            | RecordKind::Refused { .. } => {}
            // Windows then depend on more than this checker knows.
            _ => self
                .groups
                .iter_mut()
                .for_each(|group| group.is_checked = false),
        }
    }

    /// Checks the slots that have begun on the last CPU of their group. `due`: the CPUs on which slots begin.
    pub fn check(&mut self, due: &CpuSet, (now, state): (Instant, &State), found: &mut Findings) {
        let slot = now.as_ns() / self.length.max(1);
        for group in &mut self.groups {
            let here = *due & group.cpus;
            if here.is_empty() || !group.is_checked {
                continue;
            }
            if group.begun.is_empty() {
                group.choose(&mut self.tasks, slot, self.early_release);
            }
            let on = here.iter().filter_map(|cpu| state.on(cpu));
            group.began.extend(on.map(|job| job.task.index()));
            group.begun = group.begun | here;
            if group.begun == group.cpus {
                group.compare((now, state), found);
            }
        }
    }
}

impl Group {
    /// Selects the tasks for the slot, by the definition.
    fn choose(&mut self, tasks: &mut [Task], slot: u64, early_release: bool) {
        self.slot = slot;
        let members = self.members.iter();
        let mut keys: Vec<Key> = members
            .filter_map(|&index| tasks[index].next(index, slot.into(), early_release))
            .collect();
        keys.sort_unstable();
        keys.truncate(self.cpus.len());
        self.chosen.clear();
        for (.., index) in keys {
            self.chosen.push(index);
            let task = &mut tasks[index];
            task.had += 1;
            if task.had == task.quanta {
                task.had = 0;
                task.jobs.pop_front();
            }
        }
    }

    /// Compares a slot that has begun on all CPUs. After a difference nothing more is checked.
    fn compare(&mut self, (now, state): (Instant, &State), found: &mut Findings) {
        self.chosen.sort_unstable();
        self.began.sort_unstable();
        if self.chosen != self.began {
            let names = |tasks: &[usize]| -> String {
                let name = |&index: &usize| match state.tasks.get(index) {
                    Some(task) => task.name.clone(),
                    None => format!("{:?}", TaskId::from_index(index)),
                };
                match tasks {
                    [] => String::from("no task"),
                    tasks => tasks.iter().map(name).collect::<Vec<_>>().join(", "),
                }
            };
            let (began, chosen, slot) = (names(&self.began), names(&self.chosen), self.slot);
            found.add(now, || {
                format!("in slot {slot} quanta of {began} begin, and PD2 chooses {chosen}")
            });
            self.is_checked = false;
        }
        self.began.clear();
        self.begun = CpuSet::EMPTY;
    }
}
