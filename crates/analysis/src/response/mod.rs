//! How late jobs may be at most under global EDF and its relatives, where deadlines may be missed. One
//! file per published bound.
//!
//! What the bounds share is here: that they exist only if no task and not all together need more than
//! there is, and the number of CPUs that the tasks need, rounded up. Both are decided by intervals of
//! floats, and by exact sums where these leave a doubt.

mod devi_anderson;
mod gel;

pub use devi_anderson::{devi_anderson, devi_anderson_non_preemptive};
pub use gel::{gel, gel_with_points};

use shiftwork_model::Span;

use crate::exact::{Demand, Rate, fit, whole};
use crate::filter::{Interval, RATIO, ratio};
use crate::{NotShown, Sporadic};

/// U, rounded up, if no task needs more than a CPU and all together no more than there are.
pub(crate) fn cpus_needed(tasks: &[Sporadic], cpus: usize) -> Result<usize, NotShown> {
    match needed(tasks)? {
        needed if needed <= cpus => Ok(needed),
        _ => Err(too_much(tasks, cpus)),
    }
}

/// Whether no task needs more than a CPU and all together no more than there are.
pub(crate) fn demand_fits(tasks: &[Sporadic], cpus: usize) -> bool {
    needed(tasks).is_ok_and(|needed| needed <= cpus)
}

/// U, rounded up; a task that needs more than a CPU if there is one.
fn needed(tasks: &[Sporadic]) -> Result<usize, NotShown> {
    let possible = |task: &Sporadic| task.is_possible() && task.cost <= task.period;
    if let Some(place) = tasks.iter().position(|task| !possible(task)) {
        return Err(NotShown { place });
    }
    let sum = utilization(tasks);
    Ok(sum.ceil().map_or_else(
        || exactly_needed(tasks, sum),
        |needed| usize::try_from(needed).unwrap_or(usize::MAX),
    ))
}

/// The same where the sum is too close to a whole number.
fn exactly_needed(tasks: &[Sporadic], sum: Interval) -> usize {
    let demand = demand(tasks);
    // There are no more CPUs to be needed than tasks, each of which needs at most one.
    let least = (sum.low().max(0.0) as usize).min(tasks.len());
    (least..tasks.len())
        .find(|&cpus| fit([&demand], cpus, whole()))
        .unwrap_or(tasks.len())
}

/// The sum of the utilizations, nearly.
fn utilization(tasks: &[Sporadic]) -> Interval {
    Interval::sum_over(tasks, RATIO, |task| {
        ratio(task.cost.as_ns(), task.period.as_ns())
    })
}

/// The sum of the utilizations, exactly.
fn demand<'a>(tasks: impl IntoIterator<Item = &'a Sporadic>) -> Demand {
    let mut demand = Demand::default();
    for task in tasks {
        if let Some(rate) = Rate::new(task.cost, task.period) {
            demand.add(rate);
        }
    }
    demand
}

/// The first task that is too much for the CPUs, given that one is.
fn too_much(tasks: &[Sporadic], cpus: usize) -> NotShown {
    // As floats have it; where a sum is next to the number of CPUs the one before or after it may be meant.
    let mut sum = 0.0;
    let passes = |task: &Sporadic| {
        sum += ratio(task.cost.as_ns(), task.period.as_ns());
        sum > cpus as f64
    };
    let about = tasks.iter().position(passes).unwrap_or(tasks.len());
    let mut place = about.min(tasks.len().saturating_sub(1));
    while place > 0 && !demand_fits(&tasks[..place], cpus) {
        place -= 1;
    }
    while place + 1 < tasks.len() && demand_fits(&tasks[..=place], cpus) {
        place += 1;
    }
    NotShown { place }
}

/// The bounds as spans. One that is longer than any span is none.
pub(crate) fn as_spans(bounds: impl Iterator<Item = u128>) -> Result<Vec<Span>, NotShown> {
    let span = |(place, bound): (usize, u128)| {
        let ns = u64::try_from(bound).ok().map(Span::from_ns);
        ns.filter(|&span| span <= Span::MAX)
            .ok_or(NotShown { place })
    };
    bounds.enumerate().map(span).collect()
}
