//! The summary of the runs, the table of tasks, and the provenance.

use shiftwork_trace::{SpanStatistics, TaskSummary};

use super::{RunView, escape, plural, time};
use crate::run::Provenance;
use crate::units;

/// One card per run.
pub(super) fn section(views: &[RunView<'_>]) -> String {
    let cards: Vec<String> = views.iter().map(card).collect();
    format!("<section class=\"cards\">\n{}</section>\n", cards.concat())
}

fn card(view: &RunView<'_>) -> String {
    let summary = view.run.summary;
    let (class, verdict) = match summary.deadline_misses {
        0 => ("good", "✓ no deadline missed".to_string()),
        misses => ("bad", format!("! {} missed", plural(misses, "deadline"))),
    };
    let unfinished = summary.jobs.saturating_sub(summary.completed);
    let busy: u64 = view
        .line
        .cpus
        .iter()
        .flatten()
        .map(|slice| slice.to.late_since(slice.from).as_ns())
        .fold(0, u64::saturating_add);
    let whole = summary.horizon.as_ns() as f64 * summary.cpus as f64;
    let busy = if whole > 0.0 {
        busy as f64 / whole * 100.0
    } else {
        0.0
    };
    let mut figures = vec![
        ("jobs", units::count(summary.jobs)),
        ("unfinished", units::count(unfinished)),
        ("preemptions", units::count(summary.preemptions)),
        ("migrations", units::count(summary.migrations)),
        ("of them shifts", units::count(summary.shifts)),
        ("CPUs busy", format!("{busy:.1}%")),
    ];
    if let Some(found) = summary.inversions {
        figures.push(("priority inversions", units::count(found.all.count)));
        if let Some(longest) = found.all.longest_ns {
            figures.push(("longest inversion", time(longest)));
        }
    }
    let figures: Vec<String> = figures
        .iter()
        .map(|(name, value)| format!("<div><dt>{name}</dt><dd>{value}</dd></div>"))
        .collect();
    format!(
        "<article class=\"card {class}\">\n<h2>{}</h2>\n<p class=\"verdict\">{verdict}</p>\n\
         <dl>{}</dl>\n{}</article>\n",
        escape::html(&view.run.provenance.policy),
        figures.concat(),
        remarks(view),
    )
}

/// Remarks that qualify the figures.
fn remarks(view: &RunView<'_>) -> String {
    let mut remarks = Vec::new();
    for (at, refusal) in &view.line.refusals {
        let at = time(at.as_ns());
        remarks.push(format!("Refused at {at}: {}", escape::html(refusal)));
    }
    let hidden = remarks.len().saturating_sub(5);
    remarks.truncate(5);
    if hidden > 0 {
        remarks.push(format!("… and {} more.", plural(hidden as u64, "refusal")));
    }
    if view.line.foreign > 0 {
        remarks.push(format!(
            "{} name tasks, jobs or CPUs that the task set does not have, and were left out.",
            plural(view.line.foreign as u64, "record")
        ));
    }
    remarks
        .iter()
        .map(|remark| format!("<p class=\"remark\">{remark}</p>\n"))
        .collect()
}

/// The table of tasks, one per run.
pub(super) fn tasks(views: &[RunView<'_>]) -> String {
    let mut section = String::from("<section id=\"tasks\">\n<h2>Tasks</h2>\n");
    for view in views {
        section += &format!(
            "<h3>{}</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th rowspan=\"2\">task</th>\
             <th rowspan=\"2\" class=\"n\">cost</th><th rowspan=\"2\" class=\"n\">period</th>\
             <th rowspan=\"2\" class=\"n\">deadline</th><th rowspan=\"2\">CPUs</th>\
             <th rowspan=\"2\" class=\"n\">jobs</th><th rowspan=\"2\" class=\"n\">missed</th>\
             <th colspan=\"{}\" class=\"group\">response time</th>\
             <th colspan=\"2\" class=\"group\">tardiness</th>\
             <th rowspan=\"2\" class=\"n\">pre&shy;empted</th>\
             <th rowspan=\"2\" class=\"n\">mi&shy;grated</th></tr>\n<tr>\
             <th class=\"n\">min</th><th class=\"n\">mean</th><th class=\"n\">p99</th>\
             <th class=\"n\">max</th>{}<th class=\"n\">mean</th><th class=\"n\">max</th></tr></thead>\n\
             <tbody>\n",
            escape::html(&view.run.provenance.policy),
            if view.run.bounds.is_empty() { 4 } else { 5 },
            match view.run.bounds.is_empty() {
                true => "",
                false => "<th class=\"n\" title=\"what analysis shows\">at most</th>",
            },
        );
        for (index, counted) in view.run.summary.tasks.iter().enumerate() {
            section += &row(view, index, counted);
        }
        section += "</tbody>\n</table></div>\n";
    }
    section + "</section>\n"
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

/// The provenance of every run.
pub(super) fn provenance(views: &[RunView<'_>]) -> String {
    let mut section = String::from(
        "<section id=\"provenance\">\n<h2>Where this comes from</h2>\n<div class=\"cards\">\n",
    );
    for view in views {
        let Provenance {
            version,
            policy,
            seed,
            command,
            input,
            input_hash,
            machine,
        } = &view.run.provenance;
        let horizon = format!("{} ns", view.run.summary.horizon.as_ns());
        let records = units::count(view.run.records.len() as u64);
        let seed = seed.map_or(String::new(), |seed| seed.to_string());
        let rows = [
            ("policy", policy.as_str()),
            ("machine", machine),
            ("seed", &seed),
            ("length", &horizon),
            ("records", &records),
            ("input", input),
            ("input hash", input_hash),
            ("command", command),
            ("shiftwork", version),
        ];
        let rows = rows.iter().filter(|(_, value)| !value.is_empty());
        section += "<dl class=\"card provenance\">\n";
        for (name, value) in rows {
            section += &format!("<dt>{name}</dt><dd>{}</dd>\n", escape::html(value));
        }
        section += "</dl>\n";
    }
    section + "</div>\n</section>\n"
}
