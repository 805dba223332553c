//! The three tables.

use std::collections::BTreeMap;

use shiftwork_model::{Affinity, CapacitySum, CpuSet, Instant, Task, TaskSet, Utilization};
use shiftwork_trace::{RunSummary, SpanStatistics, TaskSummary};

use super::grid::{Align, Cell, Column, Grid, Tone, paint, printable};
use super::{Colour, Heading, Look};
use crate::units::{self, Script};

/// The counters of a run, one row per task, with a heading and a line that sums them up.
pub fn table(
    set: &TaskSet,
    heading: Heading<'_>,
    summary: &RunSummary,
    look: impl Into<Look>,
) -> String {
    let look: Look = look.into();
    let colour = look.colour;
    let constrained = set.tasks.iter().any(|task| task.deadline != task.period);
    let mut grid = Grid::new(columns(constrained));
    for (task, counted) in set.tasks.iter().zip(&summary.tasks) {
        grid.row(row(task, counted, constrained));
    }
    format!(
        "{}\n\n{}\n{}\n",
        paint(&title(set, heading, summary), Tone::Strong, colour),
        grid.render(look),
        verdict(summary, colour)
    )
}

fn title(set: &TaskSet, heading: Heading<'_>, summary: &RunSummary) -> String {
    let cpus = count(summary.cpus as u64, "CPU");
    let length = time(summary.horizon.late_since(Instant::ZERO).as_ns());
    let seed = heading
        .seed
        .map_or(String::new(), |seed| format!(", seed {seed}"));
    let name = match set.name.as_str() {
        "" => String::new(),
        name => format!("{}: ", printable(name)),
    };
    format!("{name}{} on {cpus} for {length}{seed}", heading.policy)
}

pub(super) fn column(group: &str, title: &'static str, align: Align) -> Column {
    let group = group.into();
    Column {
        group,
        title,
        align,
        rank: 0,
    }
}

fn columns(constrained: bool) -> Vec<Column> {
    let mut columns = vec![
        column("", "task", Align::Left),
        column("", "cost", Align::Right).rank(1),
        column("", "period", Align::Right).rank(1),
    ];
    if constrained {
        columns.push(column("", "deadline", Align::Right).rank(1));
    }
    columns.push(column("", "CPUs", Align::Left).rank(4));
    for (title, rank) in [("jobs", 5), ("missed", 0)] {
        columns.push(column("", title, Align::Right).rank(rank));
    }
    for (title, rank) in [("min", 6), ("mean", 2), ("p99", 3), ("max", 0)] {
        columns.push(column("response from release", title, Align::Right).rank(rank));
    }
    for (title, rank) in [("mean", 7), ("max", 2)] {
        columns.push(column("tardiness", title, Align::Right).rank(rank));
    }
    for title in ["preempted", "migrated"] {
        columns.push(column("", title, Align::Right).rank(8));
    }
    columns
}

fn row(task: &Task, counted: &TaskSummary, constrained: bool) -> Vec<Cell> {
    let tone = if counted.misses > 0 {
        Tone::Bad
    } else {
        Tone::Plain
    };
    let mut cells = vec![
        Cell::toned(&counted.name, tone),
        Cell::new(time(task.cost.as_ns())),
        Cell::new(time(task.period.as_ns())),
    ];
    if constrained {
        cells.push(Cell::new(time(task.deadline.as_ns())));
    }
    cells.push(Cell::new(task.affinity.to_string()));
    cells.push(Cell::new(counted.jobs.to_string()));
    cells.push(misses(counted.misses));
    let response = |pick: fn(&SpanStatistics) -> u64| maybe(counted.response.as_ref().map(pick));
    cells.push(response(|statistics| statistics.min_ns));
    cells.push(response(|statistics| statistics.mean_ns));
    cells.push(response(|statistics| statistics.p99_ns));
    cells.push(response(|statistics| statistics.max_ns));
    cells.push(maybe(counted.tardiness_mean_ns));
    cells.push(maybe(counted.tardiness_max_ns));
    cells.push(number(counted.preemptions));
    cells.push(number(counted.migrations));
    cells
}

