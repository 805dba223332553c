//! Where the threads of the crew wait between their jobs.

use std::sync::Arc;

use shiftwork_model::TaskId;

use super::shared_state::SharedState;
use super::thread_handshake::{ThreadHandshake, ThreadState};
use crate::event::Kind;
use crate::sys::thread::{Class, set_class};
use crate::sys::word::Word;
use crate::work::JobBarrier;

/// The side of the threads: they say what they did, and wait at their seats.
#[derive(Debug)]
pub(super) struct FifoJobBarrier(pub(super) Arc<SharedState>);

impl FifoJobBarrier {
    fn stop(&self, task: TaskId, kind: Kind, until_ns: u64) {
        let Some(handshake) = self.0.handshakes.get(task.index()) else {
            return;
        };
        if handshake.end_job(kind, until_ns) {
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

    fn next_job(&self, task: TaskId, release_ns: u64) {
        self.stop(task, Kind::NextJob, release_ns);
    }

    fn last_job(&self, task: TaskId) {
        if let Some(handshake) = self.0.handshakes.get(task.index())
            && handshake.end_job(Kind::LastJob, u64::MAX)
        {
            self.0.doorbell.notify(task.index());
        }
        become_ordinary();
    }

    fn suspend(&self, task: TaskId, until_ns: u64, _state: &Word, _going: u32) {
        self.stop(task, Kind::Blocked, until_ns);
    }
}

/// What is left to do is nobody's job, and is not to keep anybody from the CPU.
fn become_ordinary() {
    // Every thread may, so it does not fail.
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

    /// What the thread tells next, without what it tells besides.
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
    fn a_thread_goes_on_when_the_agent_says_so() {
        let (barrier, receiver) = gate();
        let handshake = &barrier.0.handshakes[0];
        assert_eq!(handshake.admit(), (1, false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                barrier.first_job(task(), 10);
                barrier.next_job(task(), 20);
                barrier.suspend(task(), 30, &Word::new(0), 0);
                barrier.last_job(task());
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
        });
        assert_eq!(handshake.state(), ThreadState::ManagedWaiting);
    }

    #[test]
    fn a_thread_that_takes_no_part_waits_by_itself_and_tells_nobody() {
        let (barrier, receiver) = gate();
        let handshake = &barrier.0.handshakes[0];
        handshake.dismiss();
        let begin = monotonic_ns();
        barrier.first_job(task(), begin + 2_000_000);
        assert!(monotonic_ns() >= begin + 2_000_000);
        barrier.suspend(task(), begin + 4_000_000, &Word::new(0), 0);
        assert!(monotonic_ns() >= begin + 4_000_000);
        assert_eq!(handshake.state(), ThreadState::UnmanagedInJob);
        // It is in a job, whose end it will tell, as part of its second stay.
        assert_eq!(handshake.admit(), (1, true));
        handshake.dismiss();
        assert_eq!(handshake.admit(), (2, true));
        barrier.0.handshakes[0].end_run();
        barrier.next_job(task(), u64::MAX);
        assert!(receiver.is_empty());
    }

    #[test]
    fn a_thread_that_is_sent_off_while_it_waits_goes_on_by_its_own_clock() {
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
    fn nobody_waits_after_the_end() {
        let (barrier, receiver) = gate();
        barrier.0.handshakes[0].admit();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                barrier.first_job(task(), u64::MAX);
                barrier.next_job(task(), u64::MAX);
                barrier.suspend(task(), u64::MAX, &Word::new(0), 0);
            });
            barrier.0.end_run();
            waiting.join().unwrap();
        });
        assert!(receiver.is_empty());
        // Nobody knows this one, and it is not held up for that.
        barrier.next_job(TaskId::from_index(7), u64::MAX);
    }
}
