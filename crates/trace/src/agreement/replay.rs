//! The state of one run after each of its instants.

use std::collections::VecDeque;

use shiftwork_model::{
    CpuId, CpuSet, Happening, Instant, JobId, NotReadyReason, Record, TaskId, TaskSet,
};

use crate::check::{Facts, Order};
use crate::running::{Change, Running};

/// What is known of a task.
#[derive(Clone, Debug)]
pub(super) struct TaskState {
    /// Where its jobs may run: where the policy has bound it, else its affinity. Empty if that is
    /// not known: the policy has packed again.
    pub cpus: CpuSet,
    packed: bool,
    /// Its released and unfinished jobs, the oldest first.
    pub pending: VecDeque<u64>,
    /// The job that may run.
    pub ready: Option<u64>,
    /// Whether the oldest pending job waits for a new budget.
    pub throttled: bool,
    /// By what its job is ranked, the most urgent lowest.
    pub rank: u64,
    /// The job that is on a CPU after the last instant, finished or not.
    pub on_cpu: Option<u64>,
}

/// Plays records one whole instant at a time.
///
/// Records are taken in the order of their instants even if they come in another (a live machine
/// may learn late of what happened early), and up to the horizon only: of what happened exactly
/// there only completions count. Unknown tasks and CPUs change nothing.
#[derive(Clone, Debug)]
pub(super) struct Replay<'a> {
    records: Vec<&'a Record>,
    next: usize,
    order: Order,
    running: Running,
    /// The changes of the last instant.
    pub changes: Vec<Change>,
    pub tasks: Vec<TaskState>,
    /// The CPUs that are offline or given to background work.
    pub away: CpuSet,
}

impl<'a> Replay<'a> {
    pub fn new(set: &TaskSet, facts: &Facts, records: &'a [Record], horizon: Instant) -> Self {
        let counts = |record: &&Record| {
            let last = record.at == horizon && matches!(record.what, Happening::Completed { .. });
            record.at < horizon || last
        };
        let mut records: Vec<&Record> = records.iter().filter(counts).collect();
        records.sort_by_key(|record| record.at);
        let packing = facts.packing.as_ref();
        let task = |index: usize| {
            let bound = packing.and_then(|packing| packing.get(index));
            TaskState {
                cpus: *bound.unwrap_or(&set.tasks[index].affinity).cpus(),
                packed: bound.is_some(),
                pending: VecDeque::new(),
                ready: None,
                throttled: false,
                rank: u64::MAX,
                on_cpu: None,
            }
        };
        Self {
            records,
            next: 0,
            order: facts.order,
            running: Running::new(set.platform.cpus),
            changes: Vec::new(),
            tasks: (0..set.tasks.len()).map(task).collect(),
            away: CpuSet::EMPTY,
        }
    }

    /// When the next instant is; `None` after the last one.
    pub fn next_at(&self) -> Option<Instant> {
        self.records.get(self.next).map(|record| record.at)
    }

    /// Plays the next instant and gives its records; none after the last one.
    pub fn step(&mut self) -> &[&'a Record] {
        let from = self.next;
        let now = self.next_at();
        while self.next_at().is_some() && self.next_at() == now {
            let record = self.records[self.next];
            self.take(&record.what);
            self.next += 1;
        }
        self.settle();
        &self.records[from..self.next]
    }

    pub const fn cpus(&self) -> usize {
        self.running.cpus()
    }

    /// What is on the CPU, finished or not.
    pub fn on(&self, cpu: CpuId) -> Option<JobId> {
        self.running.on(cpu)
    }

    /// The scheduled set: the unfinished jobs on CPUs, ascending. Where a CPU has not yet left a
    /// finished job, that job is not in the set.
    pub fn scheduled(&self) -> Vec<JobId> {
        let cpus = (0..self.cpus()).filter_map(|cpu| self.on(CpuId::from_index(cpu)));
        let mut jobs: Vec<JobId> = cpus.filter(|&job| self.is_current(job)).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs
    }

