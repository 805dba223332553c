//! What a policy makes of a task set, exactly.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use shiftwork_model::{Budgets, Instant, RecordKind, Recorder, Span, TaskSet as Set};
use shiftwork_policy::PolicyError as Refusal;
use shiftwork_sim::{Options, Simulation};
use shiftwork_taskset::overheads::{OverheadFile, Use};
use shiftwork_trace::{Counters, JobRow, Jobs, Segment, Segments};
use shiftwork_verbs::{catalogue, simulate as prepare};

use crate::columns::Columns;
use crate::failure::{policy, wrong};
use crate::overheads::Overheads;
use crate::set::TaskSet;
use crate::wait::interruptible;

/// What is to be simulated.
struct Order {
    set: Arc<Set>,
    policy: String,
    horizon: Instant,
    seed: u64,
    /// With what they are called.
    overheads: Option<(String, Arc<OverheadFile>, Use)>,
    reserve_server: bool,
    keeps_jobs: bool,
    keeps_schedule: bool,
}

/// What came of it.
struct Run {
    /// In the shape of `shiftwork simulate --json`.
    json: String,
    jobs: Option<Vec<JobRow>>,
    /// Whether servers have deadlines of their own.
    has_servers: bool,
    segments: Option<Vec<Segment>>,
    packing: Option<Vec<String>>,
    refused: Vec<(u64, usize, String)>,
}

/// Why nothing came of it.
enum Failed {
    Refused(Refusal),
    NoOverheads(String),
}

/// Simulates the task set under the policy with this name. The dictionary has `json`, in the shape of
/// `shiftwork simulate --json`; `jobs` and `segments`, columns or `None`; `packing`, the CPUs to which
/// the policy bound each task, or `None`; and `refused`: when, which action (from 0) and why.
#[pyfunction]
#[pyo3(signature = (set, policy_name, *, horizon_ns, seed, overheads, purpose, reserve_server, jobs, schedule))]
#[expect(clippy::too_many_arguments, reason = "keywords, as Python names them")]
pub fn simulate<'py>(
    py: Python<'py>,
    set: &TaskSet,
    policy_name: String,
    horizon_ns: u64,
    seed: u64,
    overheads: Option<(String, PyRef<'py, Overheads>)>,
    purpose: &str,
    reserve_server: bool,
    jobs: bool,
    schedule: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let purpose = Use::named(purpose).ok_or_else(|| {
        wrong(format!(
            "`overheads_use` is \"{purpose}\"; write \"worst\" or \"average\""
        ))
    })?;
    let order = Order {
        set: Arc::clone(&set.0),
        policy: policy_name,
        horizon: Instant::ZERO + Span::from_ns(horizon_ns),
        seed,
        overheads: overheads.map(|(name, file)| (name, Arc::clone(&file.0), purpose)),
        reserve_server,
        keeps_jobs: jobs,
        keeps_schedule: schedule,
    };
    let run = interruptible(py, move |stop| order.carry_out(stop))?;
    let run = run.map_err(|failed| match failed {
        Failed::Refused(error) => policy(&error),
        Failed::NoOverheads(message) => wrong(message),
    })?;
    run.to_dict(py)
}

/// Everything that takes the records of a run.
struct Kept {
    counters: Counters,
    jobs: Option<Jobs<Vec<JobRow>>>,
    segments: Option<Segments>,
    refused: Vec<(u64, usize, String)>,
}

impl Recorder for Kept {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        self.counters.record(at, kind);
        self.jobs.record(at, kind);
        self.segments.record(at, kind);
        if let RecordKind::Refused { action, reason } = kind {
            self.refused.push((at.as_ns(), *action, reason.to_string()));
        }
    }
}

impl Order {
    /// Simulates to the horizon, or until `stop` is set: then the result is discarded.
    fn carry_out(&self, stop: &AtomicBool) -> Result<Run, Failed> {
        let set = &*self.set;
        let entry = catalogue::find(&self.policy).map_err(Failed::Refused)?;
        let overheads = self.overheads.as_ref();
        let overheads = overheads.map(|(name, file, purpose)| {
            let found = prepare::overheads(file, *purpose, entry);
            found.map_err(|error| Failed::NoOverheads(format!("{name}: {error}")))
        });
        let overheads = overheads.transpose()?;
        let policy = prepare::policy(set, entry, overheads.as_ref()).map_err(Failed::Refused)?;
        let packing = policy.packing().map(|bound| {
            let lists = bound.iter().map(ToString::to_string);
            lists.collect()
        });
        let options = Options {
            seed: self.seed,
            horizon: self.horizon,
            overheads,
            reserve_server: self.reserve_server || set.scheduler.reserve_server,
        };
        let mut kept = Kept {
            counters: Counters::new(set, set.platform.cpus),
            jobs: self.keeps_jobs.then(|| Jobs::new(set, Vec::new())),
            segments: self
                .keeps_schedule
                .then(|| Segments::new(set.platform.cpus)),
            refused: Vec::new(),
        };
        let simulation = Simulation::new(set, policy, &entry.traits, options);
        let goes_on = |_| !stop.load(Ordering::Relaxed);
        let (outcome, reached) = simulation.run_while(&mut kept, goes_on);
        let summary = kept.counters.finish(reached);
        Ok(Run {
            json: summary.to_json(entry.name, outcome.events).to_string(),
            jobs: kept.jobs.map(|jobs| jobs.finish(reached)),
            has_servers: entry.traits.budgets != Budgets::OfJobs,
            segments: kept.segments.map(|segments| segments.finish(reached)),
            packing,
            refused: kept.refused,
        })
    }
}

impl Run {
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = |columns: Option<Columns>| columns.map(|it| it.to_dict(py)).transpose();
        let run = PyDict::new(py);
        run.set_item("json", &self.json)?;
        let jobs = self.jobs.as_deref();
        let jobs = jobs.map(|rows| match self.has_servers {
            true => Columns::of_jobs(rows).with_servers(rows),
            false => Columns::of_jobs(rows),
        });
        run.set_item("jobs", columns(jobs)?)?;
        let segments = self.segments.as_deref().map(Columns::of_segments);
        run.set_item("segments", columns(segments)?)?;
        run.set_item("packing", &self.packing)?;
        run.set_item("refused", &self.refused)?;
        Ok(run)
    }
}
