//! What comes of a study: one row for each cell and question.

use std::fs;
use std::path::Path;

use crate::error::StudyError;
use crate::plan::Plan;
use crate::table::{self, Column, PROGRAM, Values};
use crate::tally::Tally;

/// The name of the file with the results of a whole study.
pub const RESULTS: &str = "results.parquet";

/// The name of the file with the results so far, while a study is not complete.
pub const PARTIAL: &str = "partial.parquet";

const STUDY: &str = "shiftwork.name";
const DIGEST: &str = "shiftwork.study";
const VERSION: &str = "shiftwork.version";

/// The answers to one question about the task sets of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The family of the task sets.
    pub family: String,
    /// How many CPUs there are.
    pub cpus: u64,
    /// The utilization that was asked for, in CPUs.
    pub cap: f64,
    /// The policy.
    pub policy: String,
    /// What the contender is called.
    pub label: String,
    /// `hard`, `soft` or `simulated`.
    pub criterion: String,
    /// The overhead file, as the study names it; `None` if scheduling cost nothing.
    pub overheads: Option<String>,
    /// How many task sets were asked about.
    pub sets: u64,
    /// For how many the criterion was shown to be met; of simulations, how many missed no deadline.
    pub met: u64,
    /// For how many it was shown not to be met.
    pub refuted: u64,
    /// For how many there is a bound on tardiness.
    pub bounded: u64,
    /// The mean of these bounds, rounded down, in nanoseconds; `None` without any.
    pub tardiness_mean_ns: Option<u64>,
    /// The largest of them, in nanoseconds; `None` without any.
    pub tardiness_max_ns: Option<u64>,
}

impl Row {
    /// For how many task sets nothing was shown.
    pub const fn unknown(&self) -> u64 {
        self.sets
            .saturating_sub(self.met)
            .saturating_sub(self.refuted)
    }

    /// The share for which the criterion was shown to be met; `None` without any task set.
    pub fn ratio(&self) -> Option<f64> {
        (self.sets > 0).then(|| self.met as f64 / self.sets as f64)
    }

    /// Between which shares the true one lies with a confidence of 95%; `None` without any task set.
    ///
    /// # Source
    /// E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", Journal of the
    /// American Statistical Association 22(158), 1927. Unlike the usual interval it is right for shares near 0 and 1,
    /// and never leaves them.
    pub fn interval(&self) -> Option<[f64; 2]> {
        // Only operations that are rounded the same way everywhere: the bytes of results do not depend on machines.
        const Z: f64 = 1.959_963_984_540_054;
        let share = self.ratio()?;
        let count = self.sets as f64;
        let shrink = 1.0 + Z * Z / count;
        let middle = (share + Z * Z / (2.0 * count)) / shrink;
        let spread = share * (1.0 - share) / count + Z * Z / (4.0 * count * count);
        let half = Z * spread.sqrt() / shrink;
        let low = if self.met == 0 { 0.0 } else { middle - half };
        let high = if self.met == self.sets {
            1.0
        } else {
            middle + half
        };
        Some([low.max(0.0), high.min(1.0)])
    }
}

/// All results of a study, or those so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The name of the study.
    pub name: String,
    /// The digest of the study, [`Plan::digest`].
    pub digest: String,
    /// The rows: cell by cell, question by question, in the order of the study.
    pub rows: Vec<Row>,
}

impl Results {
    /// The results with these sums, as [`Store::sums`](crate::Store::sums) gives them.
    pub fn new(plan: &Plan, sums: &[Vec<Tally>]) -> Self {
        let mut rows = Vec::new();
        for (cell, tallies) in plan.cells.iter().zip(sums) {
            for (&question, tally) in cell.asked.iter().zip(tallies) {
                let question = &plan.questions[question];
                let contender = &plan.contenders[question.contender];
                let overheads = contender.file.overheads.as_ref();
                let mean = tally.tardiness_sum_ns.checked_div(tally.bounded);
                rows.push(Row {
                    family: plan.family(cell).name.clone(),
                    cpus: cell.cpus as u64,
                    cap: cell.load.cap(cell.cpus) as f64 / 1_000.0,
                    policy: contender.entry.name.to_owned(),
                    label: contender.file.label.clone(),
                    criterion: question.kind.name().to_owned(),
                    overheads: overheads.unwrap_or(&plan.file.overheads).clone(),
                    sets: tally.sets,
                    met: tally.met,
                    refuted: tally.refuted,
                    bounded: tally.bounded,
                    tardiness_mean_ns: mean,
                    tardiness_max_ns: mean.map(|_| tally.tardiness_max_ns),
                });
            }
        }
        Self {
            name: plan.file.name.clone(),
            digest: plan.digest(),
            rows,
        }
    }

