//! The triggers of one task that wait, and its jobs that have not begun.

use std::collections::VecDeque;

use shiftwork_model::{Instant, TaskId, Trigger};

/// For so many jobs that have not begun, a queue takes no memory later on.
const ROOM: usize = 64;

/// What became of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The queue was full.
    Lost,
    /// It waits for triggers by other sources.
    Waits,
    /// It releases a job, which arrives now.
    Releases,
}

/// The triggers of a task that wait for others, and the arrivals of its jobs that have not begun.
///
/// `kernel-core` has the same in C; a test there compares both.
#[derive(Clone, Debug)]
pub struct TriggerQueue {
    trigger: Trigger,
    /// Number of triggers so far that were not lost: one for each of its places.
    accepted: Vec<u64>,
    limit: u64,
    /// Number of jobs that were released so far.
    released: u64,
    /// The arrivals of the jobs that have not begun, the earliest first.
    arrivals: VecDeque<Instant>,
}

impl TriggerQueue {
    /// An empty queue of a task with this trigger.
    pub fn new(trigger: &Trigger) -> Self {
        let limit = trigger.queue.map_or(usize::MAX, |limit| limit as usize);
        Self {
            trigger: trigger.clone(),
            accepted: vec![0; trigger.places()],
            limit: limit as u64,
            released: 0,
            arrivals: VecDeque::with_capacity(ROOM.min(limit)),
        }
    }

    /// Takes a trigger by `source`, made now. `is_idle`: the task has no unfinished job.
    pub fn take(&mut self, source: TaskId, is_idle: bool, now: Instant) -> Taken {
        let place = self.trigger.place(source);
        let mut others = self.accepted.iter().enumerate();
        let completes = self.accepted[place] == self.released
            && others.all(|(other, accepted)| other == place || *accepted > self.released);
        let begun = self.released - self.arrivals.len() as u64;
        if !(completes && is_idle) && self.accepted[place] - begun >= self.limit {
            return Taken::Lost;
        }
        self.accepted[place] += 1;
        if !completes {
            return Taken::Waits;
        }
        self.released += 1;
        self.arrivals.push_back(now);
        Taken::Releases
    }

    /// The arrival of the next job, which begins; `None` if none has been released.
    pub fn next_arrival(&mut self) -> Option<Instant> {
        self.arrivals.pop_front()
    }

    /// Drops all that waits to release or to begin a job.
    pub fn clear(&mut self) {
        self.accepted.fill(self.released);
        self.arrivals.clear();
    }
}
