//! The measured state of a run: the ready jobs, their ranks, and the job on each CPU.

use std::collections::VecDeque;

use shiftwork_model::{
    CpuId, CpuSet, Instant, JobId, OnOverrun, Order, Priority, RecordKind, Span, TaskId, TaskSet,
};

use super::Basis;

/// A pending job.
#[derive(Clone, Copy, Debug)]
struct Pending {
    number: u64,
    /// The deadline by which it is to be scheduled.
    deadline: Instant,
}

/// The state of a task.
#[derive(Clone, Debug)]
pub(super) struct TaskState {
    pub cpus: CpuSet,
    /// The affinity without the packing.
    affinity: CpuSet,
    priority: Priority,
    /// Cost and relative deadline of the jobs that are released from now on.
    attributes: (Span, Span),
    pending: VecDeque<Pending>,
    /// The number of the ready job.
    pub ready: Option<u64>,
    /// The instant at which it became ready.
    since: Instant,
    /// The deadline by which the job is scheduled.
    deadline: Instant,
    /// The deadline that a server has set.
    server_deadline: Option<Instant>,
    enforced: bool,
    pub prompt: bool,
    /// The instant at which the first pending job should have become ready; `None` if it is, or there is none.
    pub due: Option<Instant>,
    /// Whether its job was preempted.
    pub preempted: bool,
}

/// An error of the machine that a single record shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MachineError {
    /// The job was released at this instant, and became ready only now.
    Unnoticed(JobId, Instant),
    /// The job has another rank than its own.
    Rank(JobId),
}

#[derive(Clone, Debug)]
pub(super) struct State {
    order: Order,
    window: Span,
    pub tasks: Vec<TaskState>,
    pub cpus: Vec<Option<JobId>>,
    offline: CpuSet,
    taken: CpuSet,
    background: CpuSet,
}

impl State {
    pub fn new(set: &TaskSet, basis: &Basis<'_>) -> Self {
        let packing = |index: usize| basis.packing.and_then(|packing| packing.get(index));
        let tasks = set.tasks.iter().zip(set.priorities()).enumerate();
        let task = |(index, (task, priority)): (usize, (&shiftwork_model::Task, Priority))| {
            let affinity = *task.affinity.cpus();
            TaskState {
                cpus: packing(index).map_or(affinity, |bound| *bound.cpus()),
                affinity,
                priority,
                attributes: (task.cost, task.deadline),
                pending: VecDeque::new(),
                ready: None,
                since: Instant::ZERO,
                deadline: Instant::NEVER,
                server_deadline: None,
                enforced: task.on_overrun == OnOverrun::Throttle,
                prompt: basis.prompt.get(index).copied().unwrap_or(false),
                due: None,
                preempted: false,
            }
        };
        Self {
            order: basis.order,
            window: basis.window,
            tasks: tasks.map(task).collect(),
            cpus: vec![None; set.platform.cpus],
            offline: CpuSet::EMPTY,
            taken: CpuSet::EMPTY,
            background: CpuSet::EMPTY,
        }
    }

    /// The CPUs that jobs may use.
    pub fn available(&self) -> CpuSet {
        CpuSet::first(self.cpus.len()) - (self.offline | self.taken | self.background)
    }

    /// The ready job of the task.
    pub fn ready_job(&self, task: TaskId) -> Option<JobId> {
        let number = self.tasks.get(task.index())?.ready?;
        Some(JobId { task, number })
    }

    /// Whether the job may run on that CPU now.
    pub fn may_run(&self, job: JobId, cpu: CpuId) -> bool {
        self.ready_job(job.task) == Some(job) && self.tasks[job.task.index()].cpus.contains(cpu)
    }

    /// Whether the ready job of the task is on a CPU that it may use.
    pub fn runs(&self, task: TaskId) -> bool {
        let mut cpus = self.cpus.iter().enumerate();
        cpus.any(|(cpu, job)| {
            job.is_some_and(|job| job.task == task && self.may_run(job, CpuId::from_index(cpu)))
        })
    }

