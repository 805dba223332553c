//! The release queue: one timer per release time, and one heap for all jobs released together.

use crate::heap::Heap;
use crate::job::{Job, Key};
use crate::sync::Lock;

/// The timers of a machine.
pub trait Timer: Sync {
    /// Arms a timer whose handler calls [`ReleaseQueue::due`] with `at_ns`, at once if that time has passed.
    /// Called once for each new heap.
    fn arm(&self, at_ns: u64);
}

/// Jobs by the time of their release.
///
/// Jobs that are released at one time are inserted into one heap beforehand. When the timer expires, a ready
/// queue merges that heap in O(log n). There are never more heaps than jobs, so that nothing allocates; the
/// heap of a time is found by hashing.
///
/// ```text
///   buckets:  [ ]  [ ]  [ ]  [ ]        selected by the hash of the time
///              |         |
///             5 ms      8 ms            slots, chained; each with its heap
///              |
///             7 ms
/// ```
///
/// # Source
/// Brandenburg and Anderson, RTSS 2009: the release queue of LITMUS^RT.
#[derive(Debug)]
pub struct ReleaseQueue<K>(Lock<Slots<K>>);

#[derive(Debug)]
struct Slots<K> {
    /// The first slot of each chain; a power of two of them.
    buckets: Box<[Link]>,
    slots: Box<[Slot<K>]>,
    /// The first free slot.
    free: Link,
}

type Link = Option<u32>;

#[derive(Debug)]
struct Slot<K> {
    at_ns: u64,
    heap: Heap<K>,
    next: Link,
}

impl<K: Key> ReleaseQueue<K> {
    /// An empty queue for `tasks` jobs.
    #[must_use]
    pub fn new(tasks: usize) -> Self {
        let next = |slot| (slot < tasks).then_some(slot as u32);
        let slot = |number| Slot {
            at_ns: 0,
            heap: Heap::default(),
            next: next(number + 1),
        };
        Self(Lock::new(Slots {
            buckets: vec![None; tasks.next_power_of_two()].into(),
            slots: (0..tasks).map(slot).collect(),
            free: next(0),
        }))
    }

    /// Inserts a job that is released at `at_ns`, and arms the timer if it is the first one of that time.
    /// O(log k), k being the number of jobs released then.
    ///
    /// # Panics
    ///
    /// If all slots are used by other times.
    pub fn add(&self, job: Job<K>, at_ns: u64, timer: &impl Timer) {
        let begins = self.0.lock().add(job, at_ns);
        // Without the lock: the timer may expire at once, and a concurrent call only adds to the heap.
        if begins {
            timer.arm(at_ns);
        }
    }

    /// The jobs released at `at_ns`; empty if there are none. To be called once for each time that the timer was
    /// armed.
    ///
    /// A job that is inserted later, for a time that has passed, begins a new heap.
    pub fn due(&self, at_ns: u64) -> Heap<K> {
        self.0.lock().remove(at_ns)
    }
}

impl<K: Key> Slots<K> {
    fn bucket(&self, at_ns: u64) -> usize {
        // Release times are often multiples of a common value; the upper bits of the product are not.
        let hash = at_ns.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        hash as usize & (self.buckets.len() - 1)
    }

    /// Returns whether this job began a new heap.
    fn add(&mut self, job: Job<K>, at_ns: u64) -> bool {
        let bucket = self.bucket(at_ns);
        let mut link = self.buckets[bucket];
        while let Some(index) = link {
            let slot = &mut self.slots[index as usize];
            if slot.at_ns == at_ns {
                slot.heap.insert(job);
                return false;
            }
            link = slot.next;
        }
        let Some(index) = self.free else {
            panic!("a release queue for {} jobs is full", self.slots.len());
        };
        let slot = &mut self.slots[index as usize];
        self.free = slot.next;
        (slot.at_ns, slot.heap, slot.next) = (at_ns, job.into(), self.buckets[bucket]);
        self.buckets[bucket] = Some(index);
        true
    }

    fn remove(&mut self, at_ns: u64) -> Heap<K> {
        let bucket = self.bucket(at_ns);
        let (mut before, mut link) = (None, self.buckets[bucket]);
        while let Some(index) = link {
            let slot = &mut self.slots[index as usize];
            let next = slot.next;
            if slot.at_ns == at_ns {
                slot.next = self.free;
                self.free = Some(index);
                let heap = std::mem::take(&mut slot.heap);
                match before {
                    None => self.buckets[bucket] = next,
                    Some(before) => self.slots[before as usize].next = next,
                }
                return heap;
            }
            (before, link) = (link, next);
        }
        Heap::default()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeMap;

    use rand_core::{RngCore, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    /// Records the armed timers.
    struct ArmedTimers(Lock<Vec<u64>>);

    impl Timer for ArmedTimers {
        fn arm(&self, at_ns: u64) {
            self.0.lock().push(at_ns);
        }
    }

    fn keys(mut heap: Heap<u64>) -> Vec<u64> {
        std::iter::from_fn(|| heap.take().map(|job| job.key())).collect()
    }

    #[test]
    fn jobs_released_at_one_time_share_one_timer_and_one_heap() {
        for seed in 1..=200 {
            let mut random = Pcg64Mcg::seed_from_u64(seed);
            let tasks = 1 + (random.next_u32() % 30) as usize;
            let (queue, timer) = (ReleaseQueue::new(tasks), ArmedTimers(Lock::new(Vec::new())));
            let mut expected: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
            let mut armed = Vec::new();
            for step in 0..300_u64 {
                let at_ns = u64::from(random.next_u32() % 12) * 1_000_000;
                let held: usize = expected.values().map(Vec::len).sum();
                if random.next_u32().is_multiple_of(3) || held == tasks {
                    let mut due = expected.remove(&at_ns).unwrap_or_default();
                    due.sort_unstable();
                    assert_eq!(keys(queue.due(at_ns)), due, "seed {seed}, step {step}");
                } else {
                    let key = u64::from(random.next_u32()) << 10 | step;
                    let together = expected.entry(at_ns).or_default();
                    if together.is_empty() {
                        armed.push(at_ns);
                    }
                    together.push(key);
                    queue.add(Job::new(key, 0), at_ns, &timer);
                }
                assert_eq!(*timer.0.lock(), armed, "seed {seed}, step {step}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "a release queue for 2 jobs is full")]
    fn insertion_without_a_free_slot_panics() {
        let queue = ReleaseQueue::new(2);
        for at_ns in 0..3 {
            queue.add(
                Job::new(at_ns, 0),
                at_ns,
                &ArmedTimers(Lock::new(Vec::new())),
            );
        }
    }
}
