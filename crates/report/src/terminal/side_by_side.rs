//! What was simulated beside what a real machine made of it.

use shiftwork_model::TaskSet;
use shiftwork_trace::agreement::{Agreement, JobAgreement, ReactionStatistics, TOLERANCE};
use shiftwork_trace::{RunSummary, SpanStatistics, TaskSummary};

use super::Colour;
use super::grid::{Align, Cell, Grid, Tone, paint, printable};
use super::tables::{column, count, maybe, misses, time, totals};

/// A simulated and a measured run of one task set, one row per task.
///
/// A run whose summary has fewer tasks leaves its cells empty.
pub fn side_by_side(
    set: &TaskSet,
    simulated: &RunSummary,
    measured: &RunSummary,
    colour: Colour,
) -> String {
    let runs = [("simulated", simulated), ("measured", measured)];
    let mut columns = vec![column("", "task", Align::Left)];
    for (name, _) in runs {
        for title in ["missed", "min", "mean", "p99", "max"] {
            columns.push(column(name, title, Align::Right));
        }
    }
    for title in ["preempted", "migrated"] {
        columns.push(column("simulated | measured", title, Align::Right));
    }
    let mut grid = Grid::new(columns);
    for (index, task) in set.tasks.iter().enumerate() {
        let both = runs.map(|(_, summary)| summary.tasks.get(index));
        let mut cells = vec![Cell::new(&task.name)];
        cells.extend(both.into_iter().flat_map(responses));
        cells.push(pair(both, |task| task.preemptions));
        cells.push(pair(both, |task| task.migrations));
        grid.row(cells);
    }
    grid.rule();
    for mut row in totals(&runs, 4) {
        row.extend([Cell::default(), Cell::default()]);
        grid.row(row);
    }
    let note = "min, mean, p99 and max are response times; ! marks missed deadlines";
    let note = paint(note, Tone::Faint, colour);
    format!("{}{note}\n", grid.render(colour))
}

fn responses(counted: Option<&TaskSummary>) -> [Cell; 5] {
    let Some(counted) = counted else {
        return Default::default();
    };
    let response = |pick: fn(&SpanStatistics) -> u64| maybe(counted.response.as_ref().map(pick));
    [
        misses(counted.misses),
        response(|statistics| statistics.min_ns),
        response(|statistics| statistics.mean_ns),
        response(|statistics| statistics.p99_ns),
        response(|statistics| statistics.max_ns),
    ]
}

/// A counter in both runs.
fn pair(both: [Option<&TaskSummary>; 2], pick: fn(&TaskSummary) -> u64) -> Cell {
    let [simulated, measured] = both.map(|task| match task {
        Some(task) => pick(task).to_string(),
        None => "-".into(),
    });
    let tone = match (simulated.as_str(), measured.as_str()) {
        ("0", "0") => Tone::Faint,
        _ => Tone::Plain,
    };
    Cell::toned(format!("{simulated} | {measured:>3}"), tone)
}

/// At most so many disagreements are told; the first ones matter most.
const DISAGREEMENTS_MAX: usize = 5;

/// How far a measured run agrees with the simulated one, and how fast the machine reacted
/// (`None`: it was not measured), as a few lines. Disagreements are marked with `!`.
pub fn agreement(
    agreement: &Agreement,
    reactions: Option<&ReactionStatistics>,
    colour: Colour,
) -> String {
    let mut lines = Vec::new();
    if let Some(reactions) = reactions {
        lines.push(format!(
            "reactions: p50 {}, p99 {}, p99.9 {}, max {} ({})",
            time(reactions.p50_ns),
            time(reactions.p99_ns),
            time(reactions.p99_9_ns),
            time(reactions.max_ns),
            count(reactions.samples, "sample"),
        ));
    }
    lines.push(verdict(agreement, colour));
    if let Some(worst) = agreement.worst() {
        lines.push(farthest(agreement, worst));
    }
    lines.push(format!(
        "other jobs ran than simulated for {}, {} of it outside reaction windows",
        time(agreement.sets_differed.as_ns()),
        time(agreement.sets_differed_outside.as_ns()),
    ));
    let found = agreement.disagreements.iter().take(DISAGREEMENTS_MAX);
    for disagreement in found {
        lines.push(format!("! {}", uncontrolled(&disagreement.to_string())));
    }
    let told = agreement.disagreements.len().min(DISAGREEMENTS_MAX) as u64;
    let more = agreement.disagreement_count.saturating_sub(told);
    if more > 0 {
        lines.push(format!("! and {more} more"));
    }
    lines.join("\n") + "\n"
}

fn verdict(agreement: &Agreement, colour: Colour) -> String {
    let jobs = count(agreement.jobs.len() as u64, "job");
    let (answer, tone) = match agreement.disagreement_count {
        0 => ("simulated and measured agree".into(), Tone::Good),
        number => {
            let found = count(number, "disagreement");
            (
                format!("simulated and measured differ, {found} !"),
                Tone::Bad,
            )
        }
    };
    let ties = match agreement.near_ties() {
        0 => String::new(),
        ties => format!(
            "; {ties} ended just before a more urgent job came on one side, and after it on the other"
        ),
    };
    format!("{}: {jobs} compared{ties}", paint(&answer, tone, colour))
}

fn farthest(agreement: &Agreement, worst: &JobAgreement) -> String {
    let task = agreement.tasks.get(worst.job.task.index());
    format!(
        "farthest apart: job {} of {} by {}, where {} is allowed ({TOLERANCE} x {} x {})",
        worst.job.number,
        printable(task.map_or("", String::as_str)),
        time(worst.difference.as_ns()),
        time(worst.bound.as_ns()),
        time(agreement.reaction.as_ns()),
        count(worst.reactions, "reaction"),
    )
}

/// Names come from a file: no control characters on the terminal. The text itself is not cut.
fn uncontrolled(text: &str) -> String {
    let escaped = |character: char| match character.is_control() {
        true => character.escape_default().collect::<String>(),
        false => character.to_string(),
    };
    text.chars().map(escaped).collect()
}