    /// The tasks with ready jobs that are on no CPU.
    pub fn waiting(&self) -> impl Iterator<Item = TaskId> + '_ {
        let tasks = (0..self.tasks.len()).map(TaskId::from_index);
        tasks.filter(|&task| self.tasks[task.index()].ready.is_some() && !self.runs(task))
    }

    /// Whether the ready job of `one` is more urgent than that of `other`, beyond what can be measured.
    pub fn precedes(&self, one: TaskId, other: TaskId) -> bool {
        let (one, other) = (&self.tasks[one.index()], &self.tasks[other.index()]);
        let rank = |task: &TaskState| self.order.rank(task.deadline, task.priority);
        rank(one) < rank(other)
            || rank(one) == rank(other) && other.since.late_since(one.since) > self.window
    }

    /// Whether the jobs are of equal rank, so that either may run.
    pub fn equals(&self, one: TaskId, other: TaskId) -> bool {
        let ready = |task: TaskId| self.tasks[task.index()].ready.is_some();
        ready(one) && ready(other) && !self.precedes(one, other) && !self.precedes(other, one)
    }

    /// The instant at which the ready job of the task became ready.
    pub fn since(&self, task: TaskId) -> Instant {
        self.tasks[task.index()].since
    }

    /// Takes a record. Returns the machine's error that it shows, and corrects the record if possible.
    pub fn take(&mut self, at: Instant, kind: &mut RecordKind) -> Option<MachineError> {
        match *kind {
            RecordKind::Switched { cpu, to, .. } => self.switch(cpu, to),
            RecordKind::CpuOffline { cpu } => self.change_cpus(|it| it.offline.insert(cpu)),
            RecordKind::CpuOnline { cpu } => self.change_cpus(|it| it.offline.remove(cpu)),
            RecordKind::CpuTaken { cpu } => self.change_cpus(|it| it.taken.insert(cpu)),
            RecordKind::CpuReturned { cpu } => self.change_cpus(|it| it.taken.remove(cpu)),
            RecordKind::BackgroundStarted { cpu } => {
                self.change_cpus(|it| it.background.insert(cpu))
            }
            RecordKind::BackgroundEnded { cpu } => self.change_cpus(|it| it.background.remove(cpu)),
            RecordKind::Ready { job, .. } => return self.become_ready(at, job, kind),
            _ => self.take_of_task(at, kind),
        }
        None
    }

    fn switch(&mut self, cpu: CpuId, to: Option<JobId>) {
        let Some(place) = self.cpus.get_mut(cpu.index()) else {
            return;
        };
        let before = std::mem::replace(place, to);
        let away = !self.available().contains(cpu);
        if let Some(before) = before.filter(|before| Some(*before) != to)
            && let Some(task) = self.tasks.get_mut(before.task.index())
        {
            task.preempted = task.ready == Some(before.number) && !away;
        }
        if let Some(to) = to
            && let Some(task) = self.tasks.get_mut(to.task.index())
        {
            task.preempted = false;
        }
    }

    fn change_cpus(&mut self, change: impl FnOnce(&mut Self)) {
        change(self);
        self.forget_packing();
    }

    /// Policies that pack tasks may pack them again after CPUs or affinities change.
    fn forget_packing(&mut self) {
        for task in &mut self.tasks {
            task.cpus = task.affinity;
        }
    }

    fn become_ready(
        &mut self,
        at: Instant,
        job: JobId,
        kind: &mut RecordKind,
    ) -> Option<MachineError> {
        let (order, window) = (self.order, self.window);
        let task = self.tasks.get_mut(job.task.index())?;
        let RecordKind::Ready {
            deadline, priority, ..
        } = kind
        else {
            return None;
        };
        // Jobs that were released while the task was absent are dropped without a record.
        task.pending.retain(|pending| pending.number >= job.number);
        let own = task.pending.iter().find(|own| own.number == job.number);
        let own = own.map(|own| own.deadline).filter(|_| task.prompt);
        let own = own.unwrap_or(*deadline);
        let right = match task.server_deadline == Some(*deadline) {
            true => *deadline,
            false => own,
        };
        let wrong = order.rank(*deadline, *priority) != order.rank(right, task.priority);
        if wrong {
            (*deadline, *priority) = (own, task.priority);
        }
        task.deadline = *deadline;
        task.ready = Some(job.number);
        task.since = at;
        task.preempted = false;
        let due = task.due.take().filter(|_| task.prompt);
        match due {
            _ if wrong => Some(MachineError::Rank(job)),
            Some(due) if at.late_since(due) > window => Some(MachineError::Unnoticed(job, due)),
            _ => None,
        }
    }

    fn take_of_task(&mut self, at: Instant, kind: &RecordKind) {
        let (order, cpus) = (self.order, self.cpus.len());
        let Some(task) = task_of(kind).and_then(|task| self.tasks.get_mut(task.index())) else {
            return;
        };
        match *kind {
            RecordKind::Released { job, deadline } => {
                if task.pending.is_empty() {
                    task.due = Some(at);
                }
                let number = job.number;
                let deadline = order.scheduling_deadline(deadline, task.attributes, cpus);
                task.pending.push_back(Pending { number, deadline });
            }
            RecordKind::NotReady { .. } => task.ready = None,
            RecordKind::BudgetSpent { .. } if task.enforced => {
                (task.ready, task.due) = (None, None)
            }
            RecordKind::Completed { job } => {
                task.ready = None;
                task.pending.retain(|pending| pending.number > job.number);
                task.due = (!task.pending.is_empty()).then_some(at);
            }
            RecordKind::Left { .. } => {
                (task.ready, task.due) = (None, None);
                task.pending.clear();
            }
            RecordKind::Replenished { deadline, .. } => {
                task.server_deadline = Some(deadline);
                task.deadline = deadline;
            }
            RecordKind::PrioritySet { priority, .. } => task.priority = priority,
            RecordKind::RankChanged {
                priority, deadline, ..
            } => (task.priority, task.deadline) = (priority, deadline),
            RecordKind::AttributesSet { cost, deadline, .. } => task.attributes = (cost, deadline),
            RecordKind::AffinitySet { ref affinity, .. } => {
                task.affinity = *affinity.cpus();
                self.forget_packing();
            }
            _ => {}
        }
    }

    /// The first pending jobs without a record that they are ready, and the instants at which they should be.
    pub fn unnoticed(&self) -> impl Iterator<Item = (JobId, Instant)> + '_ {
        let tasks = self.tasks.iter().enumerate();
        tasks.filter_map(|(index, task)| {
            let first = task.pending.front().filter(|_| task.prompt)?;
            let task_id = TaskId::from_index(index);
            let job = JobId {
                task: task_id,
                number: first.number,
            };
            Some((job, task.due?))
        })
    }
}

fn task_of(kind: &RecordKind) -> Option<TaskId> {
    match *kind {
        RecordKind::Released { job, .. }
        | RecordKind::NotReady { job, .. }
        | RecordKind::BudgetSpent { job }
        | RecordKind::Completed { job } => Some(job.task),
        RecordKind::Left { task }
        | RecordKind::Replenished { task, .. }
        | RecordKind::PrioritySet { task, .. }
        | RecordKind::RankChanged { task, .. }
        | RecordKind::AttributesSet { task, .. }
        | RecordKind::AffinitySet { task, .. } => Some(task),
        _ => None,
    }
}

/// Whether a record is an event for a policy, and not an action of a CPU.
pub(super) const fn is_event(kind: &RecordKind) -> bool {
    !matches!(
        kind,
        RecordKind::Switched { .. }
            | RecordKind::Interrupted { .. }
            | RecordKind::Released { .. }
            | RecordKind::Triggered { .. }
            | RecordKind::Demoted { .. }
            | RecordKind::Refused { .. }
    )
}
