//! Times of a task-set file as whole multiples of the platform's `tick-unit`.

use shiftwork_model::Span;

use crate::tree::{Table, Value};

/// The keys that hold times, within a task or a change, at any depth.
const TIMES: [&str; 12] = [
    "cost",
    "period",
    "distances",
    "deadline",
    "offset",
    "jitter",
    "releases",
    "work",
    "run",
    "trace",
    "phases",
    "sleep",
];

/// Reports each time of all tasks and changes, and the quantum, that is no whole multiple of the unit. What is no
/// time at all its own reader reports.
pub(super) fn check(file: &Table<'_>, unit: Span) {
    if unit == Span::from_ns(1) {
        return;
    }
    for (key, keys) in [("task", &TIMES[..]), ("action", &["at", "set-attr"])] {
        for value in file.items(key) {
            check_keys(&value, keys, unit);
        }
    }
    if let Some(scheduler) = file.get("scheduler") {
        check_keys(&scheduler, &["quantum"], unit);
    }
}

fn check_keys(value: &Value<'_>, keys: &[&str], unit: Span) {
    if let Ok(table) = value.any_table("a table") {
        let values = keys.iter().filter_map(|key| table.get(key));
        values.for_each(|value| check_value(&value, unit));
    }
}

fn check_value(value: &Value<'_>, unit: Span) {
    if value.is_table() {
        return check_keys(value, &TIMES, unit);
    }
    if let Ok(items) = value.list("a list") {
        return items.iter().for_each(|item| check_value(item, unit));
    }
    let Ok(time) = value.span() else {
        return;
    };
    if time.as_ns() % unit.as_ns() == 0 {
        return;
    }
    let below = Span::from_ns(time.as_ns() / unit.as_ns() * unit.as_ns());
    let near = match below {
        Span::ZERO => format!("{unit}"),
        below => format!("{below} or {}", below + unit),
    };
    value.report(value.out_of_range(
        format!("{time}"),
        format!("a whole multiple of the platform's tick-unit, {unit}, like {near}"),
    ));
}
