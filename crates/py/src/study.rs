//! Studies: run here, or cut into chunks for others.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use shiftwork_study::{
    Batch, Options, Plan, Progress, Remark, Results, Shard, Store, StudyError, Work, chunks,
    conclude, keep, part, read, run,
};

use crate::failure::{refused, study as failed, wrong};
use crate::wait::{interruptible, watched};

/// A study with the texts of all files that it needs.
#[pyclass(frozen, module = "shiftwork._shiftwork")]
pub struct Study {
    plan: Arc<Plan>,
    files: BTreeMap<String, String>,
}

/// A range of task sets: the cell, the first index and the one after the last.
type Range = (usize, u64, u64);

#[pymethods]
impl Study {
    /// Reads the text of a study file that lies at `path`. `files` has the texts of overhead files by their paths; without
    /// it they are read where they lie. `sets` stands for what the file says.
    #[staticmethod]
    #[pyo3(signature = (text, path, *, files, sets))]
    fn read(
        text: &str,
        path: &str,
        files: Option<BTreeMap<String, String>>,
        sets: Option<u64>,
    ) -> PyResult<Self> {
        let mut file = read(text).map_err(|error| refused(&error))?;
        file.sets = sets.unwrap_or(file.sets);
        let mut seen = BTreeMap::new();
        let mut text_of = |path: &Path| {
            let name = path.display().to_string();
            let text = match &files {
                Some(files) => files
                    .get(&name)
                    .cloned()
                    .ok_or_else(|| io::Error::other("was not sent along"))?,
                None => std::fs::read_to_string(path)?,
            };
            seen.insert(name, text.clone());
            Ok(text)
        };
        let plan = Plan::with_files(file, Path::new(path), &mut text_of);
        let plan = plan.map_err(|error| match error {
            // The folder of no study is concerned, but what the study says.
            StudyError::Read { .. } => wrong(error.to_string()),
            error => failed(error),
        })?;
        Ok(Self {
            plan: Arc::new(plan),
            files: seen,
        })
    }

    /// The texts of the overhead files, by their paths.
    #[getter]
    fn files(&self) -> BTreeMap<String, String> {
        self.files.clone()
    }

    /// For people.
    #[getter]
    fn name(&self) -> &str {
        &self.plan.file.name
    }

    /// How many task sets are drawn for each cell.
    #[getter]
    fn sets(&self) -> u64 {
        self.plan.file.sets
    }

    /// How many task sets there are in all cells of which anything is asked.
    #[getter]
    fn total(&self) -> u64 {
        Shard::ALL.sets(&self.plan)
    }

    /// Identifies the study.
    #[getter]
    fn digest(&self) -> String {
        self.plan.digest()
    }

    /// Family, CPUs, utilization and the places of the questions of each cell.
    fn cells(&self) -> Vec<(&str, usize, f64, Vec<usize>)> {
        let cells = self.plan.cells.iter();
        cells
            .map(|cell| {
                let cap = cell.load.cap(cell.cpus) as f64 / 1_000.0;
                (
                    self.plan.family(cell).name.as_str(),
                    cell.cpus,
                    cap,
                    cell.asked.clone(),
                )
            })
            .collect()
    }

    /// Label, policy and criterion of each question.
    fn questions(&self) -> Vec<(&str, &str, &str)> {
        let questions = self.plan.questions.iter();
        questions
            .map(|question| {
                let contender = &self.plan.contenders[question.contender];
                (
                    contender.file.label.as_str(),
                    contender.entry.name,
                    question.kind.name(),
                )
            })
            .collect()
    }

