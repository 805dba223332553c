//! The section of deadline misses and their explanations.

use super::{RunView, escape, plural, time};
use crate::misses::{self, Miss, Names, label};
use crate::units;

/// For every run: its misses in groups, then the first ones one by one.
pub(super) fn section(views: &[RunView<'_>]) -> String {
    let mut section = String::from(
        "<section id=\"why\">\n<h2>What was missed and why</h2>\n<div class=\"columns\">\n",
    );
    for (index, view) in views.iter().enumerate() {
        let class = if view.misses.total > 0 {
            " class=\"missed\""
        } else {
            ""
        };
        section += &format!(
            "<div{class}><h3>{}</h3>\n",
            escape::html(&view.run.provenance.policy)
        );
        section += &match view.misses.total {
            0 => nothing(view),
            _ => format!("{}{}", common(view), one_by_one(index, view)),
        };
        section += "</div>\n";
    }
    section + "</div>\n</section>\n"
}

fn nothing(view: &RunView<'_>) -> String {
    format!(
        "<p class=\"good\">✓ No deadline was missed by any of the {}.</p>\n",
        plural(view.run.summary.jobs, "job")
    )
}

/// The table of groups of misses.
fn common(view: &RunView<'_>) -> String {
    let misses = &view.misses;
    let mut rows: Vec<String> = Vec::new();
    for (task, kind, group) in misses.tally.groups() {
        let blockers: Vec<String> = group
            .blockers(3)
            .into_iter()
            .map(|(task, span)| {
                let name = escape::html(&view.names().task(task));
                format!("{name}&nbsp;<small>{}</small>", time(span.as_ns()))
            })
            .collect();
        let mut helps = Vec::new();
        if group.shift_helps > 0 {
            helps.push(format!("shifting: {}", group.shift_helps));
        }
        if group.wider_helps > 0 {
            helps.push(format!("more CPUs: {}", group.wider_helps));
        }
        let worst = group
            .worst
            .map_or(String::new(), |(late, _)| time(late.as_ns()));
        rows.push(format!(
            "<tr><th scope=\"row\">{}</th><td class=\"n\">! {}</td><td>{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{worst}</td><td>{}</td><td>{}</td></tr>\n",
            escape::html(&view.names().task(task)),
            units::count(group.misses),
            kind.map_or("not explained", label),
            time(group.lost.as_ns()),
            or_dash(blockers.join(", ")),
            or_dash(helps.join("<br>")),
        ));
    }
    let covered = match misses.explained < misses.total {
        true => format!(
            "<p class=\"remark\">Covers the first {} of {}: the run is too overloaded to explain \
             them all.</p>\n",
            units::count(misses.explained),
            plural(misses.total, "miss")
        ),
        false => String::new(),
    };
    let hidden = rows.split_off(rows.len().min(GROUPS_SHOWN));
    let more = match hidden.len() {
        0 => String::new(),
        more => format!(
            "<details><summary>{}</summary>\n{}</details>\n",
            plural(more as u64, "more row"),
            groups(&hidden)
        ),
    };
    format!("{covered}{}{}{more}", begun(view), groups(&rows))
}

/// Number of groups that are initially visible.
const GROUPS_SHOWN: usize = 12;

/// Under overload most jobs are late because their predecessor was; the first ones of such rows are more
/// informative.
fn begun(view: &RunView<'_>) -> String {
    let (rows, all) = (view.misses.tally.rows, view.misses.explained);
    match rows < all {
        true => format!(
            "<p class=\"lead\">{} of these misses follow a late job of the same task; {} began such \
             a row or stand alone.</p>\n",
            units::count(all - rows),
            units::count(rows)
        ),
        false => String::new(),
    }
}

fn groups(rows: &[String]) -> String {
    format!(
        "<div class=\"scroll\"><table>\n<thead><tr><th>task</th><th class=\"n\">missed</th>\
         <th>lost most to</th><th class=\"n\">lost to it</th><th class=\"n\">worst tardiness</th>\
         <th>most in the way</th><th title=\"In how many of the misses it would have given at least \
         as much time as the job was late\">could have helped</th></tr></thead>\n<tbody>\n{}\
         </tbody>\n</table></div>\n",
        rows.concat()
    )
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "–".into() } else { text }
}

