//! The life of a job, as an agent follows it: it is released, begins, may run or has to wait for its budget,
//! sleeps, wakes up, is finished.

use shiftwork_machine::{Admission, ServerRule, Spent};
use shiftwork_model::{Instant, Job, Span, TaskId};
use shiftwork_policy::Event as PolicyEvent;

use super::task_state::{Budget, Running, Stage};
use super::{Decider, number};
use crate::event::{Event, Kind};

impl Decider {
    pub(super) fn complete(&mut self, id: TaskId) {
        if self.finish(id) {
            self.tell_end(id);
        }
    }

    /// Tells the policy that the job which was ready is finished.
    fn tell_end(&mut self, id: TaskId) {
        let event = match self.actors[id.index()].ends_throttled(self.cause) {
            true => PolicyEvent::BudgetSpent(id),
            false => PolicyEvent::Complete(id),
        };
        self.apply(event);
    }

    /// The job is finished, if there is one; whether the policy has still to hear of that.
    fn finish(&mut self, id: TaskId) -> bool {
        let actor = &mut self.actors[id.index()];
        let stage = std::mem::replace(&mut actor.stage, Stage::Idle);
        self.set_timer(id, Instant::NEVER);
        stage == Stage::Ready
    }

    /// The job is finished, if there is one, and the next, which has been released, is ready at once if
    /// its budget allows.
    fn succeed(&mut self, now: Instant, id: TaskId, release: Instant) {
        let was_ready = self.finish(id);
        let (others, gathers) = (self.arrivals.len(), self.gathers);
        self.gathers = true;
        let admission = self.actors[id.index()].begin(release, now, was_ready);
        self.foresee(id, release);
        self.go_on(admission, now, id);
        self.gathers = gathers;
        let next = match self.arrivals.len() > others {
            true => self.arrivals.pop(),
            false => None,
        };
        if was_ready && !next.is_some_and(|next| self.offer(next)) {
            self.tell_end(id);
        } else if was_ready {
            return;
        }
        if let Some(next) = next {
            self.becomes_ready(next);
        }
    }

    /// The job is finished, if there is one, and the next is released then.
    pub(super) fn next_job(&mut self, now: Instant, id: TaskId, release: Instant) {
        if release <= now {
            self.succeed(now, id, release);
        } else {
            self.complete(id);
            self.actors[id.index()].stage = Stage::Unreleased(release);
            self.set_timer(id, release);
        }
    }

    /// The job that was released then begins, and has been ready since.
    pub(super) fn begin(&mut self, now: Instant, release: Instant, ready: Instant, id: TaskId) {
        // To Linux a task wakes when it is released, however late that is heard.
        let now = match self.rule {
            ServerRule::Linux(_) => ready,
            ServerRule::Releases => now,
        };
        let admission = self.actors[id.index()].begin(release, now, false);
        self.foresee(id, release);
        self.go_on(admission, ready, id);
    }

    pub(super) fn go_on(&mut self, admission: Admission, ready: Instant, id: TaskId) {
        match admission {
            Admission::Throttled(until) => {
                self.actors[id.index()].stage = Stage::Throttled(until);
                self.set_timer(id, until);
                self.tell(self.cause, Kind::Spent, number(id), None, 0);
            }
            Admission::Replenished(deadline) => {
                self.tell_replenished(id, deadline);
                self.make_ready(deadline, ready, id);
            }
            Admission::Ready(deadline) => self.make_ready(deadline, ready, id),
        }
    }

    pub(super) fn tell_replenished(&mut self, id: TaskId, deadline: Instant) {
        let value = self.value(deadline);
        self.tell(self.cause, Kind::Replenished, number(id), None, value);
    }

    /// Its budget allows it to run, and it does if it wants to.
    pub(super) fn make_ready(&mut self, deadline: Instant, ready: Instant, id: TaskId) {
        let actor = &mut self.actors[id.index()];
        actor.deadline = deadline;
        if !actor.is_awake {
            actor.stage = Stage::Suspended;
            return;
        }
        actor.stage = Stage::Ready;
        let job = Job {
            task: id,
            ready,
            deadline,
            priority: actor.priority,
        };
        self.becomes_ready(job);
    }

    fn becomes_ready(&mut self, job: Job) {
        match self.gathers {
            true => self.arrivals.push(job),
            false => self.arrive(job),
        }
    }

    pub(super) fn blocked(&mut self, id: TaskId) {
        self.emptied(id);
        self.fell_asleep(id);
    }

