//! How the thread of a task and the agent agree on whether the thread waits or is in a job.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::thread::Pid;
use shiftwork_machine::Taken;
use shiftwork_model::{CpuSet, ResourceId};

use crate::agent::Answer;
use crate::agent::channel::Sender;
use crate::event::{Event, Kind, TriggerValue, UnlockValue};
use crate::sync::Word;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sys::clock::{monotonic_ns, thread_cpu_ns};
use crate::sys::thread::own_cpu;
use crate::work::{Effects, Target};

/// What a thread does, and whether it is managed. At the end of a job the thread alone changes from a state in
/// a job to the waiting state above; the agent alone starts jobs, admits and dismisses:
///
/// ```text
///                  managed               unmanaged
///   waits        ManagedWaiting <---> UnmanagedWaiting   sleeps by its own timer, and continues when that expires
///                    | ^                   ^ |
///              start | | end           end | | timer
///                    v |                   | v
///   in a job     ManagedInJob   <---> UnmanagedInJob
/// ```
///
/// Each change is a compare-and-exchange of one word, so each side knows exactly which state it replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadState {
    ManagedWaiting,
    ManagedInJob,
    UnmanagedWaiting,
    UnmanagedInJob,
    /// The run is over: no thread waits any more, and no further change happens.
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

    /// The state is in the lowest bits, the admission epoch above them. Every admission increments the epoch, so that
    /// events from an earlier admission are recognised. It wraps after 2^29 admissions.
    const fn word(self, epoch: u32) -> u32 {
        self as u32 | epoch << Self::BITS
    }
}

/// The admission epoch in a word.
pub(super) const fn epoch_of(word: u32) -> u32 {
    word >> ThreadState::BITS
}

/// The handshake of one task.
#[derive(Debug)]
pub(super) struct ThreadHandshake {
    word: Word,
    /// What a waiting thread waits for: a release, or the end of a suspension. An instant of the monotonic clock.
    until_ns: AtomicU64,
    /// Events from the thread to the agent. In this channel the task of an event is the admission epoch, and the
    /// value of `Running` and `Stopped` is the CPU time of the thread.
    sender: Sender,
    /// What the thread hears of the agent about mutexes.
    pub(super) answer: Answer,
    /// The thread that needs its scheduling parameters restored, and the CPUs that it may use.
    to_restore: Mutex<Option<(Pid, CpuSet)>>,
}

impl ThreadHandshake {
    pub(super) fn new(sender: Sender) -> Self {
        Self {
            word: Word::new(ThreadState::ManagedWaiting.word(0)),
            until_ns: AtomicU64::new(0),
            sender,
            answer: Answer::new(),
            to_restore: Mutex::new(None),
        }
    }

    pub(super) fn state(&self) -> ThreadState {
        ThreadState::of(self.word.get())
    }

    /// The thread that needs its scheduling parameters restored, and its CPUs; `None` if it is not
    /// managed.
    pub(super) fn to_restore(&self) -> MutexGuard<'_, Option<(Pid, CpuSet)>> {
        // The value is replaced as a whole, so it is valid even if a panic poisoned the mutex.
        self.to_restore
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// What a waiting thread waits for.
    pub(super) fn until_ns(&self) -> u64 {
        self.until_ns.load(Ordering::Relaxed)
    }

    /// For the agent: admits the task. The epoch of this admission, and whether the thread is in a job.
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

    /// For the agent: dismisses the task.
    pub(super) fn dismiss(&self) {
        self.update(|state, epoch| match state {
            ThreadState::ManagedWaiting => ThreadState::UnmanagedWaiting.word(epoch),
            ThreadState::ManagedInJob => ThreadState::UnmanagedInJob.word(epoch),
            other => other.word(epoch),
        });
        self.word.wake();
    }

    /// For the agent: starts the next job of the thread, which waits or is about to.
    pub(super) fn start_job(&self) {
        self.update(|state, epoch| match state {
            ThreadState::ManagedWaiting => ThreadState::ManagedInJob.word(epoch),
            other => other.word(epoch),
        });
        self.word.wake();
    }

    /// Ends the run: the thread does not wait any more.
    pub(super) fn end_run(&self) {
        self.update(|_, epoch| ThreadState::Ended.word(epoch));
        self.word.wake();
    }

    /// For the thread: its job has ended or suspends, with these effects, and the thread will wait for this instant.
    /// Whether events were sent to the agent.
    pub(super) fn end_job(&self, kind: Kind, until_ns: u64, effects: Effects<'_>) -> bool {
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
        if !effects.unlocks.is_empty() {
            let value = UnlockValue::new(effects.unlocks, true);
            self.send(at, Kind::UnlockRequested, word, value.word());
        }
        self.send(at, Kind::Stopped, word, spent_ns);
        self.send(at, kind, word, until_ns);
        for target in effects.triggers {
            self.send_trigger(at, word, *target, true);
        }
        true
    }

    /// For the thread: its job has these effects, and goes on. Whether events were sent to the agent.
    pub(super) fn affect(&self, effects: Effects<'_>) -> bool {
        let (at, word) = (monotonic_ns(), self.word.get());
        if ThreadState::of(word) != ThreadState::ManagedInJob {
            return false;
        }
        if !effects.unlocks.is_empty() {
            self.answer.expect();
            let value = UnlockValue::new(effects.unlocks, false);
            self.send(at, Kind::UnlockRequested, word, value.word());
        }
        for target in effects.triggers {
            self.send_trigger(at, word, *target, false);
        }
        true
    }

    /// For the thread: its job requests the mutex. Whether an event was sent to the agent.
    pub(super) fn request(&self, mutex: ResourceId) -> bool {
        let (at, word) = (monotonic_ns(), self.word.get());
        if ThreadState::of(word) != ThreadState::ManagedInJob {
            return false;
        }
        self.answer.expect();
        let number = mutex.index() as u64 + 1;
        self.send(at, Kind::LockRequested, word, number);
        true
    }

    /// For the thread: waits for the agent's answer, if it expects one, or until the run is over.
    pub(super) fn await_answer(&self) {
        self.answer.wait(|| self.state() == ThreadState::Ended);
    }

    /// In this channel the value of a trigger names the task that is triggered.
    fn send_trigger(&self, at: u64, word: u32, target: Target, at_completion: bool) {
        let value = TriggerValue {
            source: target.task,
            at_completion,
            taken: Taken::Lost,
        };
        self.send(at, Kind::Triggered, word, value.word());
    }

    /// For the thread, before its first job: it will wait for this instant.
    pub(super) fn set_first_release(&self, until_ns: u64) {
        self.until_ns.store(until_ns, Ordering::Relaxed);
    }

    /// For the thread: waits until its job may run. Whether the agent started it; a `Running` event has been sent
    /// then.
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

    /// The channel has room: at most three events are pending for each job that the agent starts, those of its triggers, and one
    /// for which the thread waits for an answer.
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

    /// Changes the word; the new value. The other side changes it only a few times in the life of a task, which
    /// bounds the retries.
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

    /// A thread that is dismissed and admitted again while its job ends is either still in that job, and its events
    /// belong to the new epoch; or it waits, and its events belong to the old one.
    #[test]
    fn readmission_during_job_end_leaves_both_sides_with_same_state() {
        loom::model(|| {
            let (sender, receiver) = channel(8);
            let handshake = Arc::new(ThreadHandshake::new(sender));
            handshake.admit();
            handshake.start_job();
            let thread = Arc::clone(&handshake);
            let closing =
                loom::thread::spawn(move || thread.end_job(Kind::NextJob, 5, Effects::default()));
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
