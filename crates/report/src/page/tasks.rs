//! The table of tasks.

use shiftwork_trace::{SpanStatistics, TaskSummary};

use super::foremost::Foremost;
use super::{RunView, escape, plural, time};
use crate::units;

/// The table of tasks, one per run; of many tasks a table of the foremost ones, and one of the others to be opened.
pub(super) fn section(views: &[RunView<'_>], foremost: &Foremost) -> String {
    let mut section = String::from("<section id=\"tasks\">\n<h2>Tasks</h2>\n");
    section += &foremost.remark_again("Rows");
    for view in views {
        let (first, others) = foremost.split(view);
        section += &format!(
            "<h3>{}</h3>\n{}",
            escape::html(&view.run.provenance.policy),
            table(view, first)
        );
        if !others.is_empty() {
            section += &format!(
                "<details class=\"others\"><summary>{}</summary>\n{}</details>\n",
                plural(others.len() as u64, "more task"),
                table(view, others)
            );
        }
    }
    section + "</section>\n"
}

fn table(view: &RunView<'_>, tasks: &[usize]) -> String {
    let mut table = format!(
        "<div class=\"scroll\"><table class=\"of-tasks\">\n<thead><tr><th rowspan=\"2\">task</th>\
             <th rowspan=\"2\" class=\"n\">cost</th><th rowspan=\"2\" class=\"n\">period</th>\
             <th rowspan=\"2\" class=\"n\">deadline</th><th rowspan=\"2\">CPUs</th>\
             <th rowspan=\"2\" class=\"n\">jobs</th><th rowspan=\"2\" class=\"n\">missed</th>\
             <th colspan=\"{}\" class=\"group\" title=\"from the release; at most: from the arrival, which release jitter makes earlier\">response time</th>\
             <th colspan=\"2\" class=\"group\">tardiness</th>\
             <th rowspan=\"2\" class=\"n\">pre&shy;empted</th>\
             <th rowspan=\"2\" class=\"n\">mi&shy;grated</th></tr>\n<tr>\
             <th class=\"n\">min</th><th class=\"n\">mean</th><th class=\"n\">p99</th>\
             <th class=\"n\">max</th>{}<th class=\"n\">mean</th><th class=\"n\">max</th></tr></thead>\n\
             <tbody>\n",
        if view.run.bounds.is_empty() { 4 } else { 5 },
        match view.run.bounds.is_empty() {
            true => "",
            false => "<th class=\"n\" title=\"what analysis shows\">at most</th>",
        },
    );
    for &index in tasks {
        if let Some(counted) = view.run.summary.tasks.get(index) {
            table += &row(view, index, counted);
        }
    }
    table + "</tbody>\n</table></div>\n"
}

fn row(view: &RunView<'_>, index: usize, counted: &TaskSummary) -> String {
    let Some(task) = view.run.set.tasks.get(index) else {
        return String::new();
    };
    let response = |pick: fn(&SpanStatistics) -> u64| maybe(counted.response.as_ref().map(pick));
    let (class, missed) = match counted.misses {
        0 => ("", "0".to_string()),
        misses => (" class=\"bad\"", format!("! {}", units::count(misses))),
    };
    let packed = view.run.packed(index);
    let packed = packed.filter(|packed| **packed != task.affinity);
    let cpus = packed.map_or(task.affinity.to_string(), |packed| {
        format!("{packed} (of {})", task.affinity)
    });
    let numbers = [
        time(task.cost.as_ns()),
        time(task.period.as_ns()),
        time(task.deadline.as_ns()),
    ];
    let responses = [
        response(|statistics| statistics.min_ns),
        response(|statistics| statistics.mean_ns),
        response(|statistics| statistics.p99_ns),
        response(|statistics| statistics.max_ns),
    ];
    let results = [
        maybe(counted.tardiness_mean_ns),
        maybe(counted.tardiness_max_ns),
        units::count(counted.preemptions),
        units::count(counted.migrations),
    ];
    format!(
        "<tr{class}><th scope=\"row\">{}</th>{}<td>{cpus}</td>{}{}{}{}{}</tr>\n",
        escape::html(&counted.name),
        numbers.map(|text| cell(&text)).concat(),
        cell(&units::count(counted.jobs)),
        cell(&missed),
        responses.map(|text| cell(&text)).concat(),
        bound(view, index, counted),
        results.map(|text| cell(&text)).concat(),
    )
}

/// The bound of the task, with a mark if a measured response time exceeds it, as overheads may cause.
fn bound(view: &RunView<'_>, index: usize, counted: &TaskSummary) -> String {
    let bounds = &view.run.bounds;
    let Some(bound) = bounds.get(index).copied().flatten() else {
        return match bounds.is_empty() {
            true => String::new(),
            false => cell("–"),
        };
    };
    let longest = counted.response.as_ref().map_or(0, |seen| seen.max_ns);
    let mark = if longest > bound.response.as_ns() {
        "! "
    } else {
        ""
    };
    format!(
        "<td class=\"n\" title=\"by {}\">{mark}{}</td>",
        escape::html(bound.by),
        time(bound.response.as_ns())
    )
}

fn cell(text: &str) -> String {
    format!("<td class=\"n\">{text}</td>")
}

fn maybe(ns: Option<u64>) -> String {
    match ns {
        Some(0) => "0".into(),
        Some(ns) => time(ns),
        None => "–".into(),
    }
}
