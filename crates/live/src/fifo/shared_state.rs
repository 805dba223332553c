//! What all threads of this machine share.

use std::sync::OnceLock;

use shiftwork_model::{CpuId, CpuSet};

use super::doorbell::Doorbell;
use super::thread_handshake::ThreadHandshake;
use crate::agent::channel::{Receiver, channel};
use crate::sync::Word;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sys::thread::{Class, is_ours, set_affinity, set_class};

/// An agent that says nothing for so long is taken for dead. It should beat five times in it.
pub(super) const HEARTBEAT_TIMEOUT_NS: u64 = 200_000_000;

/// What a thread has on its way to the agent is never more than a few events.
const EVENTS: usize = 16;

/// What all threads of this machine share.
#[derive(Debug)]
pub(super) struct SharedState {
    /// By task.
    pub(super) handshakes: Box<[ThreadHandshake]>,
    pub(super) doorbell: Doorbell,
    /// One for each CPU of the platform.
    pub(super) blocker_cpus: Box<[BlockerCpu]>,
    /// When the agent was last heard of; 0 before the first time, and after it has gone home.
    heartbeat_ns: AtomicU64,
    failed: OnceLock<String>,
}

/// Where a blocker is.
#[derive(Debug)]
pub(super) struct BlockerCpu {
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

impl SharedState {
    /// For these CPUs and so many tasks; with the other ends of the tasks' channels.
    pub(super) fn new(cpus: &CpuSet, tasks: usize) -> (Self, Vec<Receiver>) {
        let (handshakes, receivers): (Vec<_>, Vec<_>) = (0..tasks)
            .map(|_| channel(EVENTS))
            .map(|(sender, receiver)| (ThreadHandshake::new(sender), receiver))
            .unzip();
        let blocker = |cpu| BlockerCpu {
            cpu,
            word: Word::new(IDLE),
        };
        let shared = Self {
            handshakes: handshakes.into(),
            doorbell: Doorbell::new(tasks),
            blocker_cpus: cpus.iter().map(blocker).collect(),
            heartbeat_ns: AtomicU64::new(0),
            failed: OnceLock::new(),
        };
        (shared, receivers)
    }

    /// The agent is alive.
    pub(super) fn heartbeat(&self, now_ns: u64) {
        self.heartbeat_ns.store(now_ns, Ordering::Relaxed);
    }

    /// The agent goes home; its silence means nothing any more.
    pub(super) fn end_heartbeats(&self) {
        self.heartbeat_ns.store(0, Ordering::Relaxed);
    }

    /// For how long the agent has said nothing, in nanoseconds, if that is too long.
    pub(super) fn overdue_ns(&self, now_ns: u64) -> Option<u64> {
        let heartbeat_ns = self.heartbeat_ns.load(Ordering::Relaxed);
        let overdue_ns = now_ns.saturating_sub(heartbeat_ns);
        (heartbeat_ns != 0 && overdue_ns > HEARTBEAT_TIMEOUT_NS).then_some(overdue_ns)
    }

    /// Something went wrong that ends the run; the first reason counts.
    pub(super) fn fail(&self, why: String) {
        let _ = self.failed.set(why);
    }

    pub(super) fn failed(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    /// Nobody waits any more, and no CPU is blocked.
    pub(super) fn end_run(&self) {
        self.end_blockers();
        for handshake in &self.handshakes {
            handshake.end_run();
        }
    }

    pub(super) fn end_blockers(&self) {
        for blocker in &self.blocker_cpus {
            blocker.word.set(ENDED);
        }
    }

    /// Every thread that takes part is an ordinary one again, on all CPUs that it may use.
    pub(super) fn restore(&self) {
        for handshake in &self.handshakes {
            // Held meanwhile: a task that is dismissed may be admitted again.
            let to_restore = handshake.to_restore();
            let Some((thread, cpus)) = *to_restore else {
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
        let (shared, _) = SharedState::new(&CpuSet::first(1), 1);
        assert_eq!(shared.overdue_ns(u64::MAX), None);
        shared.heartbeat(7);
        assert_eq!(shared.overdue_ns(7 + HEARTBEAT_TIMEOUT_NS), None);
        assert_eq!(
            shared.overdue_ns(8 + HEARTBEAT_TIMEOUT_NS),
            Some(HEARTBEAT_TIMEOUT_NS + 1)
        );
        // Another CPU's clock may be a little behind.
        assert_eq!(shared.overdue_ns(6), None);
        shared.end_heartbeats();
        assert_eq!(shared.overdue_ns(u64::MAX), None);
    }

    #[test]
    fn the_first_reason_is_the_one_that_counts() {
        let (shared, _) = SharedState::new(&CpuSet::first(1), 1);
        assert_eq!(shared.failed(), None);
        shared.fail(String::from("one"));
        shared.fail(String::from("two"));
        assert_eq!(shared.failed(), Some("one"));
    }

    #[test]
    fn a_blocker_that_has_ended_is_not_called_back() {
        let (shared, _) = SharedState::new(&CpuSet::first(2), 1);
        shared.end_run();
        for blocker in &shared.blocker_cpus {
            assert!(!blocker.word.change(IDLE, BLOCKING));
            assert_eq!(blocker.word.get(), ENDED);
        }
    }
}
