//! The life of a job, except for becoming ready: it begins, exhausts its budget, suspends itself,
//! completes, and its successor begins.

use shiftwork_machine::{Admission, Server, ServerRule, Spent, Step};
use shiftwork_model::{
    Arrival, CpuId, Instant, JobId, NotReadyReason, RecordKind, Recorder, Span, TaskId,
};
use shiftwork_policy::Event;

use super::{Engine, touch};
use crate::state::{Stage, TaskKind};

impl<R: Recorder> Engine<'_, R> {
    /// The first incomplete job of the task.
    pub(crate) fn job(&self, id: TaskId) -> JobId {
        JobId {
            task: id,
            number: self.tasks[id.index()].number,
        }
    }

    /// Begins the next job of the task, which arrived at `arrival`. `follows`: the task ran the previous job until
    /// now.
    #[inline]
    pub(crate) fn begin(&mut self, now: Instant, id: TaskId, arrival: Instant, follows: bool) {
        let (order, cpus) = (self.order, self.cpus.len());
        let state = &mut self.tasks[id.index()];
        state.number += 1;
        state.arrival = arrival;
        state.interrupted = false;
        if state.kind == TaskKind::Plain {
            state.remaining = state.attributes.cost;
            state.deadline = arrival + state.attributes.scheduled_by(order, cpus).deadline;
            state.stage = Stage::Ready;
            self.arrivals.push(id);
        } else {
            self.begin_general(now, id, arrival, follows);
        }
    }

    #[inline(never)]
    fn begin_general(&mut self, now: Instant, id: TaskId, arrival: Instant, follows: bool) {
        let (order, cpus) = (self.order, self.cpus.len());
        let state = &mut self.tasks[id.index()];
        let plan = &mut self.plans[id.index()];
        let attributes = plan.attributes_of(state.number).scheduled_by(order, cpus);
        state.remaining = plan.work.next_job(attributes.cost);
        if let Some(laxities) = &mut self.laxities {
            laxities.grant(id, attributes.cost);
        }
        state.deadline = arrival + attributes.deadline;
        plan.stretch = 0;
        plan.admitted = false;
        let is_zero = state.remaining.is_zero();
        match self.step(id) {
            Step::Sleep(span) if is_zero => self.suspend(now, id, span),
            _ => self.make_ready(now, id, follows),
        }
    }

    /// Makes the job ready if its budget allows it. See [`begin`](Self::begin) for `follows`.
    #[inline(never)]
    pub(crate) fn make_ready(&mut self, now: Instant, id: TaskId, follows: bool) {
        let (order, cpus) = (self.order, self.cpus.len());
        let plan = &mut self.plans[id.index()];
        let state = &mut self.tasks[id.index()];
        let attributes = plan.attributes_of(state.number).scheduled_by(order, cpus);
        let admission = match &mut plan.server {
            None => Admission::Ready(state.deadline),
            Some(server) if plan.admitted => server.resume(now),
            Some(server) if follows => server.succeed(state.arrival, now, attributes),
            Some(server) => server.begin(state.arrival, now, attributes),
        };
        plan.admitted = true;
        match admission {
            Admission::Throttled(until) => {
                state.stage = Stage::Throttled;
                self.timers.set(id.index(), until);
                return;
            }
            Admission::Replenished(deadline) => {
                state.deadline = deadline;
                self.record_replenished(now, id);
            }
            Admission::Ready(deadline) => state.deadline = deadline,
        }
        self.tasks[id.index()].stage = Stage::Ready;
        self.arrivals.push(id);
    }

    /// The job on the CPU with the first stop has executed the work that it was granted.
    pub(crate) fn stop_reached(&mut self, now: Instant) {
        let cpu = CpuId::from_index(self.stops.first_place());
        let on = &mut self.cpus[cpu.index()];
        on.stop = Instant::NEVER;
        let job = on.running.expect("only a CPU that runs a job can stop");
        let state = &mut self.tasks[job.task.index()];
        state.cpu = None;
        if state.kind == TaskKind::General {
            self.end_stretch(now, cpu, job);
            return;
        }
        touch(&mut self.touched, on, cpu);
        self.stops.set(cpu.index(), Instant::NEVER);
        self.complete(now, job.task, cpu);
    }

    /// The job has executed the work that it was granted: it has spent its budget, takes a step, suspends itself or completes.
    #[inline(never)]
    fn end_stretch(&mut self, now: Instant, cpu: CpuId, job: JobId) {
        let granted = self.cpus[cpu.index()].granted;
        self.consume(job.task, granted);
        if self.tasks[job.task.index()].remaining.is_zero() {
            self.take_step(now, cpu, job, self.step(job.task));
        } else {
            self.spend(now, job.task, cpu);
        }
        if self.goes_on_at_once(cpu, job) {
            let state = &mut self.tasks[job.task.index()];
            state.cpu = Some(cpu);
            let granted = state.remaining;
            self.grant(now, cpu, granted, granted);
        } else {
            self.touch(cpu);
            self.stops.set(cpu.index(), Instant::NEVER);
        }
    }

    /// Whether the job, which has just taken a step, goes on with its work on the same CPU as far as is decided: as the dispatch at
    /// the end of the instant would have it if nothing else happened. What else happens then finds a running job that has executed
    /// nothing yet. Where that makes a difference, to overheads, speeds and budgets, the answer is no.
    fn goes_on_at_once(&self, cpu: CpuId, job: JobId) -> bool {
        let state = &self.tasks[job.task.index()];
        state.stage == Stage::Ready
            && state.number == job.number
            && !state.remaining.is_zero()
            && self.cpus[cpu.index()].assigned == Some(job.task)
            && self.plans[job.task.index()].server.is_none()
            && self.costs.is_none()
            && self.speeds.is_none()
    }

    /// The job on the CPU has executed what comes before this step.
    pub(crate) fn take_step(&mut self, now: Instant, cpu: CpuId, job: JobId, step: Step) {
        match step {
            Step::Sleep(span) => {
                let reason = NotReadyReason::Suspended;
                self.record(now, RecordKind::NotReady { job, reason });
                self.notify_policy(Event::Block(job.task), Some(cpu));
                self.suspend(now, job.task, span);
            }
            Step::Lock(resource) => self.lock(now, cpu, job, resource),
            Step::Unlock(resource) => self.unlock(now, cpu, job, resource),
            Step::Trigger(task) => self.trigger(now, cpu, job, task),
            Step::Complete => self.complete(now, job.task, cpu),
        }
    }

    /// The same at the horizon, where only a completion counts, and the mutexes that are unlocked right before it: no mutex is
    /// given, and what the job triggers arrives after the run.
    pub(crate) fn finish_at_horizon(&mut self, horizon: Instant, cpu: CpuId) {
        let job = self.cpus[cpu.index()]
            .running
            .expect("only a CPU that runs a job can stop");
        let id = job.task.index();
        if self.cpus[cpu.index()].granted != self.tasks[id].remaining {
            return;
        }
        let plan = &self.plans[id];
        let left = plan.work.stretches().get(plan.stretch..).unwrap_or(&[]);
        let takes_no_time =
            |step| matches!(step, Step::Complete | Step::Unlock(_) | Step::Trigger(_));
        let is_done = left.iter().all(|stretch| takes_no_time(stretch.then))
            && left.iter().skip(1).all(|stretch| stretch.run.is_zero());
        if !is_done {
            return;
        }
        for place in plan.stretch..plan.stretch + left.len() {
            if let Step::Unlock(resource) = self.plans[id].work.stretches()[place].then {
                self.record(horizon, RecordKind::Unlocked { job, resource });
            }
        }
        self.record(horizon, RecordKind::Completed { job });
    }

    /// Charges `ran` to the job.
    #[inline]
    pub(crate) fn consume(&mut self, id: TaskId, ran: Span) {
        self.tasks[id.index()].remaining -= ran;
        if let Some(server) = &mut self.plans[id.index()].server {
            server.consume(ran);
        }
        if let Some(laxities) = &mut self.laxities {
            laxities.charge(id, ran);
        }
    }

    #[inline]
    pub(crate) fn complete(&mut self, now: Instant, id: TaskId, cpu: CpuId) {
        let job = self.job(id);
        self.record(now, RecordKind::Completed { job });
        if self.triggers.is_some() {
            self.trigger_at_completion(job);
        }
        if self.rule != ServerRule::Releases && self.plans[id.index()].pattern.next() == now {
            // For Linux a task whose next job is released at this instant has not slept.
            self.release(now, id);
        }
        let state = &mut self.tasks[id.index()];
        if state.number == state.released {
            state.stage = Stage::Idle;
            self.notify_policy(self.end_of_job(id), Some(cpu));
        } else {
            self.succeed(now, id, cpu);
        }
    }

    /// The policy's event for the completion of the task's job. For Linux, which does not know jobs, a task
    /// that has used up its budget by then is throttled, and does not sleep.
    fn end_of_job(&self, id: TaskId) -> Event<'static> {
        let is_spent = |server: &Server| server.left().is_zero();
        match self.rule {
            ServerRule::Linux(_)
                if self.plans[id.index()].server.as_ref().is_some_and(is_spent) =>
            {
                Event::BudgetSpent(id)
            }
            _ => Event::Complete(id),
        }
    }

    /// Completes a job that was not running; the next pending job, if any, begins.
    fn finish_job(&mut self, now: Instant, id: TaskId) {
        let state = &mut self.tasks[id.index()];
        if state.number == state.released {
            state.stage = Stage::Idle;
        } else {
            self.begin_successor(now, id, false);
        }
    }

    /// Begins the next pending job after the previous one has completed.
    #[inline(never)]
    fn succeed(&mut self, now: Instant, id: TaskId, cpu: CpuId) {
        let others = self.arrivals.len();
        self.begin_successor(now, id, true);
        let is_ready = self.arrivals.len() > others;
        if is_ready && self.notify_successor(now, id, cpu) {
            self.arrivals.pop();
        } else {
            self.notify_policy(self.end_of_job(id), Some(cpu));
        }
    }

    /// Begins the next pending job. Its arrival is recomputed.
    #[inline(never)]
    fn begin_successor(&mut self, now: Instant, id: TaskId, follows: bool) {
        let state = &mut self.tasks[id.index()];
        let plan = &mut self.plans[id.index()];
        let arrival = if matches!(plan.task.arrival, Arrival::Periodic) {
            state.arrival + plan.attributes_of(state.number).period
        } else if plan.task.trigger().is_some() {
            self.next_triggered(id)
        } else {
            let arrival = plan.lagging.arrival();
            let period = plan.attributes_of(state.number + 1).period;
            plan.lagging.advance(&plan.task, period);
            arrival
        };
        self.begin(now, id, arrival, follows);
    }

    /// Handles a budget that is used up before the job completes.
    #[inline(never)]
    fn spend(&mut self, now: Instant, id: TaskId, cpu: CpuId) {
        let job = self.job(id);
        self.record(now, RecordKind::BudgetSpent { job });
        let server = self.plans[id.index()].server.as_mut();
        match server.expect("only a budget stops a job early").spent(now) {
            Spent::Throttled(until) => {
                let reason = NotReadyReason::Throttled;
                self.record(now, RecordKind::NotReady { job, reason });
                self.tasks[id.index()].stage = Stage::Throttled;
                self.timers.set(id.index(), until);
                self.notify_policy(Event::BudgetSpent(id), Some(cpu));
            }
            Spent::Replenished(deadline) => {
                self.tasks[id.index()].deadline = deadline;
                self.record_replenished(now, id);
                if self.rule == ServerRule::Releases {
                    self.notify_policy(Event::SetDeadline(id, deadline), Some(cpu));
                } else if self.notify_successor(now, id, cpu) {
                    // The job continues on its CPU, or waits there.
                } else {
                    let reason = NotReadyReason::Throttled;
                    self.record(now, RecordKind::NotReady { job, reason });
                    self.notify_policy(Event::BudgetSpent(id), Some(cpu));
                    self.arrivals.push(id);
                }
            }
        }
    }

    pub(crate) fn record_replenished(&mut self, now: Instant, id: TaskId) {
        if let Some(server) = &self.plans[id.index()].server {
            let budget = server.budget();
            if let Some(laxities) = &mut self.laxities {
                laxities.grant(id, budget);
            }
            let deadline = self.tasks[id.index()].deadline;
            self.record(
                now,
                RecordKind::Replenished {
                    task: id,
                    budget,
                    deadline,
                },
            );
        }
    }

    #[inline(never)]
    fn suspend(&mut self, now: Instant, id: TaskId, span: Span) {
        self.tasks[id.index()].stage = Stage::Suspended;
        self.timers.set(id.index(), now + span);
    }

    /// What follows the current stretch.
    pub(crate) fn step(&self, id: TaskId) -> Step {
        let plan = &self.plans[id.index()];
        let stretch = plan.work.stretches().get(plan.stretch);
        stretch.map_or(Step::Complete, |stretch| stretch.then)
    }

    /// Begins the stretch after the current one, which must not be the last.
    pub(crate) fn begin_next_stretch(&mut self, id: TaskId) {
        let plan = &mut self.plans[id.index()];
        plan.stretch += 1;
        self.tasks[id.index()].remaining = plan.work.stretches()[plan.stretch].run;
    }

    /// Whether the current stretch is the last of the job.
    pub(crate) fn is_last_stretch(&self, id: TaskId) -> bool {
        let plan = &self.plans[id.index()];
        plan.stretch + 1 >= plan.work.stretches().len()
    }

    /// Completes the jobs that end with a suspension that is over, like any other completion. The other timers
    /// of this instant are left to the arrivals.
    #[inline(never)]
    pub(crate) fn complete_sleepers(&mut self, now: Instant) {
        while self.timers.first() == now {
            let id = TaskId::from_index(self.timers.first_place());
            self.timers.set(id.index(), Instant::NEVER);
            if self.tasks[id.index()].stage == Stage::Suspended && self.is_last_stretch(id) {
                let job = self.job(id);
                self.record(now, RecordKind::Completed { job });
                self.trigger_at_completion(job);
                self.finish_job(now, id);
            } else {
                self.waking.push(id);
            }
        }
    }

    /// A suspension or a throttling is over.
    #[inline(never)]
    pub(crate) fn wake(&mut self, now: Instant, id: TaskId) {
        let state = &mut self.tasks[id.index()];
        if state.stage == Stage::Suspended {
            self.begin_next_stretch(id);
            self.make_ready(now, id, false);
        } else if let Some(server) = &mut self.plans[id.index()].server {
            state.deadline = server.replenish(now);
            state.stage = Stage::Ready;
            self.record_replenished(now, id);
            self.arrivals.push(id);
        }
    }
}
