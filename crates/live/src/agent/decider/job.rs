//! The life of a job as the agent follows it: release, start, throttling, suspension, wake-up, completion.

use shiftwork_machine::{Admission, ServerRule, Spent};
use shiftwork_model::{Instant, Job, Span, TaskId};
use shiftwork_policy::Event as PolicyEvent;

use super::task_state::{Budget, Running, Stage};
use super::{Decider, number};
use crate::event::{Event, Kind};

impl Decider {
    pub(super) fn complete(&mut self, id: TaskId) {
        if self.finish(id) {
            self.notify_completion(id);
        }
    }

    /// Passes the completion of a ready job to the policy.
    fn notify_completion(&mut self, id: TaskId) {
        let event = match self.states[id.index()].ends_throttled(self.cause) {
            true => PolicyEvent::BudgetSpent(id),
            false => PolicyEvent::Complete(id),
        };
        self.apply(event);
    }

    /// Ends the present job, if there is one. Whether the policy has yet to be notified.
    fn finish(&mut self, id: TaskId) -> bool {
        let state = &mut self.states[id.index()];
        let stage = std::mem::replace(&mut state.stage, Stage::Idle);
        self.set_timer(id, Instant::NEVER);
        stage == Stage::Ready
    }

    /// Ends the present job, if there is one. The next one, already released, becomes ready at once if its budget
    /// allows.
    fn succeed(&mut self, now: Instant, id: TaskId, release: Instant) {
        let was_ready = self.finish(id);
        let (others, gathering) = (self.arrivals.len(), self.gathering);
        self.gathering = true;
        let admission = self.states[id.index()].begin(release, now, was_ready);
        self.predict_release(id, release);
        self.apply_admission(admission, now, id);
        self.gathering = gathering;
        let next = match self.arrivals.len() > others {
            true => self.arrivals.pop(),
            false => None,
        };
        if was_ready && !next.is_some_and(|next| self.offer(next)) {
            self.notify_completion(id);
        } else if was_ready {
            return;
        }
        if let Some(next) = next {
            self.becomes_ready(next);
        }
    }

    /// Ends the present job, if there is one, and releases the next one at that instant.
    pub(super) fn next_job(&mut self, now: Instant, id: TaskId, release: Instant) {
        if release <= now {
            self.succeed(now, id, release);
        } else {
            self.complete(id);
            self.states[id.index()].stage = Stage::Unreleased(release);
            self.set_timer(id, release);
        }
    }

    /// Begins a job that was released at `release` and has been ready since `ready`.
    pub(super) fn begin(&mut self, now: Instant, release: Instant, ready: Instant, id: TaskId) {
        // Linux's server sees the wake-up at the release, however late that is reported.
        let now = match self.rule {
            ServerRule::Linux(_) => ready,
            ServerRule::Releases => now,
        };
        let admission = self.states[id.index()].begin(release, now, false);
        self.predict_release(id, release);
        self.apply_admission(admission, ready, id);
    }

    pub(super) fn apply_admission(&mut self, admission: Admission, ready: Instant, id: TaskId) {
        match admission {
            Admission::Throttled(until) => {
                self.states[id.index()].stage = Stage::Throttled(until);
                self.set_timer(id, until);
                self.emit(self.cause, Kind::Spent, number(id), None, 0);
            }
            Admission::Replenished(deadline) => {
                self.emit_replenished(id, deadline);
                self.make_ready(deadline, ready, id);
            }
            Admission::Ready(deadline) => self.make_ready(deadline, ready, id),
        }
    }

    pub(super) fn emit_replenished(&mut self, id: TaskId, deadline: Instant) {
        let value = self.value(deadline);
        self.emit(self.cause, Kind::Replenished, number(id), None, value);
    }

    /// Makes the job ready, which has budget; suspended if its thread sleeps.
    pub(super) fn make_ready(&mut self, deadline: Instant, ready: Instant, id: TaskId) {
        let state = &mut self.states[id.index()];
        state.deadline = deadline;
        if !state.is_awake {
            state.stage = Stage::Suspended;
            return;
        }
        state.stage = Stage::Ready;
        let job = Job {
            task: id,
            ready,
            deadline,
            priority: state.priority,
        };
        self.becomes_ready(job);
    }

    fn becomes_ready(&mut self, job: Job) {
        match self.gathering {
            true => self.arrivals.push(job),
            false => self.arrive(job),
        }
    }

    pub(super) fn vacate_and_suspend(&mut self, id: TaskId) {
        self.vacate(id);
        self.suspend(id);
    }

