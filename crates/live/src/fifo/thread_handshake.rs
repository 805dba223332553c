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
pub(super) enum State {
    Closed,
    Open,
    Free,
    Out,
    /// The run is over: nobody waits any more, and nothing changes.
    Over,
}

impl State {
    const BITS: u32 = 3;

    fn of(word: u32) -> Self {
        match word & ((1 << Self::BITS) - 1) {
            0 => Self::Closed,
            1 => Self::Open,
            2 => Self::Free,
            3 => Self::Out,
            _ => Self::Over,
        }
    }

    /// Below the state the number of the stay, counted by every admission: what is still told of a stay
    /// that is over must not be taken for news of the next. It may wrap, after half a billion.
    const fn word(self, stay: u32) -> u32 {
        self as u32 | stay << Self::BITS
    }
}

/// The number of a stay.
pub(super) const fn stay_of(word: u32) -> u32 {
    word >> State::BITS
}

/// The seat of one task.
#[derive(Debug)]
pub(super) struct Seat {
    word: Word,
    /// What the thread waits for when it waits: a release, or its own alarm clock. Of the monotonic
    /// clock.
    until_ns: AtomicU64,
    /// What the thread tells the agent. In the channel an event's task is the number of the stay, and
    /// the value of `Running` and `Stopped` the thread's CPU time.
    sender: Sender,
    /// Whose settings have to be put back, and to which CPUs.
    engaged: Mutex<Option<(Pid, CpuSet)>>,
}

impl Seat {
    pub(super) fn new(sender: Sender) -> Self {
        Self {
            word: Word::new(State::Closed.word(0)),
            until_ns: AtomicU64::new(0),
            sender,
            engaged: Mutex::new(None),
        }
    }

    pub(super) fn state(&self) -> State {
        State::of(self.word.get())
    }

    /// Whose settings have to be put back, and to which CPUs; `None` if nobody's.
    pub(super) fn engaged(&self) -> MutexGuard<'_, Option<(Pid, CpuSet)>> {
        // Whoever panicked while holding this left a value that is whole.
        self.engaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the thread waits for, if it waits.
    pub(super) fn until_ns(&self) -> u64 {
        self.until_ns.load(Ordering::Relaxed)
    }

    /// For the agent: the task takes part from now on. The number of its stay, and whether its thread
    /// is in a job.
    pub(super) fn engage(&self) -> (u32, bool) {
        let word = self.turn(|state, stay| match state {
            State::Closed | State::Free => State::Closed.word(stay + 1),
            State::Open | State::Out => State::Open.word(stay + 1),
            State::Over => State::Over.word(stay),
        });
        self.word.wake();
        (stay_of(word), State::of(word) == State::Open)
    }

    /// For the agent: the task takes no part any more.
    pub(super) fn release(&self) {
        self.turn(|state, stay| match state {
            State::Closed => State::Free.word(stay),
            State::Open => State::Out.word(stay),
            other => other.word(stay),
        });
        self.word.wake();
    }

    /// For the agent: the thread that waits, or is about to, goes on.
    pub(super) fn open(&self) {
        self.turn(|state, stay| match state {
            State::Closed => State::Open.word(stay),
            other => other.word(stay),
        });
        self.word.wake();
    }

    /// Nobody waits here any more.
    pub(super) fn end(&self) {
        self.turn(|_, stay| State::Over.word(stay));
        self.word.wake();
    }

    /// For the thread: what it did is over, and it will wait for this instant. Whether it told the agent.
    pub(super) fn close(&self, kind: Kind, until_ns: u64) -> bool {
        self.until_ns.store(until_ns, Ordering::Relaxed);
        let (at, spent_ns) = (monotonic_ns(), thread_cpu_ns());
        let word = self.turn(|state, stay| match state {
            State::Open => State::Closed.word(stay),
            State::Out => State::Free.word(stay),
            other => other.word(stay),
        });
        if State::of(word) != State::Closed {
            return false;
        }
        self.send(at, Kind::Stopped, word, spent_ns);
        self.send(at, kind, word, until_ns);
        true
    }

    /// For the thread, before its first job: it will wait for this instant.
    pub(super) fn arrive(&self, until_ns: u64) {
        self.until_ns.store(until_ns, Ordering::Relaxed);
    }

    /// For the thread: waits as it has to. Whether it goes on because the agent says so, of which the
    /// agent has been told.
    pub(super) fn wait(&self) -> bool {
        let until_ns = self.until_ns();
        loop {
            let word = self.word.get();
            match State::of(word) {
                State::Closed => self.word.wait_while(word),
                State::Free => {
                    self.word.wait_until(word, until_ns);
                    self.word.change(word, State::Out.word(stay_of(word)));
                }
                State::Open => {
                    self.send(monotonic_ns(), Kind::Running, word, thread_cpu_ns());
                    return true;
                }
                State::Out | State::Over => return false,
            }
        }
    }

    /// There is room: at most three events are on their way for each time that the agent opens.
    fn send(&self, at: u64, kind: Kind, word: u32, value: u64) {
        let cpu = own_cpu().and_then(|cpu| u16::try_from(cpu.index()).ok());
        self.sender.send(Event {
            at,
            value,
            task: stay_of(word),
            cpu,
            kind,
        });
    }

    /// Changes the word; what it is then. Others change it at most a few times in the life of a task, so
    /// this tries again at most as often.
    fn turn(&self, to: impl Fn(State, u32) -> u32) -> u32 {
        loop {
            let word = self.word.get();
            let next = to(State::of(word), stay_of(word));
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
            let seat = Arc::new(Seat::new(sender));
            seat.engage();
            seat.open();
            let thread = Arc::clone(&seat);
            let closing = loom::thread::spawn(move || thread.close(Kind::NextJob, 5));
            seat.release();
            let (stay, was_out) = seat.engage();
            closing.join().unwrap();
            let mut told = Vec::new();
            receiver.take(&mut told);
            assert_eq!(told.iter().any(|event| event.task == stay), was_out);
            assert_eq!(seat.state(), State::Closed);
        });
    }
}