fn one_by_one(run: usize, view: &RunView<'_>) -> String {
    let first: Vec<String> = view
        .misses
        .first
        .iter()
        // The explanation of a job after a late one is mostly the same.
        .map(|miss| article(run, view, miss, miss.late_since.is_none()))
        .collect();
    let shown = first.len() as u64;
    let note = match shown < view.misses.total {
        true => format!(
            "<p class=\"lead\">The first {shown} of {}, by deadline:</p>\n",
            plural(view.misses.total, "miss")
        ),
        false => String::new(),
    };
    format!("{note}{}", first.concat())
}

fn article(run: usize, view: &RunView<'_>, miss: &Miss, open: bool) -> String {
    let names = view.names();
    let mut points = String::new();
    for loss in &miss.losses {
        let alone = misses::alone(miss, loss.time);
        let text = escape::html(&misses::sentence(miss, *loss, names));
        points += &format!("<li>{text}{}</li>\n", badge(alone));
    }
    for remedy in misses::remedy_lines(miss, names) {
        points += &format!("<li class=\"remedy\">{}</li>\n", escape::html(&remedy));
    }
    if points.is_empty() {
        points += "<li>The records do not show why.</li>\n";
    }
    let open = if open { " open" } else { "" };
    format!(
        "<details class=\"miss\"{open}>\n<summary><span class=\"bang\">!</span> <b>{}</b> {}</summary>\n\
         <p>Released at {}, due at {}. {}. \
         <button class=\"show scripted\" hidden data-run=\"{run}\" data-task=\"{}\" data-job=\"{}\" \
         data-from=\"{}\" data-to=\"{}\">show in the chart</button></p>\n{}<ul>\n{points}</ul>\n{}\
         </details>\n",
        escape::html(&names.job(miss.late.job)),
        misses::miss_line(miss),
        time(miss.late.release.as_ns()),
        time(miss.late.deadline.as_ns()),
        account(miss),
        miss.late.job.task.index(),
        miss.late.job.number,
        miss.late.release.as_ns(),
        miss.late.until.max(miss.late.deadline).as_ns(),
        cause(miss, names),
        chain(view, miss),
    )
}

/// The cause, in the words of `--explain`.
fn cause(miss: &Miss, names: Names<'_>) -> String {
    match misses::verdict(miss, names) {
        Some((name, sentence)) => format!(
            "<p class=\"cause\"><b>Cause: {}.</b> {}</p>\n",
            escape::html(&name),
            escape::html(&sentence)
        ),
        None => String::new(),
    }
}

/// The times for which the job executed and waited.
fn account(miss: &Miss) -> String {
    let executed = match miss.executed().as_ns() {
        0 => "Never executed".into(),
        ns => format!("Executed {}", time(ns)),
    };
    match miss.waited().as_ns() {
        0 => executed,
        ns => format!("{executed}, ready but not running for {}", time(ns)),
    }
}

fn badge(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!(" <span class=\"badge\">{text}</span>"),
    }
}

/// The tasks that used its CPUs, as bars.
fn chain(view: &RunView<'_>, miss: &Miss) -> String {
    let mut blockers: Vec<_> = miss.late.blockers.iter().collect();
    blockers.sort_by_key(|&(&task, &(time, _))| (core::cmp::Reverse(time), task));
    let Some(longest) = blockers.first().map(|(_, (time, _))| time.as_ns()) else {
        return String::new();
    };
    let mut rows = String::new();
    for &(&task, (span, cpus)) in blockers.iter().take(8) {
        let percent = span.as_ns() as f64 / longest.max(1) as f64 * 100.0;
        rows += &format!(
            "<tr><th scope=\"row\">{}</th><td>CPU {cpus}</td><td class=\"n\">{}</td>\
             <td class=\"bar\"><i style=\"width:{percent:.1}%\"></i></td></tr>\n",
            escape::html(&view.names().task(task)),
            time(span.as_ns()),
        );
    }
    let more = match blockers.len().saturating_sub(8) {
        0 => String::new(),
        more => format!(
            "<tr><td colspan=\"4\">and {}</td></tr>\n",
            plural(more as u64, "more task")
        ),
    };
    format!(
        "<table class=\"chain\"><caption>Use of its CPUs while it was ready and did not run\
         </caption>\n<tbody>\n{rows}{more}</tbody></table>\n"
    )
}
