//! Costs that grow with the number of tasks.

use shiftwork_model::{LinearCost, Span};

/// The line through these points, a number of tasks and a cost in ns each, with the least sum of squared
/// differences among those with no negative part. `None` without any point.
///
/// # Source
/// The linear fits of B. Brandenburg, J. Anderson, "On the Implementation of Global Real-Time Schedulers",
/// RTSS 2009. In whole nanoseconds: among those lines the best, so that what grows by less than one a task is no less
/// in all than it was measured, only even.
pub fn linear(points: &[(usize, i64)]) -> Option<LinearCost> {
    let count = points.len() as f64;
    if points.is_empty() {
        return None;
    }
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        points.iter().map(|&(x, y)| of(x as f64, y as f64)).sum()
    };
    let (x, y) = (sum(&|x, _| x) / count, sum(&|_, y| y) / count);
    let spread = sum(&|at, _| (at - x).powi(2));
    let slope = match spread > 0.0 {
        true => sum(&|at, cost| (at - x) * (cost - y)) / spread,
        false => 0.0,
    };
    let slope = if slope < 0.0 {
        0.0
    } else if y - slope * x < 0.0 {
        (sum(&|at, cost| at * cost) / sum(&|at, _| at * at)).max(0.0)
    } else {
        slope
    };
    // With the best base for each slope the error is convex in the slope, so the best whole one is next to the
    // best of all.
    let with = |slope: f64| ((y - slope * x).max(0.0).round(), slope);
    let error = |(base, slope): (f64, f64)| sum(&|at, cost| (base + slope * at - cost).powi(2));
    let (down, up) = (with(slope.floor()), with(slope.ceil()));
    let (base, slope) = if error(up) < error(down) { up } else { down };
    let span = |ns: f64| Span::from_ns(ns as u64);
    Some(LinearCost {
        base: span(base),
        per_task: span(slope),
    })
}

#[cfg(test)]
mod tests {
    use shiftwork_model::RandomStream;

    use super::*;

    fn parts(points: &[(usize, i64)]) -> (u64, u64) {
        let fit = linear(points).unwrap();
        (fit.base.as_ns(), fit.per_task.as_ns())
    }

    #[test]
    fn points_on_a_line_give_the_line() {
        assert_eq!(parts(&[(1, 130), (2, 160), (9, 370)]), (100, 30));
        assert_eq!(parts(&[(4, 77)]), (77, 0));
        assert_eq!(linear(&[]), None);
    }

    #[test]
    fn what_grows_by_less_than_a_nanosecond_a_task_is_even() {
        assert_eq!(parts(&[(10, 102), (1_000, 300)]), (201, 0));
        assert_eq!(parts(&[(10, 108), (1_000, 900)]), (0, 1));
    }

    #[test]
    fn no_part_is_negative() {
        assert_eq!(parts(&[(1, 100), (3, 50)]), (75, 0));
        assert_eq!(parts(&[(1, -10), (2, -20)]), (0, 0));
        assert_eq!(parts(&[(1, 0), (2, 100)]), (0, 40));
    }

    /// The definition, executed on a grid around the fit: no line without a negative part is better by more
    /// than rounding explains.
    #[test]
    fn no_other_line_fits_better() {
        for seed in 1..=200 {
            let mut random = RandomStream::new(seed, 0, 0);
            let points: Vec<(usize, i64)> = (0..6)
                .map(|at| (1 << at, random.below(5_000) as i64))
                .collect();
            let error = |base: f64, slope: f64| -> f64 {
                let one = |&(x, y): &(usize, i64)| (base + slope * x as f64 - y as f64).powi(2);
                points.iter().map(one).sum()
            };
            let (base, slope) = parts(&points);
            let (base, slope) = (base as f64, slope as f64);
            for step in 1..50 {
                for (left, up) in [
                    (-1.0, 0.0),
                    (1.0, 0.0),
                    (0.0, -1.0),
                    (0.0, 1.0),
                    (1.0, -0.05),
                    (-1.0, 0.05),
                ] {
                    let (other, steeper) =
                        (base + left * f64::from(step), slope + up * f64::from(step));
                    if other < 0.0 || steeper < 0.0 {
                        continue;
                    }
                    // Half a nanosecond of base, and of slope where the line is bent to end at zero.
                    let slack = 6.0 * 16.5_f64.powi(2) * 2.0;
                    assert!(
                        error(base, slope) <= error(other, steeper) + slack,
                        "seed {seed}: {points:?}"
                    );
                }
            }
        }
    }
}
