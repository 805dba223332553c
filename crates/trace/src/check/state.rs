//! What the records say about now.

use shiftwork_model::{CpuId, CpuSet, Happening, Instant, JobId, Priority, TaskId, TaskSet};

use crate::running::{Change, Running};

/// What is known of a task.
#[derive(Clone, Debug)]
pub(crate) struct TaskState {
    pub name: String,
    pub affinity: CpuSet,
    /// The affinity's place among the distinct masks.
    pub mask: usize,
    pub priority: Priority,
    /// The deadline that the ready job is scheduled by.
    pub deadline: Instant,
    /// Number of the ready job, `None` if there is none.
    pub ready: Option<u64>,
    /// The job that runs and where, as of the last settled instant.
    pub runs: Option<(u64, CpuId)>,
    /// Since when that job has been ready.
    pub since: Instant,
    /// When anything that ranks or restricts the task last changed.
    pub changed: Option<Instant>,
    /// Place in the list of ready tasks, meaningful while a job is ready.
    position: usize,
}

impl TaskState {
    /// Whether the ready job is not running.
    pub fn waits(&self) -> bool {
        self.ready.is_some() && self.runs.map(|(number, _)| number) != self.ready
    }
}

/// Everything that the checkers check by: who is ready and how urgent, who runs where, which CPUs
/// are there.
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
    /// Those that work has over which the scheduler does not rule.
    pub taken: CpuSet,
    pub background: CpuSet,
    /// Those that were taken away at this instant, though they may be back.
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
                ready: None,
                runs: None,
                since: Instant::ZERO,
                changed: None,
                position: 0,
            };
            state.tasks.push(task);
        }
        state
    }

    /// The instant that is judged, or whose records are being taken.
    pub const fn now(&self) -> Instant {
        self.now
    }

    pub const fn cpus(&self) -> usize {
        self.running.cpus()
    }

    /// Whether anything happened at this instant that may change a judgement.
    pub const fn is_changed(&self) -> bool {
        self.changed
    }

    /// The place of a mask among the distinct ones.
    pub fn intern(&mut self, mask: CpuSet) -> usize {
        let known = self.masks.iter().position(|&other| other == mask);
        known.unwrap_or_else(|| {
            self.masks.push(mask);
            self.masks.len() - 1
        })
    }

    /// What the CPU runs as of the last record.
    pub fn on(&self, cpu: CpuId) -> Option<JobId> {
        self.running.on(cpu)
    }

    /// What runs now and did not before the instant, or the other way round.
    pub fn changes(&self) -> impl Iterator<Item = Change> + '_ {
        self.running.changes()
    }

    /// The CPUs that real-time jobs may use.
    pub fn available(&self) -> CpuSet {
        CpuSet::first(self.cpus()) - (self.offline | self.taken | self.background)
    }

    /// A job as people are told of it.
    pub fn name(&self, job: JobId) -> String {
        match self.tasks.get(job.task.index()) {
            Some(task) => format!("job {} of {}", job.number, task.name),
            None => format!("job {} of an unknown task {:?}", job.number, job.task),
        }
    }

    /// The ready job of a task as people are told of it.
    pub fn ready_name(&self, task: TaskId) -> String {
        let number = self.tasks[task.index()].ready.unwrap_or(0);
        self.name(JobId { task, number })
    }

    /// Time goes on.
    pub fn advance(&mut self, to: Instant) {
        self.now = to;
    }

    /// Takes a fact of this instant. Unknown tasks and CPUs change nothing.
    pub fn take(&mut self, what: &Happening) {
        match *what {
            Happening::Ready {
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
            Happening::NotReady { job, .. } | Happening::Completed { job } => {
                self.set_ready(job.task, None);
            }
            Happening::Left { task } => self.set_ready(task, None),
            Happening::Switched { cpu, to, .. } => {
                self.changed = true;
                self.running.switch(cpu, to);
            }
            Happening::Replenished { task, deadline, .. } => {
                if let Some(task) = self.touch(task) {
                    task.deadline = deadline;
                }
            }
            Happening::PrioritySet { task, priority } => {
                if let Some(task) = self.touch(task) {
                    task.priority = priority;
                }
            }
            Happening::AffinitySet { task, ref affinity } => {
                let mask = self.intern(*affinity.cpus());
                if let Some(task) = self.touch(task) {
                    task.affinity = *affinity.cpus();
                    task.mask = mask;
                }
            }
            Happening::CpuOffline { cpu } => self.lose(cpu, |state| state.offline.insert(cpu)),
            Happening::CpuOnline { cpu } => self.change_cpus(|state| state.offline.remove(cpu)),
            Happening::CpuTaken { cpu } => self.lose(cpu, |state| state.taken.insert(cpu)),
            Happening::CpuReturned { cpu } => self.change_cpus(|state| state.taken.remove(cpu)),
            Happening::BackgroundStarted { cpu } => {
                self.lose(cpu, |state| state.background.insert(cpu));
            }
            Happening::BackgroundEnded { cpu } => {
                self.change_cpus(|state| state.background.remove(cpu));
            }
            Happening::Released { .. }
            | Happening::BudgetSpent { .. }
            | Happening::Interrupted { .. }
            | Happening::Entered { .. }
            | Happening::AttributesSet { .. }
            | Happening::Refused { .. } => {}
        }
    }

    fn touch(&mut self, task: TaskId) -> Option<&mut TaskState> {
        let task = self.tasks.get_mut(task.index())?;
        self.changed = true;
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
    }

    /// The instant is over: notes who runs where.
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

    /// The instant is judged.
    pub fn close(&mut self) {
        self.running.settle();
        self.changed = false;
        self.lost = CpuSet::EMPTY;
    }
}
