//! Arrivals: releases, ends of suspensions, replenishments; the most urgent first.

use shiftwork_model::{Arrival, CpuId, Instant, Job, JobId, RecordKind, Recorder, TaskId};
use shiftwork_policy::Event;

use super::Engine;
use super::triggers::Triggers;
use crate::state::{Stage, TaskKind};

impl<R: Recorder> Engine<'_, R> {
    /// All arrivals of this instant, after everything else of it.
    pub(crate) fn arrive(&mut self, now: Instant) {
        let successors = self.arrivals.len();
        while self.releases.first() == now {
            let id = TaskId::from_index(self.releases.first_place());
            self.release(now, id);
        }
        if self.triggers.as_ref().is_some_and(Triggers::have_fired) {
            self.release_triggered(now);
        }
        for at in 0..self.waking.len() {
            self.wake(now, self.waking[at]);
        }
        self.waking.clear();
        if self.is_structured() {
            self.charge_arrivals(now, successors);
        }
        if self.arrivals.len() > 1 {
            self.sort_arrivals();
        }
        for at in 0..self.arrivals.len() {
            let id = self.arrivals[at];
            self.arrive_ready(now, id);
        }
    }

    /// Sorts by the policy's order. All become ready at the same instant, so the index breaks ties.
    #[inline(never)]
    fn sort_arrivals(&mut self) {
        let (order, tasks) = (self.order, &self.tasks);
        self.arrivals.sort_unstable_by_key(|id| {
            let task = &tasks[id.index()];
            (order.rank(task.deadline, task.priority), *id)
        });
    }

    fn arrive_ready(&mut self, now: Instant, id: TaskId) {
        let job = self.record_ready(now, id);
        let cause = self.cause(id);
        self.notify_policy(Event::Wake(job), cause);
    }

    fn record_ready(&mut self, now: Instant, id: TaskId) -> Job {
        let job = self.ready_job(now, id);
        let kind = RecordKind::Ready {
            job: JobId {
                task: id,
                number: self.tasks[id.index()].number,
            },
            deadline: job.deadline,
            priority: job.priority,
        };
        self.record(now, kind);
        job
    }

    /// The task's ready job for the policy.
    fn ready_job(&self, now: Instant, id: TaskId) -> Job {
        let state = &self.tasks[id.index()];
        debug_assert_eq!(state.stage, Stage::Ready);
        Job {
            task: id,
            ready: now,
            deadline: state.deadline,
            priority: state.priority,
        }
    }

    /// Passes the completion of the task's job and the arrival of the next one to the policy as one event, if the
    /// policy takes it. Returns whether it did.
    pub(crate) fn notify_successor(&mut self, now: Instant, id: TaskId, cpu: CpuId) -> bool {
        let next = self.ready_job(now, id);
        let taken = self.offer(next, Some(cpu));
        if taken {
            self.record_ready(now, id);
        }
        taken
    }

    pub(crate) fn release(&mut self, now: Instant, id: TaskId) {
        let state = &mut self.tasks[id.index()];
        state.released += 1;
        let job = JobId {
            task: id,
            number: state.released,
        };
        let attributes = state.attributes;
        let is_first = state.stage == Stage::Idle;
        let (arrival, next) = if state.kind == TaskKind::Plain {
            (now, now + attributes.period)
        } else {
            self.advance(now, id, is_first)
        };
        self.releases.set(id.index(), next);
        self.record(
            now,
            RecordKind::Released {
                job,
                deadline: arrival + attributes.deadline,
            },
        );
        if self.costs.is_some() {
            self.charge_release(now, id);
        }
        if is_first {
            self.begin(now, id, arrival, false);
        } else if self.in_quanta {
            self.notify_released(now, id, arrival);
        }
    }

    /// Notifies the policy of a released job that waits for the previous one.
    #[inline(never)]
    fn notify_released(&mut self, now: Instant, id: TaskId, arrival: Instant) {
        let state = &self.tasks[id.index()];
        let job = Job {
            task: id,
            ready: now,
            deadline: arrival + state.attributes.deadline,
            priority: state.priority,
        };
        let cause = self.home(id);
        self.notify_policy(Event::Released(job), cause);
    }

    /// Advances past the release at `now`, of which it returns the arrival, to the next release.
    #[inline(never)]
    fn advance(&mut self, now: Instant, id: TaskId, is_first: bool) -> (Instant, Instant) {
        let state = &self.tasks[id.index()];
        let plan = &mut self.plans[id.index()];
        if plan.task.trigger().is_some() {
            if is_first {
                self.next_triggered(id);
            }
            return (now, Instant::NEVER);
        }
        let arrival = plan.pattern.arrival();
        let falls_behind = !is_first && state.released == state.number + 1;
        if falls_behind && !matches!(plan.task.arrival, Arrival::Periodic) {
            plan.lagging.clone_from(&plan.pattern);
        }
        plan.pattern.advance(&plan.task, state.attributes.period);
        (arrival, plan.pattern.next())
    }
}