    /// The bytes of the Parquet file. The same results are always the same bytes.
    pub fn encode(&self) -> Vec<u8> {
        let facts = [
            (STUDY, self.name.clone()),
            (DIGEST, self.digest.clone()),
            (VERSION, PROGRAM.to_owned()),
        ];
        table::encode(&columns(&self.rows), &facts)
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let table = table::decode(bytes, &columns(&[]))?;
        let fact = |name: &str| {
            let found = table.fact(name).map(str::to_owned);
            found.ok_or_else(|| format!("it does not say `{name}`"))
        };
        let [name, digest] = [fact(STUDY)?, fact(DIGEST)?];
        let rows = rows(table.columns).ok_or("a column is shorter than others")?;
        let sound = |row: &Row| {
            row.met.saturating_add(row.refuted) <= row.sets
                && row.bounded <= row.sets
                && row.cap.is_finite()
        };
        match rows.iter().all(sound) {
            true => Ok(Self { name, digest, rows }),
            false => Err("counts that cannot be".to_owned()),
        }
    }

    /// Reads a file of results.
    ///
    /// # Errors
    /// If it cannot be read, or is no such file.
    pub fn read(path: &Path) -> Result<Self, StudyError> {
        let bytes = fs::read(path).map_err(|error| StudyError::Read {
            path: path.display().to_string(),
            problem: format!("cannot be read: {error}"),
        })?;
        Self::decode(&bytes).map_err(|problem| StudyError::Results {
            path: path.display().to_string(),
            problem,
        })
    }
}

/// The columns of the file.
fn columns(rows: &[Row]) -> Vec<Column> {
    fn of<V>(rows: &[Row], value: impl Fn(&Row) -> V) -> Vec<V> {
        rows.iter().map(value).collect()
    }
    let text = |value: fn(&Row) -> &String| Values::Text(of(rows, |row| value(row).clone()));
    let whole = |value: fn(&Row) -> u64| Values::Whole(of(rows, value));
    let real = |value: fn(&Row) -> Option<f64>| Values::RealOrNot(of(rows, value));
    let span = |value: fn(&Row) -> Option<u64>| Values::WholeOrNot(of(rows, value));
    let columns = [
        ("family", text(|row| &row.family)),
        ("cpus", whole(|row| row.cpus)),
        ("cap", Values::Real(of(rows, |row| row.cap))),
        ("policy", text(|row| &row.policy)),
        ("label", text(|row| &row.label)),
        ("criterion", text(|row| &row.criterion)),
        (
            "overheads",
            Values::TextOrNot(of(rows, |row| row.overheads.clone())),
        ),
        ("sets", whole(|row| row.sets)),
        ("met", whole(|row| row.met)),
        ("refuted", whole(|row| row.refuted)),
        ("unknown", whole(Row::unknown)),
        ("ratio", real(Row::ratio)),
        ("low", real(|row| row.interval().map(|[low, _]| low))),
        ("high", real(|row| row.interval().map(|[_, high]| high))),
        ("bounded", whole(|row| row.bounded)),
        ("tardiness_mean_ns", span(|row| row.tardiness_mean_ns)),
        ("tardiness_max_ns", span(|row| row.tardiness_max_ns)),
    ];
    columns
        .into_iter()
        .map(|(name, values)| Column { name, values })
        .collect()
}

