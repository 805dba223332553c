//! Placements: which CPU runs which job. Each sibling file or folder is one placement, and this folder
//! is the catalogue of them; what several share is in `support/`.
//!
//! | placement | which jobs run where |
//! |---|---|
//! | `partitioned`, `clustered`, `global` | the most urgent jobs of each CPU, of each cluster, of all |
//! | `structured` | as `global`, with a CPU kept for interrupts |
//! | `by_laxity` | as `global`, by orders whose ranks change with time |
//! | `quanta` | as `global`, decided at quantum boundaries only |
//! | `weak`, `strong` | arbitrary affinities, without and with shifting |
//! | `hierarchical` | strong scheduling of nested or disjoint affinities |
//! | `ecrts16`, `emsoft21` | hierarchical and strong scheduling as published |
//! | `push_pull` | run queues with pushes and pulls, as Linux |
//! | `pfair` | subtasks in slots, by PD2 |
//!
//! A placement implements the few operations of [`Placement`]. The shared code here translates
//! [`Event`]s into them, so that every placement agrees on the meaning of an event.

mod by_laxity;
mod clustered;
mod ecrts16;
mod emsoft21;
mod global;
mod hierarchical;
mod partitioned;
mod pfair;
mod push_pull;
mod quanta;
mod strong;
mod structured;
mod support;
mod weak;

pub(crate) use by_laxity::ByLaxity;
pub(crate) use clustered::clustered;
pub use ecrts16::{Assigner, Ecrts16, Queued};
pub use emsoft21::Emsoft21;
pub(crate) use global::{global, non_preemptive_global};
pub use hierarchical::Hierarchical;
pub(crate) use partitioned::partitioned;
pub use pfair::Pfair;
pub use push_pull::{PushPull, Ties};
pub(crate) use quanta::InQuanta;
pub use strong::Strong;
pub(crate) use structured::structured_global;
pub use weak::Weak;

use alloc::vec::Vec;

use shiftwork_model::{Affinity, CpuId, CpuSet, Instant, Job, Task, TaskId};

use crate::error::PolicyError;
use crate::policy::{Event, Policy, Quanta, Switches};
use support::ready::{Status, TaskTable};

/// What can happen to a placement. `out` gets the switches in the order in which they are made; a
/// CPU may appear several times where more than one job arrives or departs.
pub(crate) trait Placement: Send {
    /// The tasks, with where their jobs stand.
    fn tasks(&self) -> &TaskTable;

    /// The same, to change priorities of tasks without a ready job.
    fn tasks_mut(&mut self) -> &mut TaskTable;

    /// The job assigned to a CPU.
    fn runner(&self, cpu: CpuId) -> Option<TaskId>;

    /// A job of a known task becomes ready. At most one switch per CPU.
    fn arrive(&mut self, job: Job, out: &mut Switches);

    /// The ready job of a task is ready no more. At most one switch per CPU.
    fn depart(&mut self, task: TaskId, out: &mut Switches);

    /// The same, because its budget is used up.
    #[inline]
    fn throttle(&mut self, task: TaskId, out: &mut Switches) {
        self.depart(task, out);
    }

    /// The same, because its job suspends itself.
    #[inline]
    fn block(&mut self, task: TaskId, out: &mut Switches) {
        self.depart(task, out);
    }

    /// A quantum begins on the CPU; see [`Event::Tick`].
    fn tick(&mut self, _cpu: CpuId, _quantum: u64) {}

    /// A job of a known task has to wait for the one before it; see [`Event::Released`].
    fn released(&mut self, _job: Job) {}

    /// See [`Policy::quanta`].
    fn quanta(&self) -> Option<Quanta> {
        None
    }

    /// See [`Event::LatestStarts`].
    fn latest_starts(&mut self, _now: Instant, _of: &[(TaskId, Instant)]) {}

    /// See [`Policy::next_decision`].
    fn next_decision(&self) -> Option<Instant> {
        None
    }

    /// The jobs of a known task that are released from now on are as this one says.
    fn set_attributes(&mut self, _id: TaskId, _task: &Task) {}

    /// See [`Policy::succeed`]; a job of the task is ready.
    fn succeed(&mut self, _next: Job, _out: &mut Switches) -> bool {
        false
    }

    /// See [`Policy::end_instant`].
    fn end_instant(&mut self, _out: &mut Switches) {}

    /// See [`Policy::queue_of`].
    fn queue_of(&self, _task: TaskId) -> Option<CpuId> {
        None
    }

    /// The ready job of `job.task` is to be ranked by the deadline and priority of `job`.
    fn rerank(&mut self, job: Job, out: &mut Switches);

    /// The task may use other CPUs.
    fn set_affinity(&mut self, task: TaskId, affinity: &Affinity, out: &mut Switches);

    /// The task takes part. It has no ready job.
    fn enter(&mut self, id: TaskId, task: &Task);

    /// The task takes no part any more. It has no ready job.
    fn leave(&mut self, _task: TaskId) {}

    /// The clusters are these from now on.
    fn set_clusters(&mut self, _clusters: &[CpuSet]) {}

    /// The CPU, which was online, is gone.
    fn cpu_offline(&mut self, cpu: CpuId, out: &mut Switches);

    /// The CPU, which was offline, is back.
    fn cpu_online(&mut self, cpu: CpuId, out: &mut Switches);

    /// Whether the CPU is online.
    fn is_online(&self, cpu: CpuId) -> bool;

    /// Whether the task may have this affinity.
    fn accepts_affinity(
        &self,
        task: TaskId,
        name: &str,
        affinity: &Affinity,
    ) -> Result<(), PolicyError>;

    /// See [`Policy::packing`].
    fn packed(&self) -> Option<Vec<Affinity>> {
        None
    }
}

