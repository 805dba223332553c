//! What of a study is printed.

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_study::{Results, Row, summaries};
use shiftwork_trace::SCHEMA_VERSION;

use super::plot::PlotOutput;
use crate::failure::Failure;
use crate::output::{Console, columns};

/// What `study --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "it only says what there is, for the schema")]
pub enum StudyOutput<'a> {
    /// Of `study run`.
    Row(RowOutput<'a>),
    /// Of `study plot`.
    Plot(PlotOutput<'a>),
}

/// What `study run --json` prints, one line for each cell and question: a row of `results.parquet`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RowOutput<'a> {
    /// Always the same for one release of the format.
    pub schema_version: u64,
    /// The family of the task sets.
    family: &'a str,
    /// CPUs of the platform.
    cpus: u64,
    /// The utilization that was asked for, in CPUs.
    cap: f64,
    /// The policy's name.
    policy: &'a str,
    /// What the contender is called.
    label: &'a str,
    /// `hard`, `soft` or `simulated`.
    criterion: &'a str,
    /// The overhead file, as the study names it; null if scheduling cost nothing.
    overheads: Option<&'a str>,
    /// Task sets that were asked about.
    sets: u64,
    /// Task sets for which the criterion was shown to be met; of simulations, that missed no deadline.
    met: u64,
    /// Task sets for which it was shown not to be met.
    refuted: u64,
    /// All others.
    unknown: u64,
    /// `met` of `sets`; null without any.
    ratio: Option<f64>,
    /// Between `low` and `high` the true share lies with a confidence of 95%; null without any task set.
    low: Option<f64>,
    high: Option<f64>,
    /// Task sets with a bound on tardiness.
    bounded: u64,
    /// The mean of these bounds, rounded down; null without any.
    tardiness_mean_ns: Option<u64>,
    /// The largest of them; null without any.
    tardiness_max_ns: Option<u64>,
}

impl<'a> RowOutput<'a> {
    fn new(row: &'a Row) -> Self {
        let interval = row.interval();
        Self {
            schema_version: SCHEMA_VERSION,
            family: &row.family,
            cpus: row.cpus,
            cap: row.cap,
            policy: &row.policy,
            label: &row.label,
            criterion: &row.criterion,
            overheads: row.overheads.as_deref(),
            sets: row.sets,
            met: row.met,
            refuted: row.refuted,
            unknown: row.unknown(),
            ratio: row.ratio(),
            low: interval.map(|[low, _]| low),
            high: interval.map(|[_, high]| high),
            bounded: row.bounded,
            tardiness_mean_ns: row.tardiness_mean_ns,
            tardiness_max_ns: row.tardiness_max_ns,
        }
    }
}

/// Prints how far each curve reaches, or every row as JSON.
pub fn show(results: &Results, console: &mut Console) -> Result<(), Failure> {
    if console.json {
        let rows = results.rows.iter().map(RowOutput::new);
        return rows.into_iter().try_for_each(|row| console.json_line(&row));
    }
    let heads = [
        "family",
        "cpus",
        "contender",
        "criterion",
        "sets",
        "share over all loads",
        "below 50% from",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for one in summaries(results) {
        let share = one
            .share
            .map_or("-".to_owned(), |share| format!("{:.1}%", 100.0 * share));
        let half = one.half.map_or("-".to_owned(), |half| format!("{half:.2}"));
        rows.push(vec![
            one.family,
            one.cpus.to_string(),
            one.label,
            one.criterion,
            one.sets.to_string(),
            share,
            half,
        ]);
    }
    console.text(&columns(&rows))
}
