//! Scenario files: a policy, tasks, and a table of events with what should run after each.

use std::collections::BTreeMap;

use shiftwork_model::{
    Affinity, CPUS_MAX, CpuId, Instant, Platform, Priority, Span, Task, TaskId, TaskSet,
};

use crate::cpus::Names;
use crate::error::TasksetError;
use crate::file::action::{AFFINITY_KEYS, PRIORITY_KEYS};
use crate::file::{SETS, TaskNames, read_cpu_count};
use crate::keys::{Environment, Key, Takes, choice, may, must};
use crate::kind::Kind;
use crate::place::Place;
use crate::tree::{Source, Table, Value};

/// What a scenario file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// The name of the policy to drive.
    pub policy: String,
    /// The platform and the tasks. Costs and periods matter to packing only; the default is 1ns in
    /// 1s, which never fills a CPU.
    pub set: TaskSet,
    /// The absolute deadline of each task's job at first; [`Instant::NEVER`] where the file says
    /// nothing.
    pub deadlines: Vec<Instant>,
    /// What happens, one after another.
    pub steps: Vec<Step>,
}

/// One event, and what is expected after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where the file says so.
    pub place: Place,
    /// What happens.
    pub event: StepEvent,
    /// What should run on each CPU afterwards, if the file says so.
    pub expect: Option<Vec<Expectation>>,
    /// Which tasks should run afterwards, anywhere and in any order, if the file says so.
    pub expect_set: Option<Vec<TaskId>>,
}

/// What happens in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepEvent {
    /// The task becomes ready; nothing changes if it is.
    Wake(TaskId),
    /// The task is no longer ready; nothing changes if it is not.
    Block(TaskId),
    /// The task may use other CPUs.
    SetAffinity(TaskId, Affinity),
    /// The task has another priority.
    SetPriority(TaskId, Priority),
    /// The task's job has another absolute deadline.
    SetDeadline(TaskId, Instant),
    /// The task takes part from now on. A task whose first event of this kind is this is absent
    /// before.
    Enter(TaskId),
    /// The task takes no part any more.
    Leave(TaskId),
    /// The CPU goes away.
    CpuOffline(CpuId),
    /// The CPU comes back.
    CpuOnline(CpuId),
}

/// What should be on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// This task.
    Task(TaskId),
    /// Nothing (`""`).
    Idle,
    /// Whatever it is (`"*"`).
    Anything,
}

/// The keys of a scenario file.
pub(crate) static KEYS: [Key; 8] = [
    may("name", Takes::Text, "The name of the scenario."),
    must(
        "policy",
        Takes::Name,
        "The policy: a name that `shiftwork policies` lists.",
    ),
    must(
        "cpus",
        Takes::Whole(1, CPUS_MAX as u32),
        "How many CPUs there are.",
    ),
    may("sets", SETS, "Sets of CPUs by name."),
    may(
        "clusters",
        Takes::List(&Takes::Cpus, 0),
        "Clusters: every CPU in exactly one.",
    ),
    may(
        "caches",
        Takes::List(&Takes::Cpus, 0),
        "CPUs that share a cache.",
    ),
    may(
        "task",
        Takes::List(&Takes::Table(&TASK_KEYS), 0),
        "The tasks; all are blocked at first.",
    ),
    may(
        "step",
        Takes::List(&Takes::Table(&STEP_KEYS), 0),
        "What happens, one event a step, and what should run then.",
    ),
];

static TASK_KEYS: [Key; 6] = [
    must(
        "name",
        Takes::Name,
        "The name of the task; no other task has it.",
    ),
    may(
        "priority",
        Takes::Whole(1, Priority::LEAST_URGENT.number()),
        "Under fixed priorities: 1 is the most urgent.",
    ),
    may(
        "deadline",
        Takes::Duration,
        "The absolute deadline of its job, under EDF; default never.",
    ),
    may(
        "affinity",
        Takes::Cpus,
        "The CPUs that the task may use; default all.",
    ),
    may(
        "cost",
        Takes::Duration,
        "Its cost, which matters to packing only; default 1ns.",
    ),
    may(
        "period",
        Takes::Duration,
        "Its period, which matters to packing only; default 1s.",
    ),
];

const CPU: Takes = Takes::Whole(0, CPUS_MAX as u32 - 1);

