//! The enactor that uses `SCHED_FIFO`.

use std::sync::Arc;

use shiftwork_model::{CpuSet, Span, TaskId};

use super::shared_state::SharedState;
use super::thread_controller::ThreadController;
use super::thread_ops::{KernelThreadOps, ThreadOps};
use crate::LiveError;
use crate::agent::channel::{Receiver, sending_cost};
use crate::agent::{Enactor, Slot, TaskSnapshot, sort_by_time};
use crate::event::Event;
use crate::machine::Parameters;

/// The enactor that uses `SCHED_FIFO`. Dropping it makes all threads ordinary again.
#[derive(Debug)]
pub(crate) struct FifoEnactor<H = KernelThreadOps> {
    shared: Arc<SharedState>,
    controller: ThreadController<H>,
    /// Events from the threads of the tasks.
    receivers: Vec<Receiver>,
    /// Events from one of them; kept so that nothing is allocated.
    received: Vec<Event>,
}

impl<H: ThreadOps> FifoEnactor<H> {
    /// For tasks with these names. Their threads send to these channels.
    pub(super) fn new(
        shared: Arc<SharedState>,
        ops: H,
        receivers: Vec<Receiver>,
        names: Vec<String>,
    ) -> Self {
        Self {
            controller: ThreadController::new(Arc::clone(&shared), ops, names),
            shared,
            receivers,
            received: Vec::with_capacity(64),
        }
    }

    /// Applies all events that the threads have sent.
    fn receive(&mut self) {
        self.shared.doorbell.take(|task| {
            self.receivers[task].take(&mut self.received);
            for event in self.received.drain(..) {
                self.controller.on_thread_event(task, event);
            }
        });
        self.controller.block();
    }

    /// The failure of the run, if there is one: the agent must not change threads any more.
    fn check(&self) -> Result<(), LiveError> {
        self.shared.failed().map_or(Ok(()), |why| {
            Err(LiveError::Machine {
                what: why.to_owned(),
                remedy: String::from("keep other real-time threads off the agent's CPU"),
            })
        })
    }
}

impl<H: ThreadOps> Enactor for FifoEnactor<H> {
    fn take_reports(&mut self, reports: &mut Vec<Event>) -> Result<(), LiveError> {
        self.receive();
        if self.controller.wakeup_ns != u64::MAX {
            let now_ns = self.controller.now_ns();
            self.controller.wake(now_ns);
        }
        sort_by_time(&mut self.controller.reports);
        reports.append(&mut self.controller.reports);
        Ok(())
    }

    fn report_cost(&mut self) -> Result<Span, LiveError> {
        Ok(sending_cost())
    }

    fn reports_lost(&self) -> u64 {
        self.receivers.iter().map(Receiver::lost).sum()
    }

    fn snapshot(&mut self, task: TaskId) -> Result<TaskSnapshot, LiveError> {
        self.receive();
        Ok(self.controller.snapshot(task.index()))
    }

    fn assign(&mut self, slots: &[Slot]) -> Result<(), LiveError> {
        self.check()?;
        self.receive();
        self.controller.assign(slots)
    }

    fn admit(&mut self, task: TaskId, of: &Parameters) -> Result<Option<bool>, LiveError> {
        self.check()?;
        self.receive();
        self.controller.admit(task.index(), of)
    }

    fn dismiss(&mut self, task: TaskId) -> Result<(), LiveError> {
        self.receive();
        self.controller.dismiss(task.index())
    }

    fn approve(&mut self, task: TaskId, cpus: &CpuSet) -> Result<(), LiveError> {
        self.controller.approve(task.index(), cpus);
        Ok(())
    }

    fn answer(&mut self, task: TaskId) {
        if let Some(handshake) = self.shared.handshakes.get(task.index()) {
            handshake.answer.give();
        }
    }

    fn heartbeat(&mut self) -> Result<(), LiveError> {
        let now_ns = self.controller.now_ns();
        self.shared.heartbeat(now_ns);
        self.check()
    }

    fn wait_until(&mut self, at_ns: u64) {
        self.shared
            .doorbell
            .wait_until(at_ns.min(self.controller.wakeup_ns));
    }
}

impl<H> Drop for FifoEnactor<H> {
    fn drop(&mut self) {
        self.shared.end_heartbeats();
        self.shared.end_blockers();
        self.shared.restore();
    }
}

#[cfg(test)]
mod tests;
