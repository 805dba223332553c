//! `shiftwork report`: an HTML page from traces.

use std::fs;

use serde_json::Value;
use shiftwork_model::{Instant, Record, RecordKind, Recorder, TaskSet};
use shiftwork_report::{Bound, Limits, Provenance, Run, html};
use shiftwork_trace::perfetto::{TraceFile, read};
use shiftwork_trace::{Counters, Inversions, RunSummary, check};

use super::analyze;
use super::explained::Explained;
use crate::args::ReportArgs;
use crate::catalogue;
use crate::failure::{Answer, Failure};
use crate::input::{fingerprint, read_bytes};
use crate::output::Console;
use crate::output_files::{self, OutputFile};

/// A trace, and what it comes down to.
struct Traced {
    path: String,
    file: TraceFile,
    set: TaskSet,
    summary: RunSummary,
    /// What the policy promises; `None` if it is not known here.
    contract: Option<check::PolicyContract>,
    bounds: Vec<Option<Bound>>,
}

/// Makes one page of all traces.
pub fn run(args: &ReportArgs, console: &mut Console) -> Result<Answer, Failure> {
    let output = OutputFile::of("--output", args.output.as_ref());
    output_files::check(args.files.iter().map(String::as_str), output)?;
    let traces = args
        .files
        .iter()
        .map(|path| open(path, console))
        .collect::<Result<Vec<_>, _>>()?;
    if args.explain {
        return explanations(&traces, console);
    }
    let runs: Vec<Run<'_>> = traces
        .iter()
        .map(|trace| Run {
            set: &trace.set,
            records: (&trace.file.records).into(),
            summary: &trace.summary,
            contract: trace.contract.clone(),
            bounds: trace.bounds.clone(),
            provenance: provenance(trace),
        })
        .collect();
    if args.output.is_none() && console.json {
        return summaries(&traces, console);
    }
    let page = html(&runs, &[], &Limits::default());
    let Some(path) = &args.output else {
        console.text(&page)?;
        return Ok(Answer::Yes);
    };
    fs::write(path, page).map_err(|error| Failure::writing(&path.display().to_string(), &error))?;
    if console.json {
        return summaries(&traces, console);
    }
    Ok(Answer::Yes)
}

/// What led to the first misses of each trace, instead of a page.
fn explanations(traces: &[Traced], console: &mut Console) -> Result<Answer, Failure> {
    for trace in traces {
        let Some(explained) = trace.explained() else {
            return Err(Failure::in_file(
                &trace.path,
                format_args!(
                    "no policy here is called `{}`, so what it promises is unknown; a trace of one of \
                     `shiftwork policies` would be accepted",
                    trace.file.provenance.policy
                ),
            ));
        };
        if console.json {
            let mut value = summary(trace);
            explained.add_to(&mut value);
            console.json_line(&value)?;
            continue;
        }
        if traces.len() > 1 {
            console.line(format!("\n{}:", trace.path))?;
        }
        explained.show(console)?;
    }
    Ok(Answer::Yes)
}

fn summaries(traces: &[Traced], console: &mut Console) -> Result<Answer, Failure> {
    for trace in traces {
        console.json_line(&summary(trace))?;
    }
    Ok(Answer::Yes)
}

fn summary(trace: &Traced) -> Value {
    let mut value = trace.summary.to_json(&trace.file.provenance.policy, 0);
    // A trace holds what happened, not what the policy was called with.
    if let Some(keys) = value.as_object_mut() {
        keys.remove("events");
    }
    value
}

impl Traced {
    /// `None` if the policy is not known here.
    fn explained(&self) -> Option<Explained> {
        let (records, horizon) = (&self.file.records, self.summary.horizon);
        let contract = self.contract.as_ref()?;
        Some(Explained::of(&self.set, contract, records, horizon))
    }
}

/// Reads a trace and counts what happened in it.
fn open(path: &str, console: &Console) -> Result<Traced, Failure> {
    let (path, bytes) = read_bytes(path)?;
    let file = read(&bytes).map_err(|error| Failure::in_file(&path, error))?;
    let set = shiftwork_taskset::read(&file.provenance.task_set)
        .map_err(|error| Failure::in_file(&path, format_args!("the task set inside: {error}")))?;
    if set.tasks.len() != file.tasks.len() || set.platform.cpus != file.cpus {
        return Err(Failure::in_file(
            &path,
            "the records and the task set inside do not belong together",
        ));
    }
    let horizon = file.ended.unwrap_or_else(|| {
        console.note(format!(
            "note: {path}: the trace was never completed; what is there is shown"
        ));
        file.records
            .last()
            .map_or(Instant::ZERO, |record| record.at)
    });
    // A newer release may have policies that this one does not know; the page then says less.
    let entry = catalogue::find(&file.provenance.policy).ok();
    let mut counters = Counters::new(&set, file.cpus);
    let mut inversions = entry.map(|entry| Inversions::new(&set, entry.traits.order));
    for record in &file.records {
        counters.record(record.at, &record.kind);
        inversions.record(record.at, &record.kind);
    }
    let mut summary = counters.finish(horizon);
    if let Some(inversions) = inversions {
        summary = summary.with_inversions(&inversions.finish(horizon));
    }
    let contract = entry.map(|entry| {
        let policy = entry.build(&set).ok();
        let packing = policy.and_then(|policy| policy.packing());
        check::PolicyContract {
            immediate: false,
            ..check::PolicyContract::of(&entry.traits, packing)
        }
    });
    let policy = &file.provenance.policy;
    // A page is to be quick, and the trace does not say whether the machine took time to schedule.
    let is_reserve = |record: &Record| matches!(record.kind, RecordKind::BackgroundStarted { .. });
    let takes_time = set.scheduler.overheads.is_some() || file.records.iter().any(is_reserve);
    let bounds = match takes_time {
        true => Vec::new(),
        false => {
            let beside_reserve = set.scheduler.reserve_server;
            analyze::bounds(&set, policy, analyze::STEPS, beside_reserve)
        }
    };
    Ok(Traced {
        path,
        bounds,
        summary,
        contract,
        set,
        file,
    })
}

fn provenance(trace: &Traced) -> Provenance {
    let from = &trace.file.provenance;
    Provenance {
        version: from.tool.clone(),
        policy: from.policy.clone(),
        seed: from.seed,
        command: format!("shiftwork report {}", trace.path),
        input: trace.path.clone(),
        input_hash: fingerprint(from.task_set.as_bytes()),
        machine: "sim".to_owned(),
    }
}
