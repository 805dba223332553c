//! What all threads of this machine share.

use std::sync::OnceLock;

use shiftwork_model::{CpuId, CpuSet};

use super::doorbell::Bell;
use super::thread_handshake::Seat;
use crate::agent::channel::{Receiver, channel};
use crate::sync::Word;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sys::thread::{Class, is_ours, set_affinity, set_class};

/// An agent that says nothing for so long is taken for dead. It should beat five times in it.
pub(super) const SILENCE_NS: u64 = 200_000_000;

/// What a thread has on its way to the agent is never more than a few events.
const EVENTS: usize = 16;

/// What all threads of this machine share.
#[derive(Debug)]
pub(super) struct Floor {
    /// By task.
    pub(super) seats: Box<[Seat]>,
    pub(super) bell: Bell,
    /// One for each CPU of the platform.
    pub(super) posts: Box<[Post]>,
    /// When the agent was last heard of; 0 before the first time, and after it has gone home.
    beat_ns: AtomicU64,
    failed: OnceLock<String>,
}

/// Where a blocker is.
#[derive(Debug)]
pub(super) struct Post {
    pub(super) cpu: CpuId,
    /// One of the constants below. Only [`IDLE`] and [`BLOCKING`] change into each other.
    pub(super) word: Word,
}

/// The blocker sleeps.
pub(super) const IDLE: u32 = 0;
/// The blocker keeps everybody below itself from the CPU.
pub(super) const BLOCKING: u32 = 1;
/// The blocker ends.
pub(super) const ENDED: u32 = 2;

impl Floor {
    /// For these CPUs and so many tasks; with the other ends of the tasks' channels.
    pub(super) fn new(cpus: &CpuSet, tasks: usize) -> (Self, Vec<Receiver>) {
        let (seats, ears): (Vec<_>, Vec<_>) = (0..tasks)
            .map(|_| channel(EVENTS))
            .map(|(sender, receiver)| (Seat::new(sender), receiver))
            .unzip();
        let post = |cpu| Post {
            cpu,
            word: Word::new(IDLE),
        };
        let floor = Self {
            seats: seats.into(),
            bell: Bell::new(tasks),
            posts: cpus.iter().map(post).collect(),
            beat_ns: AtomicU64::new(0),
            failed: OnceLock::new(),
        };
        (floor, ears)
    }

    /// The agent is alive.
    pub(super) fn beat(&self, now_ns: u64) {
        self.beat_ns.store(now_ns, Ordering::Relaxed);
    }

    /// The agent goes home; its silence means nothing any more.
    pub(super) fn sign_off(&self) {
        self.beat_ns.store(0, Ordering::Relaxed);
    }

    /// For how long the agent has said nothing, in nanoseconds, if that is too long.
    pub(super) fn silence(&self, now_ns: u64) -> Option<u64> {
        let beat_ns = self.beat_ns.load(Ordering::Relaxed);
        let silence_ns = now_ns.saturating_sub(beat_ns);
        (beat_ns != 0 && silence_ns > SILENCE_NS).then_some(silence_ns)
    }

    /// Something went wrong that ends the run; the first reason counts.
    pub(super) fn fail(&self, why: String) {
        let _ = self.failed.set(why);
    }

    pub(super) fn failed(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    /// Nobody waits any more, and no CPU is blocked.
    pub(super) fn open(&self) {
        self.end_blockers();
        for seat in &self.seats {
            seat.end();
        }
    }

    pub(super) fn end_blockers(&self) {
        for post in &self.posts {
            post.word.set(ENDED);
        }
    }

    /// Every thread that takes part is an ordinary one again, on all CPUs that it may use.
    pub(super) fn restore(&self) {
        for seat in &self.seats {
            // Held meanwhile: a task that is dismissed may be admitted again.
            let engaged = seat.engaged();
            let Some((thread, cpus)) = *engaged else {
                continue;
            };
            if is_ours(thread) {
                // It may be gone by now, and then there is nothing to put back.
                let _ = set_class(Some(thread), Class::Ordinary);
                let _ = set_affinity(Some(thread), &cpus);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_agent_that_began_can_fall_silent() {
        let (floor, _) = Floor::new(&CpuSet::first(1), 1);
        assert_eq!(floor.silence(u64::MAX), None);
        floor.beat(7);
        assert_eq!(floor.silence(7 + SILENCE_NS), None);
        assert_eq!(floor.silence(8 + SILENCE_NS), Some(SILENCE_NS + 1));
        // Another CPU's clock may be a little behind.
        assert_eq!(floor.silence(6), None);
        floor.sign_off();
        assert_eq!(floor.silence(u64::MAX), None);
    }

    #[test]
    fn the_first_reason_is_the_one_that_counts() {
        let (floor, _) = Floor::new(&CpuSet::first(1), 1);
        assert_eq!(floor.failed(), None);
        floor.fail(String::from("one"));
        floor.fail(String::from("two"));
        assert_eq!(floor.failed(), Some("one"));
    }

    #[test]
    fn a_blocker_that_has_ended_is_not_called_back() {
        let (floor, _) = Floor::new(&CpuSet::first(2), 1);
        floor.open();
        for post in &floor.posts {
            assert!(!post.word.change(IDLE, BLOCKING));
            assert_eq!(post.word.get(), ENDED);
        }
    }
}
