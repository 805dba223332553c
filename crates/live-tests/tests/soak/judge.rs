//! What must hold after every record of a run.
//!
//! The checkers of traces judge each record; here is what they leave open where decisions take time: a job that has to run by
//! the [definition](super::selection) runs within a window, none runs for longer than its budget, and a job whose CPUs change while
//! it runs leaves the others within a window.

use std::collections::BTreeMap;

use shiftwork_model::{
    CpuId, CpuSet, Instant, Invariant, JobId, Order, Record, RecordKind, Recorder as _, Span,
    TaskId, TaskSet,
};
use shiftwork_trace::check::{Checker, PolicyContract};

use super::selection::{Candidate, must_run};

/// What is promised.
#[derive(Clone, Debug)]
pub struct Rules {
    pub order: Order,
    /// The CPUs of the platform.
    pub platform: CpuSet,
    /// How long a CPU may take to run its assignment, and to end a budget.
    pub window: Span,
}

/// What is known of a task.
#[derive(Clone, Debug, Default)]
struct TaskState {
    is_present: bool,
    ready: Option<JobId>,
    deadline: Instant,
    priority: u32,
    affinity: CpuSet,
    /// Since when its job has to run, and does not.
    waits_since: Option<Instant>,
    /// Since when its job is on a CPU that it may not use.
    strays_since: Option<Instant>,
    /// How long its jobs ran since it had a full budget, until `measured`.
    ran: Span,
    measured: Instant,
    /// The greatest cost since then, and the present one.
    granted: Span,
    cost: Span,
}

/// The state after the records so far.
pub struct Judge {
    rules: Rules,
    tasks: BTreeMap<TaskId, TaskState>,
    runs: BTreeMap<CpuId, JobId>,
    /// Reasons why CPUs are gone.
    gone: BTreeMap<CpuId, u32>,
    checker: Checker,
    now: Instant,
    /// The longest time for which a job had to run and did not.
    pub longest: Span,
    pub records: usize,
}

impl Judge {
    /// At the beginning: no task takes part. Tasks are numbered below the length of `set`.
    pub fn new(rules: Rules, set: &TaskSet) -> Self {
        let contract = PolicyContract {
            invariant: Invariant::Strong,
            order: rules.order,
            packing: None,
            immediate: false,
        };
        Self {
            checker: Checker::new(set, contract),
            rules,
            tasks: BTreeMap::new(),
            runs: BTreeMap::new(),
            gone: BTreeMap::new(),
            now: Instant::ZERO,
            longest: Span::ZERO,
            records: 0,
        }
    }

    /// Another window from now on.
    pub fn set_window(&mut self, window: Span) {
        self.rules.window = window;
    }

    /// Takes a record.
    ///
    /// # Errors
    /// The first rule that is broken by then.
    pub fn take(&mut self, record: &Record) -> Result<(), String> {
        self.checker.record(record.at, &record.kind);
        self.records += 1;
        self.pass(record.at)?;
        self.apply(&record.kind);
        self.select();
        Ok(())
    }

    /// It is this instant, and there are no other records before.
    ///
    /// # Errors
    /// The first rule that is broken by then.
    pub fn pass(&mut self, to: Instant) -> Result<(), String> {
        let (from, window) = (self.now, self.rules.window);
        if to < from {
            return Err(format!("a record of {to} follows one of {from}"));
        }
        self.now = to;
        for (id, task) in &mut self.tasks {
            let waits = task
                .waits_since
                .map_or(Span::ZERO, |since| to.late_since(since));
            let strays = task
                .strays_since
                .map_or(Span::ZERO, |since| to.late_since(since));
            self.longest = self.longest.max(waits);
            if waits > window {
                let job = task.ready;
                return Err(format!(
                    "{job:?} has to run, and waits for {waits}, longer than {window}"
                ));
            }
            if strays > window {
                return Err(format!(
                    "{id:?} is on a CPU that it may not use for {strays}"
                ));
            }
        }
        let runs: Vec<TaskId> = self.runs.values().map(|job| job.task).collect();
        for id in runs {
            self.measure(id);
            let task = self.task(id);
            let (ran, granted) = (task.ran, task.granted);
            // What is granted beyond the cost, see the live crate.
            let grace = Span::from_us(20).max(Span::from_ns(granted.as_ns() / 100));
            if granted > Span::ZERO && ran > granted + grace + window {
                return Err(format!("{id:?} ran for {ran} and has {granted}"));
            }
        }
        Ok(())
    }

    /// Whether no task takes part and no CPU runs a job, and what the checkers found.
    ///
    /// # Errors
    /// What is left, or the first violation, and when that was.
    pub fn finish(self) -> Result<(), (Instant, String)> {
        let left: Vec<_> = self
            .tasks
            .iter()
            .filter(|(_, task)| task.is_present)
            .collect();
        if !left.is_empty() || !self.runs.is_empty() {
            let why = format!("{left:?} take part at the end, {:?} run", self.runs);
            return Err((self.now, why));
        }
        // The kernel picks for a CPU that goes offline once more after it has said so, and runs a thread whose CPUs change where it
        // is until it was moved.
        let takes_time =
            |what: &str| what.ends_with("which is offline") || what.contains("and its affinity is");
        let found = self.checker.finish(self.now);
        match found.into_iter().find(|found| !takes_time(&found.what)) {
            None => Ok(()),
            Some(violation) => Err((violation.at, violation.what)),
        }
    }

