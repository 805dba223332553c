//! What is kept of a run, simulated or live: the counters, the files written while it goes on, and the
//! page made afterwards.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use shiftwork_model::{
    Affinity, Budgets, Instant, Invariant, Record, RecordKind, Recorder, Span, TaskSet,
};
use shiftwork_policy::PolicyError;
use shiftwork_policy::registry::Entry;
use shiftwork_report::{Bound, Limits, Provenance, Run, html};
use shiftwork_trace::{
    Counters, Inversions, JobTable, PackedRecords, Records, RunSummary, check, perfetto,
};

use super::analyze;
use super::chosen::is_random;
use crate::args::RecordingArgs;
use crate::failure::Failure;
use crate::input::Input;
use crate::output_files::{self, OutputFile};

/// The program and its version, for provenance.
const TOOL: &str = concat!("shiftwork ", env!("CARGO_PKG_VERSION"));

type ToFile = BufWriter<File>;

/// What is to be kept of the runs of one command, and what they all have in common.
pub struct Recording<'a> {
    /// What the command line asks for.
    pub args: &'a RecordingArgs,
    /// Where the task set comes from.
    pub input: &'a Input,
    /// What is run.
    pub set: &'a TaskSet,
    /// The name of the machine: `sim` or `kernel`.
    pub machine: &'static str,
    /// The verb, for the command line that repeats it.
    pub verb: &'static str,
    /// Options of that verb that change what comes of it, each with a space before it.
    pub options: String,
    /// Whether scheduling itself takes simulated time.
    pub has_overheads: bool,
    /// Whether background work may take the reserve from tasks.
    pub takes_reserve: bool,
    /// Whether priority inversions are asked for.
    pub inversions: bool,
}

impl Recording<'_> {
    /// Refuses to write over the task-set file or the overhead file, or two files under one name, for runs under these
    /// policies.
    pub fn check_files(&self, entries: &[&Entry], overheads: Option<&str>) -> Result<(), Failure> {
        let Self { args, input, .. } = *self;
        let several = entries.len() > 1;
        let of_run = |entry: &&Entry| {
            let named = |path: &PathBuf| path_of_run(path, entry, several);
            [
                OutputFile::of("--jobs", args.jobs.as_ref().map(named)),
                OutputFile::of("--trace", args.trace.as_ref().map(named)),
            ]
        };
        let outputs = entries.iter().flat_map(of_run).flatten();
        let report = OutputFile::of("--report", args.report.as_ref());
        let inputs = [input.path.as_str()].into_iter().chain(overheads);
        output_files::check(inputs, outputs.chain(report))
    }

    /// The end of the time that was asked for.
    pub fn wanted(&self) -> Instant {
        Instant::ZERO + self.args.horizon
    }

    /// The seed, if anything depends on it.
    pub fn seed(&self) -> Option<u64> {
        is_random(self.set).then_some(self.args.seed)
    }

    /// What the trace says about where it comes from. The task set is written anew, so that it means
    /// the same on a machine with other CPUs or without the file of another tool.
    fn origin(&self, entry: &Entry) -> perfetto::Provenance {
        perfetto::Provenance {
            tool: TOOL.to_owned(),
            policy: entry.name.to_owned(),
            seed: self.seed(),
            horizon: self.wanted(),
            task_set: shiftwork_taskset::write(self.set),
        }
    }

    fn provenance(&self, entry: &Entry) -> Provenance {
        Provenance {
            version: TOOL.to_owned(),
            policy: entry.name.to_owned(),
            seed: self.seed(),
            command: self.command(entry),
            input: self.input.path.clone(),
            input_hash: self.input.hash(),
            machine: self.machine.to_owned(),
        }
    }

    /// A command line that makes this run again.
    fn command(&self, entry: &Entry) -> String {
        format!(
            "shiftwork {} {} --policy {} --for {} --seed {}{}",
            self.verb, self.input.path, entry.name, self.args.horizon, self.args.seed, self.options
        )
    }

    /// Whether priority inversions are looked for. That may take several times as long as the simulation,
    /// so it is done where they are shown side by side or on a page, where they are to be expected, and on
    /// request.
    fn looks_for_inversions(&self, entry: &Entry, several: bool) -> bool {
        let expected = entry.traits.invariant == Invariant::PushPull;
        let shown = several || self.args.report.is_some();
        // Ranks by laxity change between records.
        let is_fixed = !entry.traits.order.is_by_laxity();
        self.machine == "sim" && is_fixed && (self.inversions || shown || expected)
    }

    /// What analysis shows of the response times in this run; overheads are in no bound, nor what live
    /// machines take.
    fn bounds(&self, run: &Finished) -> Vec<Option<Bound>> {
        match self.has_overheads || self.machine != "sim" {
            true => Vec::new(),
            false => {
                let policy = run.entry.name;
                analyze::bounds(self.set, policy, analyze::STEPS, self.takes_reserve)
            }
        }
    }

    /// What the policy of the run promises there.
    pub fn contract(&self, run: &Finished) -> check::PolicyContract {
        check::PolicyContract {
            immediate: self.machine == "sim" && !self.has_overheads,
            ..check::PolicyContract::of(&run.entry.traits, run.packing.clone())
        }
    }

    /// Writes the page about all runs, if there is to be one, with the reasons why policies were left out.
    pub fn write_report(
        &self,
        finished: &[Finished],
        left_out: &[PolicyError],
    ) -> Result<(), Failure> {
        let Some(path) = &self.args.report else {
            return Ok(());
        };
        let runs: Vec<Run<'_>> = finished
            .iter()
            .map(|run| Run {
                set: self.set,
                records: run.all_records(),
                summary: &run.summary,
                contract: Some(self.contract(run)),
                bounds: self.bounds(run),
                provenance: self.provenance(run.entry),
            })
            .collect();
        let left_out: Vec<String> = left_out.iter().map(PolicyError::to_string).collect();
        let page = html(&runs, &left_out, &Limits::default());
        fs::write(path, page).map_err(|error| failed(path, &error))
    }
}