impl<P: Placement> Policy for P {
    #[inline]
    fn on_event(&mut self, event: Event<'_>, out: &mut Switches) {
        match event {
            Event::Wake(job) => {
                if job.task.index() < self.tasks().len()
                    && self.tasks().status(job.task) == Status::NotReady
                {
                    self.arrive(job, out);
                }
            }
            Event::Complete(task) => {
                if self.tasks().status(task) != Status::NotReady {
                    self.depart(task, out);
                }
            }
            other => apply_other(self, other, out),
        }
    }

    fn succeed(&mut self, next: Job, out: &mut Switches) -> bool {
        let is_known = next.task.index() < self.tasks().len();
        is_known
            && self.tasks().status(next.task) != Status::NotReady
            && Placement::succeed(self, next, out)
    }

    fn end_instant(&mut self, out: &mut Switches) {
        Placement::end_instant(self, out);
    }

    fn assigned(&self, cpu: CpuId) -> Option<TaskId> {
        self.runner(cpu)
    }

    fn queue_of(&self, task: TaskId) -> Option<CpuId> {
        Placement::queue_of(self, task)
    }

    fn quanta(&self) -> Option<Quanta> {
        Placement::quanta(self)
    }

    fn next_decision(&self) -> Option<Instant> {
        Placement::next_decision(self)
    }

    fn accepts(&self, event: &Event<'_>) -> Result<(), PolicyError> {
        match event {
            Event::SetAffinity(task, affinity) => {
                self.accepts_affinity(*task, &alloc::format!("{task:?}"), affinity)
            }
            Event::Enter(id, task) => self.accepts_affinity(*id, &task.name, &task.affinity),
            _ => Ok(()),
        }
    }

    fn packing(&self) -> Option<Vec<Affinity>> {
        self.packed()
    }
}

/// The events that are neither an arrival nor a completion. Apart, so that these two share no stack frame with them.
#[inline(never)]
fn apply_other<P: Placement>(placement: &mut P, event: Event<'_>, out: &mut Switches) {
    match event {
        Event::Block(task) => {
            if placement.tasks().status(task) != Status::NotReady {
                placement.block(task, out);
            }
        }
        Event::BudgetSpent(task) => {
            if placement.tasks().status(task) != Status::NotReady {
                placement.throttle(task, out);
            }
        }
        Event::Tick { cpu, quantum } => placement.tick(cpu, quantum),
        Event::LatestStarts(now, of) => placement.latest_starts(now, of),
        Event::Released(job) => {
            if job.task.index() < placement.tasks().len() {
                placement.released(job);
            }
        }
        change => {
            let first = out.len();
            apply_change(placement, change, out);
            merge(out, first);
        }
    }
}

/// The events that are not on the dispatch path.
fn apply_change<P: Placement>(placement: &mut P, change: Event<'_>, out: &mut Switches) {
    let ready = |placement: &P, task| placement.tasks().status(task) != Status::NotReady;
    let known = |placement: &P, task: TaskId| task.index() < placement.tasks().len();
    match change {
        Event::SetAffinity(task, affinity) if known(placement, task) => {
            placement.set_affinity(task, affinity, out);
        }
        Event::SetPriority(task, priority) if ready(placement, task) => {
            let job = Job {
                priority,
                ..placement.tasks().get(task).job
            };
            placement.rerank(job, out);
        }
        Event::SetPriority(task, priority) if known(placement, task) => {
            placement.tasks_mut().get_mut(task).job.priority = priority;
        }
        Event::SetDeadline(task, deadline) if ready(placement, task) => {
            let job = Job {
                deadline,
                ..placement.tasks().get(task).job
            };
            placement.rerank(job, out);
        }
        Event::SetAttributes(id, task) if known(placement, id) => {
            placement.set_attributes(id, task);
        }
        Event::Enter(id, task) => {
            if ready(placement, id) {
                placement.depart(id, out);
            }
            placement.enter(id, task);
        }
        Event::Leave(task) if known(placement, task) => {
            if ready(placement, task) {
                placement.depart(task, out);
            }
            placement.leave(task);
        }
        Event::SetClusters(clusters) => placement.set_clusters(clusters),
        Event::CpuOffline(cpu) if placement.is_online(cpu) => placement.cpu_offline(cpu, out),
        Event::CpuOnline(cpu) if !placement.is_online(cpu) => placement.cpu_online(cpu, out),
        _ => {}
    }
}

/// Leaves one switch per CPU whose job changed from `out[first..]`: its first `from`, its last `to`.
fn merge(out: &mut Switches, first: usize) {
    let mut kept = first;
    for next in first..out.len() {
        let switch = out[next];
        match out[first..kept]
            .iter_mut()
            .find(|earlier| earlier.cpu == switch.cpu)
        {
            Some(earlier) => earlier.to = switch.to,
            None => {
                out[kept] = switch;
                kept += 1;
            }
        }
    }
    out.truncate(kept);
    let mut changed = first;
    for next in first..kept {
        if out[next].from != out[next].to {
            out[changed] = out[next];
            changed += 1;
        }
    }
    out.truncate(changed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Switch;

    #[test]
    fn merging_keeps_what_really_changed() {
        let task = TaskId::from_index;
        let cpu = CpuId::from_index;
        let switch = |number, from, to| Switch {
            cpu: cpu(number),
            from,
            to,
        };
        let mut out = alloc::vec![
            switch(0, Some(task(0)), None),
            switch(1, None, Some(task(1))),
            switch(0, None, Some(task(2))),
            switch(1, Some(task(1)), None),
        ];
        merge(&mut out, 0);
        assert_eq!(out, [switch(0, Some(task(0)), Some(task(2)))]);
    }
}
