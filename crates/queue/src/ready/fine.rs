//! A lock for each node of a heap.

use super::ReadyQueue;
use crate::heap::Heap;
use crate::job::{Job, Key};
use crate::sync::{Guard, Lock, Padded, wait_a_moment};

/// The fine-grained heap: a binary heap in an array with a lock per node; concurrent calls work in different
/// parts of it.
///
/// An inserted job starts at the bottom and rises; a removal moves a job from the bottom to the root, from where it
/// sinks. Nodes of a level are filled in bit-reversed order, so that consecutive insertions take different paths.
/// A rising job is marked by the number of its call, so that the call finds it again if it was moved.
///
/// No settled job precedes its settled parent. Locks are taken from the top down: that of the size,
/// then a parent's before its child's.
///
/// # Source
/// G. Hunt, M. Michael, S. Parthasarathy, M. Scott, "An efficient algorithm for concurrent priority queue
/// heaps", Information Processing Letters 60(3), 1996. Two differences. A removal locks the root while it still
/// holds the lock of the size. As published, a caller between the bottom and the root holds a job that other
/// callers miss, and removals are not in strict order. The same lock makes comparing and removing one step. And a
/// call whose job was moved searches for it up to the root, even above an empty parent. As published it stops
/// there, but the job may have been moved further up before the parent was emptied, and would rise for ever.
#[derive(Debug)]
pub struct Fine<K> {
    /// The number of filled nodes, and the last number that marked a job.
    size: Padded<Lock<Size>>,
    /// Entry 0 is unused, 1 is the root, the children of `i` are `2 i` and `2 i + 1`.
    nodes: Box<[Padded<Lock<Place<K>>>]>,
}

#[derive(Debug)]
struct Size {
    filled: usize,
    calls: u64,
}

#[derive(Debug)]
enum Place<K> {
    Empty,
    Settled(K, Job<K>),
    /// Rising, by the call with this number.
    Rising(u64, K, Job<K>),
}

impl<K: Key> Place<K> {
    fn key(&self) -> Option<K> {
        match self {
            Self::Empty => None,
            Self::Settled(key, _) | Self::Rising(_, key, _) => Some(*key),
        }
    }

    fn empty(&mut self) -> Option<(K, Job<K>)> {
        match std::mem::replace(self, Self::Empty) {
            Self::Empty => None,
            Self::Settled(key, job) | Self::Rising(_, key, job) => Some((key, job)),
        }
    }

    fn settle(&mut self) {
        if let Some((key, job)) = self.empty() {
            *self = Self::Settled(key, job);
        }
    }

    fn rises_by(&self, call: u64) -> bool {
        matches!(self, Self::Rising(by, ..) if *by == call)
    }
}

/// The node for the n-th job: the level from its highest bit, within the level the other bits in reverse.
const fn place(n: usize) -> usize {
    let level = n.ilog2();
    if level == 0 {
        return n;
    }
    let within = n ^ (1 << level);
    (1 << level) | (within.reverse_bits() >> (usize::BITS - level))
}

impl<K: Key> Fine<K> {
    /// An empty queue for the tasks `0..tasks` and any number of CPUs.
    #[must_use]
    pub fn new(tasks: usize) -> Self {
        // The last level is filled out of order, and a sinking job reads two children.
        let places = (tasks + 1).next_power_of_two();
        Self {
            size: Padded(Lock::new(Size {
                filled: 0,
                calls: 0,
            })),
            nodes: (0..places)
                .map(|_| Padded(Lock::new(Place::Empty)))
                .collect(),
        }
    }

