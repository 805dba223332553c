//! Measurement of the durations of ready-queue calls on this machine, from which overhead tables are made.
//!
//! The only module that starts threads; the caller supplies the clock.

use std::sync::Barrier;

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::heap::Heap;
use crate::job::{Job, Rank};
use crate::ready::{QueueKind, ReadyQueue};

/// A measured call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Insertion of one job.
    Insert,
    /// Merge of [`BATCH`] jobs, or of fewer if there are fewer.
    Merge,
    /// Removal of the most urgent job.
    Take,
    /// A check for a more urgent job that finds none.
    Peek,
}

/// Number of jobs in an [`Operation::Merge`].
pub const BATCH: usize = 8;

/// The duration of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The call.
    pub operation: Operation,
    /// Duration without the cost of reading the clock; 0 if that cost was larger.
    pub ns: u64,
}

/// Number of times that each thread makes each call.
const ROUNDS: usize = 500;

/// Times calls of a queue in which up to `tasks` jobs wait, on `threads` threads concurrently.
///
/// With one thread no call waits for a lock: its duration is the time for which it holds the lock, plus a few
/// nanoseconds for acquiring and releasing it. `now_ns` reads a monotonic clock. Keys and the order of tasks are
/// drawn from `seed`. Each thread makes 500 calls of each kind; the result is empty if `tasks` or `threads` is 0.
pub fn costs(
    kind: QueueKind,
    tasks: usize,
    threads: usize,
    seed: u64,
    now_ns: &(impl Fn() -> u64 + Sync),
) -> Vec<Sample> {
    if tasks == 0 || threads == 0 {
        return Vec::new();
    }
    let queue = kind.build(threads, tasks);
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    for task in 0..tasks as u32 {
        queue.insert(0, Job::new(later(0, task, tasks, &mut random), task));
    }
    let start = Barrier::new(threads);
    std::thread::scope(|scope| {
        let caller = |cpu| Caller {
            queue: &*queue,
            cpu,
            tasks,
            random: Pcg64Mcg::seed_from_u64(seed.wrapping_add(cpu as u64 + 1)),
            clock_ns: cost_of_reading(now_ns),
            now_ns,
            samples: Vec::with_capacity(8 * ROUNDS),
        };
        let threads: Vec<_> = (0..threads)
            .map(|cpu| {
                let (mut caller, start) = (caller(cpu), &start);
                scope.spawn(move || {
                    start.wait();
                    (0..ROUNDS).for_each(|_| caller.round());
                    caller.samples
                })
            })
            .collect();
        // A thread that panicked has printed its message.
        let threads = threads.into_iter();
        threads
            .filter_map(|thread| thread.join().ok())
            .flatten()
            .collect()
    })
}

/// Minimum difference of two consecutive readings.
fn cost_of_reading(now_ns: &impl Fn() -> u64) -> u64 {
    let read = |_| {
        let before = now_ns();
        now_ns().saturating_sub(before)
    };
    (0..64).map(read).min().unwrap_or(0)
}

/// A later key: the deadline follows within twice the time in which all jobs are served once.
fn later(now_ns: u64, task: u32, tasks: usize, random: &mut Pcg64Mcg) -> Rank {
    Rank {
        deadline_ns: now_ns + 1 + random.next_u64() % (2_000 * tasks as u64),
        release_ns: now_ns,
        task,
    }
}

struct Caller<'a, C> {
    queue: &'a dyn ReadyQueue<Rank>,
    cpu: usize,
    tasks: usize,
    random: Pcg64Mcg,
    clock_ns: u64,
    now_ns: &'a C,
    samples: Vec<Sample>,
}

impl<C: Fn() -> u64> Caller<'_, C> {
    /// Samples one call of each kind, so that all kinds have the same number; all jobs are in the queue at the
    /// end.
    fn round(&mut self) {
        let most_urgent = Rank {
            deadline_ns: 0,
            release_ns: 0,
            task: 0,
        };
        let more_urgent = self.sample(Operation::Peek, |queue, cpu| {
            queue.take_if_before(cpu, &most_urgent)
        });
        debug_assert!(more_urgent.is_none(), "all deadlines are later than 0");
        let taken = self.sample(Operation::Take, |queue, cpu| queue.take(cpu));
        if let Some(job) = taken.map(|job| self.next(job)) {
            self.sample(Operation::Insert, |queue, cpu| queue.insert(cpu, job));
        }
        let mut batch = Heap::default();
        for _ in 0..BATCH.min(self.tasks) {
            let taken = self.queue.take(self.cpu);
            taken
                .into_iter()
                .for_each(|job| batch.insert(self.next(job)));
        }
        self.sample(Operation::Merge, |queue, cpu| queue.merge(cpu, batch));
    }

    fn next(&mut self, mut job: Job<Rank>) -> Job<Rank> {
        let due_ns = job.key().deadline_ns;
        job.set_key(later(due_ns, job.task(), self.tasks, &mut self.random));
        job
    }

    fn sample<R>(
        &mut self,
        operation: Operation,
        call: impl FnOnce(&dyn ReadyQueue<Rank>, usize) -> R,
    ) -> R {
        let before = (self.now_ns)();
        let result = call(self.queue, self.cpu);
        let taken = (self.now_ns)().saturating_sub(before);
        let ns = taken.saturating_sub(self.clock_ns);
        self.samples.push(Sample { operation, ns });
        result
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::ready::QUEUE_KINDS;

    #[test]
    fn calls_are_timed_by_the_given_clock() {
        for kind in QUEUE_KINDS {
            for (tasks, threads) in [(1, 1), (20, 1), (20, 3)] {
                let time_ns = AtomicU64::new(0);
                // Consecutive readings differ by 7 ns: with one thread every duration is 0.
                let clock = || time_ns.fetch_add(7, Ordering::Relaxed);
                let samples = costs(kind, tasks, threads, 1, &clock);
                let mut counts = BTreeMap::new();
                for sample in &samples {
                    *counts.entry(sample.operation).or_insert(0) += 1;
                    assert!(threads > 1 || sample.ns == 0, "{}: {sample:?}", kind.name());
                }
                for operation in [Operation::Merge, Operation::Take, Operation::Peek] {
                    assert_eq!(counts[&operation], threads * ROUNDS, "{}", kind.name());
                }
                assert!(counts[&Operation::Insert] > 0, "{}", kind.name());
            }
        }
        assert_eq!(costs(QueueKind::Coarse, 0, 1, 1, &|| 0), []);
        assert_eq!(costs(QueueKind::Coarse, 1, 0, 1, &|| 0), []);
    }

    #[test]
    fn durations_exclude_the_cost_of_the_clock() {
        let readings = AtomicU64::new(0);
        // A reading takes 5 ns; after the 128 readings that measure this each call takes 3 ns more.
        let clock = || {
            let number = readings.fetch_add(1, Ordering::Relaxed);
            number * 5 + number.saturating_sub(128).div_ceil(2) * 3
        };
        let samples = costs(QueueKind::Coarse, 4, 1, 1, &clock);
        let three = samples.iter().filter(|sample| sample.ns == 3).count();
        assert_eq!(three, samples.len(), "{samples:?}");
    }
}
