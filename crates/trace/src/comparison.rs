//! Completions of jobs in two runs of one task set: information, not a verdict.
//!
//! A job that lacks a microsecond when a more urgent one arrives completes only after it, so a small delay may
//! become a long one although the machine is correct. The [replay](crate::replay) decides whether a machine
//! followed its policy.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shiftwork_model::{Instant, JobId, Record, RecordKind, Span, TaskSet};

/// The completions of a job in both runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finishes {
    /// The job.
    pub job: JobId,
    /// In the reference; `None` if it did not complete.
    pub expected: Option<Instant>,
    /// In the measured run; `None` if it did not complete.
    pub found: Option<Instant>,
    /// The difference; from the completion to the horizon if it completed in one run only.
    pub difference: Span,
}

/// The differences between the completions of two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The names of the tasks, in the order of the task set.
    pub tasks: Vec<String>,
    /// The jobs that were released in both runs and completed in at least one, by task and number.
    pub jobs: Vec<Finishes>,
    /// Number of jobs that were released in one run only.
    pub unmatched: u64,
}

/// Compares the completions of a measured run with those of the reference, up to the horizon.
///
/// # Cost
/// Logarithmic steps per record.
pub fn compare(
    set: &TaskSet,
    horizon: Instant,
    reference: &[Record],
    measured: &[Record],
) -> Comparison {
    let [expected, found] = [reference, measured].map(|records| finishes(records, horizon));
    let jobs = expected.iter().filter_map(|(&job, &expected)| {
        let found = *found.get(&job)?;
        (expected.is_some() || found.is_some()).then(|| {
            let end = |finish: Option<Instant>| finish.unwrap_or(horizon);
            let (one, other) = (end(expected), end(found));
            Finishes {
                job,
                expected,
                found,
                difference: one.late_since(other).max(other.late_since(one)),
            }
        })
    });
    let missing = expected.keys().filter(|job| !found.contains_key(job));
    let extra = found.keys().filter(|job| !expected.contains_key(job));
    Comparison {
        tasks: set.tasks.iter().map(|task| task.name.clone()).collect(),
        jobs: jobs.collect(),
        unmatched: (missing.count() + extra.count()) as u64,
    }
}

/// All jobs released before the horizon, with their completions.
fn finishes(records: &[Record], horizon: Instant) -> BTreeMap<JobId, Option<Instant>> {
    let mut jobs = BTreeMap::new();
    for record in records {
        match record.kind {
            RecordKind::Released { job, .. } if record.at < horizon => {
                jobs.insert(job, None);
            }
            RecordKind::Completed { job } if record.at <= horizon => {
                jobs.entry(job)
                    .and_modify(|finish| *finish = Some(record.at));
            }
            _ => {}
        }
    }
    jobs
}

impl Comparison {
    /// The job with the largest difference; `None` if none was compared.
    pub fn worst(&self) -> Option<&Finishes> {
        self.jobs.iter().max_by_key(|job| job.difference)
    }

    /// The keys of `agreement` in `run --json` that concern completions.
    pub fn to_json(&self) -> Value {
        let mut value = json!({"jobs": self.jobs.len(), "unmatched": self.unmatched});
        if let Some(it) = self.worst() {
            value["worst"] = json!({
                "task": self.tasks.get(it.job.task.index()),
                "job": it.job.number,
                "difference_ns": it.difference.as_ns(),
            });
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Script, at, job, set};

    #[test]
    fn completions_are_compared_job_by_job_up_to_the_horizon() {
        let set = set(1, &[("a", "0"), ("b", "0")]);
        let one = Script::default().at(0).release(0, 1, 9).release(1, 1, 9);
        let one = one.at(3).complete(0, 1).at(4).release(0, 2, 19);
        let other = Script::default().at(0).release(0, 1, 9).release(1, 1, 9);
        let other = other.at(5).complete(0, 1).at(7).complete(1, 1);
        let found = compare(&set, at(10), &one.records, &other.records);
        let expected = [
            (job(0, 1), Some(at(3)), Some(at(5)), 2),
            (job(1, 1), None, Some(at(7)), 3),
        ];
        let expected = expected.map(|(job, expected, found, ns)| Finishes {
            job,
            expected,
            found,
            difference: Span::from_ns(ns),
        });
        assert_eq!((&found.jobs[..], found.unmatched), (&expected[..], 1));
        assert_eq!(found.worst(), Some(&expected[1]));
    }
}
