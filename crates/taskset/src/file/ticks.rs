//! Times of a task-set file as whole multiples of the platform's `tick-unit`.

use shiftwork_model::Span;

use crate::error::TasksetError;
use crate::tree::{Table, Value};

/// The keys that hold times, within a task or a change, at any depth.
const TIMES: [&str; 10] = [
    "cost", "period", "deadline", "offset", "releases", "work", "run", "trace", "phases", "sleep",
];

/// Checks the times of all tasks and changes, and the quantum, of a file that was read without errors.
///
/// # Errors
/// The first time that is no whole multiple of the unit.
pub(super) fn check(file: &Table<'_>, unit: Span) -> Result<(), TasksetError> {
    if unit == Span::from_ns(1) {
        return Ok(());
    }
    for value in file.items("task", "a list of tables [[task]]")? {
        check_keys(&value, &TIMES, unit)?;
    }
    for value in file.items("action", "a list of tables [[action]]")? {
        check_keys(&value, &["at", "set-attr"], unit)?;
    }
    match file.get("scheduler") {
        Some(scheduler) => check_keys(&scheduler, &["quantum"], unit),
        None => Ok(()),
    }
}

fn check_keys(value: &Value<'_>, keys: &[&str], unit: Span) -> Result<(), TasksetError> {
    let table = value.any_table("a table")?;
    let values = keys.iter().filter_map(|key| table.get(key));
    values
        .into_iter()
        .try_for_each(|value| check_value(&value, unit))
}

fn check_value(value: &Value<'_>, unit: Span) -> Result<(), TasksetError> {
    if value.is_table() {
        return check_keys(value, &TIMES, unit);
    }
    if value.is_list() {
        let items = value.list("a list")?;
        return items.iter().try_for_each(|item| check_value(item, unit));
    }
    let time = value.span()?;
    if time.as_ns() % unit.as_ns() == 0 {
        return Ok(());
    }
    let below = Span::from_ns(time.as_ns() / unit.as_ns() * unit.as_ns());
    let near = match below {
        Span::ZERO => format!("{unit}"),
        below => format!("{below} or {}", below + unit),
    };
    Err(value.out_of_range(
        format!("{time}"),
        format!("a whole multiple of the platform's tick-unit, {unit}, like {near}"),
    ))
}
