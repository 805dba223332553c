//! One `[[task]]` of a task-set file.

use shiftwork_model::{Arrival, Instant, OnOverrun, Phase, Span, Task, Work};

use super::TaskNames;
use crate::cpus::Names;
use crate::error::TasksetError;
use crate::tree::{Table, Value};

const KEYS: [&str; 13] = [
    "name",
    "cost",
    "period",
    "deadline",
    "offset",
    "affinity",
    "priority",
    "arrival",
    "releases",
    "start-cpu",
    "work",
    "on-overrun",
    "command",
];

/// Reads a task and adds its name to `ids`.
pub(super) fn read<'t>(
    value: &Value<'t>,
    names: &Names<'_>,
    ids: &mut TaskNames<'t>,
) -> Result<Task, TasksetError> {
    let mut table = value.table(&KEYS, "a table [[task]]")?;
    table.rename("a task".to_string());
    let name = ids.add(&table.need("name", "name = \"imu\"")?)?;
    table.rename(format!("task `{name}`"));
    let cost = table.need("cost", "cost = \"500us\"")?.positive_span()?;
    let period = table.need("period", "period = \"2ms\"")?.positive_span()?;
    let deadline = read_deadline(&table, name, cost, period)?;
    let affinity = match table.get("affinity") {
        Some(value) => names.affinity(&value)?,
        None => names.all(),
    };
    let command = table.map("command", read_command)?;
    Ok(Task {
        deadline,
        offset: table.map("offset", Value::span)?.unwrap_or_default(),
        priority: table.map("priority", Value::priority)?,
        arrival: read_arrival(&table, period)?,
        start_cpu: table.map("start-cpu", |value| value.cpu(names.cpus))?,
        work: table.map("work", read_work)?.unwrap_or(Work::Cost),
        on_overrun: table
            .map("on-overrun", read_on_overrun)?
            .unwrap_or_default(),
        command: command.unwrap_or_default(),
        ..Task::periodic(name, cost, period, affinity)
    })
}

fn read_deadline(
    table: &Table<'_>,
    name: &str,
    cost: Span,
    period: Span,
) -> Result<Span, TasksetError> {
    let written = table.map("deadline", Value::positive_span)?;
    let deadline = written.unwrap_or(period);
    if cost <= deadline {
        return Ok(deadline);
    }
    let culprit = table.get("deadline").or(table.get("cost"));
    Err(TasksetError::CostAboveDeadline {
        place: culprit.map_or(table.place(), |value| value.place()),
        task: name.to_string(),
        cost,
        deadline,
    })
}

fn read_on_overrun(value: &Value<'_>) -> Result<OnOverrun, TasksetError> {
    value.word(&[
        ("throttle", OnOverrun::Throttle),
        ("continue", OnOverrun::Continue),
        ("signal", OnOverrun::Signal),
    ])
}

fn read_command(value: &Value<'_>) -> Result<Vec<String>, TasksetError> {
    let accepted = "a program and its arguments, like [\"./imu\"]";
    let words = value.list(accepted)?;
    if words.is_empty() {
        return Err(value.empty(accepted));
    }
    words
        .iter()
        .map(|word| Ok(word.text(accepted)?.to_string()))
        .collect()
}

/// Reads `arrival` or `releases`, whichever is there.
fn read_arrival(table: &Table<'_>, period: Span) -> Result<Arrival, TasksetError> {
    if table.get("arrival").is_none() && table.get("releases").is_none() {
        return Ok(Arrival::Periodic);
    }
    match table.exactly_one(&["arrival", "releases"])? {
        ("arrival", value) => {
            value
                .word(&[("periodic", false), ("sporadic", true)])
                .map(|sporadic| match sporadic {
                    true => Arrival::Sporadic,
                    false => Arrival::Periodic,
                })
        }
        (_, value) => read_releases(&value, period).map(Arrival::Releases),
    }
}

fn read_releases(value: &Value<'_>, period: Span) -> Result<Vec<Instant>, TasksetError> {
    let items = value.list("a list of durations, like [\"0ms\", \"8ms\"]")?;
    let mut releases = Vec::with_capacity(items.len());
    let mut earliest = Instant::ZERO;
    for item in &items {
        let release = item.instant()?;
        if release < earliest {
            return Err(TasksetError::ReleaseTooEarly {
                place: item.place(),
                release: release.late_since(Instant::ZERO),
                earliest: earliest.late_since(Instant::ZERO),
            });
        }
        releases.push(release);
        earliest = release + period;
    }
    Ok(releases)
}

const WORK: &str = "a table like { run = \"450us\" }, { run = [\"300us\", \"450us\"] }, { trace = \
                    [\"400us\"] } or { phases = [{ run = \"1ms\" }, { sleep = \"2ms\" }] }";

fn read_work(value: &Value<'_>) -> Result<Work, TasksetError> {
    let keys = ["run", "trace", "phases"];
    match value.table(&keys, WORK)?.exactly_one(&keys)? {
        ("run", value) if value.is_list() => read_range(&value),
        ("run", value) => value.positive_span().map(Work::Constant),
        ("trace", value) => {
            read_items(&value, "a list of durations", Value::positive_span).map(Work::Trace)
        }
        (_, value) => {
            let accepted = "a list like [{ run = \"1ms\" }, { sleep = \"2ms\" }]";
            let phases = read_items(&value, accepted, read_phase)?;
            match phases.iter().any(|phase| matches!(phase, Phase::Run(_))) {
                true => Ok(Work::Phases(phases)),
                false => Err(value.out_of_range(
                    "nothing but sleep".to_string(),
                    "at least one phase { run = \"1ms\" }".to_string(),
                )),
            }
        }
    }
}

/// Reads a list of at least one item.
fn read_items<'t, T>(
    value: &Value<'t>,
    accepted: &'static str,
    read: impl Fn(&Value<'t>) -> Result<T, TasksetError>,
) -> Result<Vec<T>, TasksetError> {
    let items = value.list(accepted)?;
    if items.is_empty() {
        return Err(value.empty(accepted));
    }
    items.iter().map(read).collect()
}

fn read_range(value: &Value<'_>) -> Result<Work, TasksetError> {
    let accepted = "a duration, or the least and the most like [\"300us\", \"450us\"]";
    let bounds = read_items(value, accepted, Value::positive_span)?;
    match *bounds.as_slice() {
        [least, most] if least <= most => Ok(Work::Uniform(least, most)),
        [least, most] => Err(value.out_of_range(
            format!("from {least} to {most}"),
            "the shorter duration first".to_string(),
        )),
        _ => Err(value.out_of_range(format!("a list of {}", bounds.len()), accepted.to_string())),
    }
}

fn read_phase(value: &Value<'_>) -> Result<Phase, TasksetError> {
    let keys = ["run", "sleep"];
    let table = value.table(
        &keys,
        "a phase like { run = \"1ms\" } or { sleep = \"2ms\" }",
    )?;
    match table.exactly_one(&keys)? {
        ("run", value) => value.positive_span().map(Phase::Run),
        (_, value) => value.positive_span().map(Phase::Sleep),
    }
}
