//! How threads lock and unlock mutexes where an agent decides: they and the agent are in one process.
//!
//! The ring of the programs in the kernel may lose reports, from which a mutex could not recover. What threads say of mutexes has a
//! channel for each, with room for all that can be on its way: a thread waits for the answer but when it ends a job, and the agent
//! starts the next one.

use shiftwork_model::{ResourceId, TaskId};

use crate::agent::Answer;
use crate::agent::channel::{Receiver, Sender, channel};
use crate::event::{Event, Kind, UnlockValue};
use crate::sync::atomic::{AtomicBool, Ordering, fence};
use crate::sys::bpf::EventRing;
use crate::sys::clock::monotonic_ns;
use crate::sys::thread::own_cpu;

/// More than can be on their way from one thread.
const EVENTS: usize = 8;

/// The side of the threads, and of the agent what it answers.
pub(super) struct MutexRequests {
    threads: Box<[ThreadSide]>,
    /// Whether a thread has sent something since the agent last looked.
    pending: AtomicBool,
    /// Whether the agent has to be woken for that.
    agent_sleeps: AtomicBool,
    ring: EventRing,
}

struct ThreadSide {
    sender: Sender,
    answer: Answer,
}

impl MutexRequests {
    /// For so many tasks, and an agent that sleeps at this ring; with the receiving ends.
    pub(super) fn new(tasks: usize, ring: EventRing) -> (Self, Vec<Receiver>) {
        let (threads, receivers): (Vec<_>, Vec<_>) = (0..tasks)
            .map(|_| channel(EVENTS))
            .map(|(sender, receiver)| {
                let answer = Answer::new();
                (ThreadSide { sender, answer }, receiver)
            })
            .unzip();
        let requests = Self {
            threads: threads.into(),
            pending: AtomicBool::new(false),
            agent_sleeps: AtomicBool::new(false),
            ring,
        };
        (requests, receivers)
    }

    /// For the thread: its job requests the mutex. Returns when it holds it, or when the run is over.
    pub(super) fn lock(&self, task: TaskId, mutex: ResourceId, is_over: impl Fn() -> bool) {
        // From then on its job may wait for another mutex, of which it was let go without holding it.
        if is_over() {
            return;
        }
        let number = mutex.index() as u64 + 1;
        self.threads[task.index()].answer.expect();
        self.send(task, Kind::LockRequested, number);
        self.wait(task, is_over);
    }

    /// For the thread: its job unlocks these mutexes. Unless it ends by that, the thread has to [`wait`](Self::wait) before it goes
    /// on.
    pub(super) fn unlock(&self, task: TaskId, mutexes: &[ResourceId], at_completion: bool) {
        if mutexes.is_empty() {
            return;
        }
        if !at_completion {
            self.threads[task.index()].answer.expect();
        }
        let value = UnlockValue::new(mutexes, at_completion);
        self.send(task, Kind::UnlockRequested, value.word());
    }

    /// For the thread: waits for the answer, if it expects one.
    pub(super) fn wait(&self, task: TaskId, is_over: impl Fn() -> bool) {
        self.threads[task.index()].answer.wait(is_over);
    }

    fn send(&self, task: TaskId, kind: Kind, value: u64) {
        self.threads[task.index()].sender.send(Event {
            at: monotonic_ns(),
            value,
            task: u32::try_from(task.index() + 1).unwrap_or(u32::MAX),
            cpu: own_cpu().and_then(|cpu| u16::try_from(cpu.index()).ok()),
            kind,
        });
        self.pending.store(true, Ordering::Release);
        // Pairs with that of `begin_sleep`: one side sees what the other has stored.
        fence(Ordering::SeqCst);
        if self.agent_sleeps.load(Ordering::Relaxed) {
            self.ring.wake_reader();
        }
    }

    /// For the agent: appends what the threads have sent. Whether there was anything.
    pub(super) fn take(&self, receivers: &[Receiver], reports: &mut Vec<Event>) -> bool {
        // A load leaves the cache line shared; the exchange would take it.
        if !self.pending.load(Ordering::Relaxed) || !self.pending.swap(false, Ordering::Acquire) {
            return false;
        }
        receivers.iter().for_each(|receiver| receiver.take(reports));
        true
    }

    /// For the agent: its answer to the thread of this task.
    pub(super) fn answer(&self, task: TaskId) {
        self.threads[task.index()].answer.give();
    }

    /// For the agent: it is about to sleep. Whether it may, since nothing is pending.
    pub(super) fn begin_sleep(&self) -> bool {
        self.agent_sleeps.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        !self.pending.load(Ordering::Relaxed)
    }

    /// For the agent: it is awake.
    pub(super) fn end_sleep(&self) {
        self.agent_sleeps.store(false, Ordering::Relaxed);
    }
}
