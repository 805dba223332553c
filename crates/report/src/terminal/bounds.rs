//! The table of analytical bounds.

use shiftwork_model::{Span, Task, TaskSet};

use super::Look;
use super::grid::{Align, Cell, Grid, Tone};
use super::tables::{column, time};
use crate::run::Bound;

/// Bounds on response times, one row per task, with the tardiness and the slack that follow.
/// Times are rounded to four digits, bounds upwards and slack downwards. A bound above the deadline is marked
/// with `!`, which a line below the table explains.
pub fn bounds(set: &TaskSet, bounds: &[Option<Bound>], look: impl Into<Look>) -> String {
    let mut grid = Grid::new(vec![
        column("", "task", Align::Left),
        column("", "cost", Align::Right).rank(3),
        column("", "period", Align::Right).rank(3),
        column("", "deadline", Align::Right),
        column("", "CPUs", Align::Left).rank(2),
        column("at most", "response", Align::Right),
        column("at most", "tardiness", Align::Right),
        column("at least", "slack", Align::Right),
        column("", "by", Align::Left).rank(1),
    ]);
    let is_late = |(task, bound): (&Task, &Option<Bound>)| {
        bound
            .as_ref()
            .is_some_and(|bound| bound.response > task.deadline)
    };
    let any_late = set.tasks.iter().zip(bounds).any(is_late);
    for (index, task) in set.tasks.iter().enumerate() {
        let mut cells = vec![
            Cell::new(&task.name),
            Cell::new(time(task.cost.as_ns())),
            Cell::new(time(task.period.as_ns())),
            Cell::new(time(task.deadline.as_ns())),
            Cell::new(task.affinity.to_string()),
        ];
        match bounds.get(index).and_then(Option::as_ref) {
            Some(bound) => cells.extend(known(bound, task.deadline, any_late)),
            None => cells.extend([(); 4].map(|()| Cell::toned("-", Tone::Faint))),
        }
        grid.row(cells);
    }
    let mut text = grid.render(look);
    let has_jitter = |task: &Task| !task.jitter.is_zero();
    if set.tasks.iter().any(has_jitter) {
        text.push_str("response counts from the arrival, release jitter included\n");
    }
    if any_late {
        text.push_str("! marks bounds above the deadline: jobs may be late by that tardiness\n");
    }
    text
}

/// A bound in a sentence: four digits, rounded upwards.
pub fn at_most(bound: Span) -> String {
    time(up(bound.as_ns()))
}

/// `any_late`: whether some bound in the table is above its deadline.
fn known(bound: &Bound, deadline: Span, any_late: bool) -> [Cell; 4] {
    let (response, deadline) = (bound.response.as_ns(), deadline.as_ns());
    let tardiness = response.saturating_sub(deadline);
    let late = time(up(tardiness));
    let late = match tardiness {
        // Keeps the units aligned.
        0 if any_late => Cell::new(format!("{late}  ")),
        0 => Cell::new(late),
        _ => Cell::toned(format!("{late} !"), Tone::Bad),
    };
    [
        Cell::new(time(up(response))),
        late,
        Cell::new(time(down(deadline.saturating_sub(response)))),
        Cell::new(bound.by),
    ]
}

/// Rounds to four digits, the number that is displayed, so that rounding to the nearest changes nothing more.
fn down(ns: u64) -> u64 {
    let unit = unit(ns);
    ns / unit * unit
}

fn up(ns: u64) -> u64 {
    let unit = unit(ns);
    ns.div_ceil(unit).saturating_mul(unit)
}

fn unit(ns: u64) -> u64 {
    10u64.pow(ns.checked_ilog10().unwrap_or(0).saturating_sub(3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Colour;

    #[test]
    fn bounds_are_rounded_to_the_safe_side() {
        assert_eq!((down(12_345_678), up(12_345_678)), (12_340_000, 12_350_000));
        assert_eq!((down(999), up(999)), (999, 999));
        assert_eq!((down(0), up(0)), (0, 0));
        assert_eq!(up(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_bound_above_the_deadline_is_marked_and_explained() {
        use shiftwork_model::Affinity;
        let all = Affinity::new("0-1".parse().unwrap()).unwrap();
        let task = |name: &str| Task::periodic(name, Span::from_ms(2), Span::from_ms(3), all);
        let set = TaskSet::new("", 2, vec![task("early"), task("late")]);
        let bound = |ms| {
            Some(Bound {
                response: Span::from_ms(ms),
                by: "gel",
            })
        };
        let shown = bounds(&set, &[bound(3), bound(5)], Colour::Never);
        let row = |name: &str| shown.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(row("late").contains(" 2 ms !"), "{shown}");
        assert!(!row("early").contains('!'), "{shown}");
        assert!(
            shown.ends_with(
                "! marks bounds above the deadline: jobs may be late by that tardiness\n"
            )
        );
        let shown = bounds(&set, &[bound(3), None], Colour::Never);
        assert!(!shown.contains('!'), "{shown}");
        assert_eq!(at_most(Span::from_ns(3_666_666)), "3.667 ms");
    }
}
