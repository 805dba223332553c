//! Where threads wait between their jobs.

use std::sync::Arc;

use shiftwork_model::{ResourceId, TaskId};

use super::shared_state::SharedState;
use super::thread_handshake::{ThreadHandshake, ThreadState};
use crate::event::Kind;
use crate::sys::thread::{Class, set_class};
use crate::sys::word::Word;
use crate::work::{Effects, JobBarrier};

/// The side of the threads: they report what they did, and wait in their handshakes.
#[derive(Debug)]
pub(super) struct FifoJobBarrier(pub(super) Arc<SharedState>);

impl FifoJobBarrier {
    fn stop(&self, task: TaskId, kind: Kind, until_ns: u64, effects: Effects<'_>) {
        let Some(handshake) = self.0.handshakes.get(task.index()) else {
            return;
        };
        if handshake.end_job(kind, until_ns, effects) {
            self.0.doorbell.notify(task.index());
        }
        self.wait(task, handshake);
    }

    fn wait(&self, task: TaskId, handshake: &ThreadHandshake) {
        if handshake.wait() {
            self.0.doorbell.notify(task.index());
        }
        if handshake.state() == ThreadState::Ended {
            become_ordinary();
        }
    }
}

impl JobBarrier for FifoJobBarrier {
    fn first_job(&self, task: TaskId, release_ns: u64) {
        if let Some(handshake) = self.0.handshakes.get(task.index()) {
            handshake.set_first_release(release_ns);
            self.wait(task, handshake);
        }
    }

    fn next_job(&self, task: TaskId, release_ns: u64, effects: Effects<'_>) {
        self.stop(task, Kind::NextJob, release_ns, effects);
    }

    /// Returns when the run is over. A thread that ended now would do so with a level that the agent may change until it
    /// has received the event, perhaps below a blocker, or as an ordinary thread below all jobs; and while it frees its stack, the
    /// threads of other jobs cannot change their memory.
    fn last_job(&self, task: TaskId, effects: Effects<'_>) {
        self.stop(task, Kind::LastJob, u64::MAX, effects);
    }

    fn affect(&self, task: TaskId, effects: Effects<'_>) {
        if let Some(handshake) = self.0.handshakes.get(task.index())
            && handshake.affect(effects)
        {
            self.0.doorbell.notify(task.index());
            handshake.await_answer();
        }
    }

    fn lock(&self, task: TaskId, mutex: ResourceId) {
        if let Some(handshake) = self.0.handshakes.get(task.index())
            && handshake.request(mutex)
        {
            self.0.doorbell.notify(task.index());
            handshake.await_answer();
        }
    }

    fn suspend(&self, task: TaskId, until_ns: u64, _state: &Word, _going: u32) {
        self.stop(task, Kind::Blocked, until_ns, Effects::default());
    }
}

/// The calling thread has no more jobs, and must not delay the jobs of others.
fn become_ordinary() {
    // Every thread may do this, so it does not fail.
    let _ = set_class(None, Class::Ordinary);
}

#[cfg(test)]
mod tests {
    use shiftwork_model::CpuSet;

    use super::*;
    use crate::agent::channel::Receiver;
    use crate::event::Event;
    use crate::sys::clock::monotonic_ns;

    fn task() -> TaskId {
        TaskId::from_index(0)
    }

    fn gate() -> (FifoJobBarrier, Receiver) {
        let (shared, mut receivers) = SharedState::new(&CpuSet::first(1), 1);
        (FifoJobBarrier(Arc::new(shared)), receivers.remove(0))
    }

    /// The next event of this kind; others are dropped.
    fn receive(barrier: &FifoJobBarrier, receiver: &Receiver, kind: Kind) -> Event {
        let mut events = Vec::new();
        loop {
            barrier.0.doorbell.wait_until(u64::MAX);
            barrier.0.doorbell.take(|_| receiver.take(&mut events));
            if let Some(event) = events.iter().find(|event| event.kind == kind) {
                return *event;
            }
        }
    }

    #[test]
    fn managed_thread_waits_until_agent_starts_its_job() {
        let (barrier, receiver) = gate();
        let handshake = &barrier.0.handshakes[0];
        assert_eq!(handshake.admit(), (1, false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                barrier.first_job(task(), 10);
                barrier.next_job(task(), 20, Effects::default());
                barrier.suspend(task(), 30, &Word::new(0), 0);
                barrier.last_job(task(), Effects::default());
            });
            for (kind, value) in [
                (Kind::NextJob, 20),
                (Kind::Blocked, 30),
                (Kind::LastJob, u64::MAX),
            ] {
                handshake.start_job();
                let event = receive(&barrier, &receiver, kind);
                assert_eq!((event.value, event.task), (value, 1));
                assert!(event.cpu.is_some() && event.at <= monotonic_ns());
            }
            assert_eq!(handshake.state(), ThreadState::ManagedWaiting);
            handshake.end_run();
        });
    }

    #[test]
    fn unmanaged_thread_waits_by_its_own_timer_and_sends_no_events() {
        let (barrier, receiver) = gate();
        let handshake = &barrier.0.handshakes[0];
        handshake.dismiss();
        let begin = monotonic_ns();
        barrier.first_job(task(), begin + 2_000_000);
        assert!(monotonic_ns() >= begin + 2_000_000);
        barrier.suspend(task(), begin + 4_000_000, &Word::new(0), 0);
        assert!(monotonic_ns() >= begin + 4_000_000);
        assert_eq!(handshake.state(), ThreadState::UnmanagedInJob);
        // It is in a job; the event at the end of the job belongs to its second epoch.
        assert_eq!(handshake.admit(), (1, true));
        handshake.dismiss();
        assert_eq!(handshake.admit(), (2, true));
        barrier.0.handshakes[0].end_run();
        barrier.next_job(task(), u64::MAX, Effects::default());
        assert!(receiver.is_empty());
    }

    #[test]
    fn thread_dismissed_while_waiting_continues_by_its_own_timer() {
        let (barrier, _ear) = gate();
        let handshake = &barrier.0.handshakes[0];
        handshake.admit();
        let soon = monotonic_ns() + 5_000_000;
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| barrier.first_job(task(), soon));
            while handshake.until_ns() != soon {
                std::thread::yield_now();
            }
            handshake.dismiss();
            waiting.join().unwrap();
        });
        assert!(monotonic_ns() >= soon);
        assert_eq!(handshake.state(), ThreadState::UnmanagedInJob);
    }

    #[test]
    fn no_thread_waits_after_the_end_of_the_run() {
        let (barrier, receiver) = gate();
        barrier.0.handshakes[0].admit();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                barrier.first_job(task(), u64::MAX);
                barrier.next_job(task(), u64::MAX, Effects::default());
                barrier.suspend(task(), u64::MAX, &Word::new(0), 0);
                barrier.last_job(task(), Effects::default());
            });
            barrier.0.end_run();
            waiting.join().unwrap();
        });
        assert!(receiver.is_empty());
        // A task without a handshake does not wait.
        barrier.next_job(TaskId::from_index(7), u64::MAX, Effects::default());
    }
}
