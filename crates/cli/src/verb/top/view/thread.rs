//! One thread: its reservation, and the misses and causes that the daemon knows.

use ratatui::text::Line;
use shiftwork_client::{Miss, OnOverrun, State as ReservationState, Task};
use shiftwork_model::{Instant, Span};

use super::super::state::{Opened, State};
use super::header::duration;
use super::text::{Theme, bar, line, wrapped};
use crate::output::plural;
use crate::table::{self, Shape, Side};
use crate::verb::status::columns::{deadline, reserved, used_percent};
use crate::verb::status::users::Users;

/// The columns of the table of misses.
const MISSES: [Shape; 4] = [
    Shape::new("job", Side::Right, 1, None),
    Shape::new("due", Side::Right, 2, None),
    Shape::new("late by", Side::Right, 3, None),
    Shape::new("cause", Side::Left, 0, Some(16)),
];

/// The page.
pub fn lines(state: &State, now: Instant, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let Some(opened) = &state.opened else {
        return Vec::new();
    };
    let task = &opened.task;
    let mut lines = wrapped(&title(task, &state.users), width, theme.strong());
    if !opened.is_present {
        let ended =
            "it has no reservation any more, or you may not see it; this is what was known last";
        lines.extend(wrapped(ended, width, theme.alert()));
    }
    for (what, text) in facts(task) {
        lines.extend(wrapped(&format!("{what:<10} {text}"), width, theme.plain()));
    }
    lines.push(line("", theme.plain()));
    lines.extend(misses(opened, now, width, theme));
    lines
}

fn title(task: &Task, users: &Users) -> String {
    format!(
        "`{}`: thread {} of process {}, owner {}",
        task.name,
        task.thread,
        task.process,
        users.name(task.user)
    )
}

fn facts(task: &Task) -> Vec<(&'static str, String)> {
    let it = &task.reservation;
    let reaction = match it.on_overrun {
        None | Some(OnOverrun::Throttle) => "waits for the next period",
        Some(OnOverrun::Continue) => "runs on as ordinary work",
        Some(OnOverrun::Signal) => "gets SIGXCPU and runs on as ordinary work",
    };
    let guarantee = match task.state {
        ReservationState::Admitted => task.guarantee.clone(),
        ReservationState::Demoted => {
            "lost: it runs as ordinary work until it can be admitted again".to_owned()
        }
    };
    let used = f64::from(used_percent(task)) / 100.0;
    let mean = task.ran.as_ns().checked_div(task.jobs);
    let mean = mean.map_or_else(String::new, |ns| {
        format!(", {} per job on average", shiftwork_report::span(ns))
    });
    let span = |time: Span| shiftwork_report::span(time.as_ns());
    vec![
        (
            "reserved",
            format!(
                "{} in {} ({:.1}% of a CPU) on CPUs {}",
                it.cost,
                it.period,
                reserved(task) * 100.0,
                it.cpus.as_deref().unwrap_or("-")
            ),
        ),
        ("guarantee", guarantee),
        (
            "used",
            format!("{} {}% now{mean}", bar(used, 20), used_percent(task)),
        ),
        (
            "now",
            task.cpu.map_or_else(
                || "does not run".to_owned(),
                |cpu| format!("runs on CPU {cpu}"),
            ),
        ),
        (
            "response",
            match task.jobs {
                0 => format!("no job has ended yet; deadline {}", deadline(task)),
                _ => format!(
                    "at most {}, deadline {}",
                    span(task.response_max),
                    deadline(task)
                ),
            },
        ),
        (
            "missed",
            match task.misses {
                0 => format!("no deadline in {}", plural(task.jobs as usize, "job")),
                misses => format!(
                    "{} in {}, late by at most {}",
                    plural(misses as usize, "deadline"),
                    plural(task.jobs as usize, "job"),
                    span(task.tardiness_max)
                ),
            },
        ),
        ("overruns", format!("{}: then it {reaction}", task.overruns)),
        ("group", task.cgroup.clone()),
    ]
}

fn misses(opened: &Opened, now: Instant, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let known = match &opened.misses {
        None if !opened.is_present => return Vec::new(),
        None => return vec![line("asking for its misses...", theme.faint())],
        Some(Err(reason)) => return wrapped(reason, width, theme.alert()),
        Some(Ok(misses)) => misses,
    };
    if known.is_empty() {
        let text = match opened.task.misses {
            0 => "no missed deadline",
            _ => {
                "none of its misses is explained: the daemon explains a miss a second later, of many only the first, \
                 and keeps the last hundred"
            }
        };
        return wrapped(text, width, theme.plain());
    }
    let newest_first = || known.iter().rev();
    let rows: Vec<Vec<String>> = newest_first().map(|it| row(it, now)).collect();
    let mut lines = Vec::new();
    for (index, text) in table::text(&MISSES, &rows, width).lines().enumerate() {
        let style = match index {
            0 => theme.strong(),
            _ => theme.plain(),
        };
        lines.push(line(text, style));
    }
    for miss in newest_first() {
        lines.push(line("", theme.plain()));
        lines.extend(wrapped(&miss.text, width, theme.plain()));
    }
    lines
}

fn row(miss: &Miss, now: Instant) -> Vec<String> {
    let late = shiftwork_report::span(miss.tardiness.as_ns());
    vec![
        miss.job.to_string(),
        format!("{} ago", duration(now.late_since(miss.due))),
        match miss.ended {
            true => late,
            // It goes on.
            false => format!("> {late}"),
        },
        table::printable(&miss.cause),
    ]
}
