//! The section with the schedule charts: a canvas per run, its data, and a table of jobs.

use shiftwork_model::Instant;

use super::data;
use super::foremost::Foremost;
use super::{RunView, escape, plural, time};
use crate::run::Limits;
use crate::timeline::{End, JobHistory};

/// One chart per run under one set of controls.
pub(super) fn section(views: &[RunView<'_>], limits: &Limits, foremost: &Foremost) -> String {
    let mut section = format!(
        "<section id=\"schedule\">\n<h2>Schedule</h2>\n\
         <noscript><p class=\"remark\">The chart needs JavaScript; the table of jobs below it does \
         not.</p></noscript>\n{CONTROLS}{LEGEND}"
    );
    if !foremost.is_all() {
        section += &foremost.remark("Lanes");
        section += FINDING;
    }
    for (index, view) in views.iter().enumerate() {
        section += &chart(index, view, limits, foremost);
    }
    section + "<div id=\"tip\" role=\"status\" hidden></div>\n</section>\n"
}

/// How other lanes are shown, which needs the script.
const FINDING: &str = "<p class=\"lead scripted\" hidden>The chart has the data of all tasks: find tasks by name above to \
    give them lanes instead.</p>\n";

const CONTROLS: &str = "<div class=\"controls scripted\" hidden>\n\
    <button data-do=\"out\" title=\"Zoom out (−)\">−</button>\
    <button data-do=\"in\" title=\"Zoom in (+)\">+</button>\
    <button data-do=\"fit\" title=\"Show everything (0)\">whole run</button>\
    <button data-do=\"previous\" title=\"Previous miss (p)\">◂ miss</button>\
    <button data-do=\"next\" title=\"Next miss (n)\">miss ▸</button>\n\
    <output id=\"view\"></output>\n\
    <span class=\"hint\">drag to move · wheel to zoom (click the chart first, or hold Ctrl) · \
    keys ← → + − 0 n p</span>\n</div>\n";

const LEGEND: &str = "<p class=\"legend\">\
    <span><i class=\"k run\"></i>running</span>\
    <span><i class=\"k ready\"></i>ready, not running</span>\
    <span><i class=\"k queued\"></i>behind its predecessor</span>\
    <span><i class=\"k suspended\"></i>suspended</span>\
    <span><i class=\"k throttled\"></i>throttled</span>\
    <span><i class=\"k blocked\"></i>waiting for a mutex</span>\
    <span><i class=\"k spinning\"></i>spinning for one on its CPU</span>\
    <span><i class=\"k background\"></i>background</span>\
    <span><b>↑</b> release</span><span><b>↓</b> deadline</span>\
    <span class=\"bang\"><b>!</b> missed</span>\
    <span><b class=\"shift\">⤳</b> shift to another CPU</span>\
    <span><b class=\"trigger\">⤵</b> trigger of another task</span></p>\n";

fn chart(index: usize, view: &RunView<'_>, limits: &Limits, foremost: &Foremost) -> String {
    let (lanes, _) = foremost.split(view);
    let policy = escape::html(&view.run.provenance.policy);
    let misses = view.run.summary.deadline_misses;
    let verdict = match misses {
        0 => String::from("<span class=\"good\">✓ no miss</span>"),
        misses => format!("<span class=\"bang\">! {}</span>", plural(misses, "miss")),
    };
    format!(
        "<figure class=\"gantt\">\n<figcaption><b>{policy}</b> {verdict}</figcaption>\n{}\
         <canvas id=\"gantt{index}\" tabindex=\"0\" role=\"img\" aria-label=\"Schedule under \
         {policy}: one lane per CPU, one per task. The table of jobs holds the same.\"></canvas>\n\
         <script type=\"application/json\" class=\"run\">{}</script>\n{}</figure>\n",
        left_out(view),
        escape::json(&data::run(view.run, &view.line, &view.excerpt, lanes)),
        jobs(view, limits.jobs),
    )
}

/// A remark on the part of a long run that the chart shows.
fn left_out(view: &RunView<'_>) -> String {
    let excerpt = &view.excerpt;
    if excerpt.whole {
        return String::new();
    }
    let cut = excerpt.windows[0].1.as_ns();
    let whole = view.line.horizon.late_since(Instant::ZERO).as_ns();
    let more = match excerpt.windows.len() - 1 {
        0 => String::new(),
        windows => format!(
            ", and later {} around misses",
            plural(windows as u64, "stretch")
        ),
    };
    format!(
        "<p class=\"remark\">The run is too long to fit this page: the chart shows the first {} of \
         {}{more}. Counts, distributions and explanations cover all of it; <code>simulate --trace FILE.pftrace</code> \
         writes all of it, for ui.perfetto.dev.</p>\n",
        time(cut),
        time(whole),
    )
}

/// The first jobs by release, as a table.
fn jobs(view: &RunView<'_>, limit: usize) -> String {
    let histories = &view.line.first;
    let all = view.run.summary.jobs.max(histories.len() as u64);
    let rows: String = histories.iter().map(|history| job(view, history)).collect();
    let shown = match all > limit as u64 {
        true => format!(
            "the first {limit} of {} (<code>simulate --jobs FILE.csv</code> writes all)",
            plural(all, "job")
        ),
        false => plural(all, "job"),
    };
    format!(
        "<details><summary>Data: {shown}</summary>\n<div class=\"scroll\"><table class=\"of-tasks\">\n\
         <thead><tr><th>job</th><th class=\"n\">release</th><th class=\"n\">start</th>\
         <th class=\"n\">finish</th><th class=\"n\">deadline</th><th class=\"n\">response</th>\
         <th class=\"n\">tardiness</th><th>ran on</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div></details>\n"
    )
}

fn job(view: &RunView<'_>, history: &JobHistory) -> String {
    let line = &view.line;
    let at = |instant: Instant| time(instant.as_ns());
    let start = history.segments.first();
    let start = start.map_or("–".into(), |segment| at(segment.from));
    let (finish, response) = match history.end {
        End::Finished(finish) => (at(finish), time(finish.late_since(history.release).as_ns())),
        End::Dropped(_) => ("dropped".into(), "–".into()),
        End::Unfinished => ("unfinished".into(), "–".into()),
    };
    let late = history.end(line.horizon).late_since(history.deadline);
    let (class, late) = match history.missed(line.horizon) {
        true => (" class=\"bad\"", format!("! {}", time(late.as_ns()))),
        false => ("", String::from("0")),
    };
    let numbers = [
        at(history.release),
        start,
        finish,
        at(history.deadline),
        response,
        late,
    ];
    format!(
        "<tr{class}><th scope=\"row\">{}</th>{}<td>{}</td></tr>\n",
        escape::html(&view.names().job(history.job)),
        numbers
            .map(|text| format!("<td class=\"n\">{text}</td>"))
            .concat(),
        places(history),
    )
}

/// The CPUs in the order in which the job was on them.
fn places(history: &JobHistory) -> String {
    let cpus = history.segments.iter().map(|segment| segment.cpu.index());
    let mut places: Vec<usize> = cpus.collect();
    places.dedup();
    let mut shown: Vec<String> = places.iter().take(8).map(usize::to_string).collect();
    if places.len() > 8 {
        shown.push("…".into());
    }
    shown.join(" → ")
}
