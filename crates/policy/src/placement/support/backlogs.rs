//! Backlogged jobs under arbitrary affinities: one heap per distinct mask.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use shiftwork_model::TaskId;

use super::mask::Mask;
use super::ready::{Backlog, HeapPositions};
use crate::order::JobOrder;

/// Index of a distinct mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MaskIndex(u32);

/// A mask with backlogged jobs, and the most urgent of them. Kept apart from the heaps so that a
/// search reads one dense array.
#[derive(Clone, Copy, Debug)]
struct Waiting<K, M> {
    cpus: M,
    top: K,
    index: MaskIndex,
}

#[derive(Debug)]
struct MaskBacklog<O: JobOrder, M> {
    cpus: M,
    heap: Backlog<O>,
    /// How often a task joined, at most the number of tasks: room for that many jobs.
    joined: usize,
    /// Place in `waiting`, while the heap is not empty.
    place: usize,
}

/// One heap of backlogged jobs per distinct mask.
///
/// Invariant: `waiting` holds exactly the masks whose heap is not empty, each with its top.
#[derive(Debug)]
pub(crate) struct Backlogs<O: JobOrder, M> {
    masks: Vec<MaskBacklog<O, M>>,
    indices: BTreeMap<M, MaskIndex>,
    waiting: Vec<Waiting<O::Key, M>>,
    positions: HeapPositions,
}

impl<O: JobOrder, M: Mask> Backlogs<O, M> {
    pub fn new() -> Self {
        Self {
            masks: Vec::new(),
            indices: BTreeMap::new(),
            waiting: Vec::new(),
            positions: HeapPositions::default(),
        }
    }

    /// The index of this mask, which may be a new one, with room for the job of one more task.
    pub fn join(&mut self, cpus: M) -> MaskIndex {
        let masks = &mut self.masks;
        let index = *self.indices.entry(cpus).or_insert_with(|| {
            masks.push(MaskBacklog {
                cpus,
                heap: Backlog::default(),
                joined: 0,
                place: 0,
            });
            MaskIndex((masks.len() - 1) as u32)
        });
        self.waiting.reserve(self.masks.len() - self.waiting.len());
        let mask = &mut self.masks[index.0 as usize];
        // A task joins again whenever its affinity changes.
        mask.joined = (mask.joined + 1).min(self.positions.tasks());
        mask.heap.reserve(mask.joined);
        index
    }

    /// Makes room for the task.
    pub fn enter(&mut self, task: TaskId) {
        self.positions.enter(task);
    }

    pub fn push(&mut self, index: MaskIndex, key: O::Key) {
        let mask = &mut self.masks[index.0 as usize];
        let was_empty = mask.heap.is_empty();
        mask.heap.push(key, &mut self.positions);
        if was_empty {
            mask.place = self.waiting.len();
            self.waiting.push(Waiting {
                cpus: mask.cpus,
                top: key,
                index,
            });
        } else {
            self.waiting[mask.place].top = mask.heap.top();
        }
    }

    pub fn remove(&mut self, index: MaskIndex, task: TaskId) {
        let mask = &mut self.masks[index.0 as usize];
        mask.heap.remove(task, &mut self.positions);
        let place = mask.place;
        if !mask.heap.is_empty() {
            self.waiting[place].top = mask.heap.top();
            return;
        }
        self.waiting.swap_remove(place);
        if let Some(moved) = self.waiting.get(place) {
            self.masks[moved.index.0 as usize].place = place;
        }
    }

    /// The CPUs of a distinct mask.
    pub fn cpus(&self, index: MaskIndex) -> M {
        self.masks[index.0 as usize].cpus
    }

    /// The most urgent backlogged job of all. O(masks with a backlog).
    pub fn most_urgent(&self) -> Option<O::Key> {
        self.waiting.iter().map(|waiting| waiting.top).min()
    }

    /// The most urgent backlogged job that may use one of these CPUs. O(masks with a backlog).
    pub fn most_urgent_on(&self, cpus: M) -> Option<O::Key> {
        self.waiting
            .iter()
            .filter(|waiting| waiting.cpus.intersects(cpus))
            .map(|waiting| waiting.top)
            .min()
    }
}
