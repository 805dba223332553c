//! Study files: which task sets to draw, and what to ask about each.
//!
//! A study is a table of *families* of task sets against *contenders*: policies with what they cost. A family
//! has a cell for each of its loads; in a cell all contenders are asked about the same task sets. Keys that
//! several families share stand under `[tasks]`.

mod contender;
mod family;

use shiftwork_model::Span;

use crate::error::TasksetError;
use crate::place::Place;
use crate::tree::{Table, Value, parse};

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

const KEYS: [&str; 9] = [
    "name",
    "seed",
    "sets",
    "max-steps",
    "quantum",
    "overheads",
    "tasks",
    "family",
    "policy",
];

/// How much each test may do where a file says nothing: the exact tests of small sets end by then, and the
/// rest of large ones is left unknown soon.
const STEPS: u64 = 200_000;

/// Reads a study file.
///
/// # Errors
/// The first thing that is wrong, with its place and with what would be accepted.
pub fn read(text: &str) -> Result<StudyFile, TasksetError> {
    let tree = parse(text)?;
    let file = Table::root(text, &tree, "a study file", &KEYS)?;
    let name = file.need("name", "name = \"G-EDF or P-EDF\"")?;
    let sets = file.need("sets", "sets = 1000")?;
    let families = family::read(&file)?;
    let names: Vec<&str> = families.iter().map(|one| one.name.as_str()).collect();
    let contenders = contender::read(&file, &names)?;
    Ok(StudyFile {
        name: name.name("the name of the study")?.to_owned(),
        seed: count(&file, "seed", 0, 0)?,
        sets: u64::from(sets.integer(1, u32::MAX)?),
        steps: count(&file, "max-steps", 1, STEPS)?,
        quantum: file.map("quantum", Value::positive_span)?,
        overheads: overheads(&file)?.flatten(),
        families,
        contenders,
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

/// Notes a name, which nobody may have had before.
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
