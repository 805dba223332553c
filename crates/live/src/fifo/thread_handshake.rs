//! Where the thread of a task waits, and how it and the agent agree on whether it does.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::thread::Pid;
use shiftwork_model::CpuSet;

use crate::agent::channel::Sender;
use crate::event::{Event, Kind};
use crate::sync::Word;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sys::clock::{monotonic_ns, thread_cpu_ns};
use crate::sys::thread::own_cpu;

/// How a seat stands. The thread alone goes from `Open` and `Out` to the states above, at the end of a
/// job; the agent alone opens, lets the task take part and sends it off:
///
/// ```text
///              takes part        takes no part
///   waits        Closed  <------->  Free     the thread sleeps by itself, and goes on when it is time
///                 | ^                ^ |
///            open | | end        end | | time
///                 v |                | v
///   does a job   Open   <------->   Out
/// ```
///
/// All changes are exchanges of the word below, so each side knows exactly how the other found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadState {
    ManagedWaiting,
    ManagedInJob,
    UnmanagedWaiting,
    UnmanagedInJob,
    /// The run is over: nobody waits any more, and nothing changes.
    Ended,
}

impl ThreadState {
    const BITS: u32 = 3;

    fn of(word: u32) -> Self {
        match word & ((1 << Self::BITS) - 1) {
            0 => Self::ManagedWaiting,
            1 => Self::ManagedInJob,
            2 => Self::UnmanagedWaiting,
            3 => Self::UnmanagedInJob,
            _ => Self::Ended,
        }
    }

    /// Below the state the number of the stay, counted by every admission: what is still told of a stay
    /// that is over must not be taken for news of the next. It may wrap, after half a billion.
    const fn word(self, epoch: u32) -> u32 {
        self as u32 | epoch << Self::BITS
    }
}

/// The number of a stay.
pub(super) const fn epoch_of(word: u32) -> u32 {
    word >> ThreadState::BITS
}

/// The seat of one task.
#[derive(Debug)]
pub(super) struct ThreadHandshake {
    word: Word,
    /// What the thread waits for when it waits: a release, or its own alarm clock. Of the monotonic
    /// clock.
    until_ns: AtomicU64,
    /// What the thread tells the agent. In the channel an event's task is the number of the stay, and
    /// the value of `Running` and `Stopped` the thread's CPU time.
    sender: Sender,
    /// Whose settings have to be put back, and to which CPUs.
    to_restore: Mutex<Option<(Pid, CpuSet)>>,
}

impl ThreadHandshake {
    pub(super) fn new(sender: Sender) -> Self {
        Self {
            word: Word::new(ThreadState::ManagedWaiting.word(0)),
            until_ns: AtomicU64::new(0),
            sender,
            to_restore: Mutex::new(None),
        }
    }

    pub(super) fn state(&self) -> ThreadState {
        ThreadState::of(self.word.get())
    }

    /// Whose settings have to be put back, and to which CPUs; `None` if nobody's.
    pub(super) fn to_restore(&self) -> MutexGuard<'_, Option<(Pid, CpuSet)>> {
        // Whoever panicked while holding this left a value that is whole.
        self.to_restore
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// What the thread waits for, if it waits.
    pub(super) fn until_ns(&self) -> u64 {
        self.until_ns.load(Ordering::Relaxed)
    }

    /// For the agent: the task takes part from now on. The number of its stay, and whether its thread
    /// is in a job.
    pub(super) fn admit(&self) -> (u32, bool) {
        let word = self.update(|state, epoch| match state {
            ThreadState::ManagedWaiting | ThreadState::UnmanagedWaiting => {
                ThreadState::ManagedWaiting.word(epoch + 1)
            }
            ThreadState::ManagedInJob | ThreadState::UnmanagedInJob => {
                ThreadState::ManagedInJob.word(epoch + 1)
            }
            ThreadState::Ended => ThreadState::Ended.word(epoch),
        });
        self.word.wake();
        (
            epoch_of(word),
            ThreadState::of(word) == ThreadState::ManagedInJob,
        )
    }

