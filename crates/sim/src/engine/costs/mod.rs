//! The costs of scheduling: a simple model, in which overheads take time from CPUs.
//!
//! - `release`: on the CPU on which the released task ran last (the lowest of its CPUs if it never ran);
//! - `schedule`: on each CPU that switches, before the switch; `switch`: each time it switches to a job; `ipi`:
//!   delay of both if the event that caused the switch occurred on another CPU;
//! - `tick`: on every CPU, each quantum;
//! - `preemption`, `migration`: lengthen a preempted job when it resumes.
//!
//! Policies with a known structure ([`Policy::structure`]) have further costs:
//!
//! - all releases of one instant are one interrupt, on the dedicated CPU or on that of the first of them; it
//!   costs one `release`, and then enqueues the jobs that are ready at once;
//! - a job whose suspension ends is enqueued in the same way; a job that waited for its predecessor is enqueued
//!   by the CPU of its task when the predecessor completes; a preempted job by the CPU that it leaves, before
//!   that CPU schedules;
//! - a CPU that switches to a job is notified when the job is in the queue (and an `ipi` later, if the event
//!   occurred on another CPU), schedules, takes the job, and switches; reading the queue without taking a job is
//!   part of `schedule` and `tick`;
//! - `enqueue` and `dequeue` are the lengths of these operations alone; `contention.rs` has the locks that they
//!   hold, and the waits for them. At one instant interrupts come first, then CPUs in the order in which they
//!   begin to schedule, the lower first among equals. A lock stays reserved for a decision that is revised.
//!
//! Costs that grow with the number of tasks count the tasks bound to the same CPU or cluster under policies
//! that pack tasks, and all tasks under others, also if a CPU is dedicated to interrupts.
//!
//! Overheads delay the job that the CPU runs. Records show switches as decided, so a job that is recorded as
//! running may still wait for the end of overheads on its CPU. A switch that is revised before its end is
//! abandoned: no job waits for the switch to another. No budget pays for overheads.

mod backlog;
mod contention;
mod lock;
mod prices;
mod structured;

use shiftwork_model::{
    CpuId, CpuSet, Instant, JobId, Overheads, PolicyTraits, RecordKind, Recorder, Span, TaskId,
    TaskSet,
};
use shiftwork_policy::Policy;

use super::Engine;
use backlog::Backlog;
pub use contention::QueueUse;
use prices::{Prices, on_each_cpu};
use structured::Structured;

/// The costs of this run, and the ticks.
pub(crate) struct Costs {
    prices: Vec<Prices>,
    /// By CPU, the index of its prices.
    place: Vec<usize>,
    backlogs: Vec<Backlog>,
    /// By CPU, the CPU of the last event that may make it switch.
    causes: Vec<Option<CpuId>>,
    /// By task, its CPU before it has run.
    homes: Vec<Option<CpuId>>,
    /// `None` if the scheduler has no known structure.
    structured: Option<Structured>,
}

impl Costs {
    /// The durations of operations on the ready queue, if its structure is known; the inner option is `None` if
    /// they are not measured.
    pub(crate) fn queue_use(&mut self) -> Option<&mut Option<QueueUse>> {
        self.structured.as_mut().map(Structured::used)
    }

    /// `None` if scheduling costs nothing.
    pub(crate) fn new(
        set: &TaskSet,
        (policy, traits): (&dyn Policy, &PolicyTraits),
        overheads: Option<&Overheads>,
    ) -> Option<Self> {
        let costs = overheads?;
        let structure = traits.structure;
        // With timed changes no task is bound for the whole run; and a known structure has one scheduler for all
        // tasks.
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

    /// Whether ticks have a cost on any CPU.
    pub(crate) fn has_ticks(&self) -> bool {
        self.prices.iter().any(|prices| !prices.tick.is_zero())
    }

    /// The cost of a tick on the CPU.
    pub(crate) fn tick(&self, cpu: CpuId) -> Span {
        self.on(cpu).tick
    }

    /// Notes that an event on `cause` may make `cpu` switch.
    pub(crate) fn set_cause(&mut self, cpu: CpuId, cause: Option<CpuId>) {
        self.causes[cpu.index()] = cause;
    }

    /// Delay until the CPU is notified of the latest decision about it.
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
    /// The CPU on which the task's job became ready; `None` if scheduling costs nothing.
    pub(crate) fn cause(&self, id: TaskId) -> Option<CpuId> {
        let structured = self.costs.as_ref()?.structured.as_ref();
        structured
            .and_then(|it| it.enqueued_by(id))
            .or_else(|| self.home(id))
    }

    /// The CPU that handles events of the task; `None` if scheduling costs nothing.
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

    /// The latency until the CPU is notified of a switch, and the time for carrying it out.
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

    /// Lengthens a preempted job that resumes, and saves its CPU.
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

    /// Records the part of the job's time on the CPU, which it leaves, that overheads took.
    #[inline(never)]
    pub(crate) fn record_interrupted(&mut self, now: Instant, cpu: CpuId, left: Option<JobId>) {
        let state = &mut self.cpus[cpu.index()];
        // Future overheads do not delay this job any more.
        let to_come = state.free_at.late_since(now);
        let time = core::mem::take(&mut state.interrupted).saturating_sub(to_come);
        if let Some(job) = left
            && !time.is_zero()
        {
            self.record(now, RecordKind::Interrupted { job, time });
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
        // A job that spins has no end of its own.
        let ends = state.stop != Instant::NEVER;
        if ends && state.running.is_some_and(|job| runs_on(job.task)) {
            state.stop += after.late_since(before);
            self.stops.set(cpu.index(), state.stop);
        }
    }
}
