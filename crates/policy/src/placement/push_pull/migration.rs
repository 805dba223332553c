//! Pushing and pulling between run queues, and when CPUs decide.

use shiftwork_model::{CpuId, TaskId};

use super::super::support::ready::Status;
use super::PushPull;
use super::queue::{Ready, Undecided};

impl PushPull {
    /// Lets the CPUs decide where jobs have ended, or were replenished and are not the first any more.
    pub(super) fn decide_all(&mut self) {
        self.push_woken();
        loop {
            let jobs = self.undecided.iter().enumerate();
            let first = jobs.min_by_key(|(_, undecided)| **undecided);
            let Some((at, &Undecided { cpu, .. })) = first else {
                return;
            };
            self.undecided.swap_remove(at);
            self.decide(cpu);
        }
    }

    /// Pushes the jobs that became ready where they ran, before any CPU decides and could pull
    /// them.
    pub(super) fn push_woken(&mut self) {
        loop {
            let woken = self
                .undecided
                .iter_mut()
                .filter(|undecided| undecided.woken);
            let Some(first) = woken.min() else { return };
            first.woken = false;
            let cpu = first.cpu;
            self.push(cpu);
        }
    }

    /// Pulls, then lets the CPU run the first job of its queue. If that is another job than before,
    /// the CPU pushes a waiting job.
    pub(super) fn decide(&mut self, cpu: CpuId) {
        if !self.online.contains(cpu) {
            return;
        }
        self.pull(cpu);
        let queue = self.note(cpu);
        let next = queue.first().map(|ready| ready.task);
        let before = queue.running;
        if next == before {
            return;
        }
        queue.running = next;
        if let Some(task) = before {
            self.tasks.get_mut(task).status = Status::Backlogged;
        }
        if let Some(task) = next {
            let entry = self.tasks.get_mut(task);
            entry.status = Status::Assigned(cpu);
            entry.last_cpu = Some(cpu);
        }
        if next.is_some() {
            self.push(cpu);
        }
    }

    /// Takes from every other CPU the earliest job that waits there and may run here, as long as that is
    /// earlier than all that is here, and not the next to run there.
    pub(super) fn pull(&mut self, cpu: CpuId) {
        for other in 0..self.queues.len() {
            if other == cpu.index() {
                continue;
            }
            let here = self.queues[cpu.index()].first();
            let queue = &self.queues[other];
            let found = queue.ready.iter().skip(1).find(|ready| {
                Some(ready.task) != queue.running && self.masks[ready.task.index()].contains(cpu)
            });
            let is_earlier =
                |found: &&Ready| here.is_none_or(|here| found.deadline < here.deadline);
            if let Some(task) = found.filter(is_earlier).map(|found| found.task) {
                self.move_to(task, cpu);
            }
        }
    }

    /// Moves waiting jobs to CPUs where they run at once, the earliest first, until one has to stay.
    pub(super) fn push(&mut self, cpu: CpuId) {
        while let Some((job, target)) = self.next_push(cpu) {
            self.move_to(job, target);
            self.decide(target);
        }
    }

    /// The same for one job, even if it is the only one here.
    pub(super) fn push_even_alone(&mut self, cpu: CpuId) {
        if let Some((job, target)) = self.pushed_from(cpu) {
            self.move_to(job, target);
            self.decide(target);
        }
    }

    /// The earliest waiting job that may run elsewhere, and where, if there is a better CPU for it.
    pub(super) fn next_push(&self, cpu: CpuId) -> Option<(TaskId, CpuId)> {
        match self.queues[cpu.index()].ready.len() {
            0 | 1 => None,
            _ => self.pushed_from(cpu),
        }
    }

    pub(super) fn pushed_from(&self, cpu: CpuId) -> Option<(TaskId, CpuId)> {
        let queue = &self.queues[cpu.index()];
        let job = queue.waiting().find(|ready| self.is_movable(ready.task))?;
        if let Some(running) = queue.running
            && !self.repairs.push_without_itself
            && job.deadline < self.tasks.get(running).job.deadline
            && self.is_movable(running)
        {
            // It preempts, and the preempted job is pushed.
            return None;
        }
        let counted = !self.repairs.push_without_itself;
        let target = self.target(cpu, job.task, job.deadline, counted)?;
        (target != cpu).then_some((job.task, target))
    }

    /// Whether the task may use more than one CPU.
    pub(super) fn is_movable(&self, task: TaskId) -> bool {
        (self.masks[task.index()] & self.online).len() > 1
    }

    /// A ready job without a queue goes to the one of its task, or to the lowest CPU that it may use.
    pub(super) fn settle(&mut self, task: TaskId, has_slept: bool) {
        let allowed = self.masks[task.index()] & self.online;
        let home = self.homes[task.index()];
        let home = if allowed.contains(home) {
            home
        } else if let Some(lowest) = allowed.lowest() {
            lowest
        } else {
            self.stranded.push(task);
            return;
        };
        self.enqueue(task, home);
        let queue = &self.queues[home.index()];
        let is_first = queue.first().is_some_and(|first| first.task == task);
        // A job that wakes and preempts is not pushed, even if no other job here can move
        // (`task_woken_dl`). A job that a timer makes ready is pushed (`dl_task_timer`).
        if !has_slept {
            // Since Linux 6.7 even a job that is alone there.
            self.push_even_alone(home);
        } else if !is_first || self.repairs.push_without_itself {
            self.push(home);
        }
        self.decide(home);
    }
}
