//! What led to the first misses of a run, for `--explain`.

use serde_json::Value;
use shiftwork_model::{Instant, JobId, Record, TaskSet};
use shiftwork_trace::check;
use shiftwork_trace::explain::{Explanation, explain, first_misses};

use super::outputs::{Finished, Recording};
use crate::failure::Failure;
use crate::output::Console;

/// So many misses are explained; those that follow often have the same cause.
const EXPLAINED_MAX: usize = 3;

/// The explanations of the first misses of a run.
pub struct Explained {
    names: Vec<String>,
    first: Vec<Explanation>,
    /// How many deadlines were missed.
    total: usize,
}

impl Explained {
    /// From the records of a run until `horizon` under a policy that promises `contract`.
    pub fn of(
        set: &TaskSet,
        contract: &check::PolicyContract,
        records: &[Record],
        horizon: Instant,
    ) -> Self {
        let missed = first_misses(set, records, horizon, usize::MAX);
        let explained = |job: &JobId| explain(set, contract, records, *job, horizon).ok();
        let first = missed.iter().take(EXPLAINED_MAX).filter_map(explained);
        Self {
            names: set.tasks.iter().map(|task| task.name.clone()).collect(),
            first: first.collect(),
            total: missed.len(),
        }
    }

    /// The same of a run that this command made; `None` if that was not asked for.
    pub fn of_run(recording: &Recording<'_>, run: &Finished) -> Option<Self> {
        let records = run.records.as_deref().filter(|_| recording.args.explain)?;
        let (contract, horizon) = (recording.contract(run), run.summary.horizon);
        Some(Self::of(recording.set, &contract, records, horizon))
    }

    /// For people.
    pub fn show(&self, console: &mut Console) -> Result<(), Failure> {
        let names = self.names();
        for explanation in &self.first {
            console.text(&format!("\n{}", explanation.text(&names)))?;
        }
        match self.total.saturating_sub(self.first.len()) {
            0 if self.total == 0 => console.line("\nNo deadline was missed: nothing to explain."),
            0 => Ok(()),
            more => console.line(format!(
                "\n{more} more missed deadlines are not explained here."
            )),
        }
    }

    /// For programs: a list.
    pub fn to_json(&self) -> Value {
        let names = self.names();
        let all = self.first.iter();
        all.map(|explanation| explanation.to_json(&names)).collect()
    }

    fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }
}
