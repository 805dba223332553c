//! How late jobs may be under EDF with nested affinities and the strong invariant.
//!
//! `component.rs` is the system as the theorem sees it, made by `tree.rs` and `sets.rs`;
//! `operator.rs`, `sums.rs` and `knapsack.rs` are the theorem, which maps what is in `bounds.rs`;
//! `guess.rs` and `explicit.rs` guess bounds, and `solve.rs` shows that they are some. `reserved.rs` is
//! the theorem for CPUs that are unavailable at times. What they compute and why it holds:
//! `docs/theory/laminar-tardiness.md`.

mod bounds;
mod component;
mod explicit;
mod guess;
mod knapsack;
mod number;
mod operator;
mod reserved;
mod sets;
mod solve;
mod sums;
mod tree;

use shiftwork_model::{CpuSet, Share, Span, TaskId};

pub use self::component::Unavailable;

use self::component::Component;
use self::solve::{Shown, solve, solve_coarsely, solve_reserved};
use self::tree::components;
use crate::affinity::{Groups, laminar};
use crate::exact::{Rate, beside, whole};
use crate::{NotShown, Outcome, Placed, Steps};

/// One in so many steps is kept for bounds without iteration.
const COARSE_PART: u64 = 8;

/// Bounds on the response times of all tasks under EDF with nested affinities, in the order of the
/// tasks, rounded up to nanoseconds. `None`: tardiness is bounded, and no number is known, as of deep
/// trees where bounds do not fit 64 bits.
///
/// A bound that is not above the deadline shows that the task never misses one; otherwise the
/// difference bounds how late it is. Steps that do not suffice for a good bound leave a coarser one;
/// [`Outcome::StepLimit`] if they do not even suffice for that.
///
/// # Errors
/// Fails with a task whose affinity is empty or overlaps another without nesting, whose cost is zero
/// or above its period or its deadline, or one of the tasks that together exceed their CPUs.
///
/// # Assumes
/// Sporadic tasks with arbitrary deadlines, not below the cost; independent, preemptive, no
/// self-suspension, no overheads. At every time the strong invariant holds for the deadlines of the
/// current jobs (`hpa-edf`, `strong-edf`; `g-edf` where all affinities are the same), ties in any
/// way. Jobs may come later and take shorter than declared. Not for the weak invariant, nor for
/// `dl-linux` and `dl-sp`, which break it for short times.
///
/// # Cost
/// Milliseconds for 32 CPUs and 122 tasks. One step per term of a sum or of a knapsack; see
/// `Operator::apply` for one iteration, of which a few dozen are made, twice per component.
///
/// # Source
/// Theorem 1 of `docs/theory/laminar-tardiness.md`, not refereed.
pub fn laminar_tardiness(
    tasks: &[Placed],
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Option<Span>>> {
    ask(tasks, None, steps)
}

/// Likewise where CPUs are unavailable now and then, as where background work takes a reserve. `None`
/// where none was found: there may be none, most often of tasks that need most of a CPU beside others.
///
/// # Errors
/// As [`laminar_tardiness`]; tasks together exceed their CPUs if they need more than these are
/// available.
///
/// # Assumes
/// The strong invariant among the CPUs that are available.
///
/// # Source
/// Theorem 4 of `docs/theory/laminar-tardiness.md`, not refereed.
pub fn laminar_tardiness_beside(
    tasks: &[Placed],
    unavailable: Unavailable,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Option<Span>>> {
    ask(tasks, Some(unavailable), steps)
}

fn ask(
    tasks: &[Placed],
    unavailable: Option<Unavailable>,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Option<Span>>> {
    if steps.take(tasks.len()).is_none() {
        return Outcome::StepLimit;
    }
    let supply = unavailable.map_or(whole(), |unavailable| beside(unavailable.share));
    let groups = match groups(tasks, supply) {
        Ok(groups) => groups,
        Err(place) => return Outcome::Fail(NotShown { place }),
    };
    let mut responses = vec![None; tasks.len()];
    for component in components(tasks, &groups, unavailable) {
        let Some(bounds) = bounds(&component, steps) else {
            if steps.are_used_up() {
                return Outcome::StepLimit;
            }
            continue;
        };
        for (member, response) in component.tasks.iter().zip(bounds) {
            let response = u64::try_from(response).ok().map(Span::from_ns);
            responses[member.place] = response.filter(|&response| response <= Span::MAX);
        }
    }
    Outcome::Pass(responses)
}

/// The tasks by affinity, or the place of a task of which nothing can be shown.
fn groups(tasks: &[Placed], supply: Share) -> Result<Groups, usize> {
    let mut groups = Groups::default();
    for (place, placed) in tasks.iter().enumerate() {
        let task = &placed.task;
        let rate = Rate::new(task.cost, task.period).ok_or(place)?;
        let is_possible = !task.cost.is_zero() && task.cost <= task.deadline;
        if !is_possible || rate.exceeds_one() || placed.cpus.is_empty() {
            return Err(place);
        }
        groups.add(TaskId::from_index(place), placed.cpus, rate);
    }
    let first_of = |is_meant: &dyn Fn(&CpuSet) -> bool| {
        let meant = tasks.iter().position(|placed| is_meant(&placed.cpus));
        meant.expect("the sets are those of tasks")
    };
    let Some(tree) = laminar::Tree::new(&groups) else {
        let overlaps = |mask: &CpuSet| {
            let mut others = groups.iter().map(|(other, _)| other);
            others.any(|other| {
                mask.intersects(other) && !mask.is_subset(other) && !other.is_subset(mask)
            })
        };
        return Err(first_of(&overlaps));
    };
    match tree.shortage(supply) {
        Some(crowd) => Err(first_of(&|mask| crowd.masks.contains(mask))),
        None => Ok(groups),
    }
}

/// Response-time bounds for a component, in nanoseconds; `None` if none are shown.
///
/// EDF with all deadlines earlier by the same `shift` is the same scheduler, but the theorem gives
/// another bound. Most often the best is as early as possible: then a job is compared with a fluid
/// schedule that runs ahead of its release by as much. The other extreme is better for a few.
fn bounds(component: &Component, steps: &mut Steps) -> Option<Vec<u128>> {
    let tasks = component.tasks.iter().map(|member| &member.task);
    let deadlines = tasks.clone().map(|task| task.deadline.as_ns());
    let earliest = deadlines.min().unwrap_or(0);
    let beyond = tasks.map(|task| task.deadline.as_ns().saturating_sub(task.period.as_ns()));
    let latest = beyond.min().unwrap_or(0);
    let is_always = component.unavailable.is_none();
    let solve = if is_always { solve } else { solve_reserved };
    let mut for_coarse = steps.set_aside(COARSE_PART);
    let fine = [earliest, latest].map(|shift| {
        let shown = solve(component, shift, steps)?;
        Some(responses(component, shift, &shown))
    });
    let least = |best: Vec<u128>, other: Vec<u128>| {
        let pairs = best.into_iter().zip(other);
        pairs.map(|(best, other)| other.min(best)).collect()
    };
    let best = fine.into_iter().flatten().reduce(least);
    let best = best.or_else(|| {
        if !is_always {
            return None;
        }
        let shown = solve_coarsely(component, earliest, &mut for_coarse)?;
        Some(responses(component, earliest, &shown))
    });
    steps.give_back(for_coarse);
    best
}

/// From how late tasks are after their priority points.
fn responses(component: &Component, shift: u64, shown: &Shown) -> Vec<u128> {
    let members = component.tasks.iter().zip(shown.in_ns());
    members
        .map(|(member, late)| {
            let never_waits =
                !member.own_node_blocks && component.nodes[member.node].blockers.is_empty();
            match never_waits {
                // The job before it is done within a period, for the same reason.
                true => member.task.cost_ns(),
                false => late + member.task.deadline_ns() - u128::from(shift),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
