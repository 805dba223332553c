//! The table of all jobs, as CSV.

use std::io::{self, Write};

use shiftwork_model::{Happening, Instant, JobId, Recorder, TaskId, TaskSet};

use crate::backlog::{Backlog, Pending, Run};

/// The columns of the table.
pub const JOB_TABLE_HEADER: &str =
    "task,job,release_ns,deadline_ns,start_ns,finish_ns,response_ns,tardiness_ns";

/// The column that [`JobTable::with_server_deadlines`] adds, at the end.
pub const SERVER_DEADLINE_COLUMN: &str = "server_deadline_ns";

/// Rows are handed to the writer in pieces of about this many bytes.
const CHUNK_BYTES: usize = 1 << 16;

/// Writes one row per job, under the columns of [`JOB_TABLE_HEADER`].
///
/// Completed jobs come in the order of their completion. Jobs that are not finished at the horizon
/// come last, by task and number, with what is not known of them left empty; those that were dropped
/// because their task left are among them. A job starts at the first instant after which it runs.
///
/// Memory is that of [`Counters`](crate::Counters): it does not grow with the number of rows.
#[derive(Debug)]
pub struct JobTable<W: Write> {
    out: W,
    rows: Vec<u8>,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
    tasks: Vec<TaskRows>,
    dropped: Vec<Unfinished>,
    /// Whether rows end with the deadline of the server.
    server_deadlines: bool,
}

#[derive(Debug, Default)]
struct TaskRows {
    /// The task's name, quoted as CSV asks for.
    name: String,
    backlog: Backlog,
    /// When the oldest pending job first ran.
    start: Option<Instant>,
    /// The deadline by which the task was last scheduled.
    server_deadline: Option<Instant>,
    /// On how many CPUs the oldest pending job is, in the midst of an instant perhaps on two.
    cpus: usize,
}

/// Jobs of one task that will not finish, and when the first of them started.
#[derive(Debug)]
struct Unfinished {
    task: TaskId,
    run: Run,
    start: Option<Instant>,
}

impl<W: Write> Recorder for JobTable<W> {
    fn record(&mut self, at: Instant, what: &Happening) {
        match *what {
            Happening::Released { job, deadline } => {
                if let Some(task) = self.tasks.get_mut(job.task.index()) {
                    task.backlog.push(Pending {
                        number: job.number,
                        release: at,
                        deadline,
                    });
                }
            }
            Happening::Switched { from, to, .. } => {
                if let Some(task) = from.and_then(|job| self.current(job)) {
                    task.leave_cpu(at);
                }
                if let Some(task) = to.and_then(|job| self.current(job)) {
                    task.enter_cpu(at);
                }
            }
            Happening::Ready { job, deadline, .. } => self.schedule(job.task, deadline),
            Happening::Replenished { task, deadline, .. } => self.schedule(task, deadline),
            Happening::Completed { job } => self.complete(job, at),
            Happening::Left { task } => self.drop_jobs(task),
            _ => {}
        }
    }
}

impl<W: Write> JobTable<W> {
    /// A table of the jobs of this task set. Writes in large pieces, so `out` needs no buffer.
    pub fn new(set: &TaskSet, out: W) -> Self {
        let tasks = set.tasks.iter().map(|task| TaskRows {
            name: quoted(&task.name),
            ..TaskRows::default()
        });
        Self {
            out,
            rows: format!("{JOB_TABLE_HEADER}\n").into_bytes(),
            failed: None,
            tasks: tasks.collect(),
            dropped: Vec::new(),
            server_deadlines: false,
        }
    }

    /// Adds [`SERVER_DEADLINE_COLUMN`]: the deadline by which the job was scheduled when it finished, that
    /// of its server, where servers do not follow the releases. Empty for unfinished jobs. Before the
    /// first record only.
    pub fn with_server_deadlines(mut self) -> Self {
        self.server_deadlines = true;
        self.rows = format!("{JOB_TABLE_HEADER},{SERVER_DEADLINE_COLUMN}\n").into_bytes();
        self
    }

