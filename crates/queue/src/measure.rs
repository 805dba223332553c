//! What calls of ready queues take on this machine, for whoever charges them as overheads.
//!
//! The only place that starts threads; the clock is the caller's.

use std::sync::Barrier;

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::heap::Heap;
use crate::job::{Job, Rank};
use crate::ready::{QueueKind, ReadyQueue};

/// What was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// One job was put in.
    Insert,
    /// [`BATCH`] jobs were merged, or fewer if there were fewer.
    Merge,
    /// The most urgent job was taken out.
    Take,
    /// Somebody looked for a more urgent job, and there was none.
    Peek,
}

/// How many jobs come together in a [`Operation::Merge`].
pub const BATCH: usize = 8;

/// How long one call took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// What was called.
    pub operation: Operation,
    /// From before the call until after it, without what reading the clock takes; 0 if that was more.
    pub ns: u64,
}

/// How often each thread makes each call.
const ROUNDS: usize = 500;

/// Times calls of a queue in which up to `tasks` jobs wait, on so many threads at once.
///
/// With one thread nobody waits for a lock: a call takes as long as it holds it, and the few nanoseconds of
/// taking and releasing it. `now_ns` reads a clock that never goes back. Keys and the order of tasks are
/// drawn from `seed`; times are what the machine makes them. Each thread makes 500 calls of each kind; empty
/// if `tasks` or `threads` is 0.
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
        // A thread that panicked has said why.
        let threads = threads.into_iter();
        threads
            .filter_map(|thread| thread.join().ok())
            .flatten()
            .collect()
    })
}

/// The least of some readings, one right after the other.
fn cost_of_reading(now_ns: &impl Fn() -> u64) -> u64 {
    let read = |_| {
        let before = now_ns();
        now_ns().saturating_sub(before)
    };
    (0..64).map(read).min().unwrap_or(0)
}

/// A deadline within twice the time in which all jobs had their turn.
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
    /// One call of each kind is sampled, so that there are as many of each; all jobs are back at the end.
    fn round(&mut self) {
        let nobody = Rank {
            deadline_ns: 0,
            release_ns: 0,
            task: 0,
        };
        let more_urgent = self.sample(Operation::Peek, |queue, cpu| {
            queue.take_if_before(cpu, &nobody)
        });
        debug_assert!(more_urgent.is_none(), "deadlines are later than that");
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
    fn each_call_is_timed_by_the_clock_that_is_given() {
        for kind in QUEUE_KINDS {
            for (tasks, threads) in [(1, 1), (20, 1), (20, 3)] {
                let time_ns = AtomicU64::new(0);
                // One reading is 7 ns after the other: with one thread nothing is left of a call.
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
    fn what_the_clock_costs_is_no_cost_of_the_call() {
        let readings = AtomicU64::new(0);
        // Reading takes 5 ns; after the 128 readings that find this out each call takes 3 ns more.
        let clock = || {
            let number = readings.fetch_add(1, Ordering::Relaxed);
            number * 5 + number.saturating_sub(128).div_ceil(2) * 3
        };
        let samples = costs(QueueKind::Coarse, 4, 1, 1, &clock);
        let three = samples.iter().filter(|sample| sample.ns == 3).count();
        assert_eq!(three, samples.len(), "{samples:?}");
    }
}
