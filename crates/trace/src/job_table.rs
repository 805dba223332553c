//! The table of all jobs, as CSV.

use std::io::{self, Write};

use shiftwork_model::{Instant, RecordKind, Recorder, Span, TaskSet};

use crate::jobs::{JobRow, JobSink, Jobs};

/// The columns of the table.
pub const JOB_TABLE_HEADER: &str =
    "task,job,release_ns,deadline_ns,start_ns,finish_ns,response_ns,tardiness_ns";

/// The column that [`JobTable::with_server_deadlines`] adds, at the end.
pub const SERVER_DEADLINE_COLUMN: &str = "server_deadline_ns";

/// Approximate size in bytes of the pieces in which rows are written.
const CHUNK_BYTES: usize = 1 << 16;

/// Writes one row per job, with the columns of [`JOB_TABLE_HEADER`], in the order of [`Jobs`]. Unknown values are
/// left empty.
#[derive(Debug)]
pub struct JobTable<W: Write>(Jobs<Lines<W>>);

/// Rows as lines.
#[derive(Debug)]
struct Lines<W: Write> {
    out: W,
    lines: Vec<u8>,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
    /// The name of each task, quoted for CSV.
    names: Vec<String>,
    /// Whether lines end with the deadline of the server.
    server_deadlines: bool,
}

impl<W: Write> Recorder for JobTable<W> {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        self.0.record(at, kind);
    }
}

impl<W: Write> JobTable<W> {
    /// A table of the jobs of this task set. Writes in large pieces, so `out` needs no buffer.
    pub fn new(set: &TaskSet, out: W) -> Self {
        Self::with(set, out, false)
    }

    /// With [`SERVER_DEADLINE_COLUMN`]: the scheduling deadline of the job when it finished, that of its server,
    /// for servers that do not follow releases. Empty for unfinished jobs.
    pub fn with_server_deadlines(set: &TaskSet, out: W) -> Self {
        Self::with(set, out, true)
    }

    fn with(set: &TaskSet, out: W, server_deadlines: bool) -> Self {
        let header = match server_deadlines {
            true => format!("{JOB_TABLE_HEADER},{SERVER_DEADLINE_COLUMN}\n"),
            false => format!("{JOB_TABLE_HEADER}\n"),
        };
        let lines = Lines {
            out,
            lines: header.into_bytes(),
            failed: None,
            names: set.tasks.iter().map(|task| quoted(&task.name)).collect(),
            server_deadlines,
        };
        Self(Jobs::new(set, lines))
    }

    /// Ends the run at `horizon`: writes the unfinished jobs, and flushes.
    ///
    /// # Errors
    /// The first error of `out`, now or earlier.
    pub fn finish(self, horizon: Instant) -> io::Result<W> {
        let mut lines = self.0.finish(horizon);
        lines.flush();
        match lines.failed {
            Some(error) => Err(error),
            None => lines.out.flush().map(|()| lines.out),
        }
    }
}

impl<W: Write> JobSink for Lines<W> {
    fn take(&mut self, row: &JobRow) {
        let lines = &mut self.lines;
        let name = &self.names[row.job.task.index()];
        lines.extend_from_slice(name.as_bytes());
        let fields = [
            Some(row.job.number),
            Some(row.release.as_ns()),
            Some(row.deadline.as_ns()),
            row.start.map(Instant::as_ns),
            row.finish.map(Instant::as_ns),
            row.response().map(Span::as_ns),
            row.tardiness().map(Span::as_ns),
        ];
        let server_deadline = row.server_deadline.map(Instant::as_ns);
        let server_deadline = self.server_deadlines.then_some(server_deadline);
        for field in fields.into_iter().chain(server_deadline) {
            lines.push(b',');
            if let Some(number) = field {
                write!(lines, "{number}").expect("writing to memory does not fail");
            }
        }
        lines.push(b'\n');
        if lines.len() >= CHUNK_BYTES {
            self.flush();
        }
    }
}

