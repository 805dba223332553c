//! What the studies of the repository find, in sizes that take minutes.

use std::fmt::Write;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use shiftwork_study::{Plan, Results, Row, Tally, Work};
use shiftwork_taskset::study::{self, StudyFile};

/// The answers of all cells of a study.
#[derive(Debug)]
pub struct Outcome {
    /// What was asked.
    pub plan: Plan,
    /// How many task sets each cell has.
    pub sets: u64,
    /// What was answered.
    results: Results,
}

/// The answers to one question, load by load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// A row for each load.
    pub rows: Vec<Row>,
}

/// A share of all task sets, over all loads alike.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// From 0 to 1.
    pub mean: f64,
    /// Half of a 95% confidence interval.
    pub within: f64,
}

/// The studies of the repository.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies")
}

/// What a study file of the repository says.
///
/// # Errors
/// In words, if there is none of this name, or it says something wrong.
pub fn read(name: &str) -> Result<StudyFile, String> {
    let path = folder().join(name);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()));
    study::read(&text?).map_err(|error| format!("{}: {error}", path.display()))
}

/// The plan of a study of the repository.
///
/// # Errors
/// In words, if there is none of this name, or it says something wrong.
pub fn plan(name: &str) -> Result<Plan, String> {
    Plan::load(&folder().join(name)).map_err(|error| error.to_string())
}

/// The answers about the first sets of a cell, as [`Cell::asked`](shiftwork_study::Cell::asked) lists the questions.
///
/// # Errors
/// In words, if a set cannot be drawn.
pub fn cell(plan: &Plan, number: usize, sets: u64) -> Result<Vec<Tally>, String> {
    let work = Work {
        cell: number,
        first: 0,
        last: sets,
    };
    let counted = plan.run_work(work, || true);
    Ok(counted.map_err(|error| error.to_string())?.tallies)
}

impl Outcome {
    /// Draws so many sets for each cell and asks everything about each, on all CPUs. Nothing is kept on disk.
    ///
    /// # Errors
    /// In words, if a set cannot be drawn.
    pub fn of(plan: Plan, sets: u64) -> Result<Self, String> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= plan.cells.len() {
                    return done;
                }
                done.push((number, cell(&plan, number, sets)));
            }
        };
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let mut cells: Vec<_> = thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let joined = workers.into_iter().map(|worker| worker.join());
            joined
                .flat_map(|done| done.expect("a worker does not panic"))
                .collect()
        });
        cells.sort_by_key(|&(number, _)| number);
        let sums = cells.into_iter().map(|(_, tallies)| tallies);
        let sums: Vec<_> = sums.collect::<Result<_, _>>()?;
        Ok(Self {
            results: Results::new(&plan, &sums),
            plan,
            sets,
        })
    }

    /// What was found about sets of this family under the contender of this label; `kind` is `hard`, `soft` or
    /// `simulated`.
    ///
    /// # Errors
    /// In words, if it was not asked.
    pub fn series(&self, family: &str, label: &str, kind: &str) -> Result<Series, String> {
        let is_it =
            |row: &&Row| row.family == family && row.label == label && row.criterion == kind;
        let rows: Vec<Row> = self.results.rows.iter().filter(is_it).cloned().collect();
        match rows.is_empty() {
            true => Err(format!("{family}: no result for {label} and {kind}")),
            false => Ok(Series { rows }),
        }
    }

    /// The names of all families.
    pub fn families(&self) -> impl Iterator<Item = &str> {
        self.plan.file.families.iter().map(|one| one.name.as_str())
    }

    /// All answers as lines of values that commas separate.
    pub fn csv(&self) -> String {
        HEAD.to_owned() + "\n" + &csv(&self.results.rows)
    }
}

const HEAD: &str = "family,cpus,cap,contender,criterion,sets,met,refuted,bounded,tardiness_mean_ns,tardiness_max_ns";

/// The lines of these rows in [`Outcome::csv`].
pub fn csv(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let [mean, max] = [row.tardiness_mean_ns, row.tardiness_max_ns]
            .map(|ns| ns.map_or_else(String::new, |ns| ns.to_string()));
        writeln!(
            text,
            "{},{},{},\"{}\",{},{},{},{},{},{mean},{max}",
            row.family,
            row.cpus,
            row.cap,
            row.label,
            row.criterion,
            row.sets,
            row.met,
            row.refuted,
            row.bounded,
        )
        .expect("a string takes everything");
    }
    text
}

