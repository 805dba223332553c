//! Which CPU a job is for: what `find_later_rq` and `cpudl_find` of Linux look up.

use shiftwork_model::{CpuId, Instant, TaskId};

use super::{PushPull, UNITS};

impl PushPull {
    /// A free CPU for the job, else the one with the latest deadline, if that is later than `deadline`:
    /// what `find_later_rq` looks up. Whether the job itself is `counted` where it waits.
    pub(super) fn target(
        &self,
        from: CpuId,
        task: TaskId,
        deadline: Instant,
        counted: bool,
    ) -> Option<CpuId> {
        let allowed = self.masks[task.index()] & self.online;
        let deadline_of = |cpu: CpuId| {
            let queue = &self.queues[cpu.index()];
            let first = if counted {
                queue.first()
            } else {
                queue.first_but(task)
            };
            first.map(|first| first.deadline)
        };
        let free = allowed.iter().filter(|&cpu| deadline_of(cpu).is_none());
        if let Some(cpu) = self.best_free(free, from, task) {
            return Some(cpu);
        }
        // The heap of the whole root domain knows one CPU with the latest deadline; if the task may not use
        // that one, `cpudl_find` looks no further.
        let domain = self.domains.iter().find(|domain| domain.contains(from))?;
        let latest = (*domain & self.online)
            .iter()
            .filter_map(deadline_of)
            .max()?;
        if latest <= deadline {
            return None;
        }
        let are_latest = |&cpu: &CpuId| deadline_of(cpu) == Some(latest);
        self.prefer(allowed.iter().filter(are_latest), from)
    }

    /// Whether the CPU alone could do what the task may ask for.
    pub(super) fn is_fast_enough(&self, cpu: CpuId, task: TaskId) -> bool {
        let capacity = self.capacities.get(cpu.index());
        capacity.is_none_or(|&capacity| self.densities[task.index()] <= capacity)
    }

    /// Chooses a better CPU for a task that wakes, if it would not preempt a movable job on its own
    /// CPU, or if that CPU is too slow for it. The deadline compared is the task's old one, which
    /// is seldom the one that it gets.
    pub(super) fn wake_elsewhere(&mut self, task: TaskId) {
        if self.repairs.push_without_itself {
            return;
        }
        let home = self.homes[task.index()];
        let deadline = self.tasks.get(task).job.deadline;
        let is_kept_out = |running: TaskId| {
            let preempts = deadline < self.tasks.get(running).job.deadline;
            !preempts || self.masks[running.index()].len() < 2
        };
        let running = self.queues[home.index()].running;
        let leaves = running.is_some_and(is_kept_out) || !self.is_fast_enough(home, task);
        if !leaves || self.masks[task.index()].len() < 2 {
            return;
        }
        if let Some(target) = self.target(home, task, deadline, false) {
            self.homes[task.index()] = target;
        }
    }

    /// The CPU itself if it is among them, else the lowest.
    pub(super) fn prefer(&self, cpus: impl Iterator<Item = CpuId>, first: CpuId) -> Option<CpuId> {
        cpus.min_by_key(|&cpu| (cpu != first, cpu))
    }

    /// Of free CPUs one that is fast enough for the task, else one of the fastest.
    pub(super) fn best_free(
        &self,
        free: impl Iterator<Item = CpuId>,
        from: CpuId,
        task: TaskId,
    ) -> Option<CpuId> {
        if self.capacities.is_empty() {
            return self.prefer(free, from);
        }
        let capacity = |cpu: CpuId| self.capacities[cpu.index()];
        free.min_by_key(|&cpu| {
            let fits = self.is_fast_enough(cpu, task);
            let too_slow = if fits { 0 } else { UNITS - capacity(cpu) };
            (!fits, too_slow, cpu != from, cpu)
        })
    }
}
