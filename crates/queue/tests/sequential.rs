//! Every queue, called by one CPU at a time, behaves like a sorted vector.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;
use shiftwork_queue::{Heap, Job, QUEUE_KINDS, QueueKind, Rank, ReadyQueue};

const CPUS: usize = 3;

/// The number of repetitions; more if `SHIFTWORK_LONG` is set.
fn factor() -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 100,
        None => 1,
    }
}

struct Walk {
    random: Pcg64Mcg,
    /// The keys that the queue must hold, sorted.
    waiting: Vec<Rank>,
    hand: Vec<Job<Rank>>,
}

impl Walk {
    fn new(seed: u64, tasks: u32) -> Self {
        let rank = Rank {
            deadline_ns: 0,
            release_ns: 0,
            task: 0,
        };
        Self {
            random: Pcg64Mcg::seed_from_u64(seed),
            waiting: Vec::new(),
            hand: (0..tasks).map(|task| Job::new(rank, task)).collect(),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.random.next_u64() % bound as u64) as usize
    }

    /// Deadlines and releases often tie; tasks never do.
    fn rank(&mut self, task: u32) -> Rank {
        Rank {
            deadline_ns: self.below(12) as u64,
            release_ns: self.below(3) as u64,
            task,
        }
    }

    fn next(&mut self) -> Option<Job<Rank>> {
        if self.hand.is_empty() {
            return None;
        }
        let place = self.below(self.hand.len());
        let mut job = self.hand.swap_remove(place);
        let rank = self.rank(job.task());
        job.set_key(rank);
        let place = self.waiting.partition_point(|before| *before < rank);
        self.waiting.insert(place, rank);
        Some(job)
    }

    fn step(&mut self, queue: &dyn ReadyQueue<Rank>) -> (String, bool) {
        let cpu = self.below(CPUS);
        match self.below(5) {
            0 | 1 => {
                if let Some(job) = self.next() {
                    queue.insert(cpu, job);
                }
                ("insert".into(), true)
            }
            2 => {
                let mut batch = Heap::default();
                for _ in 0..self.below(9) {
                    self.next().into_iter().for_each(|job| batch.insert(job));
                }
                let what = format!("merge {}", batch.len());
                queue.merge(cpu, batch);
                (what, true)
            }
            3 => {
                let expected = self.waiting.first().copied();
                let right = self.takes(queue.take(cpu), expected);
                ("take".into(), right)
            }
            _ => {
                let limit = self.rank(1);
                let expected = self.waiting.first().copied();
                let expected = expected.filter(|first| *first < limit);
                let right = self.takes(queue.take_if_before(cpu, &limit), expected);
                (format!("take before {limit:?}"), right)
            }
        }
    }

    fn takes(&mut self, job: Option<Job<Rank>>, expected: Option<Rank>) -> bool {
        let found = job.as_ref().map(Job::key);
        if found.is_some() {
            self.waiting.remove(0);
        }
        self.hand.extend(job);
        found == expected
    }
}

fn walk(kind: QueueKind, seed: u64, tasks: u32, steps: usize) {
    let queue = kind.build(CPUS, tasks as usize);
    let mut walk = Walk::new(seed, tasks);
    for step in 0..steps {
        let before = walk.waiting.clone();
        let (what, right) = walk.step(&*queue);
        assert!(
            right,
            "{}, seed {seed}, {tasks} tasks, step {step}: {what} of {before:?}",
            kind.name()
        );
    }
}

#[test]
fn every_queue_behaves_like_a_sorted_vector() {
    for kind in QUEUE_KINDS {
        for seed in 1..=60 * factor() {
            walk(kind, seed, 1 + (seed % 20) as u32, 400);
        }
        for seed in 1..=2 * factor() {
            walk(kind, seed, 300, 3_000);
        }
    }
}

#[test]
fn empty_batch_changes_nothing() {
    for kind in QUEUE_KINDS {
        let queue = kind.build::<u64>(1, 1);
        queue.merge(0, Heap::default());
        assert!(queue.take(0).is_none(), "{}", kind.name());
        queue.insert(0, Job::new(u64::MAX, 0));
        queue.merge(0, Heap::default());
        // The largest possible key is a valid limit.
        assert!(queue.take_if_before(0, &u64::MAX).is_none());
        assert!(queue.take(0).is_some(), "{}", kind.name());
        assert!(queue.take(0).is_none(), "{}", kind.name());
    }
}