/// The lines of one cell in [`Outcome::csv`].
///
/// # Errors
/// In words, if a set cannot be drawn.
pub fn csv_of_cell(plan: &Plan, number: usize, sets: u64) -> Result<String, String> {
    let mut sums = vec![Vec::new(); plan.cells.len()];
    sums[number] = cell(plan, number, sets)?;
    Ok(csv(&Results::new(plan, &sums).rows))
}

impl Series {
    /// The share of sets of which the criterion was shown, each load counting as much as any other.
    pub fn met(&self) -> Share {
        let (mut sum, mut variance) = (0.0, 0.0);
        for row in &self.rows {
            let sets = row.sets.max(1) as f64;
            sum += row.ratio().unwrap_or(0.0);
            // As if one more set had been met and one more not, so that no load is taken to be certain.
            let likely = (row.met as f64 + 1.0) / (sets + 2.0);
            variance += likely * (1.0 - likely) / sets;
        }
        let loads = self.rows.len().max(1) as f64;
        Share {
            mean: sum / loads,
            within: 1.96 * variance.sqrt() / loads,
        }
    }

    /// The same in thousandths of all sets, rounded down, if all loads have as many.
    pub fn permille(&self) -> u64 {
        let sum = |of: fn(&Row) -> u64| self.rows.iter().map(of).sum::<u64>();
        sum(|row| row.met) * 1_000 / sum(|row| row.sets).max(1)
    }
}

impl Share {
    /// In percent, to a tenth: `61.3`.
    pub fn percent(&self) -> String {
        format!("{:.1}", self.mean * 100.0)
    }

    /// With the half of its confidence interval: `61.3 ± 0.4`.
    pub fn with_interval(&self) -> String {
        format!("{} ± {:.1}", self.percent(), self.within * 100.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    const SMALL: &str = "name = \"small\"\nsets = 1\n[tasks]\ncpus = 2\ncaps = [0.5, 1.5, 2]\nutilizations = \
                         \"uniform-medium\"\n[[family]]\nname = \"a\"\n[[family]]\nname = \"b\"\nperiods = [\"3ms\", \"33ms\"]\n\
                         [[policy]]\nname = \"g-edf\"\n[[policy]]\nname = \"p-edf\"\nfamilies = [\"b\"]\n";

    fn small() -> Plan {
        Plan::new(study::read(SMALL).unwrap(), Path::new("small.toml")).unwrap()
    }

    fn row(sets: u64, met: u64) -> Row {
        let mut tally = Tally::default();
        (tally.sets, tally.met) = (sets, met);
        let plan = small();
        let mut sums = vec![Vec::new(); plan.cells.len()];
        sums[0] = vec![tally];
        Results::new(&plan, &sums).rows.remove(0)
    }

    #[test]
    fn every_load_counts_as_much() {
        let series = Series {
            rows: vec![row(10, 10), row(1_000, 0)],
        };
        let share = series.met();
        assert_eq!(share.percent(), "50.0");
        assert!(share.within > 0.0 && share.within < 0.2, "{share:?}");
        assert_eq!(Series::default().met().percent(), "0.0");
        assert_eq!(series.permille(), 9);
    }

    /// Counts one set after the other, in the order of the file.
    #[test]
    fn counts_by_cell_equal_counts_of_the_whole_study() {
        let plan = small();
        let one_by_one: String = (0..plan.cells.len())
            .map(|number| csv_of_cell(&plan, number, 9).unwrap())
            .collect();
        let outcome = Outcome::of(plan, 9).unwrap();
        assert_eq!(outcome.csv(), format!("{HEAD}\n{one_by_one}"));
        assert_eq!(one_by_one.lines().count(), 3 * 2 + 3 * 4);
        let series = outcome.series("b", "p-edf", "soft").unwrap();
        let caps: Vec<f64> = series.rows.iter().map(|row| row.cap).collect();
        assert_eq!(caps, [0.5, 1.5, 2.0]);
        for (family, label) in [("a", "p-edf"), ("c", "g-edf"), ("a", "c-edf")] {
            assert!(
                outcome.series(family, label, "hard").is_err(),
                "{family} {label}"
            );
        }
    }
}