    /// Runs what is missing in the folder. `shard` is a number, from 1, of so many. `progress` is
    /// called with the number of task sets that are done, their total, the seconds that this has
    /// run and the seconds left, if known. Returns what [`results`](Self::results) does.
    ///
    /// After Ctrl-C, or if `progress` fails, what was done is kept first; a second Ctrl-C waits for nothing.
    #[pyo3(signature = (folder, *, threads, shard, progress))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        folder: PathBuf,
        threads: usize,
        shard: (u64, u64),
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let shard = Shard::new(shard.0, shard.1).ok_or_else(|| {
            wrong(format!(
                "`shard` is {shard:?}; write which share of how many, like (1, 8) up to (8, 8)"
            ))
        })?;
        let plan = Arc::clone(&self.plan);
        let reached = Arc::new(Mutex::new(None));
        let latest = Arc::clone(&reached);
        let work = move |stop: &AtomicBool| {
            let mut watch = |progress: &Progress| {
                *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(*progress);
                !stop.load(Ordering::Relaxed)
            };
            run(&plan, &folder, Options { threads, shard }, &mut watch)
        };
        let mut last = None;
        let mut tell = |_: Python<'_>| {
            let now = *reached.lock().unwrap_or_else(PoisonError::into_inner);
            match (progress, now) {
                (Some(progress), Some(now)) if last != Some(now) => {
                    last = Some(now);
                    let left = now.left.map(|left| left.as_secs_f64());
                    progress.call1((now.done, now.total, now.elapsed.as_secs_f64(), left))?;
                    Ok(())
                }
                _ => Ok(()),
            }
        };
        let (outcome, raised) = watched(py, work, &mut tell)?;
        let outcome = outcome.map_err(|error| {
            let failure = failed(error);
            failure.set_cause(py, raised.as_ref().map(|raised| raised.clone_ref(py)));
            failure
        })?;
        if let Some(raised) = raised {
            let (kept, parts) = outcome.kept;
            let note = format!(
                "{kept} task sets are kept in {parts} parts; the same call goes on from there"
            );
            raised.value(py).call_method1("add_note", (note,))?;
            return Err(raised);
        }
        tell(py)?;
        table(py, &outcome.results, &outcome.remarks, outcome.missing)
    }

    /// What is missing in the folder, cut into chunks that take a thread so many seconds.
    #[pyo3(signature = (folder, *, shard, seconds))]
    fn missing(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        shard: (u64, u64),
        seconds: f64,
    ) -> PyResult<Vec<Vec<Range>>> {
        let shard = Shard::new(shard.0, shard.1).ok_or_else(|| {
            wrong(format!(
                "`shard` is {shard:?}; write which share of how many, like (1, 8) up to (8, 8)"
            ))
        })?;
        let each = Duration::try_from_secs_f64(seconds)
            .ok()
            .filter(|each| !each.is_zero());
        let each = each.ok_or_else(|| {
            wrong(format!(
                "`seconds` is {seconds}; write a number above 0, like 2"
            ))
        })?;
        let plan = Arc::clone(&self.plan);
        let found = interruptible(py, move |stop| {
            let work = Store::open(&plan, &folder)?.missing(shard);
            chunks(&plan, &work, each, || !stop.load(Ordering::Relaxed))
        })?;
        let ranges = |chunk: Vec<Work>| {
            chunk
                .into_iter()
                .map(|work| (work.cell, work.first, work.last))
                .collect()
        };
        Ok(found.map_err(failed)?.into_iter().map(ranges).collect())
    }

    /// Asks about all task sets of these ranges, which must not overlap; returns the part.
    fn run_chunk<'py>(&self, py: Python<'py>, ranges: Vec<Range>) -> PyResult<Bound<'py, PyBytes>> {
        let mut work: Vec<Work> = Vec::with_capacity(ranges.len());
        for (cell, first, last) in ranges {
            let is_there =
                cell < self.plan.cells.len() && first < last && last <= self.plan.file.sets;
            if !is_there {
                return Err(wrong(format!(
                    "the chunk has task sets {first} to {last} of cell {cell}, which is no range of this study"
                )));
            }
            work.push(Work { cell, first, last });
        }
        work.sort_unstable();
        if work
            .windows(2)
            .any(|pair| pair[0].cell == pair[1].cell && pair[1].first < pair[0].last)
        {
            return Err(wrong("the chunk has a task set twice".to_owned()));
        }
        let plan = Arc::clone(&self.plan);
        let done = interruptible(py, move |stop| {
            let done = work
                .iter()
                .map(|&work| plan.run_work(work, || !stop.load(Ordering::Relaxed)));
            let batch = done.collect::<Result<Batch, StudyError>>()?;
            Ok(part::encode(&plan, batch))
        })?;
        Ok(PyBytes::new(py, &done.map_err(failed)?))
    }

    /// Keeps parts in the folder; returns how many task sets they have.
    fn keep(&self, py: Python<'_>, folder: PathBuf, parts: Vec<Vec<u8>>) -> PyResult<u64> {
        py.detach(|| keep(&self.plan, &folder, &parts))
            .map_err(failed)
    }

    /// Puts together what is in the folder: the path of the file, and what [`results`](Self::results) returns.
    fn merge<'py>(
        &self,
        py: Python<'py>,
        folder: PathBuf,
    ) -> PyResult<(PathBuf, Bound<'py, PyDict>)> {
        let found = self.look(py, folder, conclude)?;
        let ((results, path), remarks, missing) = found;
        Ok((path, table(py, &results, &remarks, missing)?))
    }

    /// The results of what is in the folder, as columns.
    fn results<'py>(&self, py: Python<'py>, folder: PathBuf) -> PyResult<Bound<'py, PyDict>> {
        let found = self.look(py, folder, |store, plan| {
            Ok(Results::new(plan, &store.sums()?))
        })?;
        let (results, remarks, missing) = found;
        table(py, &results, &remarks, missing)
    }
}

