//! The state of the run at the current instant, from its records.

use shiftwork_model::{
    CpuId, CpuSet, Instant, JobId, Order, Priority, RecordKind, Span, TaskId, TaskSet,
};

use crate::running::{Change, Running};

/// The state of a task.
#[derive(Clone, Debug)]
pub(crate) struct TaskState {
    pub name: String,
    pub affinity: CpuSet,
    /// Index of the affinity among the distinct masks.
    pub mask: usize,
    pub priority: Priority,
    /// The scheduling deadline of the ready job.
    pub deadline: Instant,
    /// The rank of the ready job at the present instant, under orders by laxity; equal for all if nothing is known
    /// of what they have executed.
    pub rank_by_laxity: u64,
    /// Number of the ready job, `None` if there is none.
    pub ready: Option<u64>,
    /// The running job and its CPU, as of the last settled instant.
    pub runs: Option<(u64, CpuId)>,
    /// The instant at which the ready job became ready.
    pub since: Instant,
    /// The last change of the rank or the affinity of the task.
    pub changed: Option<Instant>,
    /// The last instant at which the task was triggered after a CPU had switched at that instant: by a job that triggers
    /// before it executes.
    pub triggered_late: Option<Instant>,
    /// Index in the list of ready tasks, valid while a job is ready.
    position: usize,
}

impl TaskState {
    /// Whether the ready job is not running.
    pub fn waits(&self) -> bool {
        self.ready.is_some() && self.runs.map(|(number, _)| number) != self.ready
    }
}

/// From when on a job has to run to complete by its deadline; not before the start of time.
pub(super) const fn latest_start(deadline: Instant, left: Span) -> Instant {
    Instant::from_ns(deadline.as_ns().saturating_sub(left.as_ns()))
}

/// The state that the checkers use: ready jobs and their ranks, running jobs, available CPUs.
///
/// Invariant: `ready` lists exactly the tasks that have a ready job, each at its `position`.
#[derive(Clone, Debug)]
pub(crate) struct State {
    now: Instant,
    changed: bool,
    running: Running,
    pub tasks: Vec<TaskState>,
    pub ready: Vec<TaskId>,
    /// The distinct affinities seen so far.
    pub masks: Vec<CpuSet>,
    pub offline: CpuSet,
    /// CPUs used by a higher scheduling class.
    pub taken: CpuSet,
    pub background: CpuSet,
    /// CPUs that became unavailable at this instant, also if they are available again.
    pub lost: CpuSet,
}

impl State {
    pub fn new(set: &TaskSet) -> Self {
        let mut state = Self {
            now: Instant::ZERO,
            changed: false,
            running: Running::new(set.platform.cpus),
            tasks: Vec::new(),
            ready: Vec::new(),
            masks: Vec::new(),
            offline: CpuSet::EMPTY,
            taken: CpuSet::EMPTY,
            background: CpuSet::EMPTY,
            lost: CpuSet::EMPTY,
        };
        for (task, priority) in set.tasks.iter().zip(set.priorities()) {
            let affinity = *task.affinity.cpus();
            let task = TaskState {
                name: task.name.clone(),
                affinity,
                mask: state.intern(affinity),
                priority,
                deadline: Instant::NEVER,
                rank_by_laxity: 0,
                ready: None,
                runs: None,
                since: Instant::ZERO,
                changed: None,
                triggered_late: None,
                position: 0,
            };
            state.tasks.push(task);
        }
        state
    }

    /// The current instant: the one that is checked, or of which records are being taken.
    pub const fn now(&self) -> Instant {
        self.now
    }

    pub const fn cpus(&self) -> usize {
        self.running.cpus()
    }

    /// Whether a record of this instant may affect a check.
    pub const fn is_changed(&self) -> bool {
        self.changed
    }

    /// Index of a mask among the distinct ones.
    pub fn intern(&mut self, mask: CpuSet) -> usize {
        let known = self.masks.iter().position(|&other| other == mask);
        known.unwrap_or_else(|| {
            self.masks.push(mask);
            self.masks.len() - 1
        })
    }

    /// The job on the CPU as of the last record.
    pub fn on(&self, cpu: CpuId) -> Option<JobId> {
        self.running.on(cpu)
    }

