//! The jobs of a run, one row each.

use shiftwork_model::{Instant, JobId, RecordKind, Recorder, Span, TaskId, TaskSet};

use crate::backlog::{Backlog, Pending, Run};

/// One job of a run, as known at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobRow {
    /// Its task and its number, from 1.
    pub job: JobId,
    /// Its release.
    pub release: Instant,
    /// Its own absolute deadline.
    pub deadline: Instant,
    /// The first instant after which it ran; `None` if it never did.
    pub start: Option<Instant>,
    /// Its completion; `None` if it did not complete by the horizon, or its task left.
    pub finish: Option<Instant>,
    /// Its scheduling deadline when it finished, that of its server, for servers that do not follow releases.
    /// `None` for unfinished jobs.
    pub server_deadline: Option<Instant>,
}

impl JobRow {
    /// Time from the release to the completion; `None` if it did not complete.
    pub fn response(&self) -> Option<Span> {
        self.finish.map(|at| at.late_since(self.release))
    }

    /// Time from the deadline to the completion, zero if it completed earlier; `None` if it did not complete.
    pub fn tardiness(&self) -> Option<Span> {
        self.finish.map(|at| at.late_since(self.deadline))
    }
}

/// Takes the rows of a run.
pub trait JobSink {
    /// Takes the next row.
    fn take(&mut self, row: &JobRow);
}

/// Collects all rows.
impl JobSink for Vec<JobRow> {
    fn take(&mut self, row: &JobRow) {
        self.push(*row);
    }
}

/// Follows every job through the records of a run, and passes one row for each to a [`JobSink`].
///
/// Completed jobs come in the order of their completion. Jobs that are incomplete at the horizon
/// come last, by task and number; jobs that were dropped because their task left are among them.
///
/// Memory is that of [`Counters`](crate::Counters): it does not grow with the number of rows.
#[derive(Clone, Debug)]
pub struct Jobs<S> {
    sink: S,
    tasks: Vec<TaskJobs>,
    dropped: Vec<Unfinished>,
}

#[derive(Clone, Debug, Default)]
struct TaskJobs {
    backlog: Backlog,
    /// First execution of the oldest pending job.
    start: Option<Instant>,
    /// The last scheduling deadline of the task.
    server_deadline: Option<Instant>,
    /// Number of CPUs that the oldest pending job is on; within an instant there may be two.
    cpus: usize,
}

/// Jobs of one task that will not finish, and the start of the first of them.
#[derive(Clone, Debug)]
struct Unfinished {
    task: TaskId,
    run: Run,
    start: Option<Instant>,
}

impl<S: JobSink> Recorder for Jobs<S> {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        match *kind {
            RecordKind::Released { job, deadline } => {
                if let Some(task) = self.tasks.get_mut(job.task.index()) {
                    task.backlog.push(Pending {
                        number: job.number,
                        release: at,
                        deadline,
                    });
                }
            }
            RecordKind::Switched { from, to, .. } => {
                if let Some(task) = from.and_then(|job| self.current(job)) {
                    task.leave_cpu(at);
                }
                if let Some(task) = to.and_then(|job| self.current(job)) {
                    task.enter_cpu(at);
                }
            }
            RecordKind::Ready { job, deadline, .. } => self.schedule(job.task, deadline),
            RecordKind::Replenished { task, deadline, .. } => self.schedule(task, deadline),
            RecordKind::Completed { job } => self.complete(job, at),
            RecordKind::Left { task } => self.drop_jobs(task, at),
            _ => {}
        }
    }
}

impl<S: JobSink> Jobs<S> {
    /// For a run of this task set.
    pub fn new(set: &TaskSet, sink: S) -> Self {
        Self {
            sink,
            tasks: vec![TaskJobs::default(); set.tasks.len()],
            dropped: Vec::new(),
        }
    }

    /// Ends the run at `horizon`: passes the unfinished jobs to the sink, and returns it.
    pub fn finish(mut self, horizon: Instant) -> S {
        for index in 0..self.tasks.len() {
            self.drop_jobs(TaskId::from_index(index), horizon);
        }
        let mut unfinished = std::mem::take(&mut self.dropped);
        unfinished.sort_by_key(|jobs| jobs.task);
        for Unfinished { task, run, start } in unfinished {
            let starts = std::iter::once(start).chain(std::iter::repeat(None));
            let released = run.jobs().take_while(|job| job.release < horizon);
            for (job, start) in released.zip(starts) {
                self.sink.take(&row(task, job, start));
            }
        }
        self.sink
    }

    /// The task of this job, if it is the oldest pending one.
    fn current(&mut self, job: JobId) -> Option<&mut TaskJobs> {
        let task = self.tasks.get_mut(job.task.index())?;
        let oldest = task.backlog.front()?;
        (oldest.number == job.number).then_some(task)
    }

    fn schedule(&mut self, id: TaskId, deadline: Instant) {
        if let Some(task) = self.tasks.get_mut(id.index()) {
            task.server_deadline = Some(deadline);
        }
    }

    fn complete(&mut self, id: JobId, at: Instant) {
        let Some(task) = self.tasks.get_mut(id.task.index()) else {
            return;
        };
        if let Some(job) = task.backlog.pop(id.number) {
            task.cpus = 0;
            let start = task.start.take();
            self.sink.take(&JobRow {
                finish: Some(at),
                server_deadline: task.server_deadline,
                ..row(id.task, job, start)
            });
        }
    }

    /// A job that came to its CPU at the instant at which it is dropped has not started.
    fn drop_jobs(&mut self, id: TaskId, at: Instant) {
        let Some(task) = self.tasks.get_mut(id.index()) else {
            return;
        };
        task.cpus = 0;
        task.start.take_if(|start| *start == at);
        for run in task.backlog.drain() {
            self.dropped.push(Unfinished {
                task: id,
                run,
                start: task.start.take(),
            });
        }
    }
}

impl TaskJobs {
    fn enter_cpu(&mut self, at: Instant) {
        self.cpus += 1;
        self.start = self.start.or(Some(at));
    }

    /// A job that leaves its CPU at the instant at which it came there has not started.
    fn leave_cpu(&mut self, at: Instant) {
        self.cpus = self.cpus.saturating_sub(1);
        if self.cpus == 0 && self.start == Some(at) {
            self.start = None;
        }
    }
}

/// The row of an unfinished job.
const fn row(task: TaskId, job: Pending, start: Option<Instant>) -> JobRow {
    JobRow {
        job: JobId {
            task,
            number: job.number,
        },
        release: job.release,
        deadline: job.deadline,
        start,
        finish: None,
        server_deadline: None,
    }
}
