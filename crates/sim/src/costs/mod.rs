//! What scheduling costs: a simple model, in which overheads steal time from CPUs.
//!
//! - `release`: stolen from the CPU on which the released task last ran (the lowest of its CPUs if it
//!   never did);
//! - `schedule`: from each CPU that switches, before the switch; `switch`: each time it switches to
//!   a job; `ipi`: it begins so much later if the event that caused the switch happened on another CPU;
//! - `tick`: from every CPU, each quantum;
//! - `preemption`, `migration`: lengthen a job that others interrupted, when it goes on.
//!
//! Policies that say how they are built ([`Policy::structure`]) are charged by that as well:
//!
//! - all releases of one instant are one interrupt, on the dedicated CPU or on that of the first of them; it
//!   costs one `release`, and then enqueues those jobs that are ready at once;
//! - a job whose suspension ends is enqueued likewise; one that waited for the one before it by the CPU of its
//!   task, when that is finished; a preempted one by the CPU that gave it up, before that schedules;
//! - a CPU that switches to a job hears of it when that is in the queue (and an `ipi` later, if the event
//!   happened elsewhere), schedules, takes the job out, and switches; looking at the queue without taking
//!   anything out is part of `schedule` and `tick`;
//! - `enqueue` and `dequeue` are how long these operations are beside all that; `contention.rs` says which
//!   locks they hold, and how CPUs wait for them. At one instant interrupts come first, then CPUs in the order
//!   in which they begin to schedule, the lower first among equals. A lock stays reserved for a decision that
//!   is revised.
//!
//! Costs that grow with the tasks count those that are bound to the same CPU or cluster under policies
//! that pack tasks, and all under others, also if a CPU is dedicated to interrupts.
//!
//! Stolen time delays whatever the CPU runs; what runs is recorded as decided, so a job that was
//! switched to may still wait for its CPU to be done with overheads. A switch that is revised before it
//! is done is not finished first: no job waits for that of another. No budget pays for overheads.

mod backlog;
mod contention;
mod lock;
mod prices;
mod structured;

use shiftwork_model::{
    CpuId, CpuSet, Happening, Instant, JobId, Overheads, Recorder, Span, TaskId, TaskSet,
};
use shiftwork_policy::Policy;

use crate::engine::Engine;
use backlog::Backlog;
pub use contention::QueueUse;
use prices::{Prices, on_each_cpu};
use structured::Structured;

/// The costs of this run, and the ticks.
pub(crate) struct Costs {
    prices: Vec<Prices>,
    /// For each CPU the place of its prices.
    place: Vec<usize>,
    backlogs: Vec<Backlog>,
    /// For each CPU where the last event happened that may make it switch.
    causes: Vec<Option<CpuId>>,
    /// By task, where it is before it ever ran.
    homes: Vec<Option<CpuId>>,
    /// `None` if nothing is known of how the scheduler is built.
    structured: Option<Structured>,
}

impl Costs {
    /// What operations on the ready queue take, if it is known how that is built; `None` in there if nobody
    /// has asked for it.
    pub(crate) fn queue_use(&mut self) -> Option<&mut Option<QueueUse>> {
        self.structured.as_mut().map(Structured::used)
    }

    /// `None` if nothing costs anything.
    pub(crate) fn new(
        set: &TaskSet,
        policy: &dyn Policy,
        overheads: Option<&Overheads>,
    ) -> Option<Self> {
        let costs = overheads?;
        let structure = policy.structure();
        // Where tasks come, go and move, nobody is bound for good; and one scheduler may serve fewer CPUs
        // than it keeps busy.
        let is_bound = set.actions.is_empty() && structure.is_none();
        let packing = policy.packing().filter(|_| is_bound);
        let packing: Option<Vec<CpuSet>> =
            packing.map(|bound| bound.iter().map(|affinity| *affinity.cpus()).collect());
        let tasks = set.tasks.len();
        let (prices, place) = on_each_cpu(costs, &set.platform, tasks, packing.as_deref());
        let home = |(id, task): (TaskId, &shiftwork_model::Task)| {
            let bound = packing.as_ref().map(|bound| bound[id.index()]);
            (bound.unwrap_or(*task.affinity.cpus()) & set.platform.all()).lowest()
        };
        Some(Self {
            prices,
            place,
            backlogs: vec![Backlog::default(); set.platform.cpus],
            causes: vec![None; set.platform.cpus],
            homes: set.iter().map(home).collect(),
            structured: structure.map(|structure| Structured::new(set, structure, costs)),
        })
    }

    /// Whether ticks cost anything on any CPU.
    pub(crate) fn has_ticks(&self) -> bool {
        self.prices.iter().any(|prices| !prices.tick.is_zero())
    }

    /// What a tick costs the CPU.
    pub(crate) fn tick(&self, cpu: CpuId) -> Span {
        self.on(cpu).tick
    }

