//! The waiting jobs by affinity and urgency, and which of them have room.

use std::collections::BTreeSet;

use shiftwork_model::TaskId;

use super::InversionKind;
use crate::shift_chain::Key;

/// The keys that have room on a CPU: all below this number, which is one more than the greatest key for an idle CPU.
pub(super) type Limit = u128;

/// The limit of a CPU that no job may have.
pub(super) const NONE: Limit = 0;

/// The limit of an idle CPU.
pub(super) const ALL: Limit = Key::MAX as Limit + 1;

/// The limits of the CPUs that jobs of one affinity could get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Room {
    /// Without a shift.
    pub direct: Limit,
    /// Over shifts as well; at least `direct`.
    pub by_shifts: Limit,
}

impl Room {
    fn kind(self, key: Key) -> Option<InversionKind> {
        let key = Limit::from(key);
        if key < self.direct {
            Some(InversionKind::Direct)
        } else if key < self.by_shifts {
            Some(InversionKind::AffinityRelated)
        } else {
            None
        }
    }
}

/// The waiting jobs of all tasks.
///
/// Invariants: `places` has the queue and the key of each task with a waiting job, and that queue has both; `heads` has
/// the first key of each queue that is not empty; `open` has exactly the queues with room.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    /// By the index of the affinity.
    queues: Vec<Queue>,
    heads: BTreeSet<(Key, usize)>,
    open: BTreeSet<usize>,
    /// By task.
    places: Vec<Option<(usize, Key)>>,
}

/// The waiting jobs of one affinity, most urgent first.
#[derive(Clone, Debug, Default)]
struct Queue {
    jobs: BTreeSet<(Key, TaskId)>,
    room: Room,
}

impl Queue {
    fn head(&self) -> Option<Key> {
        self.jobs.first().map(|&(key, _)| key)
    }

    /// The tasks with keys from `low` up to below `high`.
    fn between(&self, low: Limit, high: Limit) -> impl Iterator<Item = TaskId> {
        let from = Key::try_from(low).ok().filter(|_| low < high);
        let jobs = from.map(|key| self.jobs.range((key, TaskId::from_index(0))..));
        let below = jobs.into_iter().flatten();
        let below = below.take_while(move |(key, _)| Limit::from(*key) < high);
        below.map(|&(_, task)| task)
    }
}

impl Queues {
    pub fn new(tasks: usize) -> Self {
        Self {
            queues: Vec::new(),
            heads: BTreeSet::new(),
            open: BTreeSet::new(),
            places: vec![None; tasks],
        }
    }

    /// Puts the waiting job of the task into the queue of this affinity, at this key; with `None` into none.
    pub fn put(&mut self, id: TaskId, place: Option<(usize, Key)>) {
        let before = std::mem::replace(&mut self.places[id.index()], place);
        if before == place {
            return;
        }
        if let Some((mask, key)) = before {
            self.change(mask, |jobs| jobs.remove(&(key, id)));
        }
        if let Some((mask, key)) = place {
            if mask >= self.queues.len() {
                self.queues.resize_with(mask + 1, Queue::default);
            }
            self.change(mask, |jobs| jobs.insert((key, id)));
        }
    }

    fn change(&mut self, mask: usize, change: impl FnOnce(&mut BTreeSet<(Key, TaskId)>) -> bool) {
        let queue = &mut self.queues[mask];
        let before = queue.head();
        let has_changed = change(&mut queue.jobs);
        debug_assert!(has_changed, "the places of tasks are those in queues");
        let after = queue.head();
        if before == after {
            return;
        }
        if let Some(key) = before {
            self.heads.remove(&(key, mask));
        }
        if let Some(key) = after {
            self.heads.insert((key, mask));
        }
    }

    /// Appends the queues with jobs below this limit, and those that had room before; each once.
    pub fn with_room(&self, limit: Limit, queues: &mut Vec<usize>) {
        queues.extend(&self.open);
        let heads = self.heads.iter();
        let heads = heads.take_while(|(key, _)| Limit::from(*key) < limit);
        let queues_of_heads = heads.map(|&(_, mask)| mask);
        queues.extend(queues_of_heads.filter(|mask| !self.open.contains(mask)));
    }

    /// Whether no job of the queue has a key from `low` up to below `high`.
    pub fn is_none_between(&self, mask: usize, low: Limit, high: Limit) -> bool {
        self.queues[mask].between(low, high).next().is_none()
    }

    /// Sets which keys of a queue have room. Appends the tasks with keys between the old and the new limits.
    pub fn set_room(&mut self, mask: usize, room: Room, tasks: &mut Vec<TaskId>) {
        let queue = &mut self.queues[mask];
        let before = std::mem::replace(&mut queue.room, room);
        if before == room {
            return;
        }
        for (before, after) in [
            (before.direct, room.direct),
            (before.by_shifts, room.by_shifts),
        ] {
            tasks.extend(queue.between(before.min(after), before.max(after)));
        }
        if room == Room::default() {
            self.open.remove(&mask);
        } else {
            self.open.insert(mask);
        }
    }

    /// What would let the waiting job of the task run; `None` if nothing would, or if it has none.
    pub fn kind(&self, id: TaskId) -> Option<InversionKind> {
        let (mask, key) = self.places[id.index()]?;
        self.queues[mask].room.kind(key)
    }
}
