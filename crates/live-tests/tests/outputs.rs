//! What `run` writes is what `simulate` writes, and means the same.

use std::fs;

use serde_json::{Map, Value};
use shiftwork_model::{Affinity, CpuSet, Span, Task, TaskSet};
use shiftwork_trace::JOB_TABLE_HEADER;
use shiftwork_trace::perfetto::read;

use crate::command::{THREE_CPUS, number, run, save, shiftwork};

/// The JSON has all keys of `simulate --json`; the table of jobs, the trace and the page are there, and
/// all tell of the same jobs.
pub fn live_run_writes_what_a_simulation_writes() -> Result<(), String> {
    let set = two_tasks();
    let file = save(&set)?;
    let beside = |name: &str| file.with_file_name(name).to_string_lossy().into_owned();
    let (jobs, trace, page) = (
        beside("jobs.csv"),
        beside("run.pftrace"),
        beside("run.html"),
    );
    let outputs = ["--jobs", &jobs, "--trace", &trace, "--report", &page];
    let live = run(
        &set,
        "strong-edf",
        200,
        &[&THREE_CPUS[..], &outputs].concat(),
    )?;
    let file = file.to_string_lossy();
    let simulate = [
        "simulate",
        &file,
        "--policy",
        "strong-edf",
        "--for",
        "200ms",
        "--json",
    ];
    let simulated = shiftwork(&simulate)?;
    let simulated: Value = serde_json::from_slice(&simulated).map_err(|error| error.to_string())?;
    has_all_keys(&live, &simulated, "")?;
    if live["simulated"]["tasks"] != simulated["tasks"] {
        return Err(format!("simulated beside the run: {}", live["simulated"]));
    }
    let (released, finished) = (number(&live, "/jobs")?, number(&live, "/completed")?);
    if released != number(&simulated, "/jobs")? {
        return Err(format!("{released} jobs were released live"));
    }

    let table = text(&jobs)?;
    let (header, rows) = table.split_once('\n').ok_or("the table of jobs is empty")?;
    let done = rows.lines().filter(|row| !row.ends_with(',')).count() as u64;
    if header != JOB_TABLE_HEADER.trim_end() || rows.lines().count() as u64 != released {
        return Err(format!("the table of {released} jobs is:\n{table}"));
    }
    if done != finished {
        return Err(format!("{done} rows of {finished} finished jobs:\n{table}"));
    }
    let bytes = fs::read(&trace).map_err(|error| format!("{trace}: {error}"))?;
    let trace = read(&bytes).map_err(|error| error.to_string())?;
    if trace.provenance.policy != "strong-edf" || trace.tasks != ["one", "two"] {
        return Err(format!("the trace is of {:?}", trace.provenance));
    }
    match text(&page)? {
        page if page.contains("</html>") && page.contains("strong-edf") => Ok(()),
        page => Err(format!("the page is {page:?}")),
    }
}

fn two_tasks() -> TaskSet {
    let task = |name: &str, cost_ms, period_ms, cpus: &str| {
        let cpus: CpuSet = cpus.parse().unwrap();
        let affinity = Affinity::new(cpus).unwrap();
        Task::periodic(
            name,
            Span::from_ms(cost_ms),
            Span::from_ms(period_ms),
            affinity,
        )
    };
    let tasks = vec![task("one", 2, 10, "0-1"), task("two", 5, 40, "1-2")];
    TaskSet::new("two", 3, tasks)
}

fn text(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

/// Whether every key of `wanted` is in `found`, with a value of the same kind, at any depth.
fn has_all_keys(found: &Value, wanted: &Value, at: &str) -> Result<(), String> {
    let kind = |value: &Value| std::mem::discriminant(value);
    if kind(found) != kind(wanted) {
        return Err(format!(
            "{at} is {found}, and {wanted} where it is simulated"
        ));
    }
    let empty = Map::new();
    let keys = wanted.as_object().unwrap_or(&empty);
    for (key, wanted) in keys {
        has_all_keys(&found[key], wanted, &format!("{at}/{key}"))?;
    }
    let elements = wanted.as_array().into_iter().flatten().enumerate();
    for (index, wanted) in elements {
        has_all_keys(&found[index], wanted, &format!("{at}/{index}"))?;
    }
    Ok(())
}