    /// The run ends at `horizon`: writes the jobs that are not finished, and everything held back.
    ///
    /// # Errors
    /// The first error that `out` gave, now or earlier.
    pub fn finish(mut self, horizon: Instant) -> io::Result<W> {
        for index in 0..self.tasks.len() {
            self.drop_jobs(TaskId::from_index(index));
        }
        let mut unfinished = std::mem::take(&mut self.dropped);
        unfinished.sort_by_key(|jobs| jobs.task);
        for Unfinished { task, run, start } in unfinished {
            let starts = std::iter::once(start).chain(std::iter::repeat(None));
            let released = run.jobs().take_while(|job| job.release < horizon);
            for (job, start) in released.zip(starts) {
                self.write_row(task, job, start, None);
            }
        }
        self.flush();
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    /// The task whose oldest pending job this is.
    fn current(&mut self, job: JobId) -> Option<&mut TaskRows> {
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
            let start = task.start.take();
            task.cpus = 0;
            self.write_row(id.task, job, start, Some(at));
        }
    }

    fn drop_jobs(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get_mut(id.index()) else {
            return;
        };
        task.cpus = 0;
        for run in task.backlog.drain() {
            self.dropped.push(Unfinished {
                task: id,
                run,
                start: task.start.take(),
            });
        }
    }

    fn write_row(
        &mut self,
        task: TaskId,
        job: Pending,
        start: Option<Instant>,
        finish: Option<Instant>,
    ) {
        let rows = &mut self.rows;
        let TaskRows {
            name,
            server_deadline,
            ..
        } = &self.tasks[task.index()];
        rows.extend_from_slice(name.as_bytes());
        let fields = [
            Some(job.number),
            Some(job.release.as_ns()),
            Some(job.deadline.as_ns()),
            start.map(Instant::as_ns),
            finish.map(Instant::as_ns),
            finish.map(|at| at.late_since(job.release).as_ns()),
            finish.map(|at| at.late_since(job.deadline).as_ns()),
        ];
        let server_deadline = finish.and(*server_deadline).map(Instant::as_ns);
        let server_deadline = self.server_deadlines.then_some(server_deadline);
        for field in fields.into_iter().chain(server_deadline) {
            rows.push(b',');
            if let Some(number) = field {
                write!(rows, "{number}").expect("writing to memory does not fail");
            }
        }
        rows.push(b'\n');
        if rows.len() >= CHUNK_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(&self.rows).err();
        }
        self.rows.clear();
    }
}

impl TaskRows {
    fn enter_cpu(&mut self, at: Instant) {
        self.cpus += 1;
        self.start = self.start.or(Some(at));
    }

    /// A job that is taken off again at the very instant it was put on a CPU has not started.
    fn leave_cpu(&mut self, at: Instant) {
        self.cpus = self.cpus.saturating_sub(1);
        if self.cpus == 0 && self.start == Some(at) {
            self.start = None;
        }
    }
}

