//! State that all threads of this machine share.

use std::sync::OnceLock;

use shiftwork_model::{CpuId, CpuSet};

use super::doorbell::Doorbell;
use super::thread_handshake::ThreadHandshake;
use crate::agent::channel::{Receiver, channel};
use crate::sync::Word;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sys::thread::{Class, is_ours, set_affinity, set_class};

/// The agent counts as failed after so long without a heartbeat. Five heartbeats fit into this span.
pub(super) const HEARTBEAT_TIMEOUT_NS: u64 = 200_000_000;

/// A task's channel never holds more than a few events, and those of its triggers.
const EVENTS: usize = 64;

/// State that all threads of this machine share.
#[derive(Debug)]
pub(super) struct SharedState {
    /// One per task.
    pub(super) handshakes: Box<[ThreadHandshake]>,
    pub(super) doorbell: Doorbell,
    /// One per CPU of the platform.
    pub(super) blocker_cpus: Box<[BlockerCpu]>,
    /// Instant of the agent's last heartbeat; 0 before the first one and after the agent has ended.
    heartbeat_ns: AtomicU64,
    failed: OnceLock<String>,
}

/// The CPU of a blocker, and what the blocker does.
#[derive(Debug)]
pub(super) struct BlockerCpu {
    pub(super) cpu: CpuId,
    /// One of the constants below. Only [`IDLE`] and [`BLOCKING`] change into each other.
    pub(super) word: Word,
}

/// The blocker sleeps.
pub(super) const IDLE: u32 = 0;
/// The blocker keeps all threads of lower priority from the CPU.
pub(super) const BLOCKING: u32 = 1;
/// The blocker ends.
pub(super) const ENDED: u32 = 2;

impl SharedState {
    /// For these CPUs and this many tasks; with the receiving ends of the tasks' channels.
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

    /// Records a heartbeat of the agent.
    pub(super) fn heartbeat(&self, now_ns: u64) {
        self.heartbeat_ns.store(now_ns, Ordering::Relaxed);
    }

    /// The agent has ended: no heartbeats are expected any more.
    pub(super) fn end_heartbeats(&self) {
        self.heartbeat_ns.store(0, Ordering::Relaxed);
    }

    /// The time since the last heartbeat, in nanoseconds, if it exceeds [`HEARTBEAT_TIMEOUT_NS`].
    pub(super) fn overdue_ns(&self, now_ns: u64) -> Option<u64> {
        let heartbeat_ns = self.heartbeat_ns.load(Ordering::Relaxed);
        let overdue_ns = now_ns.saturating_sub(heartbeat_ns);
        (heartbeat_ns != 0 && overdue_ns > HEARTBEAT_TIMEOUT_NS).then_some(overdue_ns)
    }

    /// Records a failure that ends the run; the first reason is kept.
    pub(super) fn fail(&self, why: String) {
        let _ = self.failed.set(why);
    }

    pub(super) fn failed(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    /// Lets all waiting threads continue and ends the blockers.
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

    /// Makes every managed thread ordinary again, on all CPUs that its task may use.
    pub(super) fn restore(&self) {
        for handshake in &self.handshakes {
            // Locked meanwhile: a task that is dismissed may be admitted again.
            let to_restore = handshake.to_restore();
            let Some((thread, cpus)) = *to_restore else {
                continue;
            };
            if is_ours(thread) {
                // The thread may have ended by now, and then there is nothing to restore.
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
    fn heartbeat_is_overdue_only_between_first_and_end() {
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
    fn first_failure_reason_is_kept() {
        let (shared, _) = SharedState::new(&CpuSet::first(1), 1);
        assert_eq!(shared.failed(), None);
        shared.fail(String::from("one"));
        shared.fail(String::from("two"));
        assert_eq!(shared.failed(), Some("one"));
    }

    #[test]
    fn ended_blocker_cannot_block_again() {
        let (shared, _) = SharedState::new(&CpuSet::first(2), 1);
        shared.end_run();
        for blocker in &shared.blocker_cpus {
            assert!(!blocker.word.change(IDLE, BLOCKING));
            assert_eq!(blocker.word.get(), ENDED);
        }
    }
}
