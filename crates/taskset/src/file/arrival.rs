//! When the jobs of a task arrive by time: its keys `arrival`, `releases` and `distances`.

use shiftwork_model::{Arrival, ArrivalCurve, CurveError, Instant, Pace, Span, TaskSet};

use super::TaskNames;
use crate::error::TasksetError;
use crate::tree::{Table, Value};

/// Whether gaps are random.
pub(super) const ARRIVALS: [(&str, bool); 2] = [("periodic", false), ("sporadic", true)];

/// Reads `distances` of a task; `None` if it has none.
pub(super) fn read_distances(table: &Table<'_>) -> Result<Option<ArrivalCurve>, TasksetError> {
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

/// Reads `arrival` or `releases`, whichever is there; without a period, releases are only looked at one by one. `curve`: by
/// the task's distances.
pub(super) fn read(
    table: &Table<'_>,
    period: Option<Span>,
    curve: Option<ArrivalCurve>,
) -> Result<Arrival, TasksetError> {
    if let Some(curve) = curve {
        return read_pace(table, curve);
    }
    if table.get("arrival").is_none() && table.get("releases").is_none() {
        return Ok(Arrival::Periodic);
    }
    let arrival = match table.exactly_one(&["arrival", "releases", "triggered-by"])? {
        ("arrival", value) => value.word(&ARRIVALS).map(|sporadic| match sporadic {
            true => Arrival::Sporadic,
            false => Arrival::Periodic,
        }),
        (_, value) => read_releases(&value, period).map(Arrival::Releases),
    };
    table.source().note(arrival)
}

fn read_releases(value: &Value<'_>, period: Option<Span>) -> Result<Vec<Instant>, TasksetError> {
    let mut earliest = Instant::ZERO;
    value.each("a list of durations, like [\"0ms\", \"8ms\"]", |item| {
        let release = item.instant()?;
        if release < earliest {
            return Err(TasksetError::ReleaseTooEarly {
                place: item.place(),
                release: release.late_since(Instant::ZERO),
                earliest: earliest.late_since(Instant::ZERO),
            });
        }
        if let Some(period) = period {
            earliest = release + period;
        }
        Ok(release)
    })
}

/// Reads how arrivals follow the curve: `arrival` beside `distances`.
fn read_pace(table: &Table<'_>, curve: ArrivalCurve) -> Result<Arrival, TasksetError> {
    if table.get("releases").is_some() {
        table.exactly_one(&["releases", "distances"])?;
    }
    let pace = table.map("arrival", |value| {
        match value.word(&ARRIVALS)? {
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
