//! What triggers the jobs of a task: the keys `triggered-by` and `queue`, and what follows from them once all tasks are
//! read.

use shiftwork_model::{Join, Span, Task, TaskId, TaskSet, Trigger};

use super::TaskNames;
use crate::error::TasksetError;
use crate::keys::{Key, Takes, choice};
use crate::tree::{Table, Value};

pub(super) static KEYS: [Key; 2] = [
    choice(
        "any",
        Takes::List(&Takes::Name, 1),
        "Tasks of which each job triggers one.",
    ),
    choice(
        "all",
        Takes::List(&Takes::Name, 1),
        "Tasks of which one job of each together trigger one.",
    ),
];

const ACCEPTED: &str =
    "the name of a task, or several like { any = [\"radar\", \"lidar\"] } or { all = [..] }";

/// Reads `triggered-by` and `queue` of a task; `None` if its jobs arrive by time.
pub(super) fn read(
    table: &Table<'_>,
    ids: &TaskNames<'_>,
) -> Result<Option<Trigger>, TasksetError> {
    let queue = table.get("queue");
    let Some(value) = table.get("triggered-by") else {
        return match queue {
            None => Ok(None),
            Some(queue) => table.source().note(Err(queue.out_of_range(
                "given without `triggered-by`".to_string(),
                "`triggered-by` beside it, or leave it out".to_string(),
            ))),
        };
    };
    for key in ["period", "offset", "jitter"] {
        if table.get(key).is_some() {
            drop(table.exactly_one(&[key, "triggered-by"]));
        }
    }
    let sources = table.source().note(read_sources(&value, ids));
    let least = match &sources {
        Ok((Join::All, _)) => 1,
        _ => 0,
    };
    let queue = table.map("queue", |value| value.integer(least, u32::MAX));
    let ((join, sources), queue) = (sources?, queue?);
    Ok(Some(Trigger {
        sources,
        join,
        queue,
    }))
}

fn read_sources(
    value: &Value<'_>,
    ids: &TaskNames<'_>,
) -> Result<(Join, Vec<TaskId>), TasksetError> {
    if !value.is_table() {
        value.text(ACCEPTED)?;
        return Ok((Join::Any, vec![ids.find(value)?]));
    }
    let (key, names) = value.table(&KEYS, ACCEPTED)?.choice(&KEYS)?;
    let join = match key {
        "any" => Join::Any,
        _ => Join::All,
    };
    let mut sources = Vec::new();
    let found = names.each("a list of names of tasks", |item| {
        let task = ids.find(item)?;
        if sources.contains(&task) {
            let name = item.text("the name of a task")?;
            return Err(item.out_of_range(
                format!("a list with `{name}` twice"),
                "each task once".to_string(),
            ));
        }
        sources.push(task);
        Ok(task)
    })?;
    match found.is_empty() {
        true => Err(names.empty("the names of tasks that trigger it")),
        false => Ok((join, found)),
    }
}

/// Gives every triggered task its period, and its deadline where it has none so far, that is zero. Reports circles,
/// deadlines that leave no room for the cost, and phases that trigger tasks which do not say so.
pub(super) fn settle(file: &Table<'_>, set: &mut TaskSet) {
    let takes_part = |task: &Task| task.trigger().is_some() || task.triggers().next().is_some();
    if !set.tasks.iter().any(takes_part) {
        return;
    }
    let values = file.items("task");
    let name = |set: &TaskSet, index: usize| set.tasks[index].name.clone();
    let order = match set.trigger_order() {
        Ok(order) => order,
        Err(circle) => {
            if let Some(value) = circle.first().and_then(|first| values.get(first.index())) {
                value.report(TasksetError::TriggerCircle {
                    place: value.place(),
                    tasks: circle.iter().map(|id| name(set, id.index())).collect(),
                });
            }
            return;
        }
    };
    for id in order {
        let Some(value) = values.get(id.index()) else {
            continue;
        };
        let task = &set.tasks[id.index()];
        if let Some(target) = task.triggers().find(|target| {
            let trigger = set.tasks[target.index()].trigger();
            trigger.is_none_or(|trigger| !trigger.sources.contains(&id))
        }) {
            value.report(TasksetError::NotTriggeredBy {
                place: value.place(),
                source: task.name.clone(),
                target: name(set, target.index()),
            });
        }
        let Some(period) = set.triggered_period(id) else {
            continue;
        };
        let task = &mut set.tasks[id.index()];
        task.period = in_ticks(period, set.platform.tick_unit);
        if task.deadline.is_zero() {
            task.deadline = task.period;
        }
        if task.cost > task.deadline && task.cost > task.period {
            value.report(TasksetError::CostAbovePeriod {
                place: value.place(),
                task: task.name.clone(),
                cost: task.cost,
                period: task.period,
                raise: "the `period` of the tasks that trigger it",
            });
        } else if task.cost > task.deadline {
            value.report(TasksetError::CostAboveDeadline {
                place: value.place(),
                task: task.name.clone(),
                cost: task.cost,
                deadline: task.deadline,
            });
        }
    }
}

/// Rounded down to a whole number of ticks, at least one.
fn in_ticks(period: Span, unit: Span) -> Span {
    let ticks = (period.as_ns() / unit.as_ns()).max(1);
    Span::from_ns(ticks * unit.as_ns())
}
