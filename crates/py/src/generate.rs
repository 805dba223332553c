//! Random task sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use shiftwork_model::Span;
use shiftwork_taskset::generate::{
    Deadlines, Distribution, Key, Options, Periods, Shape, Spread, Utilizations, generate as draw,
};

use crate::failure::{refused, wrong};
use crate::set::TaskSet;
use crate::wait::interruptible;

/// How utilizations are drawn, beside the names of [`Distribution::ALL`].
const SUMS: [&str; 3] = ["randfixedsum", "uunifast", "uunifast-discard"];

/// The arguments of `generate`, under the names of its keywords.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Wanted {
    cpus: usize,
    tasks: usize,
    utilization: Option<f64>,
    method: String,
    period_min_ns: u64,
    period_max_ns: u64,
    granularity_ns: u64,
    periods: String,
    deadlines: String,
    affinities: String,
    cluster_size: Option<usize>,
    min_cost_ns: u64,
    feasible: bool,
    attempts: u32,
}

/// Draws `count` task sets from `index` on; stops at the first that cannot be drawn, which is the error if
/// there is none before it.
///
/// After Ctrl-C the set that was begun is drawn to its end, unseen.
#[pyfunction]
#[pyo3(signature = (wanted, *, seed, cell, index, count))]
pub fn generate(
    py: Python<'_>,
    wanted: &Bound<'_, PyAny>,
    seed: u64,
    cell: u64,
    index: u64,
    count: u64,
) -> PyResult<Vec<TaskSet>> {
    let options = wanted.extract::<Wanted>()?.options()?;
    let drawn = interruptible(py, move |stop| {
        let mut sets = Vec::new();
        for index in (index..index.saturating_add(count)).take_while(|_| !is_set(stop)) {
            match draw(&options, Key { seed, cell, index }) {
                Ok(set) => sets.push(Arc::new(set)),
                Err(error) if sets.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(sets)
    })?;
    let sets = drawn.map_err(|error| refused(&error))?;
    Ok(sets.into_iter().map(TaskSet).collect())
}

fn is_set(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Relaxed)
}

impl Wanted {
    /// The defaults are those of the command line.
    fn options(&self) -> PyResult<Options> {
        let total = self
            .utilization
            .unwrap_or((self.cpus as f64 / 2.0).max(0.5));
        if !(total.is_finite() && total > 0.0) {
            return Err(wrong(format!(
                "`utilization` is {total}, which is no load; write a number above 0, like 2.5"
            )));
        }
        let cluster = self.cluster_size.unwrap_or(self.cpus.div_ceil(2));
        Ok(Options {
            cpus: self.cpus,
            utilizations: self.utilizations(total)?,
            periods: Periods {
                shortest: Span::from_ns(self.period_min_ns),
                longest: Span::from_ns(self.period_max_ns),
                granularity: Span::from_ns(self.granularity_ns),
                spread: one_of(("periods", &self.periods), &Spread::ALL)?,
            },
            deadlines: one_of(("deadlines", &self.deadlines), &Deadlines::ALL)?,
            shape: one_of(("affinities", &self.affinities), &Shape::all(cluster))?,
            min_cost: Span::from_ns(self.min_cost_ns),
            feasible: self.feasible,
            attempts: self.attempts,
        })
    }

    fn utilizations(&self, total: f64) -> PyResult<Utilizations> {
        let tasks = self.tasks;
        let sums = [
            Utilizations::RandFixedSum { tasks, total },
            Utilizations::UUniFast { tasks, total },
            Utilizations::UUniFastDiscard { tasks, total },
        ];
        let until = Distribution::ALL.map(|(name, distribution)| {
            let cap = total;
            (name, Utilizations::UntilCap { distribution, cap })
        });
        let known: Vec<(&str, Utilizations)> = SUMS.into_iter().zip(sums).chain(until).collect();
        one_of(("method", &self.method), &known)
    }
}

/// What a keyword's word means.
fn one_of<T: Clone>((keyword, word): (&str, &str), known: &[(&str, T)]) -> PyResult<T> {
    let found = known.iter().find(|(name, _)| *name == word);
    found.map(|(_, meaning)| meaning.clone()).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        wrong(format!(
            "`{keyword}` is \"{word}\"; write one of {}",
            names.join(", ")
        ))
    })
}
