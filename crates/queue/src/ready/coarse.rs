//! One lock, one mergeable heap.

use super::ReadyQueue;
use crate::heap::Heap;
use crate::job::{Job, Key};
use crate::sync::Lock;

/// The coarse-grained heap: a binomial heap behind one lock.
///
/// A batch of simultaneous releases costs O(log n) under the lock, like every other call.
///
/// # Source
/// B. Brandenburg, J. Anderson, "On the Implementation of Global Real-Time Schedulers", RTSS 2009: the
/// queue of CEm, CQm, S-CQm, CE1, CQ1 and S-CQ1.
#[derive(Debug)]
pub struct Coarse<K>(Lock<Heap<K>>);

impl<K> Coarse<K> {
    /// An empty queue, for any number of CPUs and tasks.
    #[must_use]
    pub fn new() -> Self {
        Self(Lock::new(Heap::default()))
    }
}

impl<K> Default for Coarse<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key> ReadyQueue<K> for Coarse<K> {
    fn insert(&self, _cpu: usize, job: Job<K>) {
        self.0.lock().insert(job);
    }

    fn merge(&self, _cpu: usize, batch: Heap<K>) {
        self.0.lock().merge(batch);
    }

    fn take(&self, _cpu: usize) -> Option<Job<K>> {
        self.0.lock().take()
    }

    fn take_if_before(&self, _cpu: usize, limit: &K) -> Option<Job<K>> {
        self.0.lock().take_if_before(limit)
    }
}