    pub(super) fn suspend(&mut self, id: TaskId) {
        let state = &mut self.states[id.index()];
        state.is_awake = false;
        if state.stage != Stage::Ready {
            return;
        }
        if state.follows {
            state.stage = Stage::Suspended;
            self.apply(PolicyEvent::Block(id));
        } else {
            self.complete(id);
        }
    }

    pub(super) fn wake(&mut self, now: Instant, id: TaskId) {
        let state = &mut self.states[id.index()];
        state.is_awake = true;
        match state.stage {
            Stage::Suspended => {
                let admission = state.resume(now);
                self.apply_admission(admission, now, id);
            }
            Stage::Unreleased(release) if release <= now => {
                // A program's job is released by its wake-up.
                let release = if state.follows { release } else { now };
                self.set_timer(id, Instant::NEVER);
                self.begin(now, release, release, id);
            }
            // The thread woke before its release, and this is reported after it: the release counts now.
            Stage::Unreleased(release) => self.set_timer(id, release),
            Stage::Idle if !state.follows => self.begin(now, now, now, id),
            _ => {}
        }
    }

    pub(super) fn timer_expired(&mut self, now: Instant, due: Instant, id: TaskId) {
        let state = &mut self.states[id.index()];
        match state.stage {
            // A thread that sleeps until its release wakes up by itself: the job is ready only then.
            Stage::Unreleased(release) if state.is_awake => self.begin(now, release, release, id),
            // A program's next job begins when it wakes up.
            Stage::Throttled(_) if !state.follows && !state.is_awake => state.stage = Stage::Idle,
            Stage::Throttled(_) => {
                let Budget::Enforced(server) = &mut state.budget else {
                    return;
                };
                let deadline = server.replenish(now);
                self.emit_replenished(id, deadline);
                self.make_ready(deadline, due, id);
            }
            _ => {}
        }
    }

    pub(super) fn start_running(&mut self, now: Instant, event: Event, id: TaskId) {
        let Some(cpu_index) = event.cpu.and_then(|cpu| self.cpu_index(usize::from(cpu))) else {
            return;
        };
        self.states[id.index()].running = Some(Running {
            cpu_index,
            since: now,
            charged: Span::ZERO,
        });
        if let Some(left) = self.states[id.index()].left() {
            self.timers.set(cpu_index, now + left);
        }
    }

    /// Charges execution time that the machine measured. A job that continues without budget is found when the
    /// timer of its CPU expires: most runs end because their job is finished.
    pub(super) fn charge(&mut self, now: Instant, event: Event, id: TaskId) {
        if self.states[id.index()].charge(Span::from_ns(event.value), now) {
            self.emit(now, Kind::Overrun, number(id), None, 0);
        }
    }

    /// Charges the task of this CPU. That may use up its budget.
    pub(super) fn check_budget(&mut self, now: Instant, cpu_index: usize) {
        let Some(id) = self.cpus[cpu_index].slot else {
            return;
        };
        let state = &mut self.states[id.index()];
        let is_there = state
            .running
            .is_some_and(|running| running.cpu_index == cpu_index);
        if is_there && state.charge_until(now) {
            self.emit(now, Kind::Overrun, number(id), None, 0);
        }
        self.enforce_budget(now, id);
        if self.cpus[cpu_index].slot == Some(id)
            && let Some(left) = self.states[id.index()].left()
        {
            self.timers.set(cpu_index, now + left.max(Span::from_ns(1)));
        }
    }

    /// Throttles or replenishes the job if its budget is used up.
    pub(super) fn enforce_budget(&mut self, now: Instant, id: TaskId) {
        if self.states[id.index()].stage != Stage::Ready {
            return;
        }
        match self.states[id.index()].spent(now) {
            None => {}
            Some(Spent::Throttled(until)) => {
                self.states[id.index()].stage = Stage::Throttled(until);
                self.set_timer(id, until);
                self.emit(now, Kind::Spent, number(id), None, 0);
                self.apply(PolicyEvent::BudgetSpent(id));
            }
            Some(Spent::Replenished(deadline)) => {
                self.states[id.index()].deadline = deadline;
                self.emit_replenished(id, deadline);
                if self.rule == ServerRule::Releases {
                    self.apply(PolicyEvent::SetDeadline(id, deadline));
                    return;
                }
                let state = &self.states[id.index()];
                let next = Job {
                    task: id,
                    ready: now,
                    deadline,
                    priority: state.priority,
                };
                if !self.offer(next) {
                    self.apply(PolicyEvent::BudgetSpent(id));
                    self.becomes_ready(next);
                }
            }
        }
    }
}