static STEP_KEYS: [Key; 11] = [
    choice("wake", Takes::Name, "A task that becomes ready."),
    choice("block", Takes::Name, "A task that is no longer ready."),
    choice(
        "set-affinity",
        Takes::Table(&AFFINITY_KEYS),
        "Another affinity.",
    ),
    choice(
        "set-priority",
        Takes::Table(&PRIORITY_KEYS),
        "Another priority.",
    ),
    choice(
        "set-deadline",
        Takes::Table(&DEADLINE_KEYS),
        "Another absolute deadline.",
    ),
    choice(
        "enter",
        Takes::Name,
        "A task that takes part from now on; absent before, if this is its first.",
    ),
    choice("leave", Takes::Name, "A task that takes no part any more."),
    choice("cpu-offline", CPU, "A CPU that goes away."),
    choice("cpu-online", CPU, "A CPU that comes back."),
    may(
        "expect",
        Takes::List(&Takes::Text, 0),
        "What should run then on each CPU: a task, \"\" for idle, \"*\" for anything.",
    ),
    may(
        "expect-set",
        Takes::List(&Takes::Name, 0),
        "Which tasks should run then, on any CPU and in any order.",
    ),
];

static DEADLINE_KEYS: [Key; 2] = [
    must("task", Takes::Name, "The task."),
    must("to", Takes::Duration, "The absolute deadline from now on."),
];

/// Reads a scenario file, which may name any policy.
///
/// # Errors
/// Everything that is wrong, each mistake with its place and with what would be accepted.
pub fn read(text: &str) -> Result<Scenario, TasksetError> {
    read_in(text, &Environment::default())
}

/// As [`read`], with a policy that `environment` knows.
///
/// # Errors
/// As [`read`].
pub fn read_in(text: &str, environment: &Environment<'_>) -> Result<Scenario, TasksetError> {
    let source = Source::parse(text)?;
    source.finish(read_file(&source, environment))
}

fn read_file<'t>(
    source: &'t Source<'t>,
    environment: &Environment<'_>,
) -> Result<Scenario, TasksetError> {
    let file = source.root(Kind::Scenario, &KEYS)?;
    let policy = file.need_map("policy", "policy = \"strong-fp\"", |value| {
        value.policy("the name of a policy, like \"strong-fp\"", environment)
    });
    let name = file.map("name", |value| value.text("the name of the scenario"));
    let names = read_platform(&file);
    let mut ids = TaskNames::new();
    let tasks = file.each("task", "a list of tables [[task]]", |item| {
        read_task(item, &names, &mut ids)
    });
    let steps = file.each("step", "a list of tables [[step]]", |item| {
        read_step(item, &names, &ids)
    });
    let (tasks, deadlines) = tasks?.into_iter().unzip();
    Ok(Scenario {
        policy: policy?.to_string(),
        steps: steps?,
        deadlines,
        set: TaskSet {
            name: name?.unwrap_or_default().to_string(),
            platform: names.platform,
            ..TaskSet::new("", 1, tasks)
        },
    })
}

/// The platform, as far as it can be read.
fn read_platform(file: &Table<'_>) -> Names {
    let cpus = file.need_map("cpus", "cpus = 3", read_cpu_count);
    let mut names = Names::new(cpus.map(Platform::uniform));
    names.read_sets(file);
    // Mistakes are kept by the table; nothing else depends on what is read here.
    let clusters = file.map("clusters", |value| names.clusters(value));
    let caches = file.map("caches", |value| names.groups(value));
    names.platform.clusters = clusters.ok().flatten().unwrap_or_default();
    names.platform.caches = caches.ok().flatten().unwrap_or_default();
    names
}

fn read_task<'t>(
    value: &Value<'t>,
    names: &Names,
    ids: &mut TaskNames<'t>,
) -> Result<(Task, Instant), TasksetError> {
    let mut table = value.table(&TASK_KEYS, "a table [[task]]")?;
    table.rename("a task".to_string());
    let name = ids.add(&table, "name = \"T0\"").and_then(|name| {
        let value = table.get("name").filter(|_| name == "*");
        match value {
            Some(value) => table.source().note(Err(value.out_of_range(
                "\"*\"".to_string(),
                "another name; in `expect`, \"*\" means any task or none".to_string(),
            ))),
            None => Ok(name),
        }
    });
    if let Ok(name) = name {
        table.rename(format!("task `{name}`"));
    }
    let affinity = table.map("affinity", |value| names.affinity(value));
    let cost = table.map("cost", Value::positive_span);
    let period = table.map("period", Value::positive_span);
    let priority = table.map("priority", Value::priority);
    let deadline = table.map("deadline", Value::instant);
    let task = Task {
        priority: priority?,
        ..Task::periodic(
            name?,
            cost?.unwrap_or(Span::from_ns(1)),
            period?.unwrap_or(Span::from_s(1)),
            affinity?.unwrap_or_else(|| names.all()),
        )
    };
    Ok((task, deadline?.unwrap_or(Instant::NEVER)))
}

