//! The section of response-time distributions, with a table of the data.

use super::distribution::{self, Detail};
use super::foremost::Foremost;
use super::{RunView, escape, plural, time};
use crate::overview::Responses;
use crate::run::{Bound, Limits};
use crate::units;

/// One small picture per task, with the curves of all runs; of many tasks those of the foremost ones, and the others to be
/// opened.
pub(super) fn section(views: &[RunView<'_>], limits: &Limits, foremost: &Foremost) -> String {
    let Some(first) = views.first() else {
        return String::new();
    };
    let mut section = String::from(
        "<section id=\"responses\">\n<h2>Response times</h2>\n<p class=\"lead\">For every task, the \
         share of its finished jobs that responded within a time, counted from the release. What reaches into the shaded \
         part, right of the deadline, is late.</p>\n",
    );
    if views
        .iter()
        .any(|view| view.run.bounds.iter().any(Option::is_some))
    {
        section += "<p class=\"lead\">A line with a tip marks what analysis shows: no response is longer. \
                    An arrow at the edge points to one that is far off.</p>\n";
    }
    section += &foremost.remark_again("Pictures");
    if views.len() > 1 {
        section += &key(views);
    }
    let (shown, others) = foremost.split(first);
    section += &pictures(views, shown, Detail::Full);
    let room = limits.pictures.saturating_sub(shown.len());
    let (others, left_out) = others.split_at(room.min(others.len()));
    if !others.is_empty() {
        section += &format!(
            "<details class=\"others\"><summary>{}</summary>\n{}{}</details>\n",
            plural(others.len() as u64, "more picture"),
            remark_on(left_out.len()),
            pictures(views, others, Detail::Coarse)
        );
    }
    let rows: String = shown
        .iter()
        .chain(others)
        .map(|&task| rows(views, task))
        .collect();
    section += &format!(
        "<details><summary>Data: quantiles of the response times</summary>\n{}\
         <div class=\"scroll\"><table class=\"of-tasks\">\n<thead><tr><th>task</th><th>policy</th>\
         <th class=\"n\">finished</th><th class=\"n\">late</th><th class=\"n\">min</th>\
         <th class=\"n\">25%</th><th class=\"n\">50%</th><th class=\"n\">75%</th>\
         <th class=\"n\">90%</th><th class=\"n\">99%</th><th class=\"n\">max</th>\
         <th class=\"n\">at most</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div></details>\n</section>\n",
        remark_on(left_out.len()),
    );
    section
}

/// That so many tasks are not here.
fn remark_on(left_out: usize) -> String {
    match left_out {
        0 => String::new(),
        count => format!(
            "<p class=\"remark\">{} with more slack are left out here. The table of tasks has a row of each; <code>simulate \
             --jobs FILE.csv</code> writes the response time of every job.</p>\n",
            plural(count as u64, "task")
        ),
    }
}

fn pictures(views: &[RunView<'_>], tasks: &[usize], detail: Detail) -> String {
    let all: String = tasks
        .iter()
        .map(|&task| picture(views, task, detail))
        .collect();
    format!("<div class=\"small-multiples\">\n{all}</div>\n")
}

/// The picture of the task at this index in the first run.
fn picture(views: &[RunView<'_>], index: usize, detail: Detail) -> String {
    let task = &views[0].run.set.tasks[index];
    let runs: Vec<&Responses> = views
        .iter()
        .map(|view| responses(view, &task.name, index))
        .collect();
    let bounds: Vec<Option<Bound>> = views
        .iter()
        .map(|view| bound(view, &task.name, index))
        .collect();
    let late: usize = runs.iter().map(|run| run.late).sum();
    let mark = if late > 0 {
        " <span class=\"bang\">!</span>"
    } else {
        ""
    };
    format!(
        "<figure><figcaption>{}{mark}</figcaption>{}</figure>\n",
        escape::html(&task.name),
        distribution::svg(&task.name, task.deadline, &runs, &bounds, detail)
    )
}

/// The rows of the task at this index in the first run, one for each run.
fn rows(views: &[RunView<'_>], index: usize) -> String {
    let name = &views[0].run.set.tasks[index].name;
    let row_of = |view| {
        let run = responses(view, name, index);
        row(view, name, (run, bound(view, name, index)), run.late)
    };
    views.iter().map(row_of).collect()
}

/// The response times of the task with this name: runs may have different task sets.
fn responses<'a>(view: &'a RunView<'_>, name: &str, index: usize) -> &'a Responses {
    static NONE: Responses = Responses {
        sorted_ns: Vec::new(),
        late: 0,
    };
    let place = place(view, name, index);
    view.overview.responses.get(place).unwrap_or(&NONE)
}

/// The bound of the task with this name.
fn bound(view: &RunView<'_>, name: &str, index: usize) -> Option<Bound> {
    view.run.bounds.get(place(view, name, index)).copied()?
}

fn place(view: &RunView<'_>, name: &str, index: usize) -> usize {
    let tasks = &view.run.set.tasks;
    // Mostly all runs are of the same task set; a search for each of many names would take long.
    if tasks.get(index).is_some_and(|task| task.name == name) {
        return index;
    }
    let found = view.run.set.find(name).map(|task| task.index());
    found.unwrap_or(usize::MAX)
}

fn key(views: &[RunView<'_>]) -> String {
    let mut key = String::from("<p class=\"key\">");
    for (index, view) in views.iter().enumerate() {
        key += &format!(
            "<span><svg viewBox=\"0 0 28 8\" width=\"28\" height=\"8\" aria-hidden=\"true\">\
             <path class=\"curve run{}\" d=\"M0 4H28\"/></svg> {}</span> ",
            index % 4,
            escape::html(&view.run.provenance.policy)
        );
    }
    key + "</p>\n"
}

fn row(
    view: &RunView<'_>,
    name: &str,
    (run, bound): (&Responses, Option<Bound>),
    late: usize,
) -> String {
    let quantiles: String = [0, 25, 50, 75, 90, 99, 100]
        .iter()
        .map(|&percent| {
            let text = run.percentile(percent).map_or("–".into(), time);
            format!("<td class=\"n\">{text}</td>")
        })
        .collect();
    let late = match late {
        0 => "0".to_string(),
        late => format!("! {}", units::count(late as u64)),
    };
    format!(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{late}</td>\
         {quantiles}<td class=\"n\">{}</td></tr>\n",
        escape::html(name),
        escape::html(&view.run.provenance.policy),
        units::count(run.count() as u64),
        bound.map_or("–".into(), |bound| time(bound.response.as_ns())),
    )
}
