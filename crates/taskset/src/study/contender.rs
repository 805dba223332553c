//! Contenders: the tables `[[policy]]`.

use shiftwork_model::Span;

use super::{keep_name, overheads};
use crate::error::TasksetError;
use crate::keys::{Environment, Key, Takes, may, must, words};
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
    /// The policy whose table of the overhead file is used; `None` for the contender's own.
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

pub(super) static KEYS: [Key; 10] = [
    must(
        "name",
        Takes::Name,
        "The policy: a name that `shiftwork policies` lists.",
    ),
    may(
        "label",
        Takes::Name,
        "What to call it in pictures; default its name. No other has the same.",
    ),
    may(
        "overheads",
        Takes::Name,
        "Its overhead file instead of the study's, or \"none\".",
    ),
    may(
        "as",
        Takes::Name,
        "The policy whose table of the overhead file counts; default its own.",
    ),
    may(
        "criteria",
        Takes::List(&Takes::Words(|| words(&CRITERIA)), 0),
        "What is asked: whether all deadlines are met, whether tardiness is bounded; default both.",
    ),
    may(
        "tests",
        Takes::List(&Takes::Name, 0),
        "The only tests to ask; default all that speak of it.",
    ),
    may(
        "families",
        Takes::List(&Takes::Name, 0),
        "The families of which it is asked; default all.",
    ),
    may(
        "affinities",
        Takes::Words(|| words(&AFFINITIES)),
        "Whether it is given the affinities that were drawn, or all CPUs; default `as-drawn`.",
    ),
    may(
        "packing",
        Takes::Words(|| words(&PACKINGS)),
        "How it packs tasks, if it does; default `first-fit`.",
    ),
    may(
        "simulate",
        Takes::Duration,
        "For how long each set is simulated; default not at all.",
    ),
];

const CRITERIA: [(&str, Criterion); 2] = [("hard", Criterion::Hard), ("soft", Criterion::Soft)];

const AFFINITIES: [(&str, Affinities); 2] = [
    ("as-drawn", Affinities::AsDrawn),
    ("ignored", Affinities::Ignored),
];

const PACKINGS: [(&str, Packing); 3] = [
    ("first-fit", Packing::FirstFit),
    ("worst-fit", Packing::WorstFit),
    ("either", Packing::Either),
];

/// Reads all contenders, which may name these families; any family if they are not known.
pub(super) fn read(
    file: &Table<'_>,
    families: &Result<Vec<&str>, TasksetError>,
    environment: &Environment<'_>,
) -> Result<Vec<Contender>, TasksetError> {
    let accepted = "a list of tables [[policy]]";
    let mut known = Vec::new();
    let contenders = file.each("policy", accepted, |value| {
        let mut table = value.table(&KEYS, "a table [[policy]]")?;
        let policy = table.need_map("name", "name = \"g-edf\"", |value| {
            value.policy("the name of a policy, like \"g-edf\"", environment)
        });
        let name = table.get("name");
        if let Some(Ok(text)) = name.as_ref().map(|value| value.name("a name")) {
            table.rename(format!("policy `{text}`"));
        }
        let label = table.get("label").or(name);
        let label = label.map(|label| {
            let text = label.name("what to call it in pictures")?;
            keep_name(&mut known, text, &label)?;
            Ok(text)
        });
        let label = table.source().note(label.transpose());
        let rest = read_one(&table, policy.as_ref().ok().copied(), families, environment);
        Ok(Contender {
            policy: policy?.to_owned(),
            label: label?.unwrap_or_default().to_owned(),
            ..rest?
        })
    })?;
    if contenders.is_empty() {
        file.need("policy", "[[policy]] with name = \"g-edf\"")?;
    }
    Ok(contenders)
}

/// All but policy and label.
fn read_one(
    table: &Table<'_>,
    policy: Option<&str>,
    families: &Result<Vec<&str>, TasksetError>,
    environment: &Environment<'_>,
) -> Result<Contender, TasksetError> {
    let criteria = table.map("criteria", |value| {
        value.each("criteria like [\"hard\", \"soft\"]", |item| {
            item.word(&CRITERIA)
        })
    });
    let overheads = overheads(table);
    let priced_as = table.map("as", |value| {
        value.name("the name of a policy of the overhead file")
    });
    let tests = read_tests(table, policy, environment);
    let families = of_families(table, families);
    let affinities = table.map("affinities", |value| value.word(&AFFINITIES));
    let packing = table.map("packing", |value| value.word(&PACKINGS));
    let simulate = table.map("simulate", Value::positive_span);
    Ok(Contender {
        policy: String::new(),
        label: String::new(),
        overheads: overheads?,
        priced_as: priced_as?.map(str::to_owned),
        criteria: criteria?.unwrap_or_else(|| vec![Criterion::Hard, Criterion::Soft]),
        tests: tests?,
        families: families?,
        affinities: affinities?.unwrap_or_default(),
        packing: packing?.unwrap_or_default(),
        simulate: simulate?,
    })
}

/// The families of which it is asked.
fn of_families(
    table: &Table<'_>,
    known: &Result<Vec<&str>, TasksetError>,
) -> Result<Vec<String>, TasksetError> {
    let accepted = "names of families of this file";
    table.each("families", accepted, |item| {
        let name = item.name(accepted)?;
        match known.as_ref().map_err(Clone::clone)? {
            known if known.contains(&name) => Ok(name.to_owned()),
            known => Err(TasksetError::NotOneOf {
                place: item.place(),
                key: item.key(),
                found: name.to_owned(),
                accepted: known.iter().map(|&name| name.to_owned()).collect(),
            }),
        }
    })
}

/// The only tests to ask, which have to be tests of the policy, if that could be read.
fn read_tests(
    table: &Table<'_>,
    policy: Option<&str>,
    environment: &Environment<'_>,
) -> Result<Vec<String>, TasksetError> {
    let accepted = "names of tests, like [\"gfb\", \"bar\"]";
    table.each("tests", accepted, |item| {
        let test = item.name(accepted)?;
        if let Some(policy) = policy {
            (environment.test)(policy, test).map_err(|problem| item.refused(problem))?;
        }
        Ok(test.to_owned())
    })
}
