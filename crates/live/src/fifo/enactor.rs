//! The hands and ears of an agent where `SCHED_FIFO` carries out.

use std::sync::Arc;

use shiftwork_model::{CpuSet, Span, TaskId};

use super::shared_state::Floor;
use super::thread_controller::Board;
use super::thread_ops::{Hands, Kernel};
use crate::LiveError;
use crate::agent::channel::{Receiver, cost_of_sending};
use crate::agent::{Enactor, Level, Slot};
use crate::event::Event;
use crate::machine::Parameters;

/// The hands and ears of an agent where `SCHED_FIFO` carries out. Dropping it makes everybody ordinary
/// again.
#[derive(Debug)]
pub(crate) struct Fifo<H = Kernel> {
    floor: Arc<Floor>,
    board: Board<H>,
    /// What the threads of the tasks tell.
    ears: Vec<Receiver>,
    /// What one of them told; kept so that nothing is allocated.
    told: Vec<Event>,
}

impl<H: Hands> Fifo<H> {
    /// For the tasks of these names, whose threads are heard by these ears.
    pub(super) fn new(
        floor: Arc<Floor>,
        hands: H,
        ears: Vec<Receiver>,
        names: Vec<String>,
    ) -> Self {
        Self {
            board: Board::new(Arc::clone(&floor), hands, names),
            floor,
            ears,
            told: Vec::with_capacity(64),
        }
    }

    /// Takes note of all that the threads have told.
    fn hear(&mut self) {
        self.floor.bell.take(|task| {
            self.ears[task].take(&mut self.told);
            for event in self.told.drain(..) {
                self.board.hear(task, event);
            }
        });
        self.board.block();
    }

    /// Once the machine has been taken from the agent, it must not go on with it.
    fn check(&self) -> Result<(), LiveError> {
        self.floor.failed().map_or(Ok(()), |why| {
            Err(LiveError::Machine {
                what: why.to_owned(),
                remedy: String::from("keep other real-time threads off the agent's CPU"),
            })
        })
    }
}

impl<H: Hands> Enactor for Fifo<H> {
    fn take_reports(&mut self, reports: &mut Vec<Event>) -> Result<(), LiveError> {
        self.hear();
        if self.board.wakes_ns != u64::MAX {
            let now_ns = self.board.now_ns();
            self.board.wake(now_ns);
        }
        sort(&mut self.board.reports);
        reports.append(&mut self.board.reports);
        Ok(())
    }

    fn cost_of_a_report(&mut self) -> Result<Span, LiveError> {
        Ok(cost_of_sending())
    }

    fn reports_lost(&self) -> u64 {
        self.ears.iter().map(Receiver::lost).sum()
    }

    fn level(&mut self, task: TaskId) -> Result<Level, LiveError> {
        self.hear();
        Ok(self.board.level(task.index()))
    }

    fn assign(&mut self, slots: &[Slot]) -> Result<(), LiveError> {
        self.check()?;
        self.hear();
        self.board.assign(slots)
    }

    fn admit(&mut self, task: TaskId, of: &Parameters) -> Result<Option<bool>, LiveError> {
        self.check()?;
        self.hear();
        self.board.admit(task.index(), of)
    }

    fn dismiss(&mut self, task: TaskId) -> Result<(), LiveError> {
        self.hear();
        self.board.dismiss(task.index())
    }

    fn approve(&mut self, task: TaskId, cpus: &CpuSet) -> Result<(), LiveError> {
        self.board.approve(task.index(), cpus);
        Ok(())
    }

    fn beat(&mut self) -> Result<(), LiveError> {
        let now_ns = self.board.now_ns();
        self.floor.beat(now_ns);
        self.check()
    }

    fn wait_until(&mut self, at_ns: u64) {
        self.floor.bell.wait_until(at_ns.min(self.board.wakes_ns));
    }
}

impl<H> Drop for Fifo<H> {
    fn drop(&mut self) {
        self.floor.sign_off();
        self.floor.end_blockers();
        self.floor.restore();
    }
}

/// By time, and of the same instant in the order in which they were noted. They nearly are already:
/// each thread's own are, and there are few. Allocates nothing, which a stable sort of `std` may.
fn sort(reports: &mut [Event]) {
    for end in 1..reports.len() {
        let mut at = end;
        while at > 0 && reports[at - 1].at > reports[at].at {
            reports.swap(at - 1, at);
            at -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
