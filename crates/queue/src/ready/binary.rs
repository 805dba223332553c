//! One lock, one array.

use std::collections::BinaryHeap;

use super::ReadyQueue;
use super::entry::Entry;
use crate::heap::Heap;
use crate::job::{Job, Key};
use crate::sync::Lock;

/// The binary heap of `std` behind one lock, as a baseline. A merge inserts one job after the other.
#[derive(Debug)]
pub struct Binary<K: Ord>(Lock<BinaryHeap<Entry<K, Job<K>>>>);

impl<K: Ord> Binary<K> {
    /// An empty queue, for any number of CPUs; up to `tasks` jobs do not make it grow.
    #[must_use]
    pub fn new(tasks: usize) -> Self {
        Self(Lock::new(BinaryHeap::with_capacity(tasks)))
    }
}

impl<K: Key> ReadyQueue<K> for Binary<K> {
    fn insert(&self, _cpu: usize, job: Job<K>) {
        self.0.lock().push(Entry::new(job.key(), job));
    }

    fn merge(&self, _cpu: usize, mut batch: Heap<K>) {
        let mut heap = self.0.lock();
        while let Some(job) = batch.take() {
            heap.push(Entry::new(job.key(), job));
        }
    }

    fn take(&self, _cpu: usize) -> Option<Job<K>> {
        self.0.lock().pop().map(|entry| entry.content)
    }

    fn take_if_before(&self, _cpu: usize, limit: &K) -> Option<Job<K>> {
        let mut heap = self.0.lock();
        let first = heap.peek()?.key();
        if first < *limit {
            heap.pop().map(|entry| entry.content)
        } else {
            None
        }
    }
}