/// The text as a CSV field (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Story, at, set};

    fn rows(set: &TaskSet, story: &Story, horizon: u64) -> Vec<String> {
        let mut table = JobTable::new(set, Vec::new());
        story.play(&mut table);
        let text = String::from_utf8(table.finish(at(horizon)).unwrap()).unwrap();
        let mut lines = text.lines().map(str::to_owned);
        assert_eq!(lines.next().as_deref(), Some(JOB_TABLE_HEADER));
        lines.collect()
    }

    fn two_tasks() -> TaskSet {
        set(2, &[("a", "0-1"), ("b", "0-1")])
    }

    #[test]
    fn completed_jobs_come_in_order_of_completion_and_the_others_last() {
        let story = Story::default()
            .at(0)
            .release(0, 1, 10)
            .release(1, 1, 5)
            .switch(0, Some((1, 1)))
            .at(3)
            .switch(1, Some((0, 1)))
            .at(7)
            .complete(1, 1)
            .switch(0, None)
            .at(8)
            .complete(0, 1)
            .switch(1, None)
            .release(0, 2, 18)
            .at(9)
            .release(1, 2, 14)
            .switch(1, Some((1, 2)));
        assert_eq!(
            rows(&two_tasks(), &story, 20),
            [
                "b,1,0,5,0,7,7,2",
                "a,1,0,10,3,8,8,0",
                "a,2,8,18,,,,",
                "b,2,9,14,9,,,"
            ]
        );
    }

    #[test]
    fn a_job_starts_where_an_instant_leaves_it_running() {
        let story = Story::default()
            .at(0)
            .release(0, 1, 50)
            .switch(0, Some((0, 1)))
            .switch(0, None)
            .at(4)
            .switch(0, Some((0, 1)))
            .switch(1, Some((0, 1)))
            .switch(0, None)
            .at(6)
            .switch(1, None)
            .at(8)
            .switch(0, Some((0, 1)))
            .at(9)
            .complete(0, 1);
        assert_eq!(rows(&two_tasks(), &story, 20), ["a,1,0,50,4,9,9,0"]);
    }

    #[test]
    fn dropped_jobs_are_listed_as_unfinished() {
        let story = Story::default()
            .at(0)
            .release(0, 1, 10)
            .switch(0, Some((0, 1)))
            .tell(Happening::Released {
                job: crate::testing::job(0, 2),
                deadline: at(11),
            })
            .at(5)
            .tell(Happening::Left {
                task: TaskId::from_index(0),
            })
            .switch(0, None)
            .at(6)
            .release(0, 3, 16);
        assert_eq!(
            rows(&two_tasks(), &story, 20),
            ["a,1,0,10,0,,,", "a,2,0,11,,,,", "a,3,6,16,,,,"]
        );
    }

    #[test]
    fn jobs_released_at_the_horizon_are_not_listed() {
        let story = Story::default().at(20).release(0, 1, 30);
        assert!(rows(&two_tasks(), &story, 20).is_empty());
    }

    #[test]
    fn the_deadline_of_the_server_comes_last_where_it_is_asked_for() {
        let replenished = |deadline| Happening::Replenished {
            task: TaskId::from_index(0),
            budget: shiftwork_model::Span::from_ns(1),
            deadline: at(deadline),
        };
        let story = Story::default()
            .at(0)
            .release(0, 1, 10)
            .switch(0, Some((0, 1)))
            .at(12)
            .tell(replenished(20))
            .at(13)
            .complete(0, 1)
            .tell(replenished(30))
            .release(0, 2, 20);
        let mut table = JobTable::new(&two_tasks(), Vec::new()).with_server_deadlines();
        story.play(&mut table);
        let text = String::from_utf8(table.finish(at(15)).unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let header = format!("{JOB_TABLE_HEADER},server_deadline_ns");
        assert_eq!(
            lines,
            [header.as_str(), "a,1,0,10,0,13,13,3,20", "a,2,13,20,,,,,"]
        );
    }

    #[test]
    fn names_with_commas_and_quotes_are_quoted() {
        let story = Story::default().at(0).release(0, 1, 30);
        assert_eq!(
            rows(&set(1, &[("a,\"b\"", "0")]), &story, 20),
            ["\"a,\"\"b\"\"\",1,0,30,,,,"]
        );
    }

    #[test]
    fn a_table_of_many_rows_is_written_in_pieces() {
        let mut story = Story::default();
        for number in 1..=5_000 {
            story = story
                .at(10 * number)
                .release(0, number, 10 * number + 5)
                .complete(0, number);
        }
        assert_eq!(rows(&two_tasks(), &story, 60_000).len(), 5_000);
    }
}
