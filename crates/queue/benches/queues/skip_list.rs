//! The `SkipSet` of crossbeam as a ready queue: the common concurrent ordered set of Rust programs.

use std::sync::Mutex;

use crossbeam_skiplist::SkipSet;
use shiftwork_queue::{Heap, Job, Rank, ReadyQueue};

/// A lock-free skip list of ranks; the jobs are in an array by task.
pub struct SkipList {
    waiting: SkipSet<Rank>,
    jobs: Box<[Mutex<Option<Job<Rank>>>]>,
}

impl SkipList {
    pub fn new(tasks: usize) -> Self {
        Self {
            waiting: SkipSet::new(),
            jobs: (0..tasks).map(|_| Mutex::new(None)).collect(),
        }
    }

    fn job(&self, rank: Rank) -> Option<Job<Rank>> {
        self.jobs[rank.task as usize].lock().unwrap().take()
    }
}

impl ReadyQueue<Rank> for SkipList {
    fn insert(&self, _cpu: usize, job: Job<Rank>) {
        let rank = job.key();
        *self.jobs[rank.task as usize].lock().unwrap() = Some(job);
        self.waiting.insert(rank);
    }

    fn merge(&self, cpu: usize, mut batch: Heap<Rank>) {
        while let Some(job) = batch.take() {
            self.insert(cpu, job);
        }
    }

    fn take(&self, _cpu: usize) -> Option<Job<Rank>> {
        let rank = *self.waiting.pop_front()?;
        self.job(rank)
    }

    fn take_if_before(&self, _cpu: usize, limit: &Rank) -> Option<Job<Rank>> {
        loop {
            let front = self.waiting.front()?;
            if *front >= *limit {
                return None;
            }
            // Otherwise another thread has removed it.
            if front.remove() {
                return self.job(*front);
            }
        }
    }
}
