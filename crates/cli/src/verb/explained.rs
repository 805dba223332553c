//! What led to the first misses of a run, and to what its chains took longer than wanted, for `--explain`.

use serde_json::Value;
use shiftwork_model::{Instant, JobId, Record, TaskSet};
use shiftwork_trace::check;
use shiftwork_trace::explain::{ChainExplanation, Explanation, Recording, explain, first_misses};

use super::outputs::{self, Finished};
use crate::failure::Failure;
use crate::output::Console;

/// So many misses are explained, and so many of chains; those that follow often have the same cause.
const EXPLAINED_MAX: usize = 3;

/// The explanations of the first misses of a run.
pub struct Explained {
    names: Vec<String>,
    first: Vec<Explanation>,
    /// How many deadlines were missed.
    total: usize,
    /// Of the first chains that took longer than wanted.
    chains: Vec<ChainExplanation>,
    /// How many requirements on chains were not met.
    chains_total: usize,
    /// Whether the task set has chains.
    has_chains: bool,
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
        let recording = Recording {
            set,
            contract: Some(contract),
            records: records.into(),
            until: horizon,
        };
        let late = recording.chain_misses();
        let chains = late.iter().take(EXPLAINED_MAX);
        Self {
            names: set.tasks.iter().map(|task| task.name.clone()).collect(),
            first: first.collect(),
            total: missed.len(),
            chains: chains
                .filter_map(|miss| recording.explain_chain(miss))
                .collect(),
            chains_total: late.len(),
            has_chains: !set.chains.is_empty(),
        }
    }

    /// The same of a run that this command made; `None` if that was not asked for.
    pub fn of_run(recording: &outputs::Recording<'_>, run: &Finished) -> Option<Self> {
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
        let more = self.total - self.first.len();
        if more > 0 {
            console.line(format!(
                "\n{more} more missed deadlines are not explained here."
            ))?;
        }
        for explanation in &self.chains {
            console.text(&format!("\n{}", explanation.text(&names)))?;
        }
        let more = self.chains_total - self.chains.len();
        if more > 0 {
            console.line(format!(
                "\n{more} more times of chains that were longer than wanted are not explained here."
            ))?;
        }
        match (self.total + self.chains_total, self.has_chains) {
            (0, false) => console.line("\nNo deadline was missed: nothing to explain."),
            (0, true) => console.line(
                "\nNo deadline was missed, and no chain took longer than wanted: nothing to explain.",
            ),
            _ => Ok(()),
        }
    }

    /// For programs: adds lists to what is printed of the run.
    pub fn add_to(&self, value: &mut Value) {
        let names = self.names();
        let first = self.first.iter();
        value["explanations"] = first.map(|it| it.to_json(&names)).collect();
        if self.has_chains {
            let chains = self.chains.iter();
            value["chain_explanations"] = chains.map(|it| it.to_json(&names)).collect();
        }
    }

    fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }
}
