//! How threads tell the agent that they have something to say.

use crate::sync::Word;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// Who has news for the agent, and whether it has to be woken for that.
///
/// An agent that polls finds all news in one cache line, and nobody makes a system call for it. Before it
/// sleeps it says so and looks once more; whoever has news leaves them first and then looks whether it
/// sleeps. With a fence in between on both sides at least one of the two sees the other.
#[derive(Debug)]
pub(super) struct Doorbell {
    /// A bit for each task.
    pending: Box<[AtomicU64]>,
    /// Somebody rang who is not a task.
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

    /// This task, which exists, has put something into its channel.
    pub(super) fn notify(&self, task: usize) {
        self.pending[task / 64].fetch_or(1 << (task % 64), Ordering::Release);
        self.wake_agent();
    }

    /// The agent returns from [`wait_until`](Self::wait_until), or will at once when it calls it next.
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

    /// Calls `hear` for every task that has news. What it puts into its channel from now on is news again.
    pub(super) fn take(&self, mut handle: impl FnMut(usize)) {
        for (index, pending) in self.pending.iter().enumerate() {
            // Looking leaves the cache line where it is, taking does not.
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

    /// For the agent alone: returns at this instant of the monotonic clock, or when there is news.
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
    fn news_are_heard_once_and_by_their_number() {
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
    fn whoever_has_been_rung_for_does_not_sleep() {
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
    fn whoever_sleeps_is_woken() {
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
    fn no_news_is_slept_over() {
        let mut checker = loom::model::Builder::new();
        // Without a bound the orders are too many; whatever goes wrong here takes two at most.
        checker.preemption_bound = Some(2);
        checker.check(|| {
            let doorbell = Arc::new(Doorbell::new(2));
            let notifiers = [0, 1].map(|task| {
                let doorbell = Arc::clone(&doorbell);
                loom::thread::spawn(move || doorbell.notify(task))
            });
            let mut taken = 0;
            // Every wake-up that is lost leaves this asleep for ever, which the checker reports.
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
