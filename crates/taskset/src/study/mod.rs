//! Study files: which task sets to draw, and what to ask about each.
//!
//! A study is a table of *families* of task sets against *contenders*: policies with what they cost. A family
//! has a cell for each of its loads; in a cell all contenders are asked about the same task sets. Keys that
//! several families share stand under `[tasks]`.

mod contender;
mod family;

use shiftwork_model::Span;

use crate::error::TasksetError;
use crate::keys::{Environment, Key, Takes, may, must};
use crate::kind::Kind;
use crate::place::Place;
use crate::tree::{Source, Table, Value};

pub use contender::{Affinities, Contender, Criterion, Packing};
pub use family::{Count, Draw, Family, Load};

/// What a study file says.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyFile {
    /// For people.
    pub name: String,
    /// The seed of everything.
    pub seed: u64,
    /// How many task sets are drawn for each cell.
    pub sets: u64,
    /// How much each test may do.
    pub steps: u64,
    /// The quantum of quantum-driven policies; `None` for the usual one.
    pub quantum: Option<Span>,
    /// The path of the overhead file, as the file names it; `None` if scheduling costs nothing.
    pub overheads: Option<String>,
    /// The families of task sets, in the order of the file.
    pub families: Vec<Family>,
    /// The contenders, in the order of the file.
    pub contenders: Vec<Contender>,
}

/// The keys of a study file.
pub(crate) static KEYS: [Key; 9] = [
    must("name", Takes::Name, "The name of the study."),
    may(
        "seed",
        Takes::Whole(0, u32::MAX),
        "The seed of all random numbers; default 0.",
    ),
    must(
        "sets",
        Takes::Whole(1, u32::MAX),
        "How many task sets are drawn for each cell.",
    ),
    may(
        "max-steps",
        Takes::Whole(1, u32::MAX),
        "How many steps each test may take before it gives up; default 200000.",
    ),
    may(
        "quantum",
        Takes::Duration,
        "The quantum of quantum-driven policies.",
    ),
    may(
        "overheads",
        Takes::Name,
        "The path of an overhead file, relative to this file, or \"none\"; default none.",
    ),
    may(
        "tasks",
        Takes::Table(&family::SHARED_KEYS),
        "What all families share; without [[family]] the only family.",
    ),
    may(
        "family",
        Takes::List(&Takes::Table(&family::KEYS), 0),
        "Families of task sets; what one does not say, [tasks] does.",
    ),
    must(
        "policy",
        Takes::List(&Takes::Table(&contender::KEYS), 1),
        "The policies that are asked about, each with its options.",
    ),
];

/// How much each test may do where a file says nothing: the exact tests of small sets end by then, and the
/// rest of large ones is left unknown soon.
const STEPS: u64 = 200_000;

/// Reads a study file, which may name any policies and tests.
///
/// # Errors
/// Everything that is wrong, each mistake with its place and with what would be accepted.
pub fn read(text: &str) -> Result<StudyFile, TasksetError> {
    read_in(text, &Environment::default())
}

/// As [`read`], with policies and tests that `environment` knows.
///
/// # Errors
/// As [`read`].
pub fn read_in(text: &str, environment: &Environment<'_>) -> Result<StudyFile, TasksetError> {
    let source = Source::parse(text)?;
    source.finish(read_file(&source, environment))
}

fn read_file<'t>(
    source: &'t Source<'t>,
    environment: &Environment<'_>,
) -> Result<StudyFile, TasksetError> {
    let file = source.root(Kind::Study, &KEYS)?;
    let name = file.need_map("name", "name = \"G-EDF or P-EDF\"", |value| {
        value.name("the name of the study")
    });
    let sets = file.need_map("sets", "sets = 1000", |value| value.integer(1, u32::MAX));
    let families = family::read(&file);
    let names = family::names(&file);
    let contenders = contender::read(&file, &names, environment);
    let seed = count(&file, "seed", 0, 0);
    let steps = count(&file, "max-steps", 1, STEPS);
    let quantum = file.map("quantum", Value::positive_span);
    let overheads = overheads(&file);
    Ok(StudyFile {
        name: name?.to_owned(),
        seed: seed?,
        sets: u64::from(sets?),
        steps: steps?,
        quantum: quantum?,
        overheads: overheads?.flatten(),
        families: families?,
        contenders: contenders?,
    })
}

fn count(table: &Table<'_>, key: &str, least: u32, otherwise: u64) -> Result<u64, TasksetError> {
    let number = table.map(key, |value| value.integer(least, u32::MAX))?;
    Ok(number.map_or(otherwise, u64::from))
}

/// The key `overheads`: a path, or `Some(None)` where the file says that scheduling costs nothing.
fn overheads(table: &Table<'_>) -> Result<Option<Option<String>>, TasksetError> {
    let path = table.map("overheads", |value| {
        value.name("the path of an overhead file, or \"none\"")
    })?;
    Ok(path.map(|path| (path != "none").then(|| path.to_owned())))
}

/// Notes a name. It must not have been used before.
fn keep_name(
    known: &mut Vec<(String, Place)>,
    name: &str,
    value: &Value<'_>,
) -> Result<(), TasksetError> {
    if let Some((_, first)) = known.iter().find(|(other, _)| other == name) {
        return Err(value.out_of_range(
            format!("\"{name}\" again"),
            format!("a name of its own; {first} has this one"),
        ));
    }
    known.push((name.to_owned(), value.place()));
    Ok(())
}
