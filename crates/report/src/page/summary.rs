//! The summary of the runs, and the provenance.

use super::{RunView, escape, plural, time};
use crate::run::Provenance;
use crate::units;

/// One card per run, and why other policies have none.
pub(super) fn section(views: &[RunView<'_>], left_out: &[String]) -> String {
    let cards: Vec<String> = views.iter().map(card).collect();
    let remark = |why: &String| {
        let why = escape::html(why);
        format!("<p class=\"remark\">Left out: {why}</p>\n")
    };
    let remarks: Vec<String> = left_out.iter().map(remark).collect();
    format!(
        "<section class=\"cards\">\n{}</section>\n{}",
        cards.concat(),
        remarks.concat()
    )
}

fn card(view: &RunView<'_>) -> String {
    let summary = view.run.summary;
    let (class, verdict) = match summary.deadline_misses {
        0 => ("good", "✓ no deadline missed".to_string()),
        misses => ("bad", format!("! {} missed", plural(misses, "deadline"))),
    };
    let unfinished = summary.jobs.saturating_sub(summary.completed);
    let busy = view.overview.busy.as_ns();
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