impl<W: Write> Lines<W> {
    fn flush(&mut self) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(&self.lines).err();
        }
        self.lines.clear();
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
    use crate::testing::{Script, at, set};
    use shiftwork_model::TaskId;

    fn rows(set: &TaskSet, script: &Script, horizon: u64) -> Vec<String> {
        let mut table = JobTable::new(set, Vec::new());
        script.play(&mut table);
        let text = String::from_utf8(table.finish(at(horizon)).unwrap()).unwrap();
        let mut lines = text.lines().map(str::to_owned);
        assert_eq!(lines.next().as_deref(), Some(JOB_TABLE_HEADER));
        lines.collect()
    }

    fn two_tasks() -> TaskSet {
        set(2, &[("a", "0-1"), ("b", "0-1")])
    }

    #[test]
    fn rows_are_in_order_of_completion_with_unfinished_jobs_last() {
        let script = Script::default()
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
            rows(&two_tasks(), &script, 20),
            [
                "b,1,0,5,0,7,7,2",
                "a,1,0,10,3,8,8,0",
                "a,2,8,18,,,,",
                "b,2,9,14,9,,,"
            ]
        );
    }

    #[test]
    fn job_starts_at_the_first_instant_after_which_it_runs() {
        let script = Script::default()
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
        assert_eq!(rows(&two_tasks(), &script, 20), ["a,1,0,50,4,9,9,0"]);
    }

    #[test]
    fn dropped_jobs_are_listed_as_unfinished() {
        let script = Script::default()
            .at(0)
            .release(0, 1, 10)
            .switch(0, Some((0, 1)))
            .record(RecordKind::Released {
                job: crate::testing::job(0, 2),
                deadline: at(11),
            })
            .at(5)
            .record(RecordKind::Left {
                task: TaskId::from_index(0),
            })
            .switch(0, None)
            .at(6)
            .release(0, 3, 16);
        assert_eq!(
            rows(&two_tasks(), &script, 20),
            ["a,1,0,10,0,,,", "a,2,0,11,,,,", "a,3,6,16,,,,"]
        );
    }

    #[test]
    fn job_that_is_dropped_at_its_dispatch_has_not_started() {
        let script = Script::default()
            .at(5)
            .release(0, 1, 10)
            .switch(0, Some((0, 1)))
            .record(RecordKind::Left {
                task: TaskId::from_index(0),
            })
            .switch(0, None);
        assert_eq!(rows(&two_tasks(), &script, 20), ["a,1,5,10,,,,"]);
    }

    #[test]
    fn jobs_released_at_the_horizon_are_not_listed() {
        let script = Script::default().at(20).release(0, 1, 30);
        assert!(rows(&two_tasks(), &script, 20).is_empty());
    }

    #[test]
    fn server_deadline_is_an_optional_last_column() {
        let replenished = |deadline| RecordKind::Replenished {
            task: TaskId::from_index(0),
            budget: shiftwork_model::Span::from_ns(1),
            deadline: at(deadline),
        };
        let script = Script::default()
            .at(0)
            .release(0, 1, 10)
            .switch(0, Some((0, 1)))
            .at(12)
            .record(replenished(20))
            .at(13)
            .complete(0, 1)
            .record(replenished(30))
            .release(0, 2, 20);
        let mut table = JobTable::with_server_deadlines(&two_tasks(), Vec::new());
        script.play(&mut table);
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
        let script = Script::default().at(0).release(0, 1, 30);
        assert_eq!(
            rows(&set(1, &[("a,\"b\"", "0")]), &script, 20),
            ["\"a,\"\"b\"\"\",1,0,30,,,,"]
        );
    }

    #[test]
    fn large_table_is_written_in_pieces() {
        let mut script = Script::default();
        for number in 1..=5_000 {
            script = script
                .at(10 * number)
                .release(0, number, 10 * number + 5)
                .complete(0, number);
        }
        assert_eq!(rows(&two_tasks(), &script, 60_000).len(), 5_000);
    }
}