    fn task(&mut self, id: TaskId) -> &mut TaskState {
        self.tasks.entry(id).or_default()
    }

    /// Adds what it ran since it was measured.
    fn measure(&mut self, id: TaskId) {
        let now = self.now;
        let runs = self.runs.values().any(|job| job.task == id);
        let task = self.task(id);
        if runs {
            task.ran += now.late_since(task.measured);
        }
        task.measured = now;
    }

    fn apply(&mut self, kind: &RecordKind) {
        match *kind {
            RecordKind::Entered { task } => {
                self.fill(task);
                self.task(task).is_present = true;
            }
            RecordKind::Left { task } => {
                let state = self.task(task);
                (state.is_present, state.ready) = (false, None);
            }
            RecordKind::Ready {
                job,
                deadline,
                priority,
            } => {
                // By the wake-up rule of servers: another deadline comes with a full budget.
                if self.task(job.task).deadline != deadline {
                    self.fill(job.task);
                }
                let state = self.task(job.task);
                state.ready = Some(job);
                state.deadline = deadline;
                state.priority = priority.number();
            }
            RecordKind::NotReady { job, .. } | RecordKind::Completed { job } => {
                self.task(job.task).ready = None;
            }
            RecordKind::Replenished { task, deadline, .. } => {
                self.fill(task);
                self.task(task).deadline = deadline;
            }
            RecordKind::PrioritySet { task, priority } => {
                self.task(task).priority = priority.number()
            }
            RecordKind::AffinitySet { task, ref affinity } => {
                self.task(task).affinity = *affinity.cpus();
            }
            RecordKind::AttributesSet { task, cost, .. } => {
                let state = self.task(task);
                state.cost = cost;
                state.granted = state.granted.max(cost);
            }
            RecordKind::Switched { cpu, from, to } => {
                for job in [from, to].into_iter().flatten() {
                    self.measure(job.task);
                }
                match to {
                    Some(job) => self.runs.insert(cpu, job),
                    None => self.runs.remove(&cpu),
                };
            }
            RecordKind::CpuOffline { cpu } => self.lose(cpu, OFFLINE),
            RecordKind::CpuTaken { cpu } => self.lose(cpu, TAKEN),
            RecordKind::BackgroundStarted { cpu } => self.lose(cpu, BACKGROUND),
            RecordKind::CpuOnline { cpu } => self.regain(cpu, OFFLINE),
            RecordKind::CpuReturned { cpu } => self.regain(cpu, TAKEN),
            RecordKind::BackgroundEnded { cpu } => self.regain(cpu, BACKGROUND),
            _ => {}
        }
    }

    /// The task has a full budget.
    fn fill(&mut self, id: TaskId) {
        self.measure(id);
        let task = self.task(id);
        task.ran = Span::ZERO;
        task.granted = task.cost;
    }

    fn lose(&mut self, cpu: CpuId, why: u32) {
        *self.gone.entry(cpu).or_default() |= why;
    }

    fn regain(&mut self, cpu: CpuId, why: u32) {
        *self.gone.entry(cpu).or_default() &= !why;
    }

    /// Which jobs have to run by now.
    fn select(&mut self) {
        let mut available = self.rules.platform;
        let gone = self.gone.iter().filter(|(_, why)| **why != 0);
        gone.for_each(|(cpu, _)| available.remove(*cpu));
        let by_deadline = self.rules.order == Order::Edf;
        let ready: Vec<Candidate> = self
            .tasks
            .iter()
            .filter(|(_, task)| task.ready.is_some())
            .map(|(id, task)| Candidate {
                task: id.index(),
                rank: match by_deadline {
                    true => task.deadline.as_ns(),
                    false => u64::from(task.priority),
                },
                affinity: task.affinity,
            })
            .collect();
        let must = must_run(&ready, &available);
        let (now, runs) = (self.now, &self.runs);
        for (id, task) in &mut self.tasks {
            let is_waiting =
                must.contains(&id.index()) && !runs.values().any(|job| job.task == *id);
            task.waits_since = is_waiting.then(|| task.waits_since.unwrap_or(now));
            let strays =
                |(cpu, job): (&CpuId, &JobId)| job.task == *id && !task.affinity.contains(*cpu);
            let is_stray = runs.iter().any(strays);
            task.strays_since = is_stray.then(|| task.strays_since.unwrap_or(now));
        }
    }
}

const OFFLINE: u32 = 1;
const TAKEN: u32 = 2;
const BACKGROUND: u32 = 4;