/// The rows of a table of that shape; `None` if its columns are not equally long. What follows from other columns is
/// computed again.
fn rows(columns: Vec<Values>) -> Option<Vec<Row>> {
    use Values::{Real, RealOrNot, Text, TextOrNot, Whole, WholeOrNot};
    let columns: [Values; 17] = columns.try_into().ok()?;
    let [
        Text(family),
        Whole(cpus),
        Real(cap),
        Text(policy),
        Text(label),
        Text(criterion),
        TextOrNot(overheads),
        Whole(sets),
        Whole(met),
        Whole(refuted),
        Whole(_),
        RealOrNot(_),
        RealOrNot(_),
        RealOrNot(_),
        Whole(bounded),
        WholeOrNot(mean),
        WholeOrNot(max),
    ] = columns
    else {
        return None;
    };
    let row = |at: usize| {
        Some(Row {
            family: family.get(at)?.clone(),
            cpus: *cpus.get(at)?,
            cap: *cap.get(at)?,
            policy: policy.get(at)?.clone(),
            label: label.get(at)?.clone(),
            criterion: criterion.get(at)?.clone(),
            overheads: overheads.get(at)?.clone(),
            sets: *sets.get(at)?,
            met: *met.get(at)?,
            refuted: *refuted.get(at)?,
            bounded: *bounded.get(at)?,
            tardiness_mean_ns: *mean.get(at)?,
            tardiness_max_ns: *max.get(at)?,
        })
    };
    (0..family.len()).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(sets: u64, met: u64) -> Row {
        Row {
            family: "light".to_owned(),
            cpus: 4,
            cap: 2.5,
            policy: "g-edf".to_owned(),
            label: "G-EDF".to_owned(),
            criterion: "hard".to_owned(),
            overheads: None,
            sets,
            met,
            refuted: 0,
            bounded: 0,
            tardiness_mean_ns: None,
            tardiness_max_ns: None,
        }
    }

    /// The definition: at both ends the share that was found is 1.96 standard deviations away.
    #[test]
    fn intervals_are_those_of_wilson() {
        for (sets, met) in [
            (10, 5),
            (1_000, 1),
            (7, 6),
            (100_000, 31_415),
            (3, 0),
            (3, 3),
        ] {
            let row = row(sets, met);
            let ratio = row.ratio().unwrap();
            for end in row.interval().unwrap() {
                let deviation = (end * (1.0 - end) / sets as f64).sqrt();
                let away = (ratio - end).abs() - 1.959_963_984_540_054 * deviation;
                assert!(away.abs() < 1e-12, "{met} of {sets}: {end}, off by {away}");
            }
        }
        // Computed by hand: 5 of 10 is 0.5 ± 0.5 / √(1 + 1.96² / 10) × 1.96 / √10.
        let [low, high] = row(10, 5).interval().unwrap();
        assert!((low - 0.236_593).abs() < 1e-6 && (high - 0.763_407).abs() < 1e-6);
    }

    #[test]
    fn intervals_contain_the_share() {
        for sets in 1..=60 {
            for met in 0..=sets {
                let row = row(sets, met);
                let [low, high] = row.interval().unwrap();
                let ratio = row.ratio().unwrap();
                assert!(0.0 <= low && low <= ratio && ratio <= high && high <= 1.0);
            }
        }
    }

    #[test]
    fn nothing_is_no_share() {
        assert_eq!((row(0, 0).ratio(), row(0, 0).interval()), (None, None));
    }

    #[test]
    fn results_are_read_as_they_were_written() {
        let bounded = Row {
            overheads: Some("niagara-2008.toml".to_owned()),
            bounded: 3,
            tardiness_mean_ns: Some(1_500),
            tardiness_max_ns: Some(7_000),
            ..row(10, 7)
        };
        let results = Results {
            name: "a study".to_owned(),
            digest: "0123456789abcdef".to_owned(),
            rows: vec![bounded, row(0, 0)],
        };
        let bytes = results.encode();
        assert_eq!(Results::decode(&bytes).unwrap(), results);
        assert_eq!(bytes, Results::decode(&bytes).unwrap().encode());
    }
}