impl Study {
    /// Opens the folder and finds something out; with what was noticed there and how many task sets are missing.
    fn look<T: Send + 'static>(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        find: impl FnOnce(&Store<'_>, &Plan) -> Result<T, StudyError> + Send + 'static,
    ) -> PyResult<(T, Vec<Remark>, u64)> {
        let plan = Arc::clone(&self.plan);
        let found = interruptible(py, move |_| {
            let store = Store::open(&plan, &folder)?;
            let missing = store.missing(Shard::ALL).iter().map(Work::sets).sum();
            Ok((find(&store, &plan)?, store.remarks().to_vec(), missing))
        })?;
        found.map_err(failed)
    }
}

/// Reads a file of results, as columns.
#[pyfunction]
pub fn read_results(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let results = py.detach(|| Results::read(&path)).map_err(failed)?;
    table(py, &results, &[], 0)
}

/// `name` and `digest` of the study, how many task sets are `missing`, what was noticed in the folder (`damaged` parts apart from
/// other `remarks`), and the `columns` of the results.
fn table<'py>(
    py: Python<'py>,
    results: &Results,
    remarks: &[Remark],
    missing: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let rows = &results.rows;
    let columns = PyDict::new(py);
    macro_rules! column {
        ($name:literal, $value:expr) => {
            columns.set_item($name, rows.iter().map($value).collect::<Vec<_>>())?;
        };
    }
    column!("family", |row| row.family.as_str());
    column!("cpus", |row| row.cpus);
    column!("cap", |row| row.cap);
    column!("policy", |row| row.policy.as_str());
    column!("label", |row| row.label.as_str());
    column!("criterion", |row| row.criterion.as_str());
    column!("overheads", |row| row.overheads.as_deref());
    column!("sets", |row| row.sets);
    column!("met", |row| row.met);
    column!("refuted", |row| row.refuted);
    column!("unknown", |row| row.unknown());
    column!("ratio", |row| row.ratio());
    column!("low", |row| row.interval().map(|[low, _]| low));
    column!("high", |row| row.interval().map(|[_, high]| high));
    column!("bounded", |row| row.bounded);
    column!("tardiness_mean_ns", |row| row.tardiness_mean_ns);
    column!("tardiness_max_ns", |row| row.tardiness_max_ns);
    let (damaged, others): (Vec<&Remark>, Vec<_>) = remarks
        .iter()
        .partition(|remark| matches!(remark, Remark::Damaged { .. }));
    let text = |remarks: Vec<&Remark>| remarks.iter().map(ToString::to_string).collect::<Vec<_>>();
    let table = PyDict::new(py);
    table.set_item("name", &results.name)?;
    table.set_item("digest", &results.digest)?;
    table.set_item("missing", missing)?;
    table.set_item("damaged", text(damaged))?;
    table.set_item("remarks", text(others))?;
    table.set_item("columns", columns)?;
    Ok(table)
}
