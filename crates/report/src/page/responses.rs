//! The section of response-time distributions, with a table of the data.

use super::distribution::{self, Responses};
use super::{RunView, escape, time};
use crate::run::Bound;
use crate::units;

/// One small picture per task, with the curves of all runs.
pub(super) fn section(views: &[RunView<'_>]) -> String {
    let Some(first) = views.first() else {
        return String::new();
    };
    let mut section = String::from(
        "<section id=\"responses\">\n<h2>Response times</h2>\n<p class=\"lead\">For every task, the \
         share of its finished jobs that responded within a time. What reaches into the shaded \
         part, right of the deadline, is late.</p>\n",
    );
    if views
        .iter()
        .any(|view| view.run.bounds.iter().any(Option::is_some))
    {
        section += "<p class=\"lead\">A line with a tip marks what analysis shows: no response is longer. \
                    An arrow at the edge points to one that is far off.</p>\n";
    }
    if views.len() > 1 {
        section += &key(views);
    }
    section += "<div class=\"small-multiples\">\n";
    let mut rows = String::new();
    for (index, task) in first.run.set.tasks.iter().enumerate() {
        let runs = views.iter().map(|view| responses(view, &task.name, index));
        let runs: Vec<Responses> = runs.collect();
        let bounds: Vec<Option<Bound>> = views
            .iter()
            .map(|view| bound(view, &task.name, index))
            .collect();
        let late: usize = runs.iter().map(|run| run.late()).sum();
        let mark = if late > 0 {
            " <span class=\"bang\">!</span>"
        } else {
            ""
        };
        section += &format!(
            "<figure><figcaption>{}{mark}</figcaption>{}</figure>\n",
            escape::html(&task.name),
            distribution::svg(&task.name, task.deadline, &runs, &bounds)
        );
        for (place, (view, run)) in views.iter().zip(&runs).enumerate() {
            let bound = bounds[place];
            rows += &row(view, &task.name, (run, bound), run.late());
        }
    }
    section += "</div>\n";
    section += &format!(
        "<details><summary>Data: quantiles of the response times</summary>\n\
         <div class=\"scroll\"><table>\n<thead><tr><th>task</th><th>policy</th>\
         <th class=\"n\">finished</th><th class=\"n\">late</th><th class=\"n\">min</th>\
         <th class=\"n\">25%</th><th class=\"n\">50%</th><th class=\"n\">75%</th>\
         <th class=\"n\">90%</th><th class=\"n\">99%</th><th class=\"n\">max</th>\
         <th class=\"n\">at most</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div></details>\n</section>\n"
    );
    section
}

/// The response times of the task with this name: runs may have different task sets.
fn responses(view: &RunView<'_>, name: &str, index: usize) -> Responses {
    Responses::of(&view.line, place(view, name, index))
}

/// The bound of the task with this name.
fn bound(view: &RunView<'_>, name: &str, index: usize) -> Option<Bound> {
    view.run.bounds.get(place(view, name, index)).copied()?
}

fn place(view: &RunView<'_>, name: &str, index: usize) -> usize {
    let found = view.run.set.find(name).map(|task| task.index());
    found.unwrap_or(if name.is_empty() { index } else { usize::MAX })
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
