//! Work done by other computers, as on a cluster: cutting it into chunks, and storing their
//! results.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::clock::{Clock, Effort};
use crate::error::StudyError;
use crate::part::{self, PartError};
use crate::plan::Plan;
use crate::store::{Store, name_of};
use crate::work::{Batch, Work};

/// Cuts work into chunks that take one thread about as long as `each`: long compared with the cost
/// of distributing them, and short enough that the loss of a worker costs little. No chunk is
/// empty. Chunks come in the order in which all cells advance together, so that a study which is
/// interrupted has about as many task sets in each.
///
/// How long task sets take is measured on a few of them, for at most about a second, and whatever else runs here; results do
/// not depend on it.
///
/// # Errors
/// If a task set cannot be drawn.
pub fn chunks(
    plan: &Plan,
    work: &[Work],
    each: Duration,
    goes_on: impl Fn() -> bool,
) -> Result<Vec<Vec<Work>>, StudyError> {
    let paces = paces(plan, work, goes_on)?;
    Ok(cut(work, &paces, each.as_nanos() as f64))
}

/// How long is measured in all, and in one cell.
const PROBE: Duration = Duration::from_secs(1);
const PROBE_OF_CELL: Duration = Duration::from_millis(10);

/// How many task sets of a cell are tried at most.
const TRIED_MAX: u64 = 64;

/// How many nanoseconds one task set of each range takes.
fn paces(plan: &Plan, work: &[Work], goes_on: impl Fn() -> bool) -> Result<Vec<f64>, StudyError> {
    let clock = Clock::start();
    let mut known: Vec<Option<f64>> = vec![None; work.len()];
    for place in spread(work.len()) {
        // One at least, or nothing is known at all.
        let is_first = known.iter().all(Option::is_none);
        let in_time = || is_first || clock.elapsed() < PROBE;
        if !(in_time() && goes_on()) {
            break;
        }
        known[place] = Some(pace(plan, work[place], || in_time() && goes_on())?);
    }
    Ok((0..work.len()).map(|place| near(&known, place)).collect())
}

/// Nanoseconds per task set of this range, estimated from a few of them.
fn pace(plan: &Plan, work: Work, goes_on: impl Fn() -> bool) -> Result<f64, StudyError> {
    let mut sets = 1;
    loop {
        let few = Work {
            last: work.last.min(work.first + sets),
            ..work
        };
        let effort = Effort::start();
        let done = plan.run_work(few, &goes_on)?.work.sets();
        let took = effort.spent();
        // One that was given up takes as long at least.
        let each = took.as_nanos() as f64 / done.max(1) as f64;
        let is_enough = took >= PROBE_OF_CELL || sets >= TRIED_MAX || few.last == work.last;
        if is_enough || !goes_on() {
            return Ok(each);
        }
        sets *= 2;
    }
}

/// All places below `count`, so that the first of them lie far apart, however many there are: the first, the middle,
/// the quarters, and so on.
fn spread(count: usize) -> Vec<usize> {
    let bits = usize::BITS - count.saturating_sub(1).leading_zeros();
    let reversed = |place: usize| match bits {
        0 => place,
        bits => place.reverse_bits() >> (usize::BITS - bits),
    };
    let places = (0..1_usize << bits).map(reversed);
    places.filter(|&place| place < count).collect()
}

/// The pace of a place, or the slower of its neighbours'; nothing known is no time at all.
fn near(known: &[Option<f64>], place: usize) -> f64 {
    let before = known[..=place].iter().rev().flatten().next();
    let after = known[place..].iter().flatten().next();
    [before, after]
        .into_iter()
        .flatten()
        .fold(0.0, |one, &other| one.max(other))
}

/// Cuts ranges with these paces into chunks of `each` nanoseconds.
fn cut(work: &[Work], paces: &[f64], each: f64) -> Vec<Vec<Work>> {
    let mut pieces: Vec<(Work, f64)> = Vec::new();
    for (&range, &pace) in work.iter().zip(paces) {
        let sets = range.sets();
        let fitting = ((each / pace.max(1.0)) as u64).max(1);
        let count = sets.div_ceil(fitting);
        // Pieces that differ by one task set at most, and none that is only a rest.
        let at = |piece: u64| {
            let product = u128::from(sets) * u128::from(piece) / u128::from(count);
            range.first + product as u64
        };
        pieces.extend((0..count).map(|piece| {
            let (first, last) = (at(piece), at(piece + 1));
            let piece = Work {
                first,
                last,
                ..range
            };
            (piece, piece.sets() as f64 * pace)
        }));
    }
    pieces.sort_by_key(|(piece, _)| (piece.first, piece.cell));
    let mut chunks: Vec<Vec<Work>> = Vec::new();
    let mut room = 0.0;
    for (piece, takes) in pieces {
        match chunks.last_mut() {
            Some(chunk) if takes <= room => chunk.push(piece),
            _ => {
                chunks.push(vec![piece]);
                room = each;
            }
        }
        room -= takes;
    }
    chunks
}

