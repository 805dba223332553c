//! Curves of studies as pictures.

use shiftwork_report::plot::{Axes, Estimate, Scale, estimates};
use shiftwork_study::Row;

use crate::outcome::Series;

/// Across.
const LOAD: &str = "utilization cap, in CPUs";

/// The share of schedulable sets against the load: a curve for each, with 95% confidence intervals.
pub fn shares(title: &str, all: &[(String, Series)]) -> String {
    let axes = Axes {
        x: LOAD,
        y: "schedulable",
    };
    let point = |row: &Row| Some((row.ratio()?, row.interval()?));
    draw(title, (axes, Scale::Shares), all, point)
}

/// The mean of the bounds on tardiness, of those sets that have one, against the load: a curve for each.
pub fn tardiness(title: &str, all: &[(String, Series)]) -> String {
    let axes = Axes {
        x: LOAD,
        y: "mean of the largest bounds (ms)",
    };
    let point = |row: &Row| {
        let mean = row.tardiness_mean_ns? as f64 / 1e6;
        Some((mean, [mean, mean]))
    };
    draw(title, (axes, Scale::Numbers), all, point)
}

fn draw(
    title: &str,
    (axes, scale): (Axes<'_>, Scale),
    all: &[(String, Series)],
    point: impl Fn(&Row) -> Option<(f64, [f64; 2])>,
) -> String {
    let estimate = |row: &Row| {
        let (y, within) = point(row)?;
        let x = row.cap;
        Some(Estimate { x, y, within })
    };
    let curve = |(name, series): &(String, Series)| shiftwork_report::plot::Series {
        name: name.clone(),
        points: series.rows.iter().filter_map(estimate).collect(),
    };
    let curves: Vec<_> = all.iter().map(curve).collect();
    estimates(title, axes, scale, &curves)
}
