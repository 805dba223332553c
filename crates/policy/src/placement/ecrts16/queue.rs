//! The queues b[β] of backlogged jobs: a heap for EDF, a priority bitmap with lists for fixed
//! priorities, as the implementation in LITMUS^RT has.

use alloc::vec::Vec;
use core::fmt::Debug;

use shiftwork_model::{Priority, TaskId};

use super::super::support::ready::{Backlog, HeapPositions};
use crate::order::{Edf, FixedPriority, JobOrder, Ranking};

/// What the queues of all affinities share, by task: a job is in at most one queue.
pub trait Links: Default + Debug + Send {
    /// Makes room for the task.
    fn enter(&mut self, task: TaskId);

    /// The queue that held the task's job is gone.
    fn forget(&mut self, task: TaskId);
}

/// The backlogged jobs of one affinity.
pub trait Queue<O: JobOrder>: Default + Debug + Send {
    /// What all queues share.
    type Links: Links;

    /// Makes room for one more job, of this priority. A job of a priority that no task had when it
    /// joined may be inserted all the same, which then allocates.
    fn join(&mut self, priority: Priority);

    /// Adds a job.
    fn insert(&mut self, key: O::Key, links: &mut Self::Links);

    /// Takes the task's job out.
    fn delete(&mut self, key: O::Key, links: &mut Self::Links);

    /// The most urgent job.
    fn find_max(&self, links: &Self::Links) -> Option<O::Key>;
}

/// An order with the queue that the paper gives it.
pub trait Queued: JobOrder + Sized + Debug {
    /// The queue.
    type Queue: Queue<Self>;
}

impl Queued for Edf {
    type Queue = HeapQueue;
}

impl Queued for FixedPriority {
    type Queue = PriorityLists;
}

/// A heap, in place of the strict Fibonacci heap of the paper's analysis.
#[derive(Debug, Default)]
pub struct HeapQueue {
    heap: Backlog<Edf>,
    joined: usize,
}

impl Links for HeapPositions {
    fn enter(&mut self, task: TaskId) {
        Self::enter(self, task);
    }

    fn forget(&mut self, task: TaskId) {
        Self::forget(self, task);
    }
}

impl Queue<Edf> for HeapQueue {
    type Links = HeapPositions;

    fn join(&mut self, _: Priority) {
        self.joined += 1;
        self.heap.reserve(self.joined);
    }

    fn insert(&mut self, key: <Edf as Ranking>::Key, links: &mut HeapPositions) {
        self.heap.push(key, links);
    }

    fn delete(&mut self, key: <Edf as Ranking>::Key, links: &mut HeapPositions) {
        self.heap.remove(Edf::task(&key), links);
    }

    fn find_max(&self, _: &HeapPositions) -> Option<<Edf as Ranking>::Key> {
        (!self.heap.is_empty()).then(|| self.heap.top())
    }
}

type FixedKey = <FixedPriority as Ranking>::Key;

#[derive(Clone, Copy, Debug)]
struct Link {
    key: FixedKey,
    next: Option<TaskId>,
    previous: Option<TaskId>,
}

/// Doubly linked lists, by task.
#[derive(Debug, Default)]
pub struct ListLinks(Vec<Link>);

impl Links for ListLinks {
    fn enter(&mut self, task: TaskId) {
        let none = Link {
            key: FixedPriority::LAST,
            next: None,
            previous: None,
        };
        if self.0.len() <= task.index() {
            self.0.resize(task.index() + 1, none);
        }
    }

    /// Insertion overwrites the links.
    fn forget(&mut self, _: TaskId) {}
}

/// One list per priority level in use, and a bitmap of the levels whose list is not empty.
///
/// Within a level the jobs stand in the order in which they became ready; a preempted job returns to
/// its place near the front.
#[derive(Debug, Default)]
pub struct PriorityLists {
    /// Ascending: the most urgent level first.
    levels: Vec<Priority>,
    heads: Vec<Option<TaskId>>,
    bitmap: Vec<u64>,
}

impl PriorityLists {
    fn level(&self, priority: Priority) -> usize {
        self.levels
            .binary_search(&priority)
            .expect("the queue was joined with this priority")
    }

    fn set_head(&mut self, level: usize, head: Option<TaskId>) {
        self.heads[level] = head;
        let bit = 1 << (level % 64);
        match head {
            Some(_) => self.bitmap[level / 64] |= bit,
            None => self.bitmap[level / 64] &= !bit,
        }
    }
}

impl Queue<FixedPriority> for PriorityLists {
    type Links = ListLinks;

    fn join(&mut self, priority: Priority) {
        let Err(place) = self.levels.binary_search(&priority) else {
            return;
        };
        self.levels.insert(place, priority);
        self.heads.insert(place, None);
        self.bitmap = alloc::vec![0; self.levels.len().div_ceil(64)];
        for level in (0..self.heads.len()).filter(|&level| self.heads[level].is_some()) {
            self.bitmap[level / 64] |= 1 << (level % 64);
        }
    }

    fn insert(&mut self, key: FixedKey, links: &mut ListLinks) {
        self.join(key.0);
        let level = self.level(key.0);
        let task = FixedPriority::task(&key);
        let (mut previous, mut next) = (None, self.heads[level]);
        while let Some(other) = next.filter(|other| links.0[other.index()].key < key) {
            previous = Some(other);
            next = links.0[other.index()].next;
        }
        links.0[task.index()] = Link {
            key,
            next,
            previous,
        };
        if let Some(next) = next {
            links.0[next.index()].previous = Some(task);
        }
        match previous {
            Some(previous) => links.0[previous.index()].next = Some(task),
            None => self.set_head(level, Some(task)),
        }
    }

    fn delete(&mut self, key: FixedKey, links: &mut ListLinks) {
        let Link { next, previous, .. } = links.0[FixedPriority::task(&key).index()];
        if let Some(next) = next {
            links.0[next.index()].previous = previous;
        }
        match previous {
            Some(previous) => links.0[previous.index()].next = next,
            None => self.set_head(self.level(key.0), next),
        }
    }

    fn find_max(&self, links: &ListLinks) -> Option<FixedKey> {
        let word = self.bitmap.iter().position(|&word| word != 0)?;
        let level = word * 64 + self.bitmap[word].trailing_zeros() as usize;
        self.heads[level].map(|task| links.0[task.index()].key)
    }
}
