//! What tests inside have in common that run a task set from within: the run, and its company.
//!
//! They only keep the records: where one CPU computes for all of the machine's, whatever is computed
//! meanwhile takes its time from the tasks.

use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::thread::{CpuSet, sched_setaffinity};
use shiftwork_cli::catalogue;
use shiftwork_live::{Attention, Backend, Ended, Options, Plan, Report, run_while};
use shiftwork_model::{CpuId, Order, PolicyTraits, Record, Recorder as _, Span, TaskSet};
use shiftwork_policy::registry::traits::STRONG;
use shiftwork_trace::{Counters, RunSummary};

/// A task set for tests that want nothing of it but that it can be run.
pub const SMALL: &str = r#"
name = "one"
[platform]
cpus = 1
[[task]]
name = "one"
cost = "1ms"
period = "100ms"
"#;

/// What a run left behind.
pub struct Ran {
    /// The task set.
    pub set: TaskSet,
    /// What it measured.
    pub report: Report,
    /// The records.
    pub records: Vec<Record>,
    /// What they amount to.
    pub summary: RunSummary,
}

/// Runs the task set of this file with its own affinities, on the guest's CPUs from 1 on.
///
/// # Errors
/// If it did not come to its end, if the kernel's state was not right, or if records were lost.
pub fn run(file: &str, order: Order, span: Span) -> Result<Ran, String> {
    run_by(file, order, span, |_| Ok(Backend::Kernel))
}

/// The same under this policy of the catalogue, where an agent decides.
///
/// # Errors
/// As [`run`], and if there is no such policy, or it refuses the task set.
pub fn run_by_agent(file: &str, policy: &str, span: Span) -> Result<Ran, String> {
    let mut policies = catalogue::policies();
    let entry = policies.find(|entry| entry.name == policy);
    let entry = entry.ok_or("there is no such policy")?;
    run_by(file, entry.traits.order, span, |set| {
        let policy = entry.build(set).map_err(|error| error.to_string())?;
        Ok(Backend::Agent(policy, Attention::Dedicated))
    })
}

fn run_by(
    file: &str,
    order: Order,
    span: Span,
    backend: impl FnOnce(&TaskSet) -> Result<Backend, String>,
) -> Result<Ran, String> {
    let ran = run_as_it_comes(file, order, span, backend)?;
    let report = &ran.report;
    match (report.lost, report.fault, &report.ended) {
        (0, None, Ended::Horizon) => Ok(ran),
        (lost, fault, ended) => Err(format!("{lost} records lost, fault {fault:?}, {ended:?}")),
    }
}

/// The same, however it ends.
///
/// # Errors
/// If it could not be run at all.
pub fn run_as_it_comes(
    file: &str,
    order: Order,
    span: Span,
    backend: impl FnOnce(&TaskSet) -> Result<Backend, String>,
) -> Result<Ran, String> {
    let set = shiftwork_taskset::read(file).map_err(|error| error.to_string())?;
    let backend = backend(&set)?;
    let plan = Plan {
        set: &set,
        traits: PolicyTraits { order, ..STRONG },
        bound: set.tasks.iter().map(|task| task.affinity).collect(),
        cpus: (1..=set.platform.cpus).map(CpuId::from_index).collect(),
    };
    let options = Options {
        horizon: span,
        seed: 1,
        reserve: set.scheduler.reserve,
        trace_bytes: Options::TRACE_BYTES,
        pin: None,
    };
    let mut records = Vec::with_capacity(100_000);
    let report = run_while(&plan, &options, backend, None, &mut records, &mut |_| true)
        .map_err(|error| error.to_string())?;
    let mut counters = Counters::new(&set, set.platform.cpus);
    for record in &records {
        counters.record(record.at, &record.kind);
    }
    let summary = counters.finish(report.reached);
    Ok(Ran {
        set,
        report,
        records,
        summary,
    })
}

/// What a command wrote to stderr.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

/// Ordinary threads of this process that compute, each bound to one CPU, while this exists.
pub struct Hogs {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Hogs {
    /// One for each of these CPUs of the guest.
    pub fn on(cpus: impl IntoIterator<Item = usize>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let hog = |cpu| {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                let mut only = CpuSet::new();
                only.set(cpu);
                sched_setaffinity(None, &only).unwrap();
                while !over.load(Ordering::Relaxed) {
                    // In the emulator no other CPU computes before this one pauses.
                    std::hint::spin_loop();
                }
            })
        };
        let threads = cpus.into_iter().map(hog).collect();
        Self { over, threads }
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // One that failed to bind itself has said so.
            let _ = thread.join();
        }
    }
}
