//! What `apply` prints.

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_client::Outcome;
use shiftwork_trace::SCHEMA_VERSION;

use super::negotiate::Answered;
use super::plan::{Action, Entry, Plan, Requests, Target};
use crate::failure::Failure;
use crate::output::{Console, columns};

/// What `apply --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApplyOutput {
    schema_version: u64,
    /// The name of the set; its reservations are called `SET/TASK`.
    set: String,
    /// Whether the reservations are there, or with `--dry-run`, would be. If not, nothing is changed.
    applied: bool,
    /// Whether nothing was to be changed.
    dry_run: bool,
    /// With `--dry-run`: it would be applied within moments, as soon as what has ended or changed counts no more.
    later: bool,
    /// The tasks of the file, then reservations that end.
    tasks: Vec<AppliedOutput>,
    /// Reservations of the set that stay although their tasks are not in the file; `--prune` gives them back.
    kept: Vec<String>,
}

/// A task of the file, or a reservation that ends.
#[derive(Debug, Serialize, JsonSchema)]
struct AppliedOutput {
    /// The name of the reservation.
    name: String,
    /// `admitted`, `changed`, `unchanged`, `released` or `refused`; with `--dry-run` also `later`. Null: not tried, since another
    /// one comes first that is refused or has to wait.
    what: Option<&'static str>,
    /// The number of the task; null if there is none.
    task: Option<u32>,
    /// The process; null for a program that is not started.
    process: Option<u32>,
    /// The thread; null for a program that is not started.
    thread: Option<u32>,
    cost_ns: u64,
    period_ns: u64,
    deadline_ns: u64,
    /// A list.
    cpus: Option<String>,
    /// The guarantee; null if there is none.
    guarantee: Option<String>,
    /// Why it is refused; null if it is not.
    refused: Option<String>,
}

/// What was applied, or would be.
pub struct Shown<'a> {
    /// The name of the set.
    pub set: &'a str,
    /// What was requested.
    pub plan: &'a Plan,
    /// The same in order.
    pub requests: &'a Requests,
    /// What the daemon says.
    pub answered: &'a Answered,
    /// The processes of programs that are started.
    pub programs: &'a [u32],
    /// Whether nothing was to be changed.
    pub dry_run: bool,
}

impl Shown<'_> {
    /// Prints it as a table or as JSON; of a refusal only the latter.
    ///
    /// # Errors
    /// If stdout cannot be written.
    pub fn print(&self, console: &mut Console) -> Result<(), Failure> {
        match console.json {
            true => console.json_line(&self.output()),
            false if self.answered.applied => console.text(&self.text()),
            false => Ok(()),
        }
    }

    /// The entry that is refused, and why.
    pub fn refused(&self) -> Option<(&Entry, &Outcome)> {
        let place = self
            .answered
            .outcomes
            .iter()
            .position(|it| it.cause.is_some())?;
        let entry = self.plan.entries.get(*self.requests.entries.get(place)?)?;
        Some((entry, &self.answered.outcomes[place]))
    }

    /// What became of the entry; `None`: it was not tried.
    fn outcome(&self, entry: usize) -> Option<&Outcome> {
        let place = self.requests.entries.iter().position(|it| *it == entry)?;
        self.answered.outcomes.get(place)
    }

    fn what(&self, entry: usize) -> Option<&'static str> {
        let outcome = self.outcome(entry)?;
        let done = match (&self.plan.entries[entry].action, outcome.changed) {
            (Action::Admit, _) => "admitted",
            (Action::Change(_), true) => "changed",
            (Action::Change(_), false) => "unchanged",
            (Action::Release(_), _) => "released",
        };
        match outcome.cause {
            Some(_) if self.answered.applied => Some("later"),
            Some(_) => Some("refused"),
            // With the one that is refused it is undone.
            None => self.answered.applied.then_some(done),
        }
    }

    fn numbers(&self, entry: &Entry) -> Option<(u32, u32)> {
        match entry.target {
            Target::Thread { process, thread } => Some((process, thread)),
            Target::Program(place) => self.programs.get(place).map(|it| (*it, *it)),
        }
    }

    fn text(&self) -> String {
        let headings = [
            "task", "thread", "PID/TID", "budget", "period", "affinity", "promise", "",
        ];
        let mut rows = vec![headings.map(str::to_owned).to_vec()];
        for (index, entry) in self.plan.entries.iter().enumerate() {
            let it = &entry.reservation;
            let numbers = self.numbers(entry);
            let numbers = numbers.map(|(process, thread)| format!("{process}/{thread}"));
            let dash = || "-".to_owned();
            let guarantee = self.outcome(index).and_then(|it| it.guarantee.clone());
            rows.push(vec![
                entry.task.clone(),
                match entry.of.is_empty() {
                    true => dash(),
                    false => entry.of.clone(),
                },
                numbers.unwrap_or_else(dash),
                it.cost.to_string(),
                it.period.to_string(),
                it.cpus.clone().unwrap_or_else(dash),
                guarantee.unwrap_or_else(dash),
                self.what(index).unwrap_or_default().to_owned(),
            ]);
        }
        columns(&rows)
    }

    fn output(&self) -> ApplyOutput {
        let tasks = self.plan.entries.iter().enumerate().map(|(index, entry)| {
            let outcome = self.outcome(index);
            let numbers = self.numbers(entry);
            let it = &entry.reservation;
            AppliedOutput {
                name: entry.name.clone(),
                what: self.what(index),
                task: outcome.and_then(|it| it.task),
                process: numbers.map(|it| it.0),
                thread: numbers.map(|it| it.1),
                cost_ns: it.cost.as_ns(),
                period_ns: it.period.as_ns(),
                deadline_ns: it.deadline.unwrap_or(it.period).as_ns(),
                cpus: it.cpus.clone(),
                guarantee: outcome.and_then(|it| it.guarantee.clone()),
                refused: outcome.and_then(|it| it.reason.clone()),
            }
        });
        ApplyOutput {
            schema_version: SCHEMA_VERSION,
            set: self.set.to_owned(),
            applied: self.answered.applied,
            dry_run: self.dry_run,
            later: self.answered.later,
            tasks: tasks.collect(),
            kept: self.plan.kept.clone(),
        }
    }
}
