//! One self-contained HTML page about one run, or about several side by side.
//!
//! The page needs no network and no other file. Tables, distributions and explanations are plain
//! HTML and readable without a script; only the schedule charts are drawn by one (`assets/*.js`).

mod chains;
mod data;
mod distribution;
pub(crate) mod escape;
mod explanations;
mod filter;
mod foremost;
mod responses;
mod schedule;
mod summary;
mod tasks;

#[cfg(test)]
mod tests;

use shiftwork_model::Instant;
use shiftwork_trace::explain::{ChainExplanation, Recording};

use crate::excerpt::Excerpt;
use crate::misses::{self, Misses, Names, STEPS_MAX};
use crate::overview::Overview;
use crate::run::{Limits, Run};
use crate::timeline::Timeline;
use crate::units::{self, Script};
use foremost::Foremost;

const STYLE: &str = include_str!("../../assets/report.css");

/// The parts of the script, in the order of their dependencies.
const SCRIPTS: [&str; 6] = [
    include_str!("../../assets/data.js"),
    include_str!("../../assets/style.js"),
    include_str!("../../assets/view.js"),
    include_str!("../../assets/chart.js"),
    include_str!("../../assets/filter.js"),
    include_str!("../../assets/page.js"),
];

/// A run with all data that are computed from its records.
struct RunView<'a> {
    run: &'a Run<'a>,
    overview: Overview,
    misses: Misses,
    excerpt: Excerpt,
    line: Timeline,
    /// Its tasks in the order in which the page has them.
    order: Vec<usize>,
    /// Of the first chains that took longer than wanted.
    slow_chains: Vec<ChainExplanation>,
}

impl RunView<'_> {
    fn names(&self) -> Names<'_> {
        Names(self.run.set)
    }
}

/// The page. For a comparison of several runs, their charts share one time axis, and their tables are
/// side by side. `left_out` says of policies that were asked for and have no run here why, each in a sentence. The same runs
/// give the same bytes.
pub fn html(runs: &[Run<'_>], left_out: &[String], limits: &Limits) -> String {
    let views = views(runs, limits);
    let foremost = Foremost::of(&views, limits);
    let title = title(runs);
    let mut page = head(&title);
    page += &header(&title, runs);
    page += "<main>\n";
    page += &summary::section(&views, left_out);
    page += &filter::section(&views, &foremost);
    page += &schedule::section(&views, limits, &foremost);
    page += &chains::section(&views);
    page += &explanations::section(&views, limits);
    page += &responses::section(&views, limits, &foremost);
    page += &tasks::section(&views, &foremost);
    page += &summary::provenance(&views);
    page += "</main>\n";
    let script = SCRIPTS.concat();
    page += &format!("<script>\n\"use strict\";\n(() => {{\n{script}}})();\n</script>\n");
    page += "</body>\n</html>\n";
    page
}

/// A page with this heading and this HTML body, in the style of the reports. It has no script.
pub fn document(title: &str, body: &str) -> String {
    let mut page = head(title);
    page += &format!(
        "<header>\n<div><h1>{}</h1></div>\n</header>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escape::html(title)
    );
    page
}

/// What is computed of each run. Charts show the same time of all runs, so it is selected for all together.
fn views<'a>(runs: &'a [Run<'a>], limits: &Limits) -> Vec<RunView<'a>> {
    let found: Vec<(Overview, Misses)> = runs.iter().map(|run| misses(run, limits)).collect();
    let candidates: Vec<_> = runs
        .iter()
        .zip(&found)
        .map(|(run, (overview, misses))| (overview, misses, run.summary.horizon))
        .collect();
    let excerpts = Excerpt::of(&candidates, limits);
    let order = foremost::orders(runs, &found, limits);
    let view =
        |(((run, excerpt), order), (overview, misses)): (((&'a Run<'a>, _), _), _)| RunView {
            run,
            overview,
            misses,
            line: Timeline::of(
                run.set,
                run.records,
                run.summary.horizon,
                (&excerpt, limits.jobs),
            ),
            excerpt,
            order,
            slow_chains: slow_chains(run),
        };
    let runs = runs.iter().zip(excerpts).zip(order);
    runs.zip(found).map(view).collect()
}

fn recording<'a>(run: &'a Run<'a>) -> Recording<'a> {
    Recording {
        set: run.set,
        contract: run.contract.as_ref(),
        records: run.records,
        until: run.summary.horizon,
    }
}

fn misses(run: &Run<'_>, limits: &Limits) -> (Overview, Misses) {
    let overview = Overview::of(run.set, run.records, run.summary.horizon);
    let late = &overview.late;
    // A job that waits long is late for longer than until its deadline.
    let steps = STEPS_MAX.explained / 3;
    let keep = overview.explainable(run.set, limits.misses, steps);
    let misses = misses::find(recording(run), late, keep, STEPS_MAX);
    (overview, misses)
}

fn slow_chains(run: &Run<'_>) -> Vec<ChainExplanation> {
    let recording = recording(run);
    let late = recording.chain_misses();
    let slow = late.iter().take(chains::EXPLAINED_MAX);
    slow.filter_map(|miss| recording.explain_chain(miss))
        .collect()
}

/// The distinct names of the task sets, in order.
fn title(runs: &[Run<'_>]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in runs.iter().map(|run| run.set.name.as_str()) {
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    match names.is_empty() {
        true => "Schedule report".into(),
        false => names.join(", "),
    }
}

fn head(title: &str) -> String {
    let title = escape::html(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"shiftwork\">\n\
         <title>{title} · shiftwork</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
    )
}

fn header(title: &str, runs: &[Run<'_>]) -> String {
    let policies: Vec<String> = runs
        .iter()
        .map(|run| format!("<b>{}</b>", escape::html(&run.provenance.policy)))
        .collect();
    let facts = runs.first().map_or(String::new(), |run| {
        let tasks = run.set.tasks.len();
        let load: f64 = run
            .set
            .tasks
            .iter()
            .map(|task| task.utilization().as_f64())
            .sum();
        format!(
            " · {} on {} · utilization {load:.2} · {}",
            plural(tasks as u64, "task"),
            plural(run.summary.cpus as u64, "CPU"),
            time(run.summary.horizon.late_since(Instant::ZERO).as_ns()),
        )
    });
    format!(
        "<header>\n<div><h1>{}</h1>\n<p>{}{facts}</p></div>\n\
         <button id=\"theme\" class=\"scripted\" hidden title=\"Light or dark\">◐</button>\n</header>\n",
        escape::html(title),
        policies.join(" and "),
    )
}

fn time(ns: u64) -> String {
    units::span(ns, Script::Unicode)
}

/// `1 job`, `2 jobs`, `2 misses`, `2 stretches`.
fn plural(number: u64, what: &str) -> String {
    let ending = if number == 1 {
        ""
    } else if what.ends_with("ss") || what.ends_with("ch") {
        "es"
    } else {
        "s"
    };
    format!("{} {what}{ending}", units::count(number))
}
