//! One `[[task]]` of a task-set file.

use shiftwork_model::{Arrival, OnOverrun, Phase, Span, Task, Work};

use super::TaskNames;
use super::resource::{self, Resources};
use super::{arrival, thread, trigger};
use crate::cpus::Names;
use crate::error::TasksetError;
use crate::keys::{Key, Takes, choice, may, must, words};
use crate::tree::{Table, Value};

pub(super) static KEYS: [Key; 18] = [
    must(
        "name",
        Takes::Name,
        "The name of the task; no other task has it.",
    ),
    must(
        "cost",
        Takes::Duration,
        "The worst case of what a job needs of a CPU, and its budget.",
    ),
    choice(
        "period",
        Takes::Duration,
        "The least separation of arrivals; jobs are released when they arrive, or later by up to `jitter`.",
    ),
    choice(
        "distances",
        Takes::List(&Takes::Duration, 1),
        "The least time from the first to the last of 2, 3, .. arrivals, instead of a period.",
    ),
    choice(
        "triggered-by",
        Takes::Either(&[Takes::Name, Takes::Table(&trigger::KEYS)]),
        "The tasks that trigger its jobs, instead of a period: at each completion, or where their phases say so.",
    ),
    may(
        "queue",
        Takes::Whole(0, u32::MAX),
        "How many triggers wait at most, under `all` of each task; others are lost. Default any number.",
    ),
    may(
        "deadline",
        Takes::Duration,
        "When jobs are due after their arrival; default the period, or the first of `distances`.",
    ),
    may(
        "offset",
        Takes::Duration,
        "When the first job arrives; default 0ms.",
    ),
    may(
        "jitter",
        Takes::Duration,
        "How much later than its arrival a job is released at most, uniformly by the seed; default 0ms.",
    ),
    may(
        "affinity",
        Takes::Cpus,
        "The CPUs that the task may use; default all.",
    ),
    may(
        "priority",
        Takes::Whole(1, shiftwork_model::Priority::LEAST_URGENT.number()),
        "Under fixed priorities: 1 is the most urgent; default by deadline, after those that have one.",
    ),
    may(
        "arrival",
        Takes::Words(|| words(&arrival::ARRIVALS)),
        "How jobs arrive: every period, or a period and up to one more by the seed; default `periodic`. Beside `distances` \
         `sporadic`: up to the first of these later than they allow; default as early as they do.",
    ),
    may(
        "releases",
        Takes::List(&Takes::Duration, 0),
        "The instants of all arrivals, instead of `arrival`.",
    ),
    may(
        "start-cpu",
        Takes::Whole(0, shiftwork_model::CPUS_MAX as u32 - 1),
        "The CPU on which the task is before it first runs.",
    ),
    may(
        "work",
        Takes::Table(&WORK_KEYS),
        "What a job really does; default: it runs for its cost.",
    ),
    may(
        "on-overrun",
        Takes::Words(|| words(&OVERRUNS)),
        "What happens to a job that needs more than its cost; default `throttle`.",
    ),
    may(
        "command",
        Takes::List(&Takes::Text, 1),
        "The program that `run` starts, and its arguments: a path with a slash is relative to this file, a bare \
         name is looked up in PATH.",
    ),
    may(
        "thread",
        Takes::Table(&thread::KEYS),
        "The thread of a running program for which `apply` reserves, instead of `command`.",
    ),
];

static WORK_KEYS: [Key; 3] = [
    choice(
        "run",
        Takes::Either(&[Takes::Duration, Takes::List(&Takes::Duration, 1)]),
        "How long every job runs, or the least and the most of it.",
    ),
    choice(
        "trace",
        Takes::List(&Takes::Duration, 1),
        "How long each job runs, in turns.",
    ),
    choice(
        "phases",
        Takes::List(&Takes::Table(&PHASE_KEYS), 1),
        "How a job runs, sleeps, locks, unlocks and triggers by turns.",
    ),
];

static PHASE_KEYS: [Key; 5] = [
    choice("run", Takes::Duration, "For how long it runs."),
    choice("sleep", Takes::Duration, "For how long it sleeps."),
    choice("lock", Takes::Name, "The resource that it locks."),
    choice("unlock", Takes::Name, "The resource that it unlocks."),
    choice(
        "trigger",
        Takes::Name,
        "The task of which it triggers a job, instead of at its completion.",
    ),
];

pub(crate) const OVERRUNS: [(&str, OnOverrun); 3] = [
    ("throttle", OnOverrun::Throttle),
    ("continue", OnOverrun::Continue),
    ("signal", OnOverrun::Signal),
];

/// A task of which only the name is read.
pub(super) struct Named<'t> {
    table: Table<'t>,
    name: Result<&'t str, TasksetError>,
}

/// Reads the name of a task, and adds it to `ids`.
pub(super) fn read_name<'t>(
    value: &Value<'t>,
    ids: &mut TaskNames<'t>,
) -> Result<Named<'t>, TasksetError> {
    let mut table = value.table(&KEYS, "a table [[task]]")?;
    table.rename("a task".to_string());
    let name = ids.add(&table, "name = \"imu\"");
    if let Ok(name) = name {
        table.rename(format!("task `{name}`"));
    }
    Ok(Named { table, name })
}

/// What the keys of a task refer to.
#[derive(Clone, Copy)]
pub(super) struct Context<'a, 't> {
    pub names: &'a Names,
    pub resources: &'a Resources,
    pub ids: &'a TaskNames<'t>,
}

