//! The section of deadline misses and their explanations.

use super::{RunView, escape, plural, time};
use crate::misses::{self, Group, LossKind, Miss, Names, label};
use crate::run::Limits;
use crate::units;

/// For every run: its misses in groups, then the first ones one by one.
pub(super) fn section(views: &[RunView<'_>], limits: &Limits) -> String {
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
            _ => format!(
                "{}{}",
                common(view),
                one_by_one(index, view, limits.misses as u64)
            ),
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

/// The misses in groups: by task and what it lost most to, or if these are many, first by the latter alone.
fn common(view: &RunView<'_>) -> String {
    let misses = &view.misses;
    let groups = misses.tally.groups();
    let rows: Vec<String> = groups
        .iter()
        .map(|&(task, kind, group)| {
            let name = escape::html(&view.names().task(task));
            let first = format!("<th scope=\"row\">{name}</th>");
            row(view, &first, kind, group)
        })
        .collect();
    let covered = match misses.explained < misses.total {
        true => format!(
            "<p class=\"remark\">Covers {} of {}, those that ended first: the run is too overloaded to explain \
             them all. The table of tasks counts all.</p>\n",
            units::count(misses.explained),
            plural(misses.total, "miss")
        ),
        false => String::new(),
    };
    let tables = match rows.len() <= GROUPS_SHOWN {
        true => table("of-tasks", "<th>task</th>", &rows),
        false => by_loss(view) + &by_task(&rows),
    };
    format!("{covered}{}{tables}", begun(view))
}

/// More groups than so many are shown without the tasks first.
const GROUPS_SHOWN: usize = 12;

/// So many are shown at all.
const GROUPS_MAX: usize = 1_000;

fn by_loss(view: &RunView<'_>) -> String {
    let losses = view.misses.tally.by_loss();
    let rows: Vec<String> = losses
        .iter()
        .map(|(kind, tasks, group)| {
            let tasks = units::count(*tasks as u64);
            row(view, &format!("<td class=\"n\">{tasks}</td>"), *kind, group)
        })
        .collect();
    format!(
        "<p class=\"lead\">{} missed deadlines, by what each miss lost most to:</p>\n{}",
        plural(view.misses.tally.tasks() as u64, "task"),
        table("", "<th class=\"n\">tasks</th>", &rows)
    )
}

fn by_task(rows: &[String]) -> String {
    let shown = &rows[..rows.len().min(GROUPS_MAX)];
    let remark = match rows.len() - shown.len() {
        0 => String::new(),
        more => format!(
            "<p class=\"remark\">{} with fewer misses are left out here. The table of tasks counts the misses of all.</p>\n",
            plural(more as u64, "row")
        ),
    };
    format!(
        "<details class=\"others\"><summary>The same by task: {}</summary>\n{remark}{}</details>\n",
        plural(shown.len() as u64, "row"),
        table("of-tasks", "<th>task</th>", shown)
    )
}

/// A row of misses that lost most to the same; `first` is its first cell.
fn row(view: &RunView<'_>, first: &str, kind: Option<LossKind>, group: &Group) -> String {
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
        helps.push(format!("shifting: {}", units::count(group.shift_helps)));
    }
    if group.wider_helps > 0 {
        helps.push(format!(
            "<span title=\"If the task might use more of the CPUs there are: those that its affinity, or the packing of the \
             policy, rules out\">wider affinity: {}</span>",
            units::count(group.wider_helps)
        ));
    }
    let worst = group
        .worst
        .map_or(String::new(), |(late, _)| time(late.as_ns()));
    format!(
        "<tr>{first}<td class=\"n\">! {}</td><td>{}</td><td class=\"n\">{}</td>\
         <td class=\"n\">{worst}</td><td>{}</td><td>{}</td></tr>\n",
        units::count(group.misses),
        kind.map_or("not explained", label),
        time(group.lost.as_ns()),
        or_dash(blockers.join(", ")),
        or_dash(helps.join("<br>")),
    )
}

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

fn table(class: &str, first: &str, rows: &[String]) -> String {
    format!(
        "<div class=\"scroll\"><table class=\"{class}\">\n<thead><tr>{first}<th class=\"n\">missed</th>\
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

/// The first misses, each with its explanation. If they are many, those with the same cause are together, of which the
/// first is open.
fn one_by_one(run: usize, view: &RunView<'_>, wanted: u64) -> String {
    let first = &view.misses.first;
    let shown = first.len() as u64;
    let all = plural(view.misses.total, "miss");
    let note = match shown < view.misses.total {
        true if shown < wanted.min(view.misses.total) => format!(
            "<p class=\"remark\">Causes of {shown} of {all}: to find more of them would take long in a run with so many \
             switches. <code>--explain</code> names those of the first ones.</p>\n"
        ),
        true => format!("<p class=\"lead\">The first {shown} of {all}, by deadline:</p>\n"),
        false => String::new(),
    };
    if first.len() <= ARTICLES_SHOWN {
        // The explanation of a job after a late one is mostly the same.
        let each = first.iter();
        let each = each.map(|miss| article(run, view, miss, miss.late_since.is_none()));
        return note + &each.collect::<String>();
    }
    let mut causes: Vec<(String, Vec<&Miss>)> = Vec::new();
    for miss in first {
        let cause = cause_name(view, miss);
        match causes.iter_mut().find(|(other, _)| *other == cause) {
            Some((_, misses)) => misses.push(miss),
            None => causes.push((cause, vec![miss])),
        }
    }
    let groups = causes.iter().enumerate();
    let groups = groups.map(|(index, (cause, misses))| {
        let mut group = format!(
            "<h4>{}: {}</h4>\n",
            escape::html(cause),
            plural(misses.len() as u64, "miss")
        );
        group += &article(run, view, misses[0], index < CAUSES_OPEN);
        let others = misses[1..].iter();
        let others: String = others.map(|miss| article(run, view, miss, false)).collect();
        if !others.is_empty() {
            group += &format!(
                "<details class=\"others\"><summary>{} with this cause</summary>\n{others}</details>\n",
                plural(misses.len() as u64 - 1, "more miss")
            );
        }
        group
    });
    note + &groups.collect::<String>()
}

/// So many misses are explained one after the other.
const ARTICLES_SHOWN: usize = 6;

/// Of so many causes an explanation is open.
const CAUSES_OPEN: usize = 5;

/// The name of the cause, or if none is known, what took most of the time.
fn cause_name(view: &RunView<'_>, miss: &Miss) -> String {
    match misses::verdict(miss, view.names()) {
        Some((name, _)) => name,
        None => miss
            .losses
            .first()
            .map_or("not explained", |loss| label(loss.kind))
            .to_owned(),
    }
}

fn article(run: usize, view: &RunView<'_>, miss: &Miss, open: bool) -> String {
    let names = view.names();
    let mut points = String::new();
    for loss in &miss.losses {
        let alone = misses::alone(miss, loss.time);
        let text = escape::html(&misses::sentence(miss, *loss, names));
        points += &format!("<li>{text}{}</li>\n", badge(alone));
    }
    for wait in misses::mutex_lines(miss, names) {
        points += &format!("<li>{}</li>\n", escape::html(&wait));
    }
    for remedy in misses::remedy_lines(miss, names) {
        points += &format!("<li class=\"remedy\">{}</li>\n", escape::html(&remedy));
    }
    if points.is_empty() {
        points += "<li>The records do not show why.</li>\n";
    }
    let open = if open { " open" } else { "" };
    format!(
        "<details class=\"miss\" data-name=\"{}\"{open}>\n<summary><span class=\"bang\">!</span> <b>{}</b> {}</summary>\n\
         <p>Released at {}, due at {}. {}. \
         <button class=\"show scripted\" hidden data-run=\"{run}\" data-task=\"{}\" data-job=\"{}\" \
         data-from=\"{}\" data-to=\"{}\">show in the chart</button></p>\n{}<ul>\n{points}</ul>\n{}\
         </details>\n",
        escape::html(&names.task(miss.late.job.task)),
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
