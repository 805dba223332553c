//! Tables as columns of 64-bit integers, for NumPy.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use shiftwork_model::Instant;
use shiftwork_trace::{JobRow, SERVER_DEADLINE_COLUMN, Segment};

/// What stands for a time that there is not.
const MISSING: i64 = -1;

/// Names and columns; all columns are equally long.
pub struct Columns(Vec<(&'static str, Vec<i64>)>);

impl Columns {
    /// A dictionary from names to the bytes of the columns, in the order of this machine.
    pub fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (name, values) in &self.0 {
            let bytes = PyBytes::new_with(py, values.len() * size_of::<i64>(), |bytes| {
                let places = bytes.chunks_exact_mut(size_of::<i64>());
                for (place, value) in places.zip(values) {
                    place.copy_from_slice(&value.to_ne_bytes());
                }
                Ok(())
            })?;
            columns.set_item(name, bytes)?;
        }
        Ok(columns)
    }

    /// One row for each job, under the names of the job table of the command line; `task` is the task's place
    /// in the set.
    pub fn of_jobs(rows: &[JobRow]) -> Self {
        let column = |of: fn(&JobRow) -> i64| rows.iter().map(of).collect();
        Self(vec![
            ("task", column(|row| whole(row.job.task.index() as u64))),
            ("job", column(|row| whole(row.job.number))),
            ("release_ns", column(|row| whole(row.release.as_ns()))),
            ("deadline_ns", column(|row| whole(row.deadline.as_ns()))),
            ("start_ns", column(|row| at(row.start))),
            ("finish_ns", column(|row| at(row.finish))),
            (
                "response_ns",
                column(|row| row.response().map_or(MISSING, |span| whole(span.as_ns()))),
            ),
            (
                "tardiness_ns",
                column(|row| row.tardiness().map_or(MISSING, |span| whole(span.as_ns()))),
            ),
        ])
    }

    /// With the deadlines by which jobs were scheduled when they finished, where servers do not follow the
    /// releases.
    pub fn with_servers(mut self, rows: &[JobRow]) -> Self {
        let column = rows.iter().map(|row| at(row.server_deadline)).collect();
        self.0.push((SERVER_DEADLINE_COLUMN, column));
        self
    }

    /// One row for each stretch of time in which a CPU ran a job.
    pub fn of_segments(segments: &[Segment]) -> Self {
        let column = |of: fn(&Segment) -> u64| segments.iter().map(of).map(whole).collect();
        Self(vec![
            ("task", column(|segment| segment.job.task.index() as u64)),
            ("job", column(|segment| segment.job.number)),
            ("cpu", column(|segment| segment.cpu.index() as u64)),
            ("start_ns", column(|segment| segment.from.as_ns())),
            ("end_ns", column(|segment| segment.to.as_ns())),
        ])
    }
}

fn at(instant: Option<Instant>) -> i64 {
    instant.map_or(MISSING, |at| whole(at.as_ns()))
}

/// Numbers beyond those of NumPy are as good as never: they are centuries away.
fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
