//! Wakes the agent when threads of tasks have sent it events.

use crate::sync::Word;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// Which tasks have sent events to the agent, and whether the agent has to be woken.
///
/// A polling agent finds all pending tasks in one cache line, and no thread makes a system call to notify it.
/// Before the agent sleeps, it announces that and checks once more. A thread first stores its notification and
/// then checks whether the agent sleeps. With a full fence between the store and the check on both sides, at
/// least one side observes the other.
#[derive(Debug)]
pub(super) struct Doorbell {
    /// One bit per task.
    pending: Box<[AtomicU64]>,
    /// `ring` was called since the agent last checked.
    rung: AtomicBool,
    /// One of the constants below.
    agent: Word,
}

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

impl Doorbell {
    pub(super) fn new(tasks: usize) -> Self {
        Self {
            pending: (0..tasks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            rung: AtomicBool::new(false),
            agent: Word::new(AWAKE),
        }
    }

    /// Notifies the agent that this task has events in its channel. The task must exist.
    pub(super) fn notify(&self, task: usize) {
        self.pending[task / 64].fetch_or(1 << (task % 64), Ordering::Release);
        self.wake_agent();
    }

    /// Makes the agent return from [`wait_until`](Self::wait_until): at once, or from its next call.
    pub(super) fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        self.wake_agent();
    }

    fn wake_agent(&self) {
        fence(Ordering::SeqCst);
        if self.agent.get() == ASLEEP {
            self.agent.set(AWAKE);
        }
    }

    /// Calls `handle` for every task with pending events. Events sent from now on are pending again.
    pub(super) fn take(&self, mut handle: impl FnMut(usize)) {
        for (index, pending) in self.pending.iter().enumerate() {
            // A load leaves the cache line shared; the exchange would take it.
            if pending.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let mut bits = pending.swap(0, Ordering::Acquire);
            while bits != 0 {
                handle(index * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }

    /// For the agent alone: returns at this instant of the monotonic clock, or when a notification is pending.
    pub(super) fn wait_until(&self, at_ns: u64) {
        self.agent.change(AWAKE, ASLEEP);
        fence(Ordering::SeqCst);
        if !self.has_pending() {
            self.agent.wait_until(ASLEEP, at_ns);
        }
        self.agent.change(ASLEEP, AWAKE);
    }

    fn has_pending(&self) -> bool {
        let mut pending = self.pending.iter();
        self.rung.swap(false, Ordering::Acquire)
            || pending.any(|pending| pending.load(Ordering::Acquire) != 0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::sys::clock::monotonic_ns;

    #[test]
    fn take_reports_each_notified_task_once() {
        let doorbell = Doorbell::new(130);
        for task in [129, 0, 64, 0] {
            doorbell.notify(task);
        }
        let mut taken = Vec::new();
        doorbell.take(|task| taken.push(task));
        doorbell.take(|task| taken.push(task));
        assert_eq!(taken, [0, 64, 129]);
    }

    #[test]
    fn wait_with_pending_notification_returns_at_once() {
        let doorbell = Doorbell::new(1);
        doorbell.ring();
        doorbell.wait_until(u64::MAX);
        doorbell.notify(0);
        doorbell.wait_until(u64::MAX);
        doorbell.take(|_| {});
        let soon = monotonic_ns() + 2_000_000;
        doorbell.wait_until(soon);
        assert!(monotonic_ns() >= soon);
    }

    #[test]
    fn notification_wakes_sleeping_agent() {
        let doorbell = Arc::new(Doorbell::new(2));
        for task in [0, 1] {
            let waiter = Arc::clone(&doorbell);
            let sleeping = std::thread::spawn(move || waiter.wait_until(u64::MAX));
            while doorbell.agent.get() == AWAKE && !sleeping.is_finished() {
                std::thread::yield_now();
            }
            doorbell.notify(task);
            sleeping.join().unwrap();
            doorbell.take(|_| {});
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;

    use super::*;

    #[test]
    fn no_notification_is_missed_by_sleeping_agent() {
        let mut checker = loom::model::Builder::new();
        // The interleavings are too many without a bound; two preemptions suffice for a lost wake-up.
        checker.preemption_bound = Some(2);
        checker.check(|| {
            let doorbell = Arc::new(Doorbell::new(2));
            let notifiers = [0, 1].map(|task| {
                let doorbell = Arc::clone(&doorbell);
                loom::thread::spawn(move || doorbell.notify(task))
            });
            let mut taken = 0;
            // A lost wake-up leaves this thread asleep for ever, which the checker reports.
            while taken != 3 {
                doorbell.take(|task| taken |= 1 << task);
                if taken != 3 {
                    doorbell.wait_until(u64::MAX);
                }
            }
            for notifier in notifiers {
                notifier.join().unwrap();
            }
        });
    }
}