    pub(super) fn fell_asleep(&mut self, id: TaskId) {
        let actor = &mut self.actors[id.index()];
        actor.is_awake = false;
        if actor.stage != Stage::Ready {
            return;
        }
        if actor.follows {
            actor.stage = Stage::Suspended;
            self.apply(PolicyEvent::Block(id));
        } else {
            self.complete(id);
        }
    }

    pub(super) fn woken(&mut self, now: Instant, id: TaskId) {
        let actor = &mut self.actors[id.index()];
        actor.is_awake = true;
        match actor.stage {
            Stage::Suspended => {
                let admission = actor.resume(now);
                self.go_on(admission, now, id);
            }
            Stage::Unreleased(release) if release <= now => {
                // Nobody has released a program's job before it woke up.
                let release = if actor.follows { release } else { now };
                self.set_timer(id, Instant::NEVER);
                self.begin(now, release, release, id);
            }
            // It woke early, and is heard of when its release is over: that counts now.
            Stage::Unreleased(release) => self.set_timer(id, release),
            Stage::Idle if !actor.follows => self.begin(now, now, now, id),
            _ => {}
        }
    }

    pub(super) fn timer_ended(&mut self, now: Instant, due: Instant, id: TaskId) {
        let actor = &mut self.actors[id.index()];
        match actor.stage {
            // A thread that sleeps until its release wakes up by itself, and is ready only then.
            Stage::Unreleased(release) if actor.is_awake => self.begin(now, release, release, id),
            // A program's next job begins when it wakes up.
            Stage::Throttled(_) if !actor.follows && !actor.is_awake => actor.stage = Stage::Idle,
            Stage::Throttled(_) => {
                let Budget::Enforced(server) = &mut actor.budget else {
                    return;
                };
                let deadline = server.replenish(now);
                self.tell_replenished(id, deadline);
                self.make_ready(deadline, due, id);
            }
            _ => {}
        }
    }

    pub(super) fn runs(&mut self, now: Instant, event: Event, id: TaskId) {
        let Some(place) = event.cpu.and_then(|cpu| self.place_of(usize::from(cpu))) else {
            return;
        };
        self.actors[id.index()].running = Some(Running {
            place,
            since: now,
            charged: Span::ZERO,
        });
        if let Some(left) = self.actors[id.index()].left() {
            self.timers.set(place, now + left);
        }
    }

    /// The machine says for how long it ran. Whoever has nothing left and would go on is found out where
    /// it does: most stop because their job is finished.
    pub(super) fn charge(&mut self, now: Instant, event: Event, id: TaskId) {
        if self.actors[id.index()].charge(Span::from_ns(event.value), now) {
            self.tell(now, Kind::Overrun, number(id), None, 0);
        }
    }

    /// Whoever this CPU was told to run may have used up its budget.
    pub(super) fn look_at_budget(&mut self, now: Instant, place: usize) {
        let Some(id) = self.places[place].slot else {
            return;
        };
        let actor = &mut self.actors[id.index()];
        let is_there = actor.running.is_some_and(|running| running.place == place);
        if is_there && actor.charge_until(now) {
            self.tell(now, Kind::Overrun, number(id), None, 0);
        }
        self.judge(now, id);
        if self.places[place].slot == Some(id)
            && let Some(left) = self.actors[id.index()].left()
        {
            self.timers.set(place, now + left.max(Span::from_ns(1)));
        }
    }

    /// Whether its budget lets the job go on.
    pub(super) fn judge(&mut self, now: Instant, id: TaskId) {
        if self.actors[id.index()].stage != Stage::Ready {
            return;
        }
        match self.actors[id.index()].spent(now) {
            None => {}
            Some(Spent::Throttled(until)) => {
                self.actors[id.index()].stage = Stage::Throttled(until);
                self.set_timer(id, until);
                self.tell(now, Kind::Spent, number(id), None, 0);
                self.apply(PolicyEvent::BudgetSpent(id));
            }
            Some(Spent::Replenished(deadline)) => {
                self.actors[id.index()].deadline = deadline;
                self.tell_replenished(id, deadline);
                if self.rule == ServerRule::Releases {
                    self.apply(PolicyEvent::SetDeadline(id, deadline));
                    return;
                }
                let actor = &self.actors[id.index()];
                let next = Job {
                    task: id,
                    ready: now,
                    deadline,
                    priority: actor.priority,
                };
                if !self.offer(next) {
                    self.apply(PolicyEvent::BudgetSpent(id));
                    self.becomes_ready(next);
                }
            }
        }
    }
}
