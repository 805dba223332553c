//! Parts: what is kept of work that was done, as Parquet.

use crate::plan::Plan;
use crate::table::{self, Column, PROGRAM, Values};
use crate::tally::Tally;
use crate::work::{Batch, Counted, Work, join};

/// Where a part says of which study it is.
const DIGEST: &str = "shiftwork.study";

/// Where a part says what wrote it.
const WRITER: &str = "shiftwork.version";

/// What is wrong with a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartError {
    /// It is of another study.
    Foreign,
    /// It cannot be used.
    Damaged(String),
}

const NAMES: [&str; 10] = [
    "cell",
    "first",
    "last",
    "question",
    "sets",
    "met",
    "refuted",
    "bounded",
    "tardiness_sum_ns",
    "tardiness_max_ns",
];

/// The bytes of a part: one row for each range and question. The same work is always the same bytes, in whatever
/// order it comes. Ranges must not overlap.
pub fn encode(plan: &Plan, batch: Batch) -> Vec<u8> {
    let mut columns: [Vec<u64>; 10] = Default::default();
    for Counted { work, tallies } in join(batch) {
        let asked = &plan.cells[work.cell].asked;
        for (&question, tally) in asked.iter().zip(&tallies) {
            let row = [
                work.cell as u64,
                work.first,
                work.last,
                question as u64,
                tally.sets,
                tally.met,
                tally.refuted,
                tally.bounded,
                tally.tardiness_sum_ns,
                tally.tardiness_max_ns,
            ];
            for (column, value) in columns.iter_mut().zip(row) {
                column.push(value);
            }
        }
    }
    let facts = [(DIGEST, plan.digest()), (WRITER, PROGRAM.to_owned())];
    table::encode(&shape(columns), &facts)
}

/// Reads a part of this study.
///
/// # Errors
/// If it is of another one, or no part at all.
pub fn decode(plan: &Plan, bytes: &[u8]) -> Result<Batch, PartError> {
    let like = shape(Default::default());
    let table = table::decode(bytes, &like).map_err(PartError::Damaged)?;
    match table.fact(DIGEST) {
        None => return Err(PartError::Damaged("it names no study".to_owned())),
        Some(digest) if digest != plan.digest() => return Err(PartError::Foreign),
        Some(_) => {}
    }
    let columns: Vec<Vec<u64>> = table
        .columns
        .into_iter()
        .filter_map(|values| match values {
            Values::Whole(values) => Some(values),
            _ => None,
        })
        .collect();
    batch_of(plan, &columns).map_err(PartError::Damaged)
}

fn shape(columns: [Vec<u64>; 10]) -> Vec<Column> {
    let columns = NAMES.into_iter().zip(columns);
    columns
        .map(|(name, values)| Column {
            name,
            values: Values::Whole(values),
        })
        .collect()
}

/// Puts rows together: each range has one for each question of its cell, in their order.
fn batch_of(plan: &Plan, columns: &[Vec<u64>]) -> Result<Batch, String> {
    let rows = columns[0].len();
    let mut batch = Batch::new();
    let mut row = 0;
    while row < rows {
        let [cell, first, last] = [0, 1, 2].map(|column: usize| columns[column][row]);
        let known = usize::try_from(cell).ok();
        let asked = known.and_then(|cell| plan.cells.get(cell));
        let asked = asked.map(|cell| &cell.asked[..]).unwrap_or_default();
        if asked.is_empty() || first >= last {
            return Err(format!(
                "row {row}: no range {first}..{last} in cell {cell}"
            ));
        }
        let mut tallies = Vec::with_capacity(asked.len());
        for &question in asked {
            let expected = [cell, first, last, question as u64, last - first];
            let value = |column: usize| columns[column].get(row).copied();
            if (0..5).any(|column| value(column) != Some(expected[column])) {
                return Err(format!(
                    "row {row}: not question {question} of the range {first}..{last} of cell {cell}"
                ));
            }
            tallies.push(tally_of(columns, row)?);
            row += 1;
        }
        let work = Work {
            cell: cell as usize,
            first,
            last,
        };
        batch.push(Counted { work, tallies });
    }
    let overlaps = |pair: &[Counted]| {
        let [before, after] = [pair[0].work, pair[1].work];
        after <= before || before.cell == after.cell && after.first < before.last
    };
    match batch.windows(2).any(overlaps) {
        true => Err("ranges overlap or are not sorted".to_owned()),
        false => Ok(batch),
    }
}

fn tally_of(columns: &[Vec<u64>], row: usize) -> Result<Tally, String> {
    let tally = Tally {
        sets: columns[4][row],
        met: columns[5][row],
        refuted: columns[6][row],
        bounded: columns[7][row],
        tardiness_sum_ns: columns[8][row],
        tardiness_max_ns: columns[9][row],
    };
    let decided = tally.met.checked_add(tally.refuted);
    let counts =
        decided.is_some_and(|decided| decided <= tally.sets) && tally.bounded <= tally.sets;
    match counts && tally.tardiness_max_ns <= tally.tardiness_sum_ns {
        true => Ok(tally),
        false => Err(format!("row {row}: counts that cannot be")),
    }
}