    /// Whether the job is the oldest released and unfinished one of its task.
    pub fn is_current(&self, job: JobId) -> bool {
        // The jobs of a task run one after the other, so whoever runs is the oldest.
        let task = self.tasks.get(job.task.index());
        task.is_some_and(|task| task.pending.front() == Some(&job.number))
    }

    /// The ready job of the task, if it is not on a CPU.
    pub fn waiting(&self, task: TaskId) -> Option<JobId> {
        let state = self.tasks.get(task.index())?;
        let number = state.ready.filter(|_| state.on_cpu != state.ready)?;
        Some(JobId { task, number })
    }

    fn settle(&mut self) {
        self.changes.clear();
        self.changes.extend(self.running.changes());
        self.running.settle();
        for Change { before, .. } in &self.changes {
            if let Some(job) = *before
                && let Some(task) = self.tasks.get_mut(job.task.index())
                && task.on_cpu == Some(job.number)
            {
                task.on_cpu = None;
            }
        }
        for Change { after, .. } in &self.changes {
            if let Some(job) = *after
                && let Some(task) = self.tasks.get_mut(job.task.index())
            {
                task.on_cpu = Some(job.number);
            }
        }
    }

    fn take(&mut self, what: &Happening) {
        match *what {
            Happening::Switched { cpu, to, .. } => self.running.switch(cpu, to),
            Happening::CpuOffline { cpu } | Happening::CpuTaken { cpu } => {
                self.away.insert(cpu);
                self.forget_packing();
            }
            Happening::CpuOnline { cpu } | Happening::CpuReturned { cpu } => {
                self.away.remove(cpu);
                self.forget_packing();
            }
            Happening::BackgroundStarted { cpu } => self.away.insert(cpu),
            Happening::BackgroundEnded { cpu } => self.away.remove(cpu),
            _ => self.take_of_task(what),
        }
    }

    fn forget_packing(&mut self) {
        for task in self.tasks.iter_mut().filter(|task| task.packed) {
            task.cpus = CpuSet::EMPTY;
        }
    }

    fn take_of_task(&mut self, what: &Happening) {
        let Some(task) = task_of(what).and_then(|task| self.tasks.get_mut(task.index())) else {
            return;
        };
        match *what {
            Happening::Released { job, .. } => task.pending.push_back(job.number),
            Happening::Ready {
                job,
                deadline,
                priority,
            } => {
                task.ready = Some(job.number);
                task.throttled = false;
                task.rank = match self.order {
                    Order::Edf => deadline.as_ns(),
                    Order::FixedPriority => u64::from(priority.number()),
                };
            }
            Happening::NotReady { reason, .. } => {
                task.ready = None;
                task.throttled = reason == NotReadyReason::Throttled;
            }
            Happening::Completed { job } => {
                task.ready = None;
                match task.pending.front() {
                    Some(&oldest) if oldest == job.number => drop(task.pending.pop_front()),
                    _ => task.pending.retain(|&number| number != job.number),
                }
            }
            Happening::Left { .. } => {
                task.ready = None;
                task.pending.clear();
            }
            Happening::Replenished { deadline, .. } if self.order == Order::Edf => {
                task.rank = deadline.as_ns();
            }
            Happening::PrioritySet { priority, .. } if self.order == Order::FixedPriority => {
                task.rank = u64::from(priority.number());
            }
            Happening::AffinitySet { ref affinity, .. } => {
                task.cpus = match task.packed {
                    true => CpuSet::EMPTY,
                    false => *affinity.cpus(),
                };
            }
            _ => {}
        }
    }
}

fn task_of(what: &Happening) -> Option<TaskId> {
    match *what {
        Happening::Released { job, .. }
        | Happening::Ready { job, .. }
        | Happening::NotReady { job, .. }
        | Happening::Completed { job } => Some(job.task),
        Happening::Left { task }
        | Happening::Replenished { task, .. }
        | Happening::PrioritySet { task, .. }
        | Happening::AffinitySet { task, .. } => Some(task),
        _ => None,
    }
}
