//! Counters and statistics of a run, from its records alone.

#[cfg(test)]
mod tests;

use shiftwork_model::{Instant, JobId, RecordKind, Recorder, Span, TaskId, TaskSet};

use crate::backlog::{Backlog, Pending, Run};
use crate::chains::Chains;
use crate::running::{Change, Running};
use crate::statistics::{Distribution, Total};
use crate::summary::{RunSummary, TaskSummary};

/// Counts jobs, misses, preemptions, migrations and shifts, and keeps statistics of response times
/// and tardiness, and of the cause-effect chains of the task set.
///
/// Definitions:
///
/// - A job counts once released; it is *missed* if it finished late, or is unfinished (dropped when
///   its task left, for instance) and was due at the horizon or before.
/// - *Preemption*: a running unfinished job that is ready but not running after the instant.
/// - *Shift*: running before and after the instant, on different CPUs.
/// - *Migration*: a job executes on another CPU than it last executed on. Shifts are included, the
///   step from one job of a task to the next is not.
///
/// States are compared between whole instants: of several switches at one instant only the result
/// counts. Records that contradict each other (a job that finishes twice) are not counted; the
/// [checkers](crate::check) report them.
///
/// # Cost
/// A few nanoseconds per record and no allocation but for the first jobs of a task, and for
/// backlogs of jobs that were released at irregular distances. Memory does not grow with the
/// length of the run otherwise.
#[derive(Clone, Debug)]
pub struct Counters {
    now: Instant,
    running: Running,
    tasks: Vec<TaskCounters>,
    names: Vec<String>,
    /// The jobs of tasks that left; whether they count as missed is known at the horizon.
    dropped: Vec<(TaskId, Run)>,
    chains: Chains,
}

#[derive(Clone, Debug, Default)]
struct TaskCounters {
    backlog: Backlog,
    /// Number of the ready job, 0 if none is.
    ready: u64,
    /// Number of the job that executed last, 0 if none has; its CPU; and whether it still executes.
    executed: u64,
    cpu: usize,
    executes: bool,
    released: u64,
    completed: u64,
    late: u64,
    preemptions: u64,
    migrations: u64,
    shifts: u64,
    response: Distribution,
    tardiness: Total,
    /// Since when its job spins.
    spins: Option<Instant>,
    spinning: Span,
}

impl Recorder for Counters {
    // Always inline, so that the kind of the record, which the caller knows, need not be matched again:
    // simulations spend much of their time here.
    #[inline(always)]
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        self.chains.record(at, kind);
        if at != self.now {
            if !self.running.is_settled() {
                self.settle();
            }
            self.now = at;
        }
        match *kind {
            RecordKind::Released { job, deadline } => {
                if let Some(task) = self.tasks.get_mut(job.task.index()) {
                    task.release(job.number, at, deadline);
                }
            }
            RecordKind::Ready { job, .. } => self.set_ready(job.task, job.number),
            RecordKind::NotReady { job, .. } => self.set_ready(job.task, 0),
            RecordKind::Completed { job } => {
                if let Some(task) = self.tasks.get_mut(job.task.index()) {
                    task.complete(job.number, at);
                }
            }
            RecordKind::Switched { cpu, to, .. } => self.running.switch(cpu, to),
            RecordKind::Left { task } => self.drop_jobs(task),
            RecordKind::Spinning { job, .. } => {
                if let Some(task) = self.tasks.get_mut(job.task.index()) {
                    task.spins = Some(at);
                }
            }
            RecordKind::Locked { job, .. } => {
                if let Some(task) = self.tasks.get_mut(job.task.index()) {
                    task.end_spinning(at);
                }
            }
            _ => {}
        }
    }
}

impl Counters {
    /// New counters for a run of this task set on `cpus` CPUs.
    pub fn new(set: &TaskSet, cpus: usize) -> Self {
        Self {
            now: Instant::ZERO,
            running: Running::new(cpus),
            tasks: vec![TaskCounters::default(); set.tasks.len()],
            names: set.tasks.iter().map(|task| task.name.clone()).collect(),
            dropped: Vec::new(),
            chains: Chains::new(set),
        }
    }

