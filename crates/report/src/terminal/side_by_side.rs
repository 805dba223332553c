//! A simulated run beside the measured run of a real machine.

use shiftwork_model::TaskSet;
use shiftwork_trace::comparison::Comparison;
use shiftwork_trace::replay::Verdict;
use shiftwork_trace::{ReactionStatistics, RunSummary, SpanStatistics, TaskSummary};

use super::grid::{Align, Cell, Grid, Tone, paint, printable};
use super::tables::{column, count, maybe, misses, time, totals};
use super::{Colour, Look};

/// A simulated and a measured run of one task set, one row per task.
///
/// A run whose summary has fewer tasks leaves its cells empty.
pub fn side_by_side(
    set: &TaskSet,
    simulated: &RunSummary,
    measured: &RunSummary,
    look: impl Into<Look>,
) -> String {
    let look: Look = look.into();
    let runs = [("simulated", simulated), ("measured", measured)];
    let mut columns = vec![column("", "task", Align::Left)];
    for (name, _) in runs {
        for (title, rank) in [
            ("missed", 0),
            ("min", 3),
            ("mean", 1),
            ("p99", 2),
            ("max", 0),
        ] {
            columns.push(column(name, title, Align::Right).rank(rank));
        }
    }
    for title in ["preempted", "migrated"] {
        columns.push(column("simulated | measured", title, Align::Right).rank(4));
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
    let inverted = runs.iter().any(|(_, summary)| summary.inversions.is_some());
    for mut row in totals(&runs, inverted, 4) {
        row.extend([Cell::default(), Cell::default()]);
        grid.row(row);
    }
    let note =
        "min, mean, p99 and max are response times, from the release; ! marks missed deadlines";
    let note = paint(note, Tone::Faint, look.colour);
    format!("{}{note}\n", grid.render(look))
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

/// Maximum number of listed disagreements; the first ones matter most.
const DISAGREEMENTS_MAX: usize = 5;

/// The result of checking a measured run.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// The name of the policy.
    pub policy: &'a str,
    /// The result of the replay.
    pub verdict: &'a Verdict,
    /// The reason why the run is wrong although the replay found no disagreement; `None` if there is none.
    pub objection: Option<&'a str>,
    /// Other policies that would have passed.
    pub alike: &'a [String],
    /// Other policies that would not have passed.
    pub distinguished: &'a [String],
    /// The completions compared with those of the ideal simulation, if known.
    pub finishes: Option<&'a Comparison>,
}

/// Whether a measured run followed its policy, and the machine's reaction times (`None`: not measured), as a few
/// lines. Disagreements are marked with `!`.
pub fn judged(
    judged: &Judged<'_>,
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
    let verdict = judged.verdict;
    lines.push(answer(judged, colour));
    for it in verdict.disagreements.iter().take(DISAGREEMENTS_MAX) {
        lines.push(format!("! {}", uncontrolled(&verdict.describe(it))));
    }
    let listed = verdict.disagreements.len().min(DISAGREEMENTS_MAX) as u64;
    let more = verdict.count.saturating_sub(listed);
    if more > 0 {
        lines.push(format!("! and {more} more"));
    }
    lines.push(format!(
        "judged by: {}, later than {} after each decision",
        verdict.rule.summary(),
        time(verdict.window.as_ns())
    ));
    lines.extend(neighbours(judged));
    lines.extend(judged.finishes.and_then(farthest));
    lines.join("\n") + "\n"
}

fn answer(judged: &Judged<'_>, colour: Colour) -> String {
    let verdict = judged.verdict;
    let (policy, decisions) = (judged.policy, count(verdict.decisions, "decision"));
    let (answer, tone) = match (verdict.count, judged.objection) {
        (0, None) => (format!("the run agrees with {policy}"), Tone::Good),
        (0, Some(objection)) => (
            format!("the run does not agree with its guarantee: {objection} !"),
            Tone::Bad,
        ),
        (number, _) => {
            let found = count(number, "disagreement");
            let stalls = match verdict.stalls {
                0 => String::new(),
                stalls => format!(
                    ", {} of up to {}",
                    count(stalls, "stall"),
                    time(verdict.longest_stall.as_ns())
                ),
            };
            let (total, longest) = (verdict.total.as_ns(), verdict.longest.as_ns());
            let text = format!(
                "the run does not agree with {policy}: {found}, {} in all, the longest {}{stalls} !",
                time(total),
                time(longest)
            );
            (text, Tone::Bad)
        }
    };
    format!("{}: {decisions} replayed", paint(&answer, tone, colour))
}

fn neighbours(judged: &Judged<'_>) -> Vec<String> {
    let policy = judged.policy;
    let line = |names: &[String], says: &str| {
        (!names.is_empty()).then(|| format!("this run {says} {policy} from {}", names.join(", ")))
    };
    let lines = [
        line(judged.alike, "does not distinguish"),
        line(judged.distinguished, "distinguishes"),
    ];
    lines.into_iter().flatten().collect()
}

fn farthest(finishes: &Comparison) -> Option<String> {
    let worst = finishes.worst()?;
    let task = finishes.tasks.get(worst.job.task.index());
    Some(format!(
        "for information: of {} beside the ideal simulation, job {} of {} finished farthest from it, by {}",
        count(finishes.jobs.len() as u64, "job"),
        worst.job.number,
        printable(task.map_or("", String::as_str)),
        time(worst.difference.as_ns()),
    ))
}

/// Replaces control characters in text with names from a file. The text is not cut.
fn uncontrolled(text: &str) -> String {
    let escaped = |character: char| match character.is_control() {
        true => character.escape_default().collect::<String>(),
        false => character.to_string(),
    };
    text.chars().map(escaped).collect()
}
