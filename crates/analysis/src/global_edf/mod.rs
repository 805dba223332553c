//! Whether global EDF meets all deadlines on CPUs that are alike. One file per published test.
//!
//! All are sufficient and none is exact; none includes all others, so one asks them all. Which came
//! from which idea: [`gfb`] and [`load`] bound what is due in any interval, [`ffdbf`] also what must
//! have been done before; [`bak`], [`bcl`] and [`bar`] ask how much work can keep one job from
//! running, [`bcli`] and [`rta`] ask again when they know how early others finish. [`np_density()`] and [`np_rta()`]
//! are [`gfb`] and [`rta`] where jobs are not preempted.
//!
//! Every test works on whole nanoseconds: releases, costs and deadlines are whole, so jobs start and
//! stop at whole instants, and "one more" in a published formula for integral time is one nanosecond.
//!
//! What holds for each:
//! - No tasks pass. No CPU fails, and so does a task that takes no time, has no period or no
//!   deadline, or cannot finish in time on an idle machine (C > D, or C > T).
//! - A task whose deadline the test does not cover fails. The place in a failure is that of such a
//!   task, else of one that the condition fails for, else of the densest.
//! - But for [`gfb`], a period or deadline above [`Span::MAX`], which no file can name, is not shown.
//! - [`Outcome::StepLimit`] says that the steps were used up, or that an interval above [`Span::MAX`]
//!   would have to be looked at.

mod bak;
mod bar;
mod bcl;
mod bcli;
mod demand;
mod divisor;
mod ffdbf;
pub(crate) mod fractions;
mod gfb;
mod load;
mod np_density;
mod np_rta;
mod rta;
mod slack;

pub use bak::bak;
pub use bar::bar;
pub use bcl::bcl;
pub use bcli::bcli;
pub use ffdbf::ffdbf;
pub use gfb::gfb;
pub use load::load;
pub use np_density::np_density;
pub use np_rta::np_rta;
pub use rta::rta;

use shiftwork_model::Span;

use crate::filter::{Interval, RATIO, ratio};
use crate::{NotShown, Outcome, Sporadic, Steps};

/// More CPUs than this count as so many, which keeps products of spans and CPUs within 128 bits.
const CPUS_AT_MOST: usize = 1 << 20;

/// Which relation of deadline and period a test covers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deadlines {
    /// D <= T.
    Constrained,
    /// Any.
    Arbitrary,
}

/// A task that is outside the domain of a test or never in time, even alone; any if there is no CPU.
fn misfit(tasks: &[Sporadic], cpus: usize, deadlines: Deadlines) -> Option<NotShown> {
    let misfit = |task: &Sporadic| {
        let long = task.period > Span::MAX || task.deadline > Span::MAX;
        let beyond = deadlines == Deadlines::Constrained && task.deadline > task.period;
        !fits_alone(task) || cpus == 0 || long || beyond
    };
    let place = tasks.iter().position(misfit)?;
    Some(NotShown { place })
}

/// Whether a job alone meets its deadline, and completes before the next one is released.
pub(crate) fn fits_alone(task: &Sporadic) -> bool {
    task.is_possible() && task.cost <= shorter(task)
}

/// The shorter one of deadline and period: what the density relates to.
pub(crate) fn shorter(task: &Sporadic) -> Span {
    task.deadline.min(task.period)
}

/// The place of the task of the greatest density, the first of several.
fn densest(tasks: &[Sporadic]) -> NotShown {
    let denser = |one: &Sporadic, other: &Sporadic| {
        let length = |task: &Sporadic| u128::from(shorter(task).as_ns());
        one.cost_ns() * length(other) > other.cost_ns() * length(one)
    };
    let mut place = 0;
    for (other, task) in tasks.iter().enumerate() {
        if denser(task, &tasks[place]) {
            place = other;
        }
    }
    NotShown { place }
}

/// The sum of C/T, nearly.
fn utilization(tasks: &[Sporadic]) -> Interval {
    Interval::sum_over(tasks, RATIO, |task| {
        ratio(task.cost.as_ns(), task.period.as_ns())
    })
}

/// What a test says that was interrupted when the steps were used up.
fn outcome<Proof>(found: Option<Result<Proof, NotShown>>) -> Outcome<NotShown, Proof> {
    match found {
        None => Outcome::StepLimit,
        Some(Ok(proof)) => Outcome::Pass(proof),
        Some(Err(failure)) => Outcome::Fail(failure),
    }
}

/// How the sum of C/T compares with a fraction of positive denominator.
fn compare_utilization(
    tasks: &[Sporadic],
    bound: (i128, u128),
    steps: &mut Steps,
) -> Option<std::cmp::Ordering> {
    let parts = tasks
        .iter()
        .map(|task| (task.cost_ns().into(), task.period.as_ns()));
    fractions::compare(parts, bound, steps)
}