    /// Ends the run at `horizon`, after which there is no record. A completion exactly at the horizon counts; a
    /// release or a switch exactly at it does not.
    pub fn finish(mut self, horizon: Instant) -> RunSummary {
        if self.now < horizon {
            self.settle();
        }
        let mut unfinished = std::mem::take(&mut self.dropped);
        for (index, task) in self.tasks.iter_mut().enumerate() {
            let id = TaskId::from_index(index);
            unfinished.extend(task.backlog.drain().map(|run| (id, run)));
        }
        for (id, run) in unfinished {
            let task = &mut self.tasks[id.index()];
            let released = run.count_while(|job| job.release < horizon);
            let due = run.count_while(|job| job.release < horizon && job.deadline <= horizon);
            task.released -= run.len() - released;
            task.late += due;
        }
        self.tasks
            .iter_mut()
            .for_each(|task| task.end_spinning(horizon));
        let summaries = self.names.into_iter().zip(&self.tasks);
        let tasks = summaries.map(|(name, task)| task.summary(name)).collect();
        let chains = self.chains.finish(horizon);
        RunSummary::of(self.running.cpus(), horizon, tasks, chains)
    }

    #[inline]
    fn set_ready(&mut self, task: TaskId, number: u64) {
        if let Some(task) = self.tasks.get_mut(task.index()) {
            task.ready = number;
        }
    }

    #[cold]
    fn drop_jobs(&mut self, id: TaskId) {
        if let Some(task) = self.tasks.get_mut(id.index()) {
            task.ready = 0;
            self.dropped
                .extend(task.backlog.drain().map(|run| (id, run)));
        }
    }

    /// Compares the state after the instant with the one before. First the jobs that execute now are updated:
    /// a job that is then still recorded on its old CPU has stopped.
    #[inline(never)]
    fn settle(&mut self) {
        let Some(Change { cpu, before, after }) = self.running.settle_single() else {
            return self.settle_several();
        };
        if before == after {
            return;
        }
        if let Some(job) = after {
            execute(&mut self.tasks, job, cpu.index());
        }
        if let Some(job) = before {
            stop(&mut self.tasks, job, cpu.index());
        }
    }

    /// The same where several CPUs may have been switched.
    #[inline(never)]
    fn settle_several(&mut self) {
        for change in self.running.changes() {
            if let Some(job) = change.after {
                execute(&mut self.tasks, job, change.cpu.index());
            }
        }
        for change in self.running.changes() {
            if let Some(job) = change.before {
                stop(&mut self.tasks, job, change.cpu.index());
            }
        }
        self.running.settle();
    }
}

#[inline]
fn execute(tasks: &mut [TaskCounters], job: JobId, cpu: usize) {
    let Some(task) = tasks.get_mut(job.task.index()) else {
        return;
    };
    let moved = task.executed == job.number && task.cpu != cpu;
    task.migrations += u64::from(moved);
    task.shifts += u64::from(moved && task.executes);
    task.executed = job.number;
    task.cpu = cpu;
    task.executes = true;
}

#[inline]
fn stop(tasks: &mut [TaskCounters], job: JobId, cpu: usize) {
    let Some(task) = tasks.get_mut(job.task.index()) else {
        return;
    };
    if task.executed == job.number && task.cpu == cpu {
        task.executes = false;
        task.preemptions += u64::from(task.ready == job.number);
    }
}

impl TaskCounters {
    #[inline]
    fn release(&mut self, number: u64, release: Instant, deadline: Instant) {
        self.released += 1;
        self.backlog.push(Pending {
            number,
            release,
            deadline,
        });
    }

    #[inline(never)]
    fn complete(&mut self, number: u64, at: Instant) {
        let Some(job) = self.backlog.pop(number) else {
            return;
        };
        self.ready = 0;
        self.completed += 1;
        self.late += u64::from(at > job.deadline);
        self.response.add(at.late_since(job.release));
        self.tardiness.add(at.late_since(job.deadline));
    }

    fn end_spinning(&mut self, at: Instant) {
        let since = self.spins.take();
        self.spinning += since.map_or(Span::ZERO, |since| at.late_since(since));
    }

    fn summary(&self, name: String) -> TaskSummary {
        let any = self.completed > 0;
        TaskSummary {
            name,
            jobs: self.released,
            completed: self.completed,
            misses: self.late,
            response: self.response.statistics(self.completed),
            tardiness_max_ns: any.then(|| self.tardiness.max_ns()),
            tardiness_mean_ns: any.then(|| self.tardiness.mean_ns(self.completed)),
            preemptions: self.preemptions,
            migrations: self.migrations,
            shifts: self.shifts,
            spinning: self.spinning,
            inversions: None,
        }
    }
}
