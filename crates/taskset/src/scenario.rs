//! Scenario files: a policy, tasks, and a table of events with what should run after each.

use std::collections::BTreeMap;

use shiftwork_model::{Affinity, CpuId, Instant, Platform, Priority, Span, Task, TaskId, TaskSet};

use crate::cpus::Names;
use crate::error::TasksetError;
use crate::file::{TaskNames, read_cpu_count};
use crate::place::{Cursor, Place};
use crate::tree::{Table, Value, parse};

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

const KEYS: [&str; 8] = [
    "name", "policy", "cpus", "sets", "clusters", "caches", "task", "step",
];
const TASK_KEYS: [&str; 6] = ["name", "priority", "deadline", "affinity", "cost", "period"];
const EVENTS: [&str; 9] = [
    "wake",
    "block",
    "set-affinity",
    "set-priority",
    "set-deadline",
    "enter",
    "leave",
    "cpu-offline",
    "cpu-online",
];
const STEP_KEYS: [&str; 11] = [
    "wake",
    "block",
    "set-affinity",
    "set-priority",
    "set-deadline",
    "enter",
    "leave",
    "cpu-offline",
    "cpu-online",
    "expect",
    "expect-set",
];

/// Reads a scenario file.
///
/// # Errors
/// The first thing that is wrong, with its place and with what would be accepted.
pub fn read(text: &str) -> Result<Scenario, TasksetError> {
    let tree = parse(text)?;
    let file = Table::root(text, &tree, "a scenario file", &KEYS)?;
    let policy = file.need("policy", "policy = \"strong-fp\"")?;
    let policy = policy.name("the name of a policy, like \"strong-fp\"")?;
    let name = file.map("name", |value| value.text("the name of the scenario"))?;
    let platform = read_platform(&file)?;
    let names = Names {
        cpus: platform.cpus,
        sets: &platform.sets,
    };
    let mut ids = TaskNames::new();
    let (mut tasks, mut deadlines) = (Vec::new(), Vec::new());
    for item in file.items("task", "a list of tables [[task]]")? {
        let (task, deadline) = read_task(&item, &names, &mut ids)?;
        tasks.push(task);
        deadlines.push(deadline);
    }
    let mut cursor = Cursor::new(text);
    let steps = file.items("step", "a list of tables [[step]]")?;
    let steps = steps
        .iter()
        .map(|item| read_step(item, &names, &ids, &mut cursor))
        .collect::<Result<_, _>>()?;
    let set = TaskSet {
        name: name.unwrap_or_default().to_string(),
        platform,
        ..TaskSet::new("", 1, tasks)
    };
    Ok(Scenario {
        policy: policy.to_string(),
        set,
        deadlines,
        steps,
    })
}

fn read_platform(file: &Table<'_>) -> Result<Platform, TasksetError> {
    let cpus = read_cpu_count(&file.need("cpus", "cpus = 3")?)?;
    let mut platform = Platform::uniform(cpus);
    if let Some(sets) = file.get("sets") {
        crate::file::read_sets(&sets, &mut platform)?;
    }
    let names = Names {
        cpus,
        sets: &platform.sets,
    };
    let clusters = file.map("clusters", |value| names.clusters(value))?;
    let caches = file.map("caches", |value| names.groups(value))?;
    Ok(Platform {
        clusters: clusters.unwrap_or_default(),
        caches: caches.unwrap_or_default(),
        ..platform
    })
}