    fn node(&self, index: usize) -> Guard<'_, Place<K>> {
        self.nodes[index].0.lock()
    }

    /// Inserts a job at the bottom; returns the number of the call and the node.
    fn put(&self, job: Job<K>) -> (u64, usize) {
        let mut size = self.size.0.lock();
        let index = place(size.filled + 1);
        assert!(
            index < self.nodes.len(),
            "a queue for {} jobs is full",
            size.filled
        );
        size.filled += 1;
        size.calls += 1;
        let call = size.calls;
        let mut bottom = self.node(index);
        drop(size);
        *bottom = Place::Rising(call, job.key(), job);
        (call, index)
    }

    /// Lets the job of this call rise from its first node to its final one.
    fn rise(&self, call: u64, mut index: usize) {
        while index > 1 {
            let mut parent = self.node(index / 2);
            let mut child = self.node(index);
            match &*parent {
                Place::Settled(above, _) if child.rises_by(call) => {
                    if child.key().is_some_and(|key| key < *above) {
                        std::mem::swap(&mut *parent, &mut *child);
                        index /= 2;
                    } else {
                        child.settle();
                        return;
                    }
                }
                // A sinking job has moved it up, or a removal has moved it to the root and settled it. An
                // empty parent does not show which, so that the search ends only at the root.
                _ if !child.rises_by(call) => index /= 2,
                // The parent is rising as well.
                _ => {
                    drop((child, parent));
                    wait_a_moment();
                }
            }
        }
        let mut root = self.node(1);
        if root.rises_by(call) {
            root.settle();
        }
    }

    /// Lets the job at the root sink to its final node; more urgent jobs move up.
    fn sink<'a>(&'a self, mut parent: Guard<'a, Place<K>>) {
        let mut index = 1;
        while let Some(key) = parent.key()
            && 2 * index < self.nodes.len()
        {
            // A left node is filled before its right sibling, and emptied after it.
            let left = self.node(2 * index);
            let Some(left_key) = left.key() else { return };
            let right = self.node(2 * index + 1);
            let (mut child, child_key, next) = match right.key() {
                Some(right_key) if right_key < left_key => (right, right_key, 2 * index + 1),
                _ => (left, left_key, 2 * index),
            };
            if key <= child_key {
                return;
            }
            std::mem::swap(&mut *parent, &mut *child);
            (parent, index) = (child, next);
        }
    }

    /// Takes the most urgent job if `wanted` holds for its key.
    fn take_if(&self, wanted: impl Fn(K) -> bool) -> Option<Job<K>> {
        let mut size = self.size.0.lock();
        if size.filled == 0 {
            return None;
        }
        let mut root = self.node(1);
        if !root.key().is_some_and(wanted) {
            return None;
        }
        let last = place(size.filled);
        size.filled -= 1;
        if last == 1 {
            drop(size);
            return root.empty().map(|(_, job)| job);
        }
        let mut bottom = self.node(last);
        drop(size);
        let moved = bottom.empty();
        drop(bottom);
        let first = root.empty();
        if let Some((key, job)) = moved {
            *root = Place::Settled(key, job);
        }
        self.sink(root);
        first.map(|(_, job)| job)
    }
}

impl<K: Key> ReadyQueue<K> for Fine<K> {
    /// # Panics
    ///
    /// If the queue is full.
    fn insert(&self, _cpu: usize, job: Job<K>) {
        let (call, index) = self.put(job);
        self.rise(call, index);
    }

    fn merge(&self, cpu: usize, mut batch: Heap<K>) {
        while let Some(job) = batch.take() {
            self.insert(cpu, job);
        }
    }

    fn take(&self, _cpu: usize) -> Option<Job<K>> {
        self.take_if(|_| true)
    }

    fn take_if_before(&self, _cpu: usize, limit: &K) -> Option<Job<K>> {
        self.take_if(|first| first < *limit)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use rand_core::{RngCore, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    #[test]
    fn nodes_of_a_level_are_filled_in_bit_reversed_order() {
        let places: Vec<_> = (1..16).map(place).collect();
        assert_eq!(places, [1, 2, 3, 4, 6, 5, 7, 8, 12, 10, 14, 9, 13, 11, 15]);
    }

    #[test]
    #[should_panic(expected = "a queue for 3 jobs is full")]
    fn insertion_into_a_full_queue_panics() {
        let queue = Fine::new(3);
        for key in 0..4_u64 {
            queue.insert(0, Job::new(key, key as u32));
        }
    }

    /// One call is delayed while others insert and take.
    #[test]
    fn moved_job_is_found_and_settled_by_its_call() {
        let mut moved = 0;
        for seed in 1..=3_000 {
            let mut random = Pcg64Mcg::seed_from_u64(seed);
            let mut draw = |below: usize| (random.next_u64() % below as u64) as usize;
            let (before, after) = (draw(40), draw(4));
            let queue = Fine::new(before + after + 1);
            let mut task = 0;
            let mut job = |key| {
                task += 1;
                Job::new((key as u64) << 8 | u64::from(task), task)
            };
            (0..before).for_each(|_| queue.insert(0, job(draw(40))));
            let (call, index) = queue.put(job(draw(40)));
            for number in before + 2..before + 2 + after {
                // It would wait for the delayed call.
                if place(number) / 2 == index {
                    break;
                }
                queue.insert(0, job(draw(40)));
            }
            for _ in 0..draw(before + 1) {
                queue.take(0);
            }
            moved += usize::from(!queue.node(index).rises_by(call));
            queue.rise(call, index);
            for index in 1..queue.nodes.len() {
                let node = queue.node(index);
                let above = (index > 1).then(|| queue.node(index / 2).key()).flatten();
                assert!(
                    !matches!(*node, Place::Rising(..)),
                    "seed {seed}, place {index}"
                );
                assert!(
                    above <= node.key() || node.key().is_none(),
                    "seed {seed}, place {index}"
                );
            }
        }
        assert!(moved > 1_000, "only {moved}");
    }
}
