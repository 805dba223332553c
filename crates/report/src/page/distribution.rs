//! Response-time distributions: one small picture per task, as SVG without a script.

use shiftwork_model::Span;

use super::escape;
use crate::overview::Responses;
use crate::run::Bound;
use crate::units::{self, Script};

/// How many steps a curve has, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// More would not be visible.
    Full = 160,
    /// For one of very many.
    Coarse = 32,
}

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 132.0;
const LEFT: f64 = 34.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 22.0;

/// Corners of the cumulative distribution, at most about `most`: a response time, and the number of those that do not
/// exceed it.
fn steps(run: &Responses, most: usize) -> Vec<(u64, usize)> {
    let count = run.count();
    let stride = count.div_ceil(most).max(1);
    let ranks = (1..=count).filter(|rank| rank % stride == 0 || *rank == 1 || *rank == count);
    let mut steps: Vec<(u64, usize)> = Vec::new();
    for rank in ranks {
        let ns = run.sorted_ns[rank - 1];
        match steps.last_mut() {
            Some(last) if last.0 == ns => last.1 = rank,
            _ => steps.push((ns, rank)),
        }
    }
    steps
}

/// A bound this many times above all other values is named and not drawn: the rest would be too small.
const BOUND_FAR: u64 = 3;

/// The picture for one task: for each run the share of jobs by response time, the deadline as a line, and for
/// each run the bound, if there is one, as another line.
pub(super) fn svg(
    name: &str,
    deadline: Span,
    runs: &[&Responses],
    bounds: &[Option<Bound>],
    detail: Detail,
) -> String {
    let longest = runs.iter().filter_map(|run| run.longest()).max();
    let longest = longest.unwrap_or(0).max(deadline.as_ns()).max(1);
    let drawn = |bound: &u64| *bound <= longest.saturating_mul(BOUND_FAR);
    let of_runs = bounds.iter().flatten();
    let farthest = of_runs.map(|bound| bound.response.as_ns()).filter(drawn);
    let longest = farthest.fold(longest, u64::max);
    let scale = Scale {
        full_ns: longest as f64 * 1.06,
    };
    let mut svg = format!(
        "<svg class=\"ecdf\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"Response times of {}\">",
        escape::html(name)
    );
    let due = scale.x(deadline.as_ns());
    let (floor, right) = (scale.y(0.0), WIDTH - RIGHT);
    svg += &format!(
        "<rect class=\"late\" x=\"{due:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/>",
        right - due,
        floor - TOP
    );
    for (share, label) in [(0.0, "0"), (0.5, "50%"), (1.0, "100%")] {
        let y = scale.y(share);
        svg += &format!(
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/>\
             <text class=\"end\" x=\"{}\" y=\"{:.1}\">{label}</text>",
            LEFT - 5.0,
            y + 3.5
        );
    }
    for (index, run) in runs.iter().enumerate() {
        svg += &curve(index, run, &scale, detail);
    }
    svg += &format!(
        "<path class=\"due\" d=\"M{due:.1} {:.1}V{floor:.1}\"/>",
        TOP - 4.0
    );
    for (index, bound) in bounds.iter().enumerate() {
        if let Some(bound) = bound {
            svg += &mark(index, bound, longest, &scale);
        }
    }
    svg += &axis(deadline, longest, &scale);
    svg += "</svg>";
    svg
}

/// A line with a foot at the bound, or an arrow at the right edge that points to it.
fn mark(index: usize, bound: &Bound, longest: u64, scale: &Scale) -> String {
    let ns = bound.response.as_ns();
    let (top, floor) = (scale.y(1.0), scale.y(0.0));
    let class = format!("bound run{}", index % 4);
    let what = format!(
        "at most {}, by {}",
        units::span(ns, Script::Unicode),
        escape::html(bound.by)
    );
    let path = match ns <= longest {
        true => {
            let x = scale.x(ns);
            format!("M{x:.1} {floor:.1}V{top:.1}m-3.5 -5h7l-3.5 5z")
        }
        false => {
            let (x, y) = (WIDTH - RIGHT, top + 8.0 * (index % 4) as f64);
            format!("M{:.1} {y:.1}h6m0 -3.5v7l5 -3.5z", x - 11.0)
        }
    };
    format!("<path class=\"{class}\" d=\"{path}\"><title>{what}</title></path>")
}

