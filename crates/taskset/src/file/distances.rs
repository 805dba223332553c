//! The key `distances` of a task: its arrival curve.

use shiftwork_model::{Arrival, ArrivalCurve, CurveError, Pace, TaskSet};

use super::TaskNames;
use crate::error::TasksetError;
use crate::tree::{Table, Value};

/// Reads `distances` of a task; `None` if it has none.
pub(super) fn read(table: &Table<'_>) -> Result<Option<ArrivalCurve>, TasksetError> {
    for key in ["period", "triggered-by"] {
        if table.get(key).is_some() && table.get("distances").is_some() {
            table.exactly_one(&[key, "distances"])?;
        }
    }
    table.map("distances", read_curve)
}

fn read_curve(value: &Value<'_>) -> Result<ArrivalCurve, TasksetError> {
    const ACCEPTED: &str = "a list of durations, like [\"1ms\", \"10ms\"]";
    let distances = value.each(ACCEPTED, Value::positive_span)?;
    if distances.is_empty() {
        return Err(value.empty(ACCEPTED));
    }
    ArrivalCurve::new(distances).map_err(|error| match error {
        CurveError::TooShort {
            arrivals,
            distance,
            least,
        } => {
            let items = value.list(ACCEPTED).unwrap_or_default();
            // The first distance is that of two arrivals.
            let item = items.get(arrivals - 2).unwrap_or(value);
            item.out_of_range(
                format!("{distance} for {arrivals} arrivals"),
                format!("{least} or more, as follows from the distances before it"),
            )
        }
        CurveError::Length(length) => value.out_of_range(
            format!("a list of {length}"),
            format!("at most {} distances", ArrivalCurve::LENGTH_MAX),
        ),
        CurveError::Zero => TasksetError::Zero {
            place: value.place(),
            key: value.key(),
        },
    })
}

/// Reads how arrivals follow the curve: `arrival` beside `distances`.
pub(super) fn read_pace(table: &Table<'_>, curve: ArrivalCurve) -> Result<Arrival, TasksetError> {
    if table.get("releases").is_some() {
        table.exactly_one(&["releases", "distances"])?;
    }
    let pace = table.map("arrival", |value| {
        match value.word(&super::task::ARRIVALS)? {
            true => Ok(Pace::Random),
            false => Err(value.out_of_range(
                "\"periodic\" beside `distances`".to_string(),
                "\"sporadic\" for random gaps, or leave it out: jobs arrive as early as `distances` allow".to_string(),
            )),
        }
    });
    Ok(Arrival::Curve(curve, pace?.unwrap_or(Pace::Earliest)))
}

/// Reports timed changes of the periods of tasks that have none but distances.
pub(super) fn check(file: &Table<'_>, set: &TaskSet, ids: &TaskNames<'_>) {
    for action in file.items("action") {
        let attributes = action
            .any_table("a table")
            .ok()
            .and_then(|table| table.get("set-attr")?.any_table("a table").ok());
        let Some(attributes) = attributes else {
            continue;
        };
        let task = attributes
            .get("task")
            .and_then(|task| ids.find(&task).ok())
            .map(|id| &set.tasks[id.index()]);
        if let (Some(period), Some(task)) = (attributes.get("period"), task)
            && task.curve().is_some()
        {
            period.report(period.out_of_range(
                format!(
                    "given for task `{}`, which has `distances` instead",
                    task.name
                ),
                "another `cost` or `deadline`; distances stay as they are".to_string(),
            ));
        }
    }
}