/// Reads the rest of a task. The period of one that others trigger is not known yet, nor is its deadline, zero, if it has
/// none of its own.
pub(super) fn read(named: Named<'_>, context: Context<'_, '_>) -> Result<Task, TasksetError> {
    let Named { table, name } = named;
    let names = context.names;
    let cost = table.need_map("cost", "cost = \"500us\"", Value::positive_span);
    let trigger = trigger::read(&table, context.ids);
    let by_time = table.get("triggered-by").is_none();
    let curve = arrival::read_distances(&table);
    let period = match (&curve, by_time) {
        (Err(mistake), _) => Err(mistake.clone()),
        (Ok(Some(curve)), _) => Ok(curve.shortest()),
        (Ok(None), true) => table.need_map("period", "period = \"2ms\"", Value::positive_span),
        (Ok(None), false) => Ok(Span::from_ns(1)),
    };
    let deadline = match by_time {
        true => read_deadline(&table, name.as_ref().ok(), (&cost, &period)),
        false => table
            .map("deadline", Value::positive_span)
            .map(Option::unwrap_or_default),
    };
    let affinity = table.map("affinity", |value| names.affinity(value));
    let command = table.map("command", read_command);
    let thread = thread::read(&table);
    let offset = table.map("offset", Value::span);
    let jitter = table.map("jitter", Value::span);
    let priority = table.map("priority", Value::priority);
    let arrival = arrival::read(&table, period.as_ref().ok().copied(), curve?);
    let arrival = trigger.and_then(|trigger| Ok(trigger.map_or(arrival?, Arrival::Triggered)));
    let start_cpu = table.map("start-cpu", |value| names.cpu(value));
    let work = table.map("work", |value| read_work(value, context));
    let on_overrun = table.map("on-overrun", |value| value.word(&OVERRUNS));
    let affinity = affinity?.unwrap_or_else(|| names.all());
    Ok(Task {
        deadline: deadline?,
        offset: offset?.unwrap_or_default(),
        jitter: jitter?.unwrap_or_default(),
        priority: priority?,
        arrival: arrival?,
        start_cpu: start_cpu?,
        work: work?.unwrap_or(Work::Cost),
        on_overrun: on_overrun?.unwrap_or_default(),
        command: command?.unwrap_or_default(),
        thread: thread?,
        ..Task::periodic(name?, cost?, period?, affinity)
    })
}

/// A span of time that was read, or not.
type Read<'a> = &'a Result<Span, TasksetError>;

/// The deadline, which leaves room for the cost.
fn read_deadline(
    table: &Table<'_>,
    name: Option<&&str>,
    (cost, period): (Read<'_>, Read<'_>),
) -> Result<Span, TasksetError> {
    let written = table.map("deadline", Value::positive_span)?;
    let (cost, period) = (cost.clone()?, period.clone()?);
    let deadline = written.unwrap_or(period);
    if cost <= deadline {
        return Ok(deadline);
    }
    let culprit = table.get("deadline").or(table.get("cost"));
    let place = culprit.map_or(table.place(), |value| value.place());
    let task = name.map_or_else(String::new, |name| (*name).to_string());
    // The distances of an arrival curve may be shorter than the cost.
    let is_periodic = table.get("period").is_some();
    table.source().note(Err(match is_periodic && cost > period {
        true => TasksetError::CostAbovePeriod {
            place,
            task,
            cost,
            period,
            raise: match written {
                Some(_) => "`period` and `deadline`",
                None => "`period`",
            },
        },
        false => TasksetError::CostAboveDeadline {
            place,
            task,
            cost,
            deadline,
        },
    }))
}

fn read_command(value: &Value<'_>) -> Result<Vec<String>, TasksetError> {
    let accepted = "a program and its arguments, like [\"./imu\"]";
    read_items(value, accepted, |word| Ok(word.text(accepted)?.to_string()))
}

const WORK: &str = "a table like { run = \"450us\" }, { run = [\"300us\", \"450us\"] }, { trace = \
                    [\"400us\"] } or { phases = [{ run = \"1ms\" }, { sleep = \"2ms\" }] }";

fn read_work(value: &Value<'_>, context: Context<'_, '_>) -> Result<Work, TasksetError> {
    match value.table(&WORK_KEYS, WORK)?.choice(&WORK_KEYS)? {
        ("run", value) if value.is_list() => read_range(&value),
        ("run", value) => value.positive_span().map(Work::Constant),
        ("trace", value) => {
            read_items(&value, "a list of durations", Value::positive_span).map(Work::Trace)
        }
        (_, value) => {
            let accepted = "a list like [{ run = \"1ms\" }, { sleep = \"2ms\" }]";
            let phases = read_items(&value, accepted, |phase| read_phase(phase, context))?;
            resource::check_phases(&value, &phases, context.resources)?;
            match phases.iter().any(|phase| matches!(phase, Phase::Run(_))) {
                true => Ok(Work::Phases(phases)),
                false => Err(value.out_of_range(
                    "a list without { run = .. }".to_string(),
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
    match value.each(accepted, read)? {
        items if items.is_empty() => Err(value.empty(accepted)),
        items => Ok(items),
    }
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

fn read_phase(value: &Value<'_>, context: Context<'_, '_>) -> Result<Phase, TasksetError> {
    let table = value.table(
        &PHASE_KEYS,
        "a phase like { run = \"1ms\" }, { sleep = \"2ms\" } or { lock = \"bus\" }",
    )?;
    match table.choice(&PHASE_KEYS)? {
        ("run", value) => value.positive_span().map(Phase::Run),
        ("sleep", value) => value.positive_span().map(Phase::Sleep),
        ("lock", value) => context.resources.find(&value).map(Phase::Lock),
        ("unlock", value) => context.resources.find(&value).map(Phase::Unlock),
        (_, value) => context.ids.find(&value).map(Phase::Trigger),
    }
}
