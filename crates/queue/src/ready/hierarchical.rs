//! A heap and a lock for each CPU, and a master queue of their minima.

use super::ReadyQueue;
use crate::heap::Heap;
use crate::job::{Job, Key};
use crate::sync::{Guard, Lock, Padded};
use crate::tournament::Tournament;

/// Hierarchical heaps: each CPU inserts into its own heap, the master queue holds the minimum of each.
///
/// While the lock of the master and that of a CPU's queue are held, the master's entry is the minimum of that
/// queue; a minimum changes only while both are held. The lock order is top down, the master's first. A removal
/// needs both. An insertion takes the lock of the CPU's queue first, and needs the master only if the minimum
/// changes: if the master is locked then, the insertion releases its lock and takes both in order.
///
/// # Source
/// Brandenburg and Anderson, RTSS 2009: the queue of HEm. The master is a tournament here, O(log m).
#[derive(Debug)]
pub struct Hierarchical<K> {
    master: Padded<Lock<Tournament<K>>>,
    queues: Box<[Padded<Lock<Heap<K>>>]>,
}

impl<K: Key> Hierarchical<K> {
    /// An empty queue for the CPUs `0..cpus` (at least one) and any number of tasks.
    #[must_use]
    pub fn new(cpus: usize) -> Self {
        Self {
            master: Padded(Lock::new(Tournament::new(cpus))),
            queues: (0..cpus)
                .map(|_| Padded(Lock::new(Heap::default())))
                .collect(),
        }
    }

    /// Takes the most urgent job if `wanted` holds for its key.
    fn take_if(&self, wanted: impl Fn(K) -> bool) -> Option<Job<K>> {
        let mut master = self.master.0.lock();
        let (cpu, first) = master.first()?;
        if !wanted(first) {
            return None;
        }
        let mut queue = self.queues[cpu].0.lock();
        let job = queue.take();
        master.set(cpu, minimum(&queue));
        job
    }

    /// Locks the CPU's queue, and the master if `key` would be the new minimum.
    fn open(&self, cpu: usize, key: K) -> (Option<Guard<'_, Tournament<K>>>, Guard<'_, Heap<K>>) {
        let queue = self.queues[cpu].0.lock();
        if minimum(&queue).is_some_and(|first| first <= key) {
            return (None, queue);
        }
        if let Some(master) = self.master.0.try_lock() {
            return (Some(master), queue);
        }
        drop(queue);
        let master = self.master.0.lock();
        (Some(master), self.queues[cpu].0.lock())
    }
}

fn minimum<K: Key>(queue: &Heap<K>) -> Option<K> {
    queue.first().map(|(key, _)| key)
}

impl<K: Key> ReadyQueue<K> for Hierarchical<K> {
    fn insert(&self, cpu: usize, job: Job<K>) {
        self.merge(cpu, Heap::from(job));
    }

    fn merge(&self, cpu: usize, batch: Heap<K>) {
        let Some(first) = minimum(&batch) else { return };
        let (master, mut queue) = self.open(cpu, first);
        queue.merge(batch);
        if let Some(mut master) = master {
            master.set(cpu, minimum(&queue));
        }
    }

    fn take(&self, _cpu: usize) -> Option<Job<K>> {
        self.take_if(|_| true)
    }

    fn take_if_before(&self, _cpu: usize, limit: &K) -> Option<Job<K>> {
        self.take_if(|first| first < *limit)
    }
}