fn curve(index: usize, run: &Responses, scale: &Scale, detail: Detail) -> String {
    if run.count() == 0 {
        return String::new();
    }
    let mut path = format!("M{LEFT} {:.1}", scale.y(0.0));
    for (ns, rank) in steps(run, detail as usize) {
        let share = rank as f64 / run.count() as f64;
        path += &format!("H{:.1}V{:.1}", scale.x(ns), scale.y(share));
    }
    path += &format!("H{}", WIDTH - RIGHT);
    format!("<path class=\"curve run{}\" d=\"{path}\"/>", index % 4)
}

/// Labels below: zero, the deadline, and the longest response if it does not overlap them.
fn axis(deadline: Span, longest: u64, scale: &Scale) -> String {
    let y = HEIGHT - 6.0;
    let label = |ns: u64| units::span(ns, Script::Unicode);
    let due = scale.x(deadline.as_ns());
    let mut text = format!("<text x=\"{LEFT}\" y=\"{y}\">0</text>");
    if due > LEFT + 20.0 {
        let anchor = if due > WIDTH - 50.0 { "end" } else { "middle" };
        text += &format!(
            "<text class=\"{anchor} duetext\" x=\"{:.1}\" y=\"{y}\">due {}</text>",
            if anchor == "end" { due + 8.0 } else { due },
            label(deadline.as_ns())
        );
    }
    if scale.x(longest) > due + 80.0 {
        let x = WIDTH - RIGHT;
        text += &format!(
            "<text class=\"end\" x=\"{x}\" y=\"{y}\">{}</text>",
            label(longest)
        );
    }
    text
}

struct Scale {
    full_ns: f64,
}

impl Scale {
    fn x(&self, ns: u64) -> f64 {
        LEFT + ns as f64 / self.full_ns * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, share: f64) -> f64 {
        TOP + (1.0 - share) * (HEIGHT - TOP - BOTTOM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn responses(sorted_ns: &[u64]) -> Responses {
        Responses {
            sorted_ns: sorted_ns.to_vec(),
            late: 0,
        }
    }

    #[test]
    fn a_bound_is_drawn_where_it_is_and_a_far_one_at_the_edge() {
        let due = Span::from_ns(10);
        let bound = |ns| {
            Some(Bound {
                response: Span::from_ns(ns),
                by: "gel",
            })
        };
        let picture =
            |bounds: &[Option<Bound>]| svg("t", due, &[&responses(&[5])], bounds, Detail::Full);
        let near = picture(&[bound(20)]);
        assert!(near.contains("at most 20 ns, by gel"), "{near}");
        // Twice as far as the deadline, whose label is there too.
        let x = |ns: f64| LEFT + ns / (20.0 * 1.06) * (WIDTH - LEFT - RIGHT);
        assert!(near.contains(&format!("M{:.1} ", x(20.0))), "{near}");
        let far = picture(&[bound(1_000_000)]);
        assert!(far.contains("at most 1 ms, by gel"), "{far}");
        assert!(!picture(&[None]).contains("bound"));
    }

    #[test]
    fn the_curve_keeps_both_ends_however_many_jobs_there_are() {
        let many = responses(&(1..=100_000).collect::<Vec<_>>());
        for detail in [Detail::Full, Detail::Coarse] {
            let steps = steps(&many, detail as usize);
            assert!(steps.len() <= detail as usize + 2, "{}", steps.len());
            assert_eq!(
                (steps[0], steps[steps.len() - 1]),
                ((1, 1), (100_000, 100_000))
            );
        }
    }
}
