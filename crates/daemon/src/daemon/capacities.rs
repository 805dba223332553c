//! The capacities that the status shows: cached for each version of the table, and computed in a thread of ordinary work
//! unless that is cheap. So a status costs the same whatever admission would have to compute for it.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;

use crate::clock::now;
use crate::reservation_table::ReservationTable;
use crate::reservation_table::capacity::{Capacity, CapacityQuestion};

/// The largest [size](CapacityQuestion::size) of a question that is answered at once: some hundred microseconds, whatever is
/// guaranteed.
const SIZE_AT_ONCE: usize = 32;

/// After an answer the thread rests for so many times as long as that took.
const REST: u64 = 4;

type Answer = (u64, Vec<Capacity>);

/// The capacities of some version of the table, and the thread that computes the next.
#[derive(Debug)]
pub(super) struct Capacities {
    version: Option<u64>,
    all: Vec<Capacity>,
    sender: Option<SyncSender<Box<CapacityQuestion>>>,
    answers: Receiver<Answer>,
    is_busy: bool,
    thread: Option<JoinHandle<()>>,
}

impl Capacities {
    /// Nothing is known yet.
    ///
    /// # Errors
    /// If no thread can be created.
    pub(super) fn begin() -> io::Result<Self> {
        let (sender, questions) = sync_channel::<Box<CapacityQuestion>>(1);
        let (answered, answers) = sync_channel(1);
        let work = move || {
            for question in questions {
                let began = now();
                let answer = (question.version, question.answer());
                let took = now().late_since(began);
                // The receiver is gone if the daemon has ended.
                if answered.send(answer).is_err() {
                    return;
                }
                sleep(Duration::from_nanos(took.as_ns().saturating_mul(REST)));
            }
        };
        let thread = Builder::new().name("capacity".to_owned()).spawn(work)?;
        Ok(Self {
            version: None,
            all: Vec::new(),
            sender: Some(sender),
            answers,
            is_busy: false,
            thread: Some(thread),
        })
    }

    /// Takes what has been computed, and has the present capacities computed if they may be others.
    pub(super) fn refresh(&mut self, table: &ReservationTable) {
        if let Ok((version, all)) = self.answers.try_recv() {
            (self.version, self.all) = (Some(version), all);
            self.is_busy = false;
        }
        if self.is_busy || self.version == Some(table.version()) {
            return;
        }
        let question = table.capacity_question();
        if question.size() <= SIZE_AT_ONCE {
            self.version = Some(question.version);
            self.all = question.answer();
            return;
        }
        if let Some(sender) = &self.sender {
            // Fails only if the thread has panicked: then the last capacities stay.
            self.is_busy = sender.try_send(Box::new(question)).is_ok();
        }
    }

    /// Those that are known: the present ones, or of a moment ago.
    pub(super) fn all(&self) -> &[Capacity] {
        &self.all
    }
}

impl Drop for Capacities {
    fn drop(&mut self) {
        self.sender = None;
        // What it computes, it computes for nothing, and nothing waits for it.
        drop(self.thread.take());
    }
}
