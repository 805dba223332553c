//! Task-set files: TOML in, a [`TaskSet`] out, and back.

mod action;
mod platform;
mod task;
mod ticks;
pub(crate) mod write;

use std::collections::BTreeMap;
use std::path::Path;

use shiftwork_model::{
    Action, Lagging, Platform, Repairs, SchedulerOptions, Task, TaskId, TaskSet,
};

use crate::cpus::Names;
use crate::error::TasksetError;
use crate::tree::{Table, Value, parse};

pub(crate) use platform::{read_cpu_count, read_sets};
pub use write::write;

/// Where Linux says what the machine has.
const SYSFS: &str = "/sys";

/// Reads a task-set file. `cpus = "host"` is answered by this machine.
///
/// # Errors
/// The first thing that is wrong, with its place and with what would be accepted.
pub fn read(text: &str) -> Result<TaskSet, TasksetError> {
    read_with_sysfs(text, Path::new(SYSFS))
}

/// As [`read`], with `cpus = "host"` answered by the tree below `sysfs`.
///
/// # Errors
/// As [`read`].
pub fn read_with_sysfs(text: &str, sysfs: &Path) -> Result<TaskSet, TasksetError> {
    let tree = parse(text)?;
    let keys = ["name", "platform", "scheduler", "task", "action"];
    let file = Table::root(text, &tree, "a task-set file", &keys)?;
    let name = file.map("name", |value| value.text("the name of the task set"))?;
    let platform = platform::read(&file.need("platform", "[platform]")?, sysfs)?;
    let scheduler = file.map("scheduler", read_scheduler)?;
    let names = Names {
        cpus: platform.cpus,
        sets: &platform.sets,
    };
    let (tasks, ids) = read_tasks(file.get("task"), &names)?;
    ticks::check(&file, platform.tick_unit)?;
    let actions = match file.get("action") {
        Some(value) => read_actions(&value, &platform, &ids)?,
        None => Vec::new(),
    };
    Ok(TaskSet {
        name: name.unwrap_or_default().to_string(),
        platform,
        scheduler: scheduler.unwrap_or_default(),
        tasks,
        actions,
    })
}

/// What tasks are called, for whoever refers to them.
pub(crate) struct TaskNames<'t> {
    known: BTreeMap<&'t str, (TaskId, Value<'t>)>,
    in_order: Vec<&'t str>,
}

impl<'t> TaskNames<'t> {
    /// No task yet.
    pub(crate) fn new() -> Self {
        Self {
            known: BTreeMap::new(),
            in_order: Vec::new(),
        }
    }

    /// Adds the next task under the name that `value` holds.
    pub(crate) fn add(&mut self, value: &Value<'t>) -> Result<&'t str, TasksetError> {
        let name = value.name("a name that no other task has")?;
        if let Some((_, first)) = self.known.get(name) {
            return Err(TasksetError::DuplicateTask {
                place: value.place(),
                task: name.to_string(),
                first: first.place(),
            });
        }
        let id = TaskId::from_index(self.in_order.len());
        self.known.insert(name, (id, value.clone()));
        self.in_order.push(name);
        Ok(name)
    }

    /// The task that `value` names.
    pub(crate) fn find(&self, value: &Value<'_>) -> Result<TaskId, TasksetError> {
        let name = value.text("the name of a task")?;
        let known = self.known.get(name);
        known
            .map(|(id, _)| *id)
            .ok_or_else(|| TasksetError::UnknownTask {
                place: value.place(),
                key: value.key(),
                task: name.to_string(),
                known: self
                    .in_order
                    .iter()
                    .map(|name| (*name).to_string())
                    .collect(),
            })
    }
}

/// Reads `[scheduler]`.
fn read_scheduler(value: &Value<'_>) -> Result<SchedulerOptions, TasksetError> {
    let keys = [
        "policy",
        "reserve",
        "reserve-server",
        "quantum",
        "early-release",
        "overheads",
        "repairs",
        "lagging",
    ];
    let mut table = value.table(&keys, "a table [scheduler]")?;
    table.rename("[scheduler]".to_string());
    let default = SchedulerOptions::default();
    let text = |key, accepted| {
        let read = table.map(key, |value| value.name(accepted))?;
        Ok(read.map(str::to_string))
    };
    Ok(SchedulerOptions {
        policy: text("policy", "the name of a policy, like \"hpa-edf\"")?,
        reserve: table
            .map("reserve", Value::share)?
            .unwrap_or(default.reserve),
        reserve_server: table
            .map("reserve-server", Value::boolean)?
            .unwrap_or(default.reserve_server),
        quantum: table.map("quantum", Value::positive_span)?,
        early_release: table
            .map("early-release", Value::boolean)?
            .unwrap_or(default.early_release),
        overheads: text("overheads", "the path of an overhead file")?,
        repairs: table.map("repairs", read_repairs)?,
        lagging: table
            .map("lagging", |value| {
                value.word(&[("grid", Lagging::Grid), ("reset", Lagging::Reset)])
            })?
            .unwrap_or(default.lagging),
    })
}

/// Reads `repairs`, a list of names.
fn read_repairs(value: &Value<'_>) -> Result<Repairs, TasksetError> {
    let names = Repairs::NAMES.map(|name| (name, name));
    value
        .list("a list of names")?
        .iter()
        .try_fold(Repairs::NONE, |repairs, item| {
            Ok(repairs.with(item.word(&names)?).unwrap_or(repairs))
        })
}

/// Reads every `[[task]]`.
fn read_tasks<'t>(
    value: Option<Value<'t>>,
    names: &Names<'_>,
) -> Result<(Vec<Task>, TaskNames<'t>), TasksetError> {
    let mut ids = TaskNames::new();
    let items = value.map_or(Ok(Vec::new()), |value| {
        value.list("a list of tables [[task]]")
    })?;
    let tasks = items
        .iter()
        .map(|item| task::read(item, names, &mut ids))
        .collect::<Result<_, _>>()?;
    Ok((tasks, ids))
}

/// Reads every `[[action]]`, and puts them in the order in which they happen.
fn read_actions(
    value: &Value<'_>,
    platform: &Platform,
    ids: &TaskNames<'_>,
) -> Result<Vec<Action>, TasksetError> {
    let items = value.list("a list of tables [[action]]")?;
    let context = action::Context::new(platform, ids, &items);
    let mut actions = items
        .iter()
        .map(|item| context.read(item))
        .collect::<Result<Vec<_>, _>>()?;
    actions.sort_by_key(|action| action.at);
    Ok(actions)
}
