//! Where the threads of the crew wait between their jobs.

use std::sync::Arc;

use shiftwork_model::TaskId;

use super::shared_state::Floor;
use super::thread_handshake::{Seat, State};
use crate::event::Kind;
use crate::sys::thread::{Class, set_class};
use crate::sys::word::Word;
use crate::work::JobGate;

/// The side of the threads: they say what they did, and wait at their seats.
#[derive(Debug)]
pub(super) struct Gate(pub(super) Arc<Floor>);

impl Gate {
    fn stop(&self, task: TaskId, kind: Kind, until_ns: u64) {
        let Some(seat) = self.0.seats.get(task.index()) else {
            return;
        };
        if seat.close(kind, until_ns) {
            self.0.bell.tell(task.index());
        }
        self.wait(task, seat);
    }

    fn wait(&self, task: TaskId, seat: &Seat) {
        if seat.wait() {
            self.0.bell.tell(task.index());
        }
        if seat.state() == State::Over {
            become_ordinary();
        }
    }
}

impl JobGate for Gate {
    fn first_job(&self, task: TaskId, release_ns: u64) {
        if let Some(seat) = self.0.seats.get(task.index()) {
            seat.arrive(release_ns);
            self.wait(task, seat);
        }
    }

    fn next_job(&self, task: TaskId, release_ns: u64) {
        self.stop(task, Kind::NextJob, release_ns);
    }

    fn last_job(&self, task: TaskId) {
        if let Some(seat) = self.0.seats.get(task.index())
            && seat.close(Kind::LastJob, u64::MAX)
        {
            self.0.bell.tell(task.index());
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

    fn gate() -> (Gate, Receiver) {
        let (floor, mut ears) = Floor::new(&CpuSet::first(1), 1);
        (Gate(Arc::new(floor)), ears.remove(0))
    }

    /// What the thread tells next, without what it tells besides.
    fn hear(gate: &Gate, ear: &Receiver, kind: Kind) -> Event {
        let mut events = Vec::new();
        loop {
            gate.0.bell.wait_until(u64::MAX);
            gate.0.bell.take(|_| ear.take(&mut events));
            if let Some(event) = events.iter().find(|event| event.kind == kind) {
                return *event;
            }
        }
    }

    #[test]
    fn a_thread_goes_on_when_the_agent_says_so() {
        let (gate, ear) = gate();
        let seat = &gate.0.seats[0];
        assert_eq!(seat.engage(), (1, false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                gate.first_job(task(), 10);
                gate.next_job(task(), 20);
                gate.suspend(task(), 30, &Word::new(0), 0);
                gate.last_job(task());
            });
            for (kind, value) in [
                (Kind::NextJob, 20),
                (Kind::Blocked, 30),
                (Kind::LastJob, u64::MAX),
            ] {
                seat.open();
                let event = hear(&gate, &ear, kind);
                assert_eq!((event.value, event.task), (value, 1));
                assert!(event.cpu.is_some() && event.at <= monotonic_ns());
            }
        });
        assert_eq!(seat.state(), State::Closed);
    }

    #[test]
    fn a_thread_that_takes_no_part_waits_by_itself_and_tells_nobody() {
        let (gate, ear) = gate();
        let seat = &gate.0.seats[0];
        seat.release();
        let begin = monotonic_ns();
        gate.first_job(task(), begin + 2_000_000);
        assert!(monotonic_ns() >= begin + 2_000_000);
        gate.suspend(task(), begin + 4_000_000, &Word::new(0), 0);
        assert!(monotonic_ns() >= begin + 4_000_000);
        assert_eq!(seat.state(), State::Out);
        // It is in a job, whose end it will tell, as part of its second stay.
        assert_eq!(seat.engage(), (1, true));
        seat.release();
        assert_eq!(seat.engage(), (2, true));
        gate.0.seats[0].end();
        gate.next_job(task(), u64::MAX);
        assert!(ear.is_empty());
    }

    #[test]
    fn a_thread_that_is_sent_off_while_it_waits_goes_on_by_its_own_clock() {
        let (gate, _ear) = gate();
        let seat = &gate.0.seats[0];
        seat.engage();
        let soon = monotonic_ns() + 5_000_000;
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.first_job(task(), soon));
            while seat.until_ns() != soon {
                std::thread::yield_now();
            }
            seat.release();
            waiting.join().unwrap();
        });
        assert!(monotonic_ns() >= soon);
        assert_eq!(seat.state(), State::Out);
    }

    #[test]
    fn nobody_waits_after_the_end() {
        let (gate, ear) = gate();
        gate.0.seats[0].engage();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                gate.first_job(task(), u64::MAX);
                gate.next_job(task(), u64::MAX);
                gate.suspend(task(), u64::MAX, &Word::new(0), 0);
            });
            gate.0.open();
            waiting.join().unwrap();
        });
        assert!(ear.is_empty());
        // Nobody knows this one, and it is not held up for that.
        gate.next_job(TaskId::from_index(7), u64::MAX);
    }
}
