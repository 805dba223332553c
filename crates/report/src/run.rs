//! What a report is made of: one run and where it comes from.

use shiftwork_model::{Affinity, Record, Span, TaskSet};
use shiftwork_trace::{RunSummary, check};

/// Where a report comes from, so that it can be made again. Empty fields are left out.
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
    /// Which machine ran it: `sim`, `kernel`, …
    pub machine: String,
}

/// What analysis shows of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// No job takes longer from its release to its finish.
    pub response: Span,
    /// The test that shows it.
    pub by: &'static str,
}

/// One run, as a report needs it.
#[derive(Clone)]
pub struct Run<'a> {
    /// The task set that ran.
    pub set: &'a TaskSet,
    /// Everything that happened, in order.
    pub records: &'a [Record],
    /// The counters of the same records.
    pub summary: &'a RunSummary,
    /// What the policy promises; without it misses are explained with less detail.
    pub contract: Option<check::PolicyContract>,
    /// What analysis shows of each task, by index; empty if nothing is known.
    pub bounds: Vec<Option<Bound>>,
    /// Where the run comes from.
    pub provenance: Provenance,
}

impl Run<'_> {
    /// The partition or cluster that the policy bound a task to; `None` if it has bound none, or is not known.
    pub(crate) fn packed(&self, task: usize) -> Option<&Affinity> {
        self.contract.as_ref()?.packing.as_ref()?.get(task)
    }
}

/// How much of a run goes into a page; what is left out is said on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Stretches of execution in the schedule chart of one run.
    pub slices: usize,
    /// Misses explained one by one.
    pub misses: usize,
    /// Rows of the table of jobs.
    pub jobs: usize,
}

/// About a megabyte a run at most.
impl Default for Limits {
    fn default() -> Self {
        Self {
            slices: 20_000,
            misses: 25,
            jobs: 500,
        }
    }
}