/// Several runs of one task set side by side, one row per task; below one another where there is no room for that.
///
/// A run whose summary has fewer tasks leaves its cells empty.
pub fn comparison(set: &TaskSet, runs: &[(&str, &RunSummary)], look: impl Into<Look>) -> String {
    let look: Look = look.into();
    let inverted = runs.iter().any(|(_, summary)| summary.inversions.is_some());
    let together = |count: &usize| -> Vec<Grid> {
        let parts = runs.chunks(*count);
        parts
            .map(|runs| compared_runs(set, runs, inverted))
            .collect()
    };
    let fits = |parts: &Vec<Grid>| {
        let mut parts = parts.iter();
        look.width
            .is_none_or(|width| parts.all(|part| part.width() <= width))
    };
    let mut counts = (1..=runs.len().max(1)).rev().map(|count| together(&count));
    let parts = counts.find(fits).unwrap_or_else(|| together(&1));
    let mut notes =
        vec!["mean, p99 and max are response times, from the release; ! marks missed deadlines"];
    if inverted {
        notes.push("inverted: longest wait for a less urgent job or an idle CPU that shifts would have ended");
    }
    let notes = notes
        .iter()
        .map(|note| format!("{}\n", paint(note, Tone::Faint, look.colour)));
    let parts: Vec<String> = parts.iter().map(|part| part.render(look)).collect();
    parts.join("\n") + &notes.collect::<String>()
}

fn compared_runs(set: &TaskSet, runs: &[(&str, &RunSummary)], inverted: bool) -> Grid {
    let mut columns = vec![column("", "task", Align::Left)];
    for (policy, _) in runs {
        let titles = [("missed", 0), ("mean", 2), ("p99", 3), ("max", 0)].into_iter();
        for (title, rank) in titles.chain(inverted.then_some(("inverted", 1))) {
            columns.push(column(&printable(policy), title, Align::Right).rank(rank));
        }
    }
    let mut grid = Grid::new(columns);
    for (index, task) in set.tasks.iter().enumerate() {
        let mut cells = vec![Cell::new(&task.name)];
        for (_, summary) in runs {
            let task = summary.tasks.get(index);
            cells.extend(compared(task));
            cells.extend(inverted.then(|| longest_inversion(task)));
        }
        grid.row(cells);
    }
    grid.rule();
    for row in totals(runs, inverted, if inverted { 4 } else { 3 }) {
        grid.row(row);
    }
    grid
}

