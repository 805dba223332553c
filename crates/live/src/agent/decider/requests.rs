//! Requests of the thread that started the agent: admission, and changes of admitted tasks.

use shiftwork_model::{Affinity, CpuSet, Instant, Priority, Span, TaskId};
use shiftwork_policy::Event as PolicyEvent;

use super::task_state::Stage;
use super::{Decider, in_platform, number};
use crate::event::Kind;
use crate::machine::Parameters;

impl Decider {
    /// Admits the task. A task that was demoted keeps its server.
    ///
    /// # Errors
    /// The refusal of the policy.
    pub(in crate::agent) fn admit(
        &mut self,
        now_ns: u64,
        id: TaskId,
        of: &Parameters,
        is_awake: bool,
    ) -> Result<(), String> {
        let now = self.instant(now_ns);
        self.cause = now;
        let state = &self.states[id.index()];
        let comes_back = !state.in_policy && state.stage != Stage::Idle;
        self.leave(id, false);
        let state = &self.states[id.index()];
        let task = &mut self.tasks[id.index()];
        let platform = &self.cpus;
        if let Some(affinity) = Affinity::new(in_platform(platform, &of.cpus)) {
            task.affinity = affinity;
        }
        if !state.in_policy {
            let enters = PolicyEvent::Enter(id, task);
            self.policy
                .accepts(&enters)
                .map_err(|error| error.to_string())?;
            self.switches.clear();
            self.policy.on_event(enters, &mut self.switches);
            self.note_switches();
        }
        let deadline = self.scheduling_deadline(of);
        let state = &mut self.states[id.index()];
        state.in_policy = true;
        state.enter((of, deadline), is_awake, comes_back);
        state.since = now;
        if !of.follows && is_awake {
            self.begin(now, now, now, id);
        }
        Ok(())
    }

    /// Releases the task's first job at this instant.
    pub(in crate::agent) fn first_job(&mut self, now_ns: u64, id: TaskId, release_ns: u64) {
        let now = self.instant(now_ns);
        self.cause = now;
        self.follow(now, id, release_ns);
    }

    /// Dismisses the task.
    pub(in crate::agent) fn dismiss(&mut self, now_ns: u64, id: TaskId) {
        self.cause = self.instant(now_ns);
        self.leave(id, false);
    }

    /// Changes the task's priority.
    pub(in crate::agent) fn set_priority(&mut self, now_ns: u64, id: TaskId, priority: Priority) {
        self.cause = self.instant(now_ns);
        self.states[id.index()].priority = priority;
        self.apply(PolicyEvent::SetPriority(id, priority));
        let value = u64::from(priority.number());
        self.emit(self.cause, Kind::Priority, number(id), None, value);
    }

    /// Changes the parameters of future jobs.
    pub(in crate::agent) fn set_server(&mut self, id: TaskId, of: &Parameters) {
        let deadline = self.scheduling_deadline(of);
        self.states[id.index()].set_parameters(of, deadline);
        let task = &mut self.tasks[id.index()];
        (task.cost, task.period, task.deadline) = (of.cost, of.period, of.deadline);
        if self.states[id.index()].is_present {
            self.switches.clear();
            let attributes = PolicyEvent::SetAttributes(id, &self.tasks[id.index()]);
            self.policy.on_event(attributes, &mut self.switches);
            self.note_switches();
        }
    }

    /// The relative deadline by which the policy schedules the task's jobs.
    fn scheduling_deadline(&self, of: &Parameters) -> Span {
        let cpus = self.cpus.len();
        self.order.relative_deadline(of.cost, of.deadline, cpus)
    }

    /// Changes the CPUs of the machine that the task may use.
    pub(in crate::agent) fn set_affinity(&mut self, now_ns: u64, id: TaskId, cpus: &CpuSet) {
        self.cause = self.instant(now_ns);
        self.rebind(id, cpus);
        let value = cpus.words()[0];
        self.emit(self.cause, Kind::Affinity, number(id), None, value);
    }

    /// Removes the task from the policy. A `demoted` one keeps its server until it is admitted again.
    pub(super) fn leave(&mut self, id: TaskId, demoted: bool) {
        if let Some(queue) = &mut self.triggers[id.index()] {
            queue.clear();
        }
        if !demoted {
            self.abandon_mutexes(self.cause, id);
            self.end_mutexes(id);
        }
        let state = &mut self.states[id.index()];
        let was_ready = state.stage == Stage::Ready;
        // Any stage but idle marks a task that comes back.
        let after = match demoted {
            true => Stage::Suspended,
            false => Stage::Idle,
        };
        if !std::mem::take(&mut state.is_present) {
            state.stage = after;
            return;
        }
        state.stage = after;
        // Execution from now on is not charged, and the report of the execution so far comes later.
        state.charge_until(self.cause);
        state.running = None;
        state.in_policy = false;
        self.vacate(id);
        self.set_timer(id, Instant::NEVER);
        self.states[id.index()].predicted_release = Instant::ZERO;
        if self.policy.accepts(&PolicyEvent::Leave(id)).is_ok() {
            self.apply(PolicyEvent::Leave(id));
        }
        if demoted {
            self.demote_with_mutexes(id);
        }
        if demoted && was_ready {
            // Its thread goes on without being assigned, and may wait for an answer.
            self.request(id, 0);
        }
    }

    pub(super) fn rebind(&mut self, id: TaskId, cpus: &CpuSet) {
        let Some(affinity) = Affinity::new(in_platform(&self.cpus, cpus)) else {
            return;
        };
        let event = PolicyEvent::SetAffinity(id, &affinity);
        if self.policy.accepts(&event).is_ok() {
            self.tasks[id.index()].affinity = affinity;
            let home = self.policy.queue_of(id);
            if home.is_some_and(|home| !affinity.cpus().contains(home))
                && let Some(deadline) = self.states[id.index()].renew_if_late(self.cause)
            {
                self.emit_replenished(id, deadline);
                self.apply(PolicyEvent::SetDeadline(id, deadline));
            }
            self.apply(PolicyEvent::SetAffinity(id, &affinity));
        }
    }
}