/// Keeps parts that were made elsewhere, as one if they fit together. What else is in the folder is not looked at: it
/// may be much, and whatever is there more than once counts once. Returns how many task sets the parts have.
///
/// # Errors
/// If a part is damaged or of another study, or cannot be written. Nothing is kept if one of them cannot be used.
pub fn keep(plan: &Plan, folder: &Path, parts: &[Vec<u8>]) -> Result<u64, StudyError> {
    let mut batches = Vec::with_capacity(parts.len());
    let mut known = BTreeSet::new();
    for bytes in parts {
        let name = name_of(bytes);
        let batch = part::decode(plan, bytes).map_err(|error| StudyError::Refused {
            part: name.clone(),
            problem: match error {
                PartError::Foreign => {
                    "it is of another study, or was made with other overheads or by another version"
                        .to_owned()
                }
                PartError::Damaged(problem) => format!("it is damaged ({problem})"),
            },
        })?;
        if known.insert(name) {
            batches.push(batch);
        }
    }
    let all = batches.concat();
    let batches = match overlap(&all) {
        true => batches,
        false => vec![all],
    };
    let mut store = Store::unopened(plan, folder)?;
    let mut sets = 0;
    for batch in batches.into_iter().filter(|batch| !batch.is_empty()) {
        let kept = store.put(&part::encode(plan, batch));
        sets += kept.map_err(|error| with_what_is_there(plan, folder, error))?;
    }
    Ok(sets)
}

fn overlap(batch: &Batch) -> bool {
    let mut ranges: Vec<Work> = batch.iter().map(|counted| counted.work).collect();
    ranges.sort_unstable();
    let overlaps = |pair: &[Work]| pair[0].cell == pair[1].cell && pair[1].first < pair[0].last;
    ranges.windows(2).any(overlaps)
}

/// The same error with what is in the folder.
fn with_what_is_there(plan: &Plan, folder: &Path, error: StudyError) -> StudyError {
    match (error, Store::open(plan, folder)) {
        (StudyError::Write { path, error, .. }, Ok(store)) => {
            let (kept, parts) = store.kept();
            StudyError::Write {
                path,
                error,
                kept,
                parts,
            }
        }
        (error, _) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(cell: usize, first: u64, last: u64) -> Work {
        Work { cell, first, last }
    }

    #[test]
    fn places_far_apart_come_first() {
        assert_eq!(spread(0), [0; 0]);
        assert_eq!(spread(1), [0]);
        assert_eq!(spread(8), [0, 4, 2, 6, 1, 5, 3, 7]);
        for count in 0..70 {
            let mut places = spread(count);
            places.sort_unstable();
            assert_eq!(places, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_was_not_measured_is_as_slow_as_its_neighbours() {
        let known = [None, Some(5.0), None, None, Some(9.0), None];
        let paces: Vec<f64> = (0..6).map(|place| near(&known, place)).collect();
        assert_eq!(paces, [5.0, 5.0, 9.0, 9.0, 9.0, 9.0]);
        assert_eq!(near(&[Some(9.0), None, Some(5.0)], 1), 9.0);
        assert_eq!(near(&[None], 0), 0.0);
    }

    #[test]
    fn chunks_are_everything_once_and_none_is_too_long() {
        for seed in 1..=300 {
            let mut random = shiftwork_model::RandomStream::new(seed, 0, 0);
            let ranges: Vec<Work> = (0..1 + random.below(9) as usize)
                .map(|cell| {
                    let first = random.below(50);
                    work(cell, first, first + 1 + random.below(200))
                })
                .collect();
            let paces: Vec<f64> = ranges.iter().map(|_| random.below(400) as f64).collect();
            let each = 1.0 + random.below(5_000) as f64;
            let chunks = cut(&ranges, &paces, each);
            for chunk in &chunks {
                let takes: f64 = chunk
                    .iter()
                    .map(|work| work.sets() as f64 * paces[work.cell])
                    .sum();
                let is_one = chunk.len() == 1 && chunk[0].sets() == 1;
                assert!(takes <= each || is_one, "seed {seed}: {chunk:?} of {each}");
                assert!(!chunk.is_empty() && chunk.iter().all(|work| work.sets() > 0));
            }
            // The last one may be short, and so may one before a piece that does not fit into it.
            let short = chunks.windows(2).find(|pair| {
                let of = |work: &Work| work.sets() as f64 * paces[work.cell];
                pair[0].iter().map(of).sum::<f64>() + of(&pair[1][0]) <= each
            });
            assert_eq!(short, None, "seed {seed}: of {each}");
            let mut all = chunks.concat();
            assert!(all.is_sorted_by_key(|work| (work.first, work.cell)));
            all.sort_unstable();
            let mut joined: Vec<Work> = Vec::new();
            for piece in all {
                match joined.last_mut() {
                    Some(last) if (last.cell, last.last) == (piece.cell, piece.first) => {
                        last.last = piece.last;
                    }
                    _ => joined.push(piece),
                }
            }
            assert_eq!(joined, ranges, "seed {seed}");
        }
    }
}