    /// The changes of running jobs at this instant.
    pub fn changes(&self) -> impl Iterator<Item = Change> + '_ {
        self.running.changes()
    }

    /// The CPUs that real-time jobs may use.
    pub fn available(&self) -> CpuSet {
        CpuSet::first(self.cpus()) - (self.offline | self.taken | self.background)
    }

    /// A job in messages.
    pub fn name(&self, job: JobId) -> String {
        match self.tasks.get(job.task.index()) {
            Some(task) => format!("job {} of {}", job.number, task.name),
            None => format!("job {} of an unknown task {:?}", job.number, job.task),
        }
    }

    /// The ready job of a task in messages.
    pub fn ready_name(&self, task: TaskId) -> String {
        let number = self.tasks[task.index()].ready.unwrap_or(0);
        self.name(JobId { task, number })
    }

    /// Advances to an instant.
    pub fn advance(&mut self, to: Instant) {
        self.now = to;
    }

    /// Takes a record of this instant. Unknown tasks and CPUs change nothing.
    pub fn take(&mut self, kind: &RecordKind) {
        match *kind {
            RecordKind::Ready {
                job,
                deadline,
                priority,
            } => {
                let now = self.now;
                let Some(task) = self.touch(job.task) else {
                    return;
                };
                task.since = now;
                task.deadline = deadline;
                task.priority = priority;
                self.set_ready(job.task, Some(job.number));
            }
            RecordKind::NotReady { job, .. } | RecordKind::Completed { job } => {
                self.set_ready(job.task, None);
            }
            RecordKind::Left { task } => self.set_ready(task, None),
            RecordKind::Switched { cpu, to, .. } => {
                self.changed = true;
                self.running.switch(cpu, to);
            }
            RecordKind::Triggered { task, .. } => {
                let has_switched = self.running.changes().next().is_some();
                if let Some(task) = self.tasks.get_mut(task.index()).filter(|_| has_switched) {
                    task.triggered_late = Some(self.now);
                }
            }
            RecordKind::Replenished { task, deadline, .. } => {
                if let Some(task) = self.touch(task) {
                    task.deadline = deadline;
                }
            }
            RecordKind::RankChanged {
                task,
                priority,
                deadline,
            } => {
                if let Some(task) = self.touch(task) {
                    task.deadline = deadline;
                    task.priority = priority;
                }
            }
            RecordKind::PrioritySet { task, priority } => {
                if let Some(task) = self.touch(task) {
                    task.priority = priority;
                }
            }
            RecordKind::AffinitySet { task, ref affinity } => {
                let mask = self.intern(*affinity.cpus());
                if let Some(task) = self.touch(task) {
                    task.affinity = *affinity.cpus();
                    task.mask = mask;
                }
            }
            RecordKind::CpuOffline { cpu } => self.lose(cpu, |state| state.offline.insert(cpu)),
            RecordKind::CpuOnline { cpu } => self.change_cpus(|state| state.offline.remove(cpu)),
            RecordKind::CpuTaken { cpu } => self.lose(cpu, |state| state.taken.insert(cpu)),
            RecordKind::CpuReturned { cpu } => self.change_cpus(|state| state.taken.remove(cpu)),
            RecordKind::BackgroundStarted { cpu } => {
                self.lose(cpu, |state| state.background.insert(cpu));
            }
            RecordKind::BackgroundEnded { cpu } => {
                self.change_cpus(|state| state.background.remove(cpu));
            }
            RecordKind::Released { .. }
            | RecordKind::BudgetSpent { .. }
            | RecordKind::Interrupted { .. }
            | RecordKind::Spinning { .. }
            | RecordKind::Locked { .. }
            | RecordKind::Unlocked { .. }
            | RecordKind::Entered { .. }
            | RecordKind::Demoted { .. }
            | RecordKind::AttributesSet { .. }
            | RecordKind::Refused { .. } => {}
        }
    }

    /// Notes a change of the task, which matters to no check unless a job of it is or becomes ready.
    fn touch(&mut self, task: TaskId) -> Option<&mut TaskState> {
        let task = self.tasks.get_mut(task.index())?;
        self.changed |= task.ready.is_some();
        task.changed = Some(self.now);
        Some(task)
    }

    fn lose(&mut self, cpu: CpuId, change: impl FnOnce(&mut Self)) {
        self.lost.insert(cpu);
        self.change_cpus(change);
    }

    fn change_cpus(&mut self, change: impl FnOnce(&mut Self)) {
        change(self);
        self.changed = true;
    }

    fn set_ready(&mut self, id: TaskId, number: Option<u64>) {
        let place = self.ready.len();
        let Some(task) = self.touch(id) else { return };
        let before = std::mem::replace(&mut task.ready, number);
        match (before, number) {
            (None, Some(_)) => {
                task.position = place;
                self.ready.push(id);
            }
            (Some(_), None) => {
                let position = task.position;
                self.ready.swap_remove(position);
                if let Some(&moved) = self.ready.get(position) {
                    self.tasks[moved.index()].position = position;
                }
            }
            _ => {}
        }
        self.changed |= number.is_some();
    }

    /// Ranks the ready jobs at the present instant by an order by laxity; `left` is what is left of the costs of
    /// tasks' jobs.
    pub fn rank(&mut self, order: Order, left: impl Fn(TaskId) -> Span) {
        let Self {
            ready, tasks, now, ..
        } = self;
        for &id in ready.iter() {
            let task = &mut tasks[id.index()];
            let start = latest_start(task.deadline, left(id));
            task.rank_by_laxity = order.rank_by_laxity(*now, task.deadline, start);
        }
    }

    /// Advances to an instant without records, which has to be checked.
    pub fn look_at(&mut self, now: Instant) {
        self.now = now;
        self.changed = true;
    }

    /// Ends the instant: updates the running jobs.
    pub fn settle(&mut self) {
        let Self { running, tasks, .. } = self;
        for change in running.changes() {
            let Some(job) = change.before else { continue };
            if let Some(task) = tasks.get_mut(job.task.index())
                && task.runs == Some((job.number, change.cpu))
            {
                task.runs = None;
            }
        }
        for change in running.changes() {
            let Some(job) = change.after else { continue };
            if let Some(task) = tasks.get_mut(job.task.index()) {
                task.runs = Some((job.number, change.cpu));
            }
        }
    }

    /// Ends the checks of the instant.
    pub fn close(&mut self) {
        self.running.settle();
        self.changed = false;
        self.lost = CpuSet::EMPTY;
    }
}
