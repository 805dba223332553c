//! One lock, one sorted list.

use super::ReadyQueue;
use crate::heap::Heap;
use crate::job::{Job, Key, Node};
use crate::sync::Lock;

/// A sorted linked list behind one lock: the first queue of the study of 2008, which replaced it because an
/// insertion takes O(n) steps under the lock.
///
/// # Source
/// B. Brandenburg, J. Calandrino, J. Anderson, "On the Scalability of Real-Time Scheduling Algorithms on
/// Multicore Platforms: A Case Study", RTSS 2008.
#[derive(Debug)]
pub struct List<K>(Lock<Sorted<K>>);

/// Linked by siblings, the most urgent first.
#[derive(Debug)]
struct Sorted<K>(Option<Box<Node<K>>>);

impl<K> List<K> {
    /// An empty queue, for any number of CPUs and tasks.
    #[must_use]
    pub fn new() -> Self {
        Self(Lock::new(Sorted(None)))
    }
}

impl<K> Default for List<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> Sorted<K> {
    fn pop(&mut self) -> Option<Job<K>> {
        let mut first = self.0.take()?;
        self.0 = first.sibling.take();
        Some(Job(first))
    }
}

impl<K: Ord> Sorted<K> {
    fn insert(&mut self, mut job: Job<K>) {
        let mut link = &mut self.0;
        while link.as_ref().is_some_and(|node| node.key <= job.0.key) {
            // Never `None`: the loop condition has checked it.
            let Some(node) = link else { break };
            link = &mut node.sibling;
        }
        job.0.sibling = link.take();
        *link = Some(job.0);
    }
}

/// Drops node after node: recursive drops would need stack in proportion to the length of the list.
impl<K> Drop for Sorted<K> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

impl<K: Key> ReadyQueue<K> for List<K> {
    fn insert(&self, _cpu: usize, job: Job<K>) {
        self.0.lock().insert(job);
    }

    fn merge(&self, _cpu: usize, mut batch: Heap<K>) {
        let mut list = self.0.lock();
        while let Some(job) = batch.take() {
            list.insert(job);
        }
    }

    fn take(&self, _cpu: usize) -> Option<Job<K>> {
        self.0.lock().pop()
    }

    fn take_if_before(&self, _cpu: usize, limit: &K) -> Option<Job<K>> {
        let mut list = self.0.lock();
        let first = list.0.as_ref()?;
        if first.key < *limit { list.pop() } else { None }
    }
}
