//! What scheduling costs: a simple model, in which overheads steal time from CPUs.
//!
//! - `release`: stolen from the CPU on which the released task last ran (CPU 0 if it never did);
//! - `schedule`: from each CPU that switches, before the switch; `switch`: each time it switches to
//!   a job; `ipi`: if the event that caused the switch happened on another CPU;
//! - `tick`: from every CPU, each quantum;
//! - `preemption`, `migration`: lengthen a job that others interrupted, when it goes on.
//!
//! Stolen time delays whatever the CPU runs; what runs is recorded as decided, so a job that was
//! switched to may still wait for its CPU to be done with overheads. No budget pays for overheads.

use shiftwork_model::{CpuId, CpuSet, Instant, Overheads, Recorder, Span, TaskId, TaskSet};

use crate::engine::Engine;

/// The costs of this run, and the ticks.
pub(crate) struct Costs {
    release: Span,
    schedule: Span,
    switch: Span,
    tick: Span,
    ipi: Span,
    preemption: Span,
    /// The cost of a migration inside each group, smallest groups first.
    inside: Vec<(CpuSet, Span)>,
    /// The cost of a migration between CPUs that share nothing.
    outside: Span,
    /// For each CPU where the last event happened that may make it switch.
    causes: Vec<Option<CpuId>>,
}

impl Costs {
    /// `None` if nothing costs anything.
    pub(crate) fn new(set: &TaskSet, overheads: Option<&Overheads>) -> Option<Self> {
        let costs = overheads?;
        let tasks = set.tasks.len();
        let mut groups = set.platform.caches.clone();
        groups.sort_by_key(CpuSet::len);
        let mut sizes: Vec<usize> = groups.iter().map(CpuSet::len).collect();
        sizes.dedup();
        let rank = |group: &CpuSet| 1 + sizes.partition_point(|&size| size < group.len());
        let inside = groups
            .iter()
            .map(|group| (*group, costs.cache_cost(rank(group), tasks)));
        Some(Self {
            release: costs.release.at(tasks),
            schedule: costs.schedule.at(tasks),
            switch: costs.switch.at(tasks),
            tick: costs.tick.at(tasks),
            ipi: costs.ipi.at(tasks),
            preemption: costs.cache_cost(0, tasks),
            inside: inside.collect(),
            outside: costs.cache_cost(1 + sizes.len(), tasks),
            causes: vec![None; set.platform.cpus],
        })
    }

    /// What a tick costs the CPU.
    pub(crate) fn tick(&self) -> Span {
        self.tick
    }

    /// The event that happened on `cause` may make `cpu` switch.
    pub(crate) fn blame(&mut self, cpu: CpuId, cause: Option<CpuId>) {
        self.causes[cpu.index()] = cause;
    }

    fn refill(&self, from: CpuId, to: CpuId) -> Span {
        if from == to {
            return self.preemption;
        }
        let shared = |group: &&(CpuSet, Span)| group.0.contains(from) && group.0.contains(to);
        self.inside
            .iter()
            .find(shared)
            .map_or(self.outside, |&(_, cost)| cost)
    }
}

impl<R: Recorder> Engine<'_, R> {
    /// The CPU that handles events of the task; `None` if nothing costs anything.
    pub(crate) fn home(&self, id: TaskId) -> Option<CpuId> {
        self.costs.as_ref()?;
        self.plans[id.index()].last_cpu.or(CpuId::new(0))
    }

    #[inline(never)]
    pub(crate) fn charge_release(&mut self, now: Instant, id: TaskId) {
        let Some(costs) = &self.costs else { return };
        let span = costs.release;
        if let Some(cpu) = self.home(id) {
            self.steal(now, cpu, span);
        }
    }

    #[inline(never)]
    pub(crate) fn charge_switch(&mut self, now: Instant, cpu: CpuId, to_a_job: bool) {
        let Some(costs) = &self.costs else { return };
        let mut span = costs.schedule;
        if to_a_job {
            span += costs.switch;
        }
        if costs.causes[cpu.index()].is_some_and(|cause| cause != cpu) {
            span += costs.ipi;
        }
        let state = &mut self.cpus[cpu.index()];
        state.free_at = state.free_at.max(now) + span;
    }

    /// Lengthens an interrupted job that goes on, and remembers where it runs.
    #[inline(never)]
    pub(crate) fn charge_caches(&mut self, cpu: CpuId, id: TaskId) {
        let Some(costs) = &self.costs else { return };
        let plan = &mut self.plans[id.index()];
        let state = &mut self.tasks[id.index()];
        let last = plan.last_cpu.replace(cpu);
        if !core::mem::take(&mut state.interrupted) {
            return;
        }
        let refill = costs.refill(last.unwrap_or(cpu), cpu);
        state.remaining += refill;
        if let Some(server) = &mut plan.server {
            server.extend(refill);
        }
    }

    /// The CPU is busy with scheduling for `span`; its job waits.
    pub(crate) fn steal(&mut self, now: Instant, cpu: CpuId, span: Span) {
        let state = &mut self.cpus[cpu.index()];
        state.free_at = state.free_at.max(now) + span;
        let runs_on = |task: TaskId| self.tasks[task.index()].cpu == Some(cpu);
        if state.running.is_some_and(|job| runs_on(job.task)) {
            state.stop += span;
            self.stops.set(cpu.index(), state.stop);
        }
    }
}
