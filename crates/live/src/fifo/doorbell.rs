//! How threads tell the agent that they have something to say.

use crate::sync::Word;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// Who has news for the agent, and whether it has to be woken for that.
///
/// An agent that polls finds all news in one cache line, and nobody makes a system call for it. Before it
/// sleeps it says so and looks once more; whoever has news leaves them first and then looks whether it
/// sleeps. With a fence in between on both sides at least one of the two sees the other.
#[derive(Debug)]
pub(super) struct Bell {
    /// A bit for each task.
    news: Box<[AtomicU64]>,
    /// Somebody rang who is not a task.
    was_rung: AtomicBool,
    /// One of the constants below.
    agent: Word,
}

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

impl Bell {
    pub(super) fn new(tasks: usize) -> Self {
        Self {
            news: (0..tasks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            was_rung: AtomicBool::new(false),
            agent: Word::new(AWAKE),
        }
    }

    /// This task, which exists, has put something into its channel.
    pub(super) fn tell(&self, task: usize) {
        self.news[task / 64].fetch_or(1 << (task % 64), Ordering::Release);
        self.wake_agent();
    }

    /// The agent returns from [`wait_until`](Self::wait_until), or will at once when it calls it next.
    pub(super) fn ring(&self) {
        self.was_rung.store(true, Ordering::Release);
        self.wake_agent();
    }

    fn wake_agent(&self) {
        fence(Ordering::SeqCst);
        if self.agent.get() == ASLEEP {
            self.agent.set(AWAKE);
        }
    }

    /// Calls `hear` for every task that has news. What it puts into its channel from now on is news again.
    pub(super) fn take(&self, mut hear: impl FnMut(usize)) {
        for (index, news) in self.news.iter().enumerate() {
            // Looking leaves the cache line where it is, taking does not.
            if news.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let mut bits = news.swap(0, Ordering::Acquire);
            while bits != 0 {
                hear(index * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }

    /// For the agent alone: returns at this instant of the monotonic clock, or when there is news.
    pub(super) fn wait_until(&self, at_ns: u64) {
        self.agent.change(AWAKE, ASLEEP);
        fence(Ordering::SeqCst);
        if !self.has_news() {
            self.agent.wait_until(ASLEEP, at_ns);
        }
        self.agent.change(ASLEEP, AWAKE);
    }

    fn has_news(&self) -> bool {
        let mut news = self.news.iter();
        self.was_rung.swap(false, Ordering::Acquire)
            || news.any(|news| news.load(Ordering::Acquire) != 0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::sys::clock::monotonic_ns;

    #[test]
    fn news_are_heard_once_and_by_their_number() {
        let bell = Bell::new(130);
        for task in [129, 0, 64, 0] {
            bell.tell(task);
        }
        let mut heard = Vec::new();
        bell.take(|task| heard.push(task));
        bell.take(|task| heard.push(task));
        assert_eq!(heard, [0, 64, 129]);
    }

    #[test]
    fn whoever_has_been_rung_for_does_not_sleep() {
        let bell = Bell::new(1);
        bell.ring();
        bell.wait_until(u64::MAX);
        bell.tell(0);
        bell.wait_until(u64::MAX);
        bell.take(|_| {});
        let soon = monotonic_ns() + 2_000_000;
        bell.wait_until(soon);
        assert!(monotonic_ns() >= soon);
    }

    #[test]
    fn whoever_sleeps_is_woken() {
        let bell = Arc::new(Bell::new(2));
        for task in [0, 1] {
            let sleeper = Arc::clone(&bell);
            let sleeping = std::thread::spawn(move || sleeper.wait_until(u64::MAX));
            while bell.agent.get() == AWAKE && !sleeping.is_finished() {
                std::thread::yield_now();
            }
            bell.tell(task);
            sleeping.join().unwrap();
            bell.take(|_| {});
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
            let bell = Arc::new(Bell::new(2));
            let tellers = [0, 1].map(|task| {
                let bell = Arc::clone(&bell);
                loom::thread::spawn(move || bell.tell(task))
            });
            let mut heard = 0;
            // Every wake-up that is lost leaves this asleep for ever, which the checker reports.
            while heard != 3 {
                bell.take(|task| heard |= 1 << task);
                if heard != 3 {
                    bell.wait_until(u64::MAX);
                }
            }
            for teller in tellers {
                teller.join().unwrap();
            }
        });
    }
}