/// A run that is over.
pub struct Finished {
    /// The policy that made it.
    pub entry: &'static Entry,
    /// Where the policy bound each task, if it binds any.
    pub packing: Option<Vec<Affinity>>,
    /// What came of it. Its horizon is the one that was reached.
    pub summary: RunSummary,
    /// How many events the policy took.
    pub events: u64,
    /// The first timed changes that were refused: when, which, and why.
    pub refused: Vec<(Instant, usize, Box<str>)>,
    /// Why one of its files is not complete.
    pub failure: Option<Failure>,
    /// Everything that happened, if it is to be compared or explained.
    pub records: Option<Vec<Record>>,
    /// The same in less memory, if only a page is to be made of it.
    page: Option<PackedRecords>,
}

impl Finished {
    /// Everything that happened, if it was kept for any purpose; else nothing.
    pub fn all_records(&self) -> Records<'_> {
        match (&self.records, &self.page) {
            (Some(records), _) => records.into(),
            (None, Some(packed)) => packed.into(),
            (None, None) => Records::default(),
        }
    }
}

/// Everything that takes the records of one run.
pub struct Outputs {
    counters: Counters,
    inversions: Option<Inversions>,
    jobs: Option<(PathBuf, JobTable<ToFile>)>,
    trace: Option<(PathBuf, perfetto::Writer<ToFile>)>,
    records: Option<Vec<Record>>,
    page: Option<PackedRecords>,
    refused: Vec<(Instant, usize, Box<str>)>,
}

/// So many refused changes are printed; the others are in the trace.
const REFUSED_MAX: usize = 10;

impl Recorder for Outputs {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        self.counters.record(at, kind);
        self.inversions.record(at, kind);
        if let RecordKind::Refused { action, reason } = kind
            && self.refused.len() < REFUSED_MAX
        {
            self.refused.push((at, *action, reason.clone()));
        }
        if let Some((_, jobs)) = &mut self.jobs {
            jobs.record(at, kind);
        }
        if let Some((_, trace)) = &mut self.trace {
            trace.record(at, kind);
        }
        self.records.record(at, kind);
        self.page.record(at, kind);
    }
}