fn read_step(value: &Value<'_>, names: &Names, ids: &TaskNames<'_>) -> Result<Step, TasksetError> {
    let mut table = value.table(&STEP_KEYS, "a table [[step]]")?;
    table.rename("a step".to_string());
    let event = table
        .choice(&STEP_KEYS)
        .and_then(|(key, event)| table.source().note(read_event(key, &event, names, ids)));
    let expect = table.map("expect", |value| read_expectations(value, names, ids));
    let expect_set = table.map("expect-set", |value| read_expected_set(value, ids));
    Ok(Step {
        place: value.place(),
        event: event?,
        expect: expect?,
        expect_set: expect_set?,
    })
}

fn read_event(
    key: &str,
    value: &Value<'_>,
    names: &Names,
    ids: &TaskNames<'_>,
) -> Result<StepEvent, TasksetError> {
    let task = |value: &Value<'_>| ids.find(value);
    const TASK: &str = "task = \"T0\"";
    Ok(match key {
        "wake" => StepEvent::Wake(task(value)?),
        "block" => StepEvent::Block(task(value)?),
        "enter" => StepEvent::Enter(task(value)?),
        "leave" => StepEvent::Leave(task(value)?),
        "cpu-offline" => StepEvent::CpuOffline(names.cpu(value)?),
        "cpu-online" => StepEvent::CpuOnline(names.cpu(value)?),
        "set-affinity" => {
            let table = value.table(&AFFINITY_KEYS, "a table { task = \"T0\", to = \"0-1\" }")?;
            let task = table.need_map("task", TASK, task);
            let to = table.need_map("to", "to = \"0-1\"", |to| names.affinity(to));
            StepEvent::SetAffinity(task?, to?)
        }
        "set-priority" => {
            let table = value.table(&PRIORITY_KEYS, "a table { task = \"T0\", to = 3 }")?;
            let task = table.need_map("task", TASK, task);
            let to = table.need_map("to", "to = 3", Value::priority);
            StepEvent::SetPriority(task?, to?)
        }
        _ => {
            let example = "a table { task = \"T0\", to = \"10ms\" }";
            let table = value.table(&DEADLINE_KEYS, example)?;
            let task = table.need_map("task", TASK, task);
            let to = table.need_map("to", "to = \"10ms\"", Value::instant);
            StepEvent::SetDeadline(task?, to?)
        }
    })
}

fn read_expectations(
    value: &Value<'_>,
    names: &Names,
    ids: &TaskNames<'_>,
) -> Result<Vec<Expectation>, TasksetError> {
    let accepted = "one text per CPU: a task, \"\" for idle, \"*\" for anything";
    let (found, cpus) = (value.list(accepted)?.len(), names.cpus());
    if found != cpus {
        return Err(names.if_sized(value.out_of_range(
            format!("a list of {found}"),
            format!("{accepted}; {cpus} in all"),
        )));
    }
    let mut first_cpu = BTreeMap::new();
    let mut cpus = 0..;
    value.each(accepted, |item| {
        let cpu: usize = cpus.next().unwrap_or_default();
        let expectation = match item.text(accepted)? {
            "" => Expectation::Idle,
            "*" => Expectation::Anything,
            _ => Expectation::Task(ids.find(item)?),
        };
        if let Expectation::Task(id) = expectation
            && let Some(other) = first_cpu.insert(id, cpu)
        {
            return Err(item.out_of_range(
                format!("one task on CPU {other} and on CPU {cpu}"),
                "each task at most once".to_string(),
            ));
        }
        Ok(expectation)
    })
}

fn read_expected_set(value: &Value<'_>, ids: &TaskNames<'_>) -> Result<Vec<TaskId>, TasksetError> {
    let accepted = "a list of tasks, like [\"T0\", \"T1\"]";
    value.each(accepted, |item| ids.find(item))
}
