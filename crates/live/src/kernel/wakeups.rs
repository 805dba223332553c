//! Where the thread of a triggered task sleeps when it has no job.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::sys::word::Word;

/// Where the thread of a triggered task sleeps when it has no job.
///
/// Each trigger is announced here once, before it is executed once. So a thread may sleep only while all that were announced have
/// been executed: the answer to the command that ends its job says how many have. Otherwise it waits in its queue for the one on
/// its way. An agent that lets a job begin by a trigger of before announces that, too.
#[derive(Debug, Default)]
pub(super) struct Wakeups {
    announced: Word,
    /// How many of these are no triggers, but wake-ups by an agent.
    by_agent: AtomicU32,
}

/// What was announced before a job ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announced {
    all: u32,
    by_agent: u32,
}

impl Wakeups {
    /// A trigger is about to be executed, or the run is over. Wakes the thread.
    pub(super) fn announce(&self) {
        loop {
            let announced = self.announced.get();
            if self.announced.change(announced, announced.wrapping_add(1)) {
                break;
            }
        }
        self.announced.wake();
    }

    /// An agent has let a job begin for which the thread may sleep.
    pub(super) fn wake(&self) {
        self.by_agent.fetch_add(1, Ordering::Release);
        self.announce();
    }

    /// For the thread, before the command that ends its job.
    pub(super) fn announced(&self) -> Announced {
        Announced {
            all: self.announced.get(),
            by_agent: self.by_agent.load(Ordering::Acquire),
        }
    }

    /// Sleeps until the first announcement.
    pub(super) fn wait_for_first(&self) {
        self.announced.wait_while(0);
    }

    /// Sleeps as long as nothing but these executed triggers has been announced, and what an agent had before.
    pub(super) fn wait_after(&self, executed: u32, before: Announced) {
        self.announced
            .wait_while(executed.wrapping_add(before.by_agent));
    }

    /// Sleeps until the next announcement after these.
    pub(super) fn wait_for_next(&self, before: Announced) {
        self.announced.wait_while(before.all);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    /// What the core knows of a triggered task.
    #[derive(Default)]
    struct Core {
        executed: u32,
        waiting: u32,
    }

    /// Ends a job of the thread, and returns when the next one has been released.
    fn end_job(wakeups: &Wakeups, core: &Mutex<Core>) {
        let before = wakeups.announced();
        let executed = {
            let mut core = core.lock().unwrap();
            if core.waiting > 0 {
                core.waiting -= 1;
                return;
            }
            core.executed
        };
        wakeups.wait_after(executed, before);
        // In its queue, until the core has released its job.
        while core.lock().unwrap().waiting == 0 {
            std::thread::yield_now();
        }
        core.lock().unwrap().waiting -= 1;
    }

    #[test]
    fn thread_sleeps_through_no_trigger() {
        const TRIGGERS: u32 = 30_000;
        let (wakeups, core) = (Wakeups::default(), Mutex::new(Core::default()));
        let (sender, done) = channel();
        let trigger = |number: u32| {
            wakeups.announce();
            for _ in 0..number % 97 {
                std::hint::spin_loop();
            }
            let mut core = core.lock().unwrap();
            (core.executed, core.waiting) = (core.executed + 1, core.waiting + 1);
        };
        let slept = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                for _ in 0..TRIGGERS {
                    end_job(&wakeups, &core);
                    sender.send(()).unwrap();
                }
            });
            let slept = (0..TRIGGERS).find(|&number| {
                trigger(number);
                // Its job ends about when the next trigger comes.
                done.recv_timeout(Duration::from_secs(10)).is_err()
            });
            while !thread.is_finished() && slept.is_some() {
                trigger(0);
            }
            slept
        });
        assert_eq!(slept, None, "the thread slept through this trigger");
    }

    #[test]
    fn agent_wakes_a_thread_whose_triggers_have_all_been_executed() {
        let wakeups = Wakeups::default();
        wakeups.announce();
        let before = wakeups.announced();
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| wakeups.wait_after(1, before));
            wakeups.wake();
            sleeper.join().unwrap();
        });
        // The next time that is counted: it would sleep.
        let before = wakeups.announced();
        assert_eq!(wakeups.announced.get(), 1 + before.by_agent);
    }
}