impl Outputs {
    /// Creates the files that the command line asks for, and looks whether the page, which is written in the end,
    /// can be written. If there are several runs, the policy's
    /// name goes into the names of the files.
    pub fn create(
        recording: &Recording<'_>,
        entry: &Entry,
        several: bool,
    ) -> Result<Self, Failure> {
        let Recording { args, set, .. } = *recording;
        if let Some(page) = &args.report {
            check_writable(page)?;
        }
        let path = |path: &PathBuf| path_of_run(path, entry, several);
        let jobs = match &args.jobs {
            Some(file) => {
                let path = path(file);
                let file = create(&path)?;
                // Elsewhere a server follows the releases.
                let table = match entry.traits.budgets {
                    Budgets::OfJobs => JobTable::new(set, file),
                    _ => JobTable::with_server_deadlines(set, file),
                };
                Some((path, table))
            }
            None => None,
        };
        let trace = match &args.trace {
            Some(file) => {
                let path = path(file);
                let writer = perfetto::Writer::new(set, &recording.origin(entry), create(&path)?);
                // Only a real machine can be lost in the middle, and what it did cannot be had again.
                let writer = match recording.machine {
                    "kernel" => writer.with_patience(Span::from_ms(100)),
                    _ => writer,
                };
                let writer = if args.sched_switch {
                    writer.with_sched_switch(set)
                } else {
                    writer
                };
                Some((path, writer))
            }
            None => None,
        };
        Ok(Self {
            counters: Counters::new(set, set.platform.cpus),
            inversions: recording
                .looks_for_inversions(entry, several)
                .then(|| Inversions::new(set, entry.traits.order)),
            jobs,
            trace,
            records: args.explain.then(Vec::new),
            page: (args.report.is_some() && !args.explain).then(PackedRecords::default),
            refused: Vec::new(),
        })
    }

    /// Keeps every record in memory, also if none is to be explained.
    pub fn keep_records(&mut self) {
        self.records.get_or_insert_default();
        self.page = None;
    }

    /// Completes the files of a run that covers the time to `horizon`.
    pub fn finish(
        self,
        entry: &'static Entry,
        packing: Option<Vec<Affinity>>,
        events: u64,
        horizon: Instant,
    ) -> Finished {
        let jobs = self.jobs.and_then(|(path, table)| {
            let flushed = table.finish(horizon).and_then(|mut file| file.flush());
            flushed.err().map(|error| failed(&path, &error))
        });
        let trace = self.trace.and_then(|(path, writer)| {
            let flushed = writer.finish(horizon).and_then(|mut file| file.flush());
            flushed.err().map(|error| failed(&path, &error))
        });
        let mut summary = self.counters.finish(horizon);
        if let Some(inversions) = self.inversions {
            summary = summary.with_inversions(&inversions.finish(horizon));
        }
        Finished {
            entry,
            packing,
            summary,
            events,
            refused: self.refused,
            failure: jobs.or(trace),
            records: self.records,
            page: self.page,
        }
    }
}

/// The file of one run where the command line names this one.
fn path_of_run(path: &Path, entry: &Entry, several: bool) -> PathBuf {
    match several {
        true => with_policy(path, entry.name),
        false => path.to_owned(),
    }
}

/// `out.csv` becomes `out.g-edf.csv`.
fn with_policy(path: &Path, policy: &str) -> PathBuf {
    match path.extension() {
        Some(extension) => path.with_extension(format!("{policy}.{}", extension.to_string_lossy())),
        None => path.with_extension(policy),
    }
}

/// That a file can be written here. What it has is not touched; a file that is not there yet is made.
fn check_writable(path: &Path) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create(true).truncate(false).open(path);
    opened.map(drop).map_err(|error| failed(path, &error))
}

fn create(path: &Path) -> Result<ToFile, Failure> {
    let file = File::create(path).map_err(|error| failed(path, &error))?;
    Ok(BufWriter::with_capacity(1 << 16, file))
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::writing(&path.display().to_string(), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_goes_before_the_extension() {
        let named = |path: &str| with_policy(Path::new(path), "g-edf");
        assert_eq!(named("a/out.csv"), Path::new("a/out.g-edf.csv"));
        assert_eq!(named("out"), Path::new("out.g-edf"));
    }
}
