//! Properties that hold at the end of every instant, stated independently of the definition.

use shiftwork_model::{CpuId, TaskId};
use shiftwork_policy::{Policy, PushPull};

use crate::oracle::Known;

/// The tasks with what events said of them, and the CPUs that are there, as bits.
pub struct Facts<'a> {
    pub policy: &'a PushPull,
    pub tasks: &'a [Known],
    pub cpus: usize,
    pub online: u64,
}

impl Facts<'_> {
    fn assigned(&self, cpu: usize) -> Option<usize> {
        let task = self.policy.assigned(CpuId::from_index(cpu));
        task.map(TaskId::index)
    }

    fn queue_of(&self, task: usize) -> usize {
        self.policy
            .queue_of(TaskId::from_index(task))
            .unwrap()
            .index()
    }

    /// Ready tasks that have a CPU to run on.
    fn ready(&self) -> impl Iterator<Item = usize> {
        let has_cpu = |task: &usize| self.tasks[*task].cpus & self.online != 0;
        (0..self.tasks.len()).filter(move |task| self.tasks[*task].is_ready && has_cpu(task))
    }

    /// A ready task runs nowhere but in its queue, and is the first there.
    pub fn the_first_of_each_queue_runs(&self) -> Result<(), String> {
        for cpu in 0..self.cpus {
            let Some(task) = self.assigned(cpu) else {
                continue;
            };
            let known = self.tasks[task];
            if !known.is_ready || self.queue_of(task) != cpu || known.cpus >> cpu & 1 == 0 {
                return Err(format!("task {task} must not run on CPU {cpu}"));
            }
        }
        for task in self.ready() {
            let cpu = self.queue_of(task);
            let deadline = |task: usize| self.tasks[task].deadline;
            let running = self.assigned(cpu).map(deadline);
            if running.is_none_or(|running| running > deadline(task)) {
                return Err(format!(
                    "task {task} should run on CPU {cpu} before {running:?}"
                ));
            }
        }
        Ok(())
    }

    /// No ready job waits while a CPU is idle that it may use.
    pub fn no_job_waits_for_an_idle_cpu(&self) -> Result<(), String> {
        for task in self.ready() {
            let waits = self.assigned(self.queue_of(task)) != Some(task);
            let usable = self.tasks[task].cpus & self.online;
            let idle = |&cpu: &usize| usable >> cpu & 1 == 1 && self.assigned(cpu).is_none();
            if waits && let Some(cpu) = (0..self.cpus).find(idle) {
                return Err(format!("task {task} waits while CPU {cpu} is idle"));
            }
        }
        Ok(())
    }

    /// The earliest deadlines of all run, where every task may use every CPU.
    pub fn the_earliest_of_all_run(&self) -> Result<(), String> {
        let deadline = |task: usize| self.tasks[task].deadline;
        let mut earliest: Vec<u64> = self.ready().map(deadline).collect();
        earliest.sort_unstable();
        earliest.truncate(self.online.count_ones() as usize);
        let running = (0..self.cpus).filter_map(|cpu| self.assigned(cpu));
        let mut running: Vec<u64> = running.map(deadline).collect();
        running.sort_unstable();
        if running != earliest {
            return Err(format!("{running:?} run instead of {earliest:?}"));
        }
        Ok(())
    }
}
