//! The input of a report: one run and its provenance.

use shiftwork_model::{Affinity, Span, TaskSet};
use shiftwork_trace::{Records, RunSummary, check};

/// The provenance of a report, so that it can be reproduced. Empty fields are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Version of shiftwork.
    pub version: String,
    /// Name of the policy.
    pub policy: String,
    /// The seed, if the run used one.
    pub seed: Option<u64>,
    /// The command line.
    pub command: String,
    /// Name of the input file.
    pub input: String,
    /// Hash of the input file, with the name of the function: `sha256:…`.
    pub input_hash: String,
    /// The machine of the run: `sim`, `kernel`, …
    pub machine: String,
}

/// The analytical bound of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Upper bound of the response times of all jobs.
    pub response: Span,
    /// The analysis that gives the bound.
    pub by: &'static str,
}

/// One run, with all data for a report.
#[derive(Clone)]
pub struct Run<'a> {
    /// The task set that ran.
    pub set: &'a TaskSet,
    /// All records, in order.
    pub records: Records<'a>,
    /// The counters of the same records.
    pub summary: &'a RunSummary,
    /// The promises of the policy; without them misses are explained in less detail.
    pub contract: Option<check::PolicyContract>,
    /// The bound of each task, by index; empty if there is no analysis.
    pub bounds: Vec<Option<Bound>>,
    /// Provenance of the run.
    pub provenance: Provenance,
}

impl Run<'_> {
    /// The partition or cluster that the policy bound a task to; `None` if it has bound none, or is not known.
    pub(crate) fn packed(&self, task: usize) -> Option<&Affinity> {
        self.contract.as_ref()?.packing.as_ref()?.get(task)
    }
}

/// Limits of the contents of a page; the page states omissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Stretches of execution in the schedule chart of one run; of more than two runs, in as many charts together as two
    /// would have.
    pub slices: usize,
    /// Misses explained one by one.
    pub misses: usize,
    /// Rows of the table of jobs.
    pub jobs: usize,
    /// Tasks up to which all are shown alike. Of more, those that matter are shown first.
    pub tasks: usize,
    /// How many of these there are then.
    pub foremost: usize,
    /// Pictures of response times, and rows of their quantiles.
    pub pictures: usize,
}

/// Limits for at most about a megabyte per run.
impl Default for Limits {
    fn default() -> Self {
        Self {
            slices: 20_000,
            misses: 25,
            jobs: 500,
            tasks: 40,
            foremost: 24,
            pictures: 1_000,
        }
    }
}