    /// For the agent: the task takes no part any more.
    pub(super) fn dismiss(&self) {
        self.update(|state, epoch| match state {
            ThreadState::ManagedWaiting => ThreadState::UnmanagedWaiting.word(epoch),
            ThreadState::ManagedInJob => ThreadState::UnmanagedInJob.word(epoch),
            other => other.word(epoch),
        });
        self.word.wake();
    }

    /// For the agent: the thread that waits, or is about to, goes on.
    pub(super) fn start_job(&self) {
        self.update(|state, epoch| match state {
            ThreadState::ManagedWaiting => ThreadState::ManagedInJob.word(epoch),
            other => other.word(epoch),
        });
        self.word.wake();
    }

    /// Nobody waits here any more.
    pub(super) fn end_run(&self) {
        self.update(|_, epoch| ThreadState::Ended.word(epoch));
        self.word.wake();
    }

    /// For the thread: what it did is over, and it will wait for this instant. Whether it told the agent.
    pub(super) fn end_job(&self, kind: Kind, until_ns: u64) -> bool {
        self.until_ns.store(until_ns, Ordering::Relaxed);
        let (at, spent_ns) = (monotonic_ns(), thread_cpu_ns());
        let word = self.update(|state, epoch| match state {
            ThreadState::ManagedInJob => ThreadState::ManagedWaiting.word(epoch),
            ThreadState::UnmanagedInJob => ThreadState::UnmanagedWaiting.word(epoch),
            other => other.word(epoch),
        });
        if ThreadState::of(word) != ThreadState::ManagedWaiting {
            return false;
        }
        self.send(at, Kind::Stopped, word, spent_ns);
        self.send(at, kind, word, until_ns);
        true
    }

    /// For the thread, before its first job: it will wait for this instant.
    pub(super) fn set_first_release(&self, until_ns: u64) {
        self.until_ns.store(until_ns, Ordering::Relaxed);
    }

    /// For the thread: waits as it has to. Whether it goes on because the agent says so, of which the
    /// agent has been told.
    pub(super) fn wait(&self) -> bool {
        let until_ns = self.until_ns();
        loop {
            let word = self.word.get();
            match ThreadState::of(word) {
                ThreadState::ManagedWaiting => self.word.wait_while(word),
                ThreadState::UnmanagedWaiting => {
                    self.word.wait_until(word, until_ns);
                    self.word
                        .change(word, ThreadState::UnmanagedInJob.word(epoch_of(word)));
                }
                ThreadState::ManagedInJob => {
                    self.send(monotonic_ns(), Kind::Running, word, thread_cpu_ns());
                    return true;
                }
                ThreadState::UnmanagedInJob | ThreadState::Ended => return false,
            }
        }
    }

    /// There is room: at most three events are on their way for each time that the agent opens.
    fn send(&self, at: u64, kind: Kind, word: u32, value: u64) {
        let cpu = own_cpu().and_then(|cpu| u16::try_from(cpu.index()).ok());
        self.sender.send(Event {
            at,
            value,
            task: epoch_of(word),
            cpu,
            kind,
        });
    }

    /// Changes the word; what it is then. Others change it at most a few times in the life of a task, so
    /// this tries again at most as often.
    fn update(&self, to: impl Fn(ThreadState, u32) -> u32) -> u32 {
        loop {
            let word = self.word.get();
            let next = to(ThreadState::of(word), epoch_of(word));
            if self.word.change(word, next) {
                return next;
            }
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;

    use super::*;
    use crate::agent::channel::channel;

    /// Whoever is sent off and let in again while its job ends is in the middle of it, and will tell
    /// that as part of the new stay; or it waits, and what it told is of the old one.
    #[test]
    fn both_sides_agree_on_who_waits() {
        loom::model(|| {
            let (sender, receiver) = channel(8);
            let handshake = Arc::new(ThreadHandshake::new(sender));
            handshake.admit();
            handshake.start_job();
            let thread = Arc::clone(&handshake);
            let closing = loom::thread::spawn(move || thread.end_job(Kind::NextJob, 5));
            handshake.dismiss();
            let (epoch, was_out) = handshake.admit();
            closing.join().unwrap();
            let mut received = Vec::new();
            receiver.take(&mut received);
            assert_eq!(received.iter().any(|event| event.task == epoch), was_out);
            assert_eq!(handshake.state(), ThreadState::ManagedWaiting);
        });
    }
}
