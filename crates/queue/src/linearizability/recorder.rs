//! Calls that record their history.

use super::{Call, Event, Number};
use crate::heap::Heap;
use crate::job::Job;
use crate::ready::ReadyQueue;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Calls a queue for one CPU and records calls and results.
pub(crate) struct Recorder<'a> {
    pub(crate) queue: &'a dyn ReadyQueue<Number>,
    /// A counter shared by all threads, which orders starts and ends of calls. Each increment synchronizes
    /// with the earlier ones.
    pub(crate) clock: &'a AtomicU64,
    pub(crate) cpu: usize,
    /// Whether a merge is one event; otherwise each of its jobs is an event.
    pub(crate) merges_at_once: bool,
    /// The jobs that this caller holds, in no queue.
    pub(crate) held: Vec<Job<Number>>,
    pub(crate) events: Vec<Event>,
}

impl Recorder<'_> {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::AcqRel)
    }

    /// Inserts as many of the held jobs as there are keys.
    pub(crate) fn insert(&mut self, keys: &[u64]) {
        let mut batch = Heap::default();
        let mut single = None;
        let mut inserted = Vec::new();
        for &key in keys {
            let Some(mut job) = self.held.pop() else {
                break;
            };
            job.set_key(Number(key));
            inserted.push(key);
            if keys.len() == 1 {
                single = Some(job);
            } else {
                batch.insert(job);
            }
        }
        let start = self.now();
        match single {
            Some(job) => self.queue.insert(self.cpu, job),
            None => self.queue.merge(self.cpu, batch),
        }
        let end = self.now();
        let moments = if self.merges_at_once {
            vec![inserted]
        } else {
            inserted.into_iter().map(|key| vec![key]).collect()
        };
        self.events.extend(moments.into_iter().map(|keys| Event {
            call: Call::Insert(keys),
            taken: None,
            start,
            end,
        }));
    }

    pub(crate) fn take(&mut self) {
        let start = self.now();
        let job = self.queue.take(self.cpu);
        self.took(Call::Take, start, job);
    }

    pub(crate) fn take_if_before(&mut self, limit: u64) {
        let start = self.now();
        let job = self.queue.take_if_before(self.cpu, &Number(limit));
        self.took(Call::TakeIfBefore(limit), start, job);
    }

    fn took(&mut self, call: Call, start: u64, job: Option<Job<Number>>) {
        let end = self.now();
        self.events.push(Event {
            call,
            taken: job.as_ref().map(|job| job.key().0),
            start,
            end,
        });
        self.held.extend(job);
    }
}
