//! The columns of the table of reserved threads, for `status` and `top`.

use std::cmp::Ordering;

use shiftwork_client::{State, Task};
use shiftwork_model::Span;

use super::quantities::{amount, in_own_unit, in_unit_of};
use super::users::Users;
use crate::table::{Shape, Side, printable};

/// A column: its shape, its cells, and the order of threads by it.
pub struct Column {
    /// Its heading and width.
    pub shape: Shape,
    /// Its cell for a thread.
    pub cell: fn(&Task, &Users) -> String,
    /// The order by it, the smallest first.
    pub order: fn(&Task, &Task) -> Ordering,
    /// Whether the largest is first unless the order is reversed: of what is watched because it grows.
    pub is_largest_first: bool,
}

/// All columns, from the left.
pub const COLUMNS: [Column; 13] = [
    Column {
        shape: Shape::new("PID/TID", Side::Left, 3, None),
        cell: |it, _| numbers(it),
        order: |a, b| (a.process, a.thread).cmp(&(b.process, b.thread)),
        is_largest_first: false,
    },
    Column {
        shape: Shape::new("owner", Side::Left, 7, Some(8)),
        cell: |it, users| users.name(it.user),
        order: |a, b| a.user.cmp(&b.user),
        is_largest_first: false,
    },
    Column {
        shape: Shape::new("name", Side::Left, 0, Some(10)),
        cell: |it, _| printable(&it.name),
        order: |a, b| a.name.cmp(&b.name),
        is_largest_first: false,
    },
    Column {
        shape: Shape::new("guarantee", Side::Left, 9, None),
        cell: |it, _| match it.guarantee.as_str() {
            "bounded-tardiness" => "bounded".to_owned(),
            other => printable(other),
        },
        order: |a, b| a.guarantee.cmp(&b.guarantee),
        is_largest_first: false,
    },
    Column {
        shape: Shape::new("CPUs", Side::Left, 6, Some(6)),
        cell: |it, _| printable(it.reservation.cpus.as_deref().unwrap_or_default()),
        order: |a, b| a.reservation.cpus.cmp(&b.reservation.cpus),
        is_largest_first: false,
    },
    Column {
        shape: Shape::new("on", Side::Right, 12, None),
        cell: |it, _| it.cpu.map_or_else(|| "-".to_owned(), |cpu| cpu.to_string()),
        order: |a, b| a.cpu.cmp(&b.cpu),
        is_largest_first: false,
    },
    Column {
        shape: Shape::new("budget", Side::Right, 5, None),
        cell: |it, _| in_unit_of(it.reservation.cost, it.reservation.period),
        order: |a, b| reserved(a).total_cmp(&reserved(b)),
        is_largest_first: true,
    },
    Column {
        shape: Shape::new("used", Side::Right, 2, None),
        cell: |it, _| match it.state {
            State::Admitted => format!("{}%", used_percent(it)),
            State::Demoted => "lost".to_owned(),
        },
        order: |a, b| used(a).total_cmp(&used(b)),
        is_largest_first: true,
    },
    Column {
        shape: Shape::new("jobs", Side::Right, 8, None),
        cell: |it, _| amount(it.jobs),
        order: |a, b| a.jobs.cmp(&b.jobs),
        is_largest_first: true,
    },
    Column {
        shape: Shape::new("missed", Side::Right, 1, None),
        cell: |it, _| match it.misses {
            0 => "0".to_owned(),
            misses => format!("{} !", amount(misses)),
        },
        order: |a, b| a.misses.cmp(&b.misses),
        is_largest_first: true,
    },
    Column {
        shape: Shape::new("response", Side::Right, 4, None),
        cell: |it, _| match it.response_max {
            Span::ZERO => format!("-/{}", in_own_unit(deadline(it))),
            response => in_unit_of(response, deadline(it)),
        },
        order: |a, b| response(a).total_cmp(&response(b)),
        is_largest_first: true,
    },
    Column {
        shape: Shape::new("overruns", Side::Right, 10, None),
        cell: |it, _| amount(it.overruns),
        order: |a, b| a.overruns.cmp(&b.overruns),
        is_largest_first: true,
    },
    Column {
        shape: Shape::new("tardiness", Side::Right, 11, None),
        cell: |it, _| match it.tardiness_max {
            Span::ZERO => "-".to_owned(),
            tardiness => shiftwork_report::span(tardiness.as_ns()),
        },
        order: |a, b| a.tardiness_max.cmp(&b.tardiness_max),
        is_largest_first: true,
    },
];

/// How a cell looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// As it is.
    Plain,
    /// Something may become wrong.
    Warning,
    /// Something is wrong.
    Alert,
}

/// How the cell of a thread in this column looks.
pub fn look(column: usize, task: &Task) -> Look {
    /// From this on a budget is nearly used up.
    const NEARLY_PERCENT: u32 = 90;
    let heading = COLUMNS.get(column).map(|it| it.shape.heading);
    match heading {
        Some("missed") if task.misses > 0 => Look::Alert,
        Some("used") if task.state == State::Demoted => Look::Alert,
        Some("used") if used_percent(task) >= NEARLY_PERCENT => Look::Warning,
        _ => Look::Plain,
    }
}

/// The shapes of all columns.
pub fn shapes() -> Vec<Shape> {
    COLUMNS.iter().map(|column| column.shape).collect()
}

/// The row of a thread.
pub fn row(task: &Task, users: &Users) -> Vec<String> {
    let cells = COLUMNS.iter().map(|column| (column.cell)(task, users));
    cells.collect()
}

/// `4711/4713`; the process alone for its main thread.
pub fn numbers(task: &Task) -> String {
    match task.process == task.thread {
        true => task.process.to_string(),
        false => format!("{}/{}", task.process, task.thread),
    }
}

/// The relative deadline.
pub fn deadline(task: &Task) -> Span {
    task.reservation.deadline.unwrap_or(task.reservation.period)
}

/// The reserved fraction of a CPU.
pub fn reserved(task: &Task) -> f64 {
    fraction(task.reservation.cost, task.reservation.period)
}

/// CPU time of the last second as a fraction of what is reserved.
fn used(task: &Task) -> f64 {
    match reserved(task) {
        0.0 => 0.0,
        reserved => task.load / reserved,
    }
}

/// The same in percent, which fits three digits.
pub fn used_percent(task: &Task) -> u32 {
    // A cast of what is negative or too large saturates.
    ((used(task) * 100.0).round() as u32).min(999)
}

/// The maximum response time as a fraction of the deadline.
fn response(task: &Task) -> f64 {
    fraction(task.response_max, deadline(task))
}

fn fraction(part: Span, whole: Span) -> f64 {
    part.as_ns() as f64 / whole.as_ns().max(1) as f64
}
