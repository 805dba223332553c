//! Contenders: the tables `[[policy]]`.

use shiftwork_model::Span;

use super::{keep_name, overheads};
use crate::error::TasksetError;
use crate::tree::{Table, Value};

/// A policy, with what it costs and what is asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contender {
    /// The name of the policy.
    pub policy: String,
    /// For people and curves; no other contender has it.
    pub label: String,
    /// The path of its overhead file; `Some(None)` if it costs nothing, `None` if the file says nothing of it.
    pub overheads: Option<Option<String>>,
    /// Whose table of the overhead file counts; that of the policy if it is not said.
    pub priced_as: Option<String>,
    /// What is asked.
    pub criteria: Vec<Criterion>,
    /// The only tests to ask, by name; all if it is empty.
    pub tests: Vec<String>,
    /// Of which families it is asked, by name; all if it is empty.
    pub families: Vec<String>,
    /// Which affinities it is given.
    pub affinities: Affinities,
    /// How tasks are packed, under a policy that packs them.
    pub packing: Packing,
    /// For how long each set is simulated; `None` if it is not.
    pub simulate: Option<Span>,
}

/// What is asked of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// Whether all deadlines are met.
    Hard,
    /// Whether tardiness is bounded.
    Soft,
}

/// Which affinities a contender is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Affinities {
    /// Those that were drawn.
    #[default]
    AsDrawn,
    /// All CPUs, whatever was drawn.
    Ignored,
}

/// How a contender packs tasks onto CPUs or clusters: those with the largest utilizations first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packing {
    /// Each onto the first that has room for it, with what the tasks there are charged.
    #[default]
    FirstFit,
    /// Each onto the one with the most room, overheads or not, so that all are loaded alike.
    WorstFit,
    /// As `FirstFit`, and where nothing is shown then, as `WorstFit`.
    Either,
}

const KEYS: [&str; 10] = [
    "name",
    "label",
    "overheads",
    "as",
    "criteria",
    "tests",
    "families",
    "affinities",
    "packing",
    "simulate",
];

/// Reads all contenders, which may name these families.
pub(super) fn read(file: &Table<'_>, families: &[&str]) -> Result<Vec<Contender>, TasksetError> {
    let items = file.items("policy", "a list of tables [[policy]]")?;
    if items.is_empty() {
        file.need("policy", "[[policy]] with name = \"g-edf\"")?;
    }
    let mut known = Vec::new();
    let mut contenders = Vec::new();
    for value in items {
        let mut table = value.table(&KEYS, "a table [[policy]]")?;
        let name = table.need("name", "name = \"g-edf\"")?;
        let policy = name.name("the name of a policy, like \"g-edf\"")?;
        table.rename(format!("policy `{policy}`"));
        let label = table.get("label");
        let label = label.as_ref().unwrap_or(&name);
        let text = label.name("what to call it in pictures")?;
        keep_name(&mut known, text, label)?;
        contenders.push(read_one(&table, (policy, text), families)?);
    }
    Ok(contenders)
}

fn read_one(
    table: &Table<'_>,
    (policy, label): (&str, &str),
    known: &[&str],
) -> Result<Contender, TasksetError> {
    let words = [("hard", Criterion::Hard), ("soft", Criterion::Soft)];
    let criteria = table.map("criteria", |value| {
        let items = value.list("criteria like [\"hard\", \"soft\"]")?;
        items.iter().map(|item| item.word(&words)).collect()
    })?;
    Ok(Contender {
        policy: policy.to_owned(),
        label: label.to_owned(),
        overheads: overheads(table)?,
        priced_as: table
            .map("as", |value| {
                value.name("the name of a policy of the overhead file")
            })?
            .map(str::to_owned),
        criteria: criteria.unwrap_or_else(|| vec![Criterion::Hard, Criterion::Soft]),
        tests: names(table, "tests", "names of tests, like [\"gfb\", \"bar\"]")?,
        families: of_families(table, known)?,
        affinities: table
            .map("affinities", |value| {
                value.word(&[
                    ("as-drawn", Affinities::AsDrawn),
                    ("ignored", Affinities::Ignored),
                ])
            })?
            .unwrap_or_default(),
        packing: table
            .map("packing", |value| value.word(&PACKINGS))?
            .unwrap_or_default(),
        simulate: table.map("simulate", Value::positive_span)?,
    })
}

const PACKINGS: [(&str, Packing); 3] = [
    ("first-fit", Packing::FirstFit),
    ("worst-fit", Packing::WorstFit),
    ("either", Packing::Either),
];

/// The families of which it is asked.
fn of_families(table: &Table<'_>, known: &[&str]) -> Result<Vec<String>, TasksetError> {
    let accepted = "names of families of this file";
    let items = table.map("families", |value| value.list(accepted))?;
    let name = |item: &Value<'_>| {
        let name = item.name(accepted)?;
        match known.contains(&name) {
            true => Ok(name.to_owned()),
            false => Err(TasksetError::NotOneOf {
                place: item.place(),
                key: item.key(),
                found: name.to_owned(),
                accepted: known.iter().map(|&name| name.to_owned()).collect(),
            }),
        }
    };
    items.unwrap_or_default().iter().map(name).collect()
}

/// A list of names; empty if the key is not there.
fn names(
    table: &Table<'_>,
    key: &str,
    accepted: &'static str,
) -> Result<Vec<String>, TasksetError> {
    let items = table.map(key, |value| value.list(accepted))?;
    let names = items.unwrap_or_default();
    let text = |item: &Value<'_>| item.name(accepted).map(str::to_owned);
    names.iter().map(text).collect()
}
