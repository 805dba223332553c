//! The section with the cause-effect chains of the runs: the longest times, what was wanted, and why it took longer.

use shiftwork_model::{Chain, Span, TaskSet};
use shiftwork_trace::explain::ChainExplanation;
use shiftwork_trace::{ChainSummary, EndToEnd};

use super::{RunView, escape, time};
use crate::units;

/// So many times of chains that were longer than wanted are explained for each run.
pub(super) const EXPLAINED_MAX: usize = 3;

/// A table with a row for each run, chain and kind of time, and the longest times link by link where they were longer than
/// wanted; empty without chains.
pub(super) fn section(views: &[RunView<'_>]) -> String {
    let rows: String = views.iter().map(rows_of).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"chains\">\n<h2>Cause-effect chains</h2>\n<div class=\"scroll\"><table>\n\
         <thead><tr><th>chain</th><th>policy</th><th>tasks</th><th>time</th><th class=\"n\">wanted</th>\
         <th class=\"n\">longest</th><th class=\"n\">samples</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n{}</section>\n",
        views.iter().map(explanations).collect::<String>()
    )
}

/// The longest times of the run that were longer than wanted, in the words of `--explain`.
fn explanations(view: &RunView<'_>) -> String {
    let names: Vec<&str> = view.run.set.tasks.iter().map(|task| &*task.name).collect();
    let one = |slow: &ChainExplanation| {
        let text = slow.text(&names);
        let mut lines = text.lines().map(|line| escape::html(line.trim()));
        let heading = lines.next().unwrap_or_default();
        let links: String = lines.map(|line| format!("<li>{line}</li>\n")).collect();
        format!(
            "<details class=\"miss\" open>\n<summary><span class=\"bang\">!</span> <b>{}</b>: {heading}</summary>\n\
             <ul>\n{links}</ul>\n</details>\n",
            escape::html(&view.run.provenance.policy),
        )
    };
    view.slow_chains.iter().map(one).collect()
}

fn rows_of(view: &RunView<'_>) -> String {
    let set = view.run.set;
    let chains = set.chains.iter().zip(&view.run.summary.chains);
    let rows = chains.flat_map(|(chain, summary)| {
        let path = path(set, chain);
        times(summary).map(move |(kind, times)| {
            row(
                [&summary.name, &view.run.provenance.policy, &path, kind],
                times,
            )
        })
    });
    rows.collect()
}

/// The tasks from the first to the last.
fn path(set: &TaskSet, chain: &Chain) -> String {
    let names = chain
        .tasks
        .iter()
        .filter_map(|id| set.tasks.get(id.index()));
    let names: Vec<&str> = names.map(|task| task.name.as_str()).collect();
    names.join(" → ")
}

/// What was measured of the chain.
fn times(summary: &ChainSummary) -> impl Iterator<Item = (&'static str, EndToEnd)> {
    let kinds = [
        ("reaction", Some(summary.reaction)),
        ("age", Some(summary.age)),
        ("latency", summary.latency),
    ];
    kinds
        .into_iter()
        .filter_map(|(kind, times)| Some((kind, times?)))
}

fn row(words: [&str; 4], times: EndToEnd) -> String {
    let ns = |span: Span| time(span.as_ns());
    let longest = times.max.max(times.pending);
    // A time that has not ended is at least as long.
    let from = if times.pending > times.max { "> " } else { "" };
    let longest = longest.map_or("–".into(), |longest| format!("{from}{}", ns(longest)));
    let (class, mark) = match times.is_met() {
        Some(false) => (" class=\"bad\"", "! "),
        _ => ("", ""),
    };
    let words: String = words
        .iter()
        .map(|word| format!("<td>{}</td>", escape::html(word)))
        .collect();
    format!(
        "<tr{class}>{words}<td class=\"n\">{}</td><td class=\"n\">{mark}{}</td><td class=\"n\">{}</td></tr>\n",
        times.wanted.map_or("–".into(), ns),
        escape::html(&longest),
        units::count(times.samples)
    )
}