    /// The event that happened on `cause` may make `cpu` switch.
    pub(crate) fn set_cause(&mut self, cpu: CpuId, cause: Option<CpuId>) {
        self.causes[cpu.index()] = cause;
    }

    /// Until the CPU hears of the latest decision about it.
    fn latency(&self, cpu: CpuId) -> Span {
        let is_remote = self.causes[cpu.index()].is_some_and(|cause| cause != cpu);
        if is_remote {
            self.on(cpu).ipi
        } else {
            Span::ZERO
        }
    }

    fn on(&self, cpu: CpuId) -> &Prices {
        &self.prices[self.place[cpu.index()]]
    }
}

impl<R: Recorder> Engine<'_, R> {
    /// The CPU on which the task's job became ready; `None` if nothing costs anything.
    pub(crate) fn cause(&self, id: TaskId) -> Option<CpuId> {
        let structured = self.costs.as_ref()?.structured.as_ref();
        structured
            .and_then(|it| it.enqueued_by(id))
            .or_else(|| self.home(id))
    }

    /// The CPU that handles events of the task; `None` if nothing costs anything.
    pub(crate) fn home(&self, id: TaskId) -> Option<CpuId> {
        let costs = self.costs.as_ref()?;
        self.plans[id.index()].last_cpu.or(costs.homes[id.index()])
    }

    #[inline(never)]
    pub(crate) fn charge_release(&mut self, now: Instant, id: TaskId) {
        let (Some(costs), Some(cpu)) = (&self.costs, self.home(id)) else {
            return;
        };
        if costs.structured.is_some() {
            return self.interrupt(now, id);
        }
        let span = costs.on(cpu).release;
        self.steal(now, cpu, span);
    }

    #[inline(never)]
    pub(crate) fn charge_switch(
        &mut self,
        now: Instant,
        cpu: CpuId,
        (from, to): (Option<JobId>, Option<JobId>),
    ) {
        let (latency, span) = if self.is_structured() {
            self.structured_switch(now, cpu, (from, to))
        } else {
            self.plain_switch(cpu, to.is_some())
        };
        let Some(costs) = &mut self.costs else { return };
        self.cpus[cpu.index()].free_at = costs.backlogs[cpu.index()].decide(now, latency, span);
    }

    /// The latency until the CPU hears of a switch, and how long carrying it out takes.
    fn plain_switch(&self, cpu: CpuId, to_a_job: bool) -> (Span, Span) {
        let Some(costs) = &self.costs else {
            return (Span::ZERO, Span::ZERO);
        };
        let prices = costs.on(cpu);
        let mut span = prices.schedule;
        if to_a_job {
            span += prices.switch;
        }
        (costs.latency(cpu), span)
    }

    /// Lengthens an interrupted job that goes on, and remembers where it runs.
    #[inline(never)]
    pub(crate) fn charge_caches(&mut self, cpu: CpuId, id: TaskId) {
        let Some(costs) = &self.costs else { return };
        let plan = &mut self.plans[id.index()];
        let state = &mut self.tasks[id.index()];
        let last = plan.last_cpu.replace(cpu);
        let on = &mut self.cpus[cpu.index()];
        on.interrupted = Span::ZERO;
        if !core::mem::take(&mut state.interrupted) {
            return;
        }
        let refill = costs.on(cpu).refill(last.unwrap_or(cpu), cpu);
        state.remaining += refill;
        on.interrupted = refill;
        if let Some(server) = &mut plan.server {
            server.extend(refill);
        }
    }

    /// Tells how much of its time on the CPU, which it leaves, the job did not have for itself.
    #[inline(never)]
    pub(crate) fn record_interrupted(&mut self, now: Instant, cpu: CpuId, left: Option<JobId>) {
        let state = &mut self.cpus[cpu.index()];
        // What is still to come does not concern it any more.
        let to_come = state.free_at.late_since(now);
        let time = core::mem::take(&mut state.interrupted).saturating_sub(to_come);
        if let Some(job) = left
            && !time.is_zero()
        {
            self.record(now, Happening::Interrupted { job, time });
        }
    }

    /// The CPU is interrupted for `span`; its job waits.
    pub(crate) fn steal(&mut self, now: Instant, cpu: CpuId, span: Span) {
        let Some(costs) = &mut self.costs else { return };
        let state = &mut self.cpus[cpu.index()];
        let before = state.free_at.max(now);
        let after = costs.backlogs[cpu.index()].interrupt(now, span, state.free_at);
        state.free_at = after;
        state.interrupted += after.late_since(before);
        let runs_on = |task: TaskId| self.tasks[task.index()].cpu == Some(cpu);
        if state.running.is_some_and(|job| runs_on(job.task)) {
            state.stop += after.late_since(before);
            self.stops.set(cpu.index(), state.stop);
        }
    }
}