fn read_task<'t>(
    value: &Value<'t>,
    names: &Names<'_>,
    ids: &mut TaskNames<'t>,
) -> Result<(Task, Instant), TasksetError> {
    let mut table = value.table(&TASK_KEYS, "a table [[task]]")?;
    table.rename("a task".to_string());
    let name_value = table.need("name", "name = \"T0\"")?;
    let name = ids.add(&name_value)?;
    if name == "*" {
        return Err(name_value.out_of_range(
            "\"*\"".to_string(),
            "another name; in `expect`, \"*\" means any task or none".to_string(),
        ));
    }
    table.rename(format!("task `{name}`"));
    let affinity = table.map("affinity", |value| names.affinity(value))?;
    let cost = table.map("cost", Value::positive_span)?;
    let period = table.map("period", Value::positive_span)?;
    let task = Task {
        priority: table.map("priority", Value::priority)?,
        ..Task::periodic(
            name,
            cost.unwrap_or(Span::from_ns(1)),
            period.unwrap_or(Span::from_s(1)),
            affinity.unwrap_or(names.all()),
        )
    };
    let deadline = table.map("deadline", Value::instant)?;
    Ok((task, deadline.unwrap_or(Instant::NEVER)))
}

fn read_step(
    value: &Value<'_>,
    names: &Names<'_>,
    ids: &TaskNames<'_>,
    cursor: &mut Cursor<'_>,
) -> Result<Step, TasksetError> {
    let mut table = value.table(&STEP_KEYS, "a table [[step]]")?;
    table.rename("a step".to_string());
    let (key, event) = table.exactly_one(&EVENTS)?;
    Ok(Step {
        place: cursor.place(value.offset()),
        event: read_event(key, &event, names, ids)?,
        expect: table.map("expect", |value| read_expectations(value, names.cpus, ids))?,
        expect_set: table.map("expect-set", |value| read_expected_set(value, ids))?,
    })
}

fn read_event(
    key: &str,
    value: &Value<'_>,
    names: &Names<'_>,
    ids: &TaskNames<'_>,
) -> Result<StepEvent, TasksetError> {
    let pair = |example| {
        let table = value.table(&["task", "to"], example)?;
        let task = ids.find(&table.need("task", "task = \"T0\"")?)?;
        Ok((task, table))
    };
    Ok(match key {
        "wake" => StepEvent::Wake(ids.find(value)?),
        "block" => StepEvent::Block(ids.find(value)?),
        "enter" => StepEvent::Enter(ids.find(value)?),
        "leave" => StepEvent::Leave(ids.find(value)?),
        "cpu-offline" => StepEvent::CpuOffline(value.cpu(names.cpus)?),
        "cpu-online" => StepEvent::CpuOnline(value.cpu(names.cpus)?),
        "set-affinity" => {
            let (task, table) = pair("a table { task = \"T0\", to = \"0-1\" }")?;
            let to = table.need("to", "to = \"0-1\"")?;
            StepEvent::SetAffinity(task, names.affinity(&to)?)
        }
        "set-priority" => {
            let (task, table) = pair("a table { task = \"T0\", to = 3 }")?;
            StepEvent::SetPriority(task, table.need("to", "to = 3")?.priority()?)
        }
        _ => {
            let (task, table) = pair("a table { task = \"T0\", to = \"10ms\" }")?;
            StepEvent::SetDeadline(task, table.need("to", "to = \"10ms\"")?.instant()?)
        }
    })
}

fn read_expectations(
    value: &Value<'_>,
    cpus: usize,
    ids: &TaskNames<'_>,
) -> Result<Vec<Expectation>, TasksetError> {
    let accepted = "one text per CPU: a task, \"\" for idle, \"*\" for anything";
    let items = value.list(accepted)?;
    if items.len() != cpus {
        return Err(value.out_of_range(
            format!("a list of {}", items.len()),
            format!("{accepted}; {cpus} in all"),
        ));
    }
    let mut first_cpu = BTreeMap::new();
    let mut expect = Vec::with_capacity(cpus);
    for (cpu, item) in items.iter().enumerate() {
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
        expect.push(expectation);
    }
    Ok(expect)
}

fn read_expected_set(value: &Value<'_>, ids: &TaskNames<'_>) -> Result<Vec<TaskId>, TasksetError> {
    let items = value.list("a list of tasks, like [\"T0\", \"T1\"]")?;
    items.iter().map(|item| ids.find(item)).collect()
}
