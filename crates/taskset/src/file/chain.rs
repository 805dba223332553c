//! The `[[chain]]`s of a task-set file: cause-effect chains of its tasks.

use std::collections::BTreeMap;

use shiftwork_model::{Chain, TaskId, TaskSet};

use super::TaskNames;
use crate::error::TasksetError;
use crate::keys::{Key, Takes, may, must};
use crate::place::Place;
use crate::tree::{Table, Value};

pub(super) static KEYS: [Key; 5] = [
    must(
        "name",
        Takes::Name,
        "The name of the chain; no other chain has it.",
    ),
    must(
        "tasks",
        Takes::List(&Takes::Name, 2),
        "Its tasks, each once, in the order in which data pass through them.",
    ),
    may(
        "reaction",
        Takes::Duration,
        "The longest time wanted from an event to the first output that rests on a sample taken after it.",
    ),
    may(
        "age",
        Takes::Duration,
        "The longest time wanted from a sample to the end of the last output that rests on it.",
    ),
    may(
        "latency",
        Takes::Duration,
        "The longest time wanted from an arrival of the first task to the end of the last task's job that stems from it; each \
         task triggers the next.",
    ),
];

/// Reads every `[[chain]]`.
pub(super) fn read_all(file: &Table<'_>, ids: &TaskNames<'_>) -> Result<Vec<Chain>, TasksetError> {
    let mut known = BTreeMap::new();
    file.each("chain", "a list of tables [[chain]]", |item| {
        read(item, ids, &mut known)
    })
}

/// Reads one, and adds its name and place to `known`.
fn read<'t>(
    value: &Value<'t>,
    ids: &TaskNames<'_>,
    known: &mut BTreeMap<&'t str, Place>,
) -> Result<Chain, TasksetError> {
    let mut table = value.table(&KEYS, "a table [[chain]]")?;
    table.rename("a chain".to_string());
    let name = table.need_map("name", "name = \"perception\"", |value| {
        let name = value.name("a name that no other chain has")?;
        if let Some(&first) = known.get(name) {
            return Err(TasksetError::DuplicateChain {
                place: value.place(),
                chain: name.to_string(),
                first,
            });
        }
        known.insert(name, value.place());
        Ok(name)
    });
    if let Ok(name) = name {
        table.rename(format!("chain `{name}`"));
    }
    let tasks = table.need_map("tasks", "tasks = [\"camera\", \"planner\"]", |value| {
        read_path(value, ids, name.as_ref().map_or("", |name| name))
    });
    let reaction = table.map("reaction", Value::positive_span);
    let age = table.map("age", Value::positive_span);
    let latency = table.map("latency", Value::positive_span);
    Ok(Chain {
        name: name?.to_string(),
        tasks: tasks?,
        reaction: reaction?,
        age: age?,
        latency: latency?,
    })
}

/// Reports latencies that are wanted of chains in which some task does not trigger the next.
pub(super) fn check(file: &Table<'_>, set: &TaskSet) {
    for (value, chain) in file.items("chain").iter().zip(&set.chains) {
        if chain.latency.is_some() && !chain.is_triggered(set) {
            value.report(TasksetError::ChainNotTriggered {
                place: value.place(),
                chain: chain.name.clone(),
            });
        }
    }
}

/// Reads the tasks of the chain with this name.
fn read_path(
    value: &Value<'_>,
    ids: &TaskNames<'_>,
    chain: &str,
) -> Result<Vec<TaskId>, TasksetError> {
    let mut path: Vec<TaskId> = Vec::new();
    let found = value.each("a list of names of tasks", |item| {
        let task = ids.find(item)?;
        if path.contains(&task) {
            return Err(TasksetError::ChainRepeatsTask {
                place: item.place(),
                chain: chain.to_string(),
                task: item.text("the name of a task")?.to_string(),
            });
        }
        path.push(task);
        Ok(task)
    })?;
    if found.len() < 2 {
        return Err(TasksetError::ChainTooShort {
            place: value.place(),
            chain: chain.to_string(),
        });
    }
    Ok(found)
}