/// The counters of whole runs, one row for each: its name, and for each run a cell and `empty` empty ones.
/// `inverted`: whether inversions are counted.
pub(super) fn totals(runs: &[(&str, &RunSummary)], inverted: bool, empty: usize) -> Vec<Vec<Cell>> {
    type Total = (&'static str, fn(&RunSummary) -> u64);
    let totals: [Total; 6] = [
        ("jobs", |summary| summary.jobs),
        ("finished", |summary| summary.completed),
        ("missed", |summary| summary.deadline_misses),
        ("preemptions", |summary| summary.preemptions),
        ("migrations", |summary| summary.migrations),
        ("shifts", |summary| summary.shifts),
    ];
    let row = |(name, pick): Total| {
        let mut cells = vec![Cell::new(name)];
        for (_, summary) in runs {
            cells.push(match name {
                "missed" => misses(pick(summary)),
                _ => Cell::new(pick(summary).to_string()),
            });
            cells.extend(std::iter::repeat_n(Cell::default(), empty));
        }
        cells
    };
    let inversions = |summary: &RunSummary| summary.inversions.map_or(0, |found| found.all.count);
    let inverted = inverted.then_some(("inversions", inversions as fn(&RunSummary) -> u64));
    totals.into_iter().chain(inverted).map(row).collect()
}

/// The longest inversion of the task's jobs; empty if inversions were not determined.
fn longest_inversion(counted: Option<&TaskSummary>) -> Cell {
    match counted.and_then(|task| task.inversions) {
        Some(found) => maybe(Some(found.all.longest_ns.unwrap_or(0))),
        None => Cell::default(),
    }
}

fn compared(counted: Option<&TaskSummary>) -> [Cell; 4] {
    let Some(counted) = counted else {
        return Default::default();
    };
    let response = counted.response.as_ref();
    [
        misses(counted.misses),
        maybe(response.map(|statistics| statistics.mean_ns)),
        maybe(response.map(|statistics| statistics.p99_ns)),
        maybe(response.map(|statistics| statistics.max_ns)),
    ]
}

/// The packing of a partitioned or clustered policy (`packing`, by task index): one row per partition, with its
/// load and its tasks. A load above the capacity of its CPUs is marked with `!`.
pub fn packing(set: &TaskSet, packing: &[Affinity], look: impl Into<Look>) -> String {
    let mut partitions: BTreeMap<CpuSet, Vec<&Task>> = BTreeMap::new();
    for (task, partition) in set.tasks.iter().zip(packing) {
        partitions.entry(*partition.cpus()).or_default().push(task);
    }
    let mut partitions: Vec<_> = partitions.into_iter().collect();
    partitions.sort_by_key(|(cpus, _)| (cpus.lowest(), cpus.len()));
    let titles = [
        ("CPUs", Align::Left),
        ("utilization", Align::Right),
        ("tasks", Align::Left),
    ];
    let titles = titles.map(|(title, align)| column("", title, align));
    let mut grid = Grid::new(titles.into());
    for (cpus, tasks) in partitions {
        let load: f64 = tasks.iter().map(|task| task.utilization().as_f64()).sum();
        let (mark, tone) = match carries(&cpus, &tasks) {
            true => (" ", Tone::Plain),
            false => ("!", Tone::Bad),
        };
        let names: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
        for (index, line) in wrapped(&names).into_iter().enumerate() {
            let (cpus, load) = match index {
                0 => (cpus.to_string(), format!("{load:.3} {mark}")),
                _ => Default::default(),
            };
            grid.row(vec![
                Cell::new(cpus),
                Cell::toned(load, tone),
                Cell::new(line),
            ]);
        }
    }
    grid.render(look)
}

/// Whether the load of the tasks is at most the capacity of their CPUs. Exact, unlike the displayed load.
fn carries(cpus: &CpuSet, tasks: &[&Task]) -> bool {
    let mut sum = CapacitySum::default();
    let mut fits = true;
    for task in tasks {
        let more: Utilization = task.utilization();
        fits &= sum.fits(more, cpus.len() as u64);
        sum.add(more);
    }
    fits
}

/// Names as lines that fit a cell.
fn wrapped(names: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in names.iter().map(|name| printable(name)) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + name.chars().count() < 38 => {
                line.push(' ');
                line.push_str(&name);
            }
            _ => lines.push(name),
        }
    }
    lines
}

/// The run in a sentence.
fn verdict(summary: &RunSummary, colour: Colour) -> String {
    let jobs = count(summary.jobs, "job");
    let (missed, tone) = match summary.deadline_misses {
        0 => ("no deadline missed".to_string(), Tone::Good),
        misses => (format!("{} missed !", count(misses, "deadline")), Tone::Bad),
    };
    let missed = paint(&missed, tone, colour);
    let inversions = summary.inversions.map_or(String::new(), |found| {
        let longest = found.all.longest_ns;
        let longest = longest.map(|longest| format!(" (longest {})", time(longest)));
        let counted = count(found.all.count, "priority inversion");
        format!(", {counted}{}", longest.unwrap_or_default())
    });
    format!(
        "{jobs}, {} finished, {missed}; {}, {}, {}{inversions}",
        summary.completed,
        count(summary.preemptions, "preemption"),
        count(summary.migrations, "migration"),
        count(summary.shifts, "shift"),
    )
}

pub(super) fn count(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

pub(super) fn misses(number: u64) -> Cell {
    match number {
        0 => Cell::toned("0  ", Tone::Faint),
        _ => Cell::toned(format!("{number} !"), Tone::Bad),
    }
}

fn number(number: u64) -> Cell {
    let tone = if number == 0 {
        Tone::Faint
    } else {
        Tone::Plain
    };
    Cell::toned(number.to_string(), tone)
}

pub(super) fn maybe(ns: Option<u64>) -> Cell {
    match ns {
        Some(0) => Cell::toned("0", Tone::Faint),
        Some(ns) => Cell::new(time(ns)),
        None => Cell::toned("-", Tone::Faint),
    }
}

pub(super) fn time(ns: u64) -> String {
    units::span(ns, Script::Ascii)
}
