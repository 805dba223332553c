//! One lock, a flat heap of batches, and its published minimum.

use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::ReadyQueue;
use super::entry::Entry;
use crate::heap::Heap;
use crate::job::{Job, Key};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Lock, Padded};

/// A heap of heaps behind one lock, with a published minimum: the fastest of the queues here.
///
/// - Most checks of a ready queue find nothing to do: an interrupted CPU checks for a more urgent waiting job,
///   and there is none. The prefix of the most urgent key is published, so that this check needs no lock, and its
///   cache line stays shared while nothing changes.
/// - Under the lock keys are compared in an array, without following pointers.
/// - A merged batch is one entry, with its most urgent key, and remains a binomial heap. So a merge costs the
///   same as an insertion, and a removal O(log n).
///
/// ```text
///   published: 5
///   entries:   (5, job) (8, batch) ...      a heap in an array
///                           |
///                           8  12  9        a binomial heap
/// ```
///
/// The published prefix is that of the minimum whenever the lock is free. It is written before the lock is
/// released; for a check without the lock, a call takes effect with that write.
#[derive(Debug)]
pub struct Published<K: Ord> {
    /// The prefix of the most urgent key, [`NO_JOB`] if there is none.
    first: Padded<AtomicU64>,
    entries: Padded<Lock<Entries<K>>>,
}

/// Prefixes of keys are published as less than this.
const NO_JOB: u64 = u64::MAX;

type Entries<K> = BinaryHeap<Entry<K, Waiting<K>>>;

/// The jobs of an entry.
#[derive(Debug)]
enum Waiting<K> {
    One(Job<K>),
    Batch(Heap<K>),
}

impl<K: Key> Published<K> {
    /// An empty queue, for any number of CPUs; up to `tasks` jobs do not make it grow.
    #[must_use]
    pub fn new(tasks: usize) -> Self {
        Self {
            first: Padded(AtomicU64::new(NO_JOB)),
            entries: Padded(Lock::new(BinaryHeap::with_capacity(tasks))),
        }
    }

    fn put(&self, entry: Entry<K, Waiting<K>>) {
        let mut entries = self.entries.0.lock();
        let before = prefix_of_first(&entries);
        entries.push(entry);
        self.publish(before, &entries);
    }

    fn take_if(&self, wanted: impl Fn(K) -> bool) -> Option<Job<K>> {
        let mut entries = self.entries.0.lock();
        let before = prefix_of_first(&entries);
        if !wanted(entries.peek()?.key()) {
            return None;
        }
        let job = take(&mut entries);
        self.publish(before, &entries);
        job
    }

    /// Publishes the minimum. To be called before the lock is released.
    fn publish(&self, before: u64, entries: &Entries<K>) {
        let after = prefix_of_first(entries);
        if after != before {
            // Sequentially consistent: of two CPUs that each write one location and then read the other's,
            // at least one sees the other's write, also if only one of the locations is in this queue.
            self.first.0.store(after, Ordering::SeqCst);
        }
    }
}

fn prefix_of_first<K: Key>(entries: &Entries<K>) -> u64 {
    entries.peek().map_or(NO_JOB, |entry| prefix(entry.key()))
}

fn prefix<K: Key>(key: K) -> u64 {
    key.prefix().min(NO_JOB - 1)
}

/// Takes the first job; its batch remains with the next job as its key, or is removed if it is empty.
fn take<K: Key>(entries: &mut Entries<K>) -> Option<Job<K>> {
    let mut first = entries.peek_mut()?;
    if let Waiting::Batch(batch) = &mut first.content {
        let job = batch.take();
        if let Some((key, _)) = batch.first() {
            first.set_key(key);
            return job;
        }
        PeekMut::pop(first);
        return job;
    }
    match PeekMut::pop(first).content {
        Waiting::One(job) => Some(job),
        Waiting::Batch(mut batch) => batch.take(),
    }
}

impl<K: Key> ReadyQueue<K> for Published<K> {
    fn insert(&self, _cpu: usize, job: Job<K>) {
        self.put(Entry::new(job.key(), Waiting::One(job)));
    }

    fn merge(&self, _cpu: usize, batch: Heap<K>) {
        if let Some((first, _)) = batch.first() {
            self.put(Entry::new(first, Waiting::Batch(batch)));
        }
    }

    fn take(&self, _cpu: usize) -> Option<Job<K>> {
        if self.first.0.load(Ordering::SeqCst) == NO_JOB {
            return None;
        }
        self.take_if(|_| true)
    }

    fn take_if_before(&self, _cpu: usize, limit: &K) -> Option<Job<K>> {
        if self.first.0.load(Ordering::SeqCst) > prefix(*limit) {
            return None;
        }
        self.take_if(|first| first < *limit)
    }
}
