//! How late jobs may be under EDF with nested affinities and the strong invariant.
//!
//! `component.rs` is the system as the theorem sees it, made by `tree.rs` and `sets.rs`;
//! `operator.rs`, `sums.rs` and `knapsack.rs` are the theorem, which maps what is in `bounds.rs`;
//! `solve.rs` finds and shows a fixed point, `explicit.rs` does without one. What they compute and why it holds: `docs/theory/laminar-tardiness.md`.

mod bounds;
mod component;
mod explicit;
mod knapsack;
mod number;
mod operator;
mod sets;
mod solve;
mod sums;
mod tree;

use shiftwork_model::{CpuSet, Span, TaskId};

use self::component::Component;
use self::explicit::explicit;
use self::solve::{Shown, solve};
use self::tree::components;
use crate::affinity::{Groups, laminar};
use crate::exact::{Rate, whole};
use crate::{NotShown, Outcome, Placed, Steps};

/// Bounds on the response times of all tasks under EDF with nested affinities, in the order of the
/// tasks, rounded up to nanoseconds; `u64::MAX` stands for anything longer.
///
/// A set that fits its CPUs always has bounds. A bound that is not above the deadline shows that the
/// task never misses one; otherwise the difference bounds how late it is. Steps that do not suffice
/// for a good bound leave a coarser one; [`Outcome::StepLimit`] if they do not even suffice to look
/// at each task.
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
pub fn laminar_tardiness(tasks: &[Placed], steps: &mut Steps) -> Outcome<NotShown, Vec<Span>> {
    if steps.take(tasks.len()).is_none() {
        return Outcome::StepLimit;
    }
    let groups = match groups(tasks) {
        Ok(groups) => groups,
        Err(place) => return Outcome::Fail(NotShown { place }),
    };
    let mut responses = vec![Span::ZERO; tasks.len()];
    for component in components(tasks, &groups) {
        for (member, response) in component.tasks.iter().zip(bounds(&component, steps)) {
            responses[member.place] = Span::from_ns(u64::try_from(response).unwrap_or(u64::MAX));
        }
    }
    Outcome::Pass(responses)
}

/// The tasks by affinity, or the place of a task of which nothing can be shown.
fn groups(tasks: &[Placed]) -> Result<Groups, usize> {
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
    match tree.shortage(whole()) {
        Some(crowd) => Err(first_of(&|mask| crowd.masks.contains(mask))),
        None => Ok(groups),
    }
}

/// Response-time bounds for a component, in nanoseconds.
///
/// EDF with all deadlines earlier by the same `shift` is the same scheduler, but the theorem gives
/// another bound. Most often the best is as early as possible: then a job is compared with a fluid
/// schedule that runs ahead of its release by as much. The other extreme is better for a few.
fn bounds(component: &Component, steps: &mut Steps) -> Vec<u128> {
    let tasks = component.tasks.iter().map(|member| &member.task);
    let deadlines = tasks.clone().map(|task| task.deadline.as_ns());
    let earliest = deadlines.min().unwrap_or(0);
    let beyond = tasks.map(|task| task.deadline.as_ns().saturating_sub(task.period.as_ns()));
    let latest = beyond.min().unwrap_or(0);
    let mut best = responses(component, earliest, &explicit(component, earliest));
    for shift in [earliest, latest] {
        if let Some(shown) = solve(component, shift, steps) {
            let shown = responses(component, shift, &in_ns(&shown));
            for (best, shown) in best.iter_mut().zip(shown) {
                *best = shown.min(*best);
            }
        }
    }
    best
}

fn in_ns(shown: &Shown) -> Vec<u128> {
    let up = (1u128 << shown.bits) - 1;
    let late = shown.late.iter().map(|late| late.unsigned_abs());
    late.map(|late| (late + up) >> shown.bits).collect()
}

/// From how late tasks are after their priority points.
fn responses(component: &Component, shift: u64, late: &[u128]) -> Vec<u128> {
    let members = component.tasks.iter().zip(late);
    members
        .map(|(member, &late)| {
            let never_waits =
                !member.own_node_blocks && component.nodes[member.node].blockers.is_empty();
            match never_waits {
                // The job before it is done within a period, for the same reason.
                true => member.task.cost_ns(),
                false => late.saturating_add(member.task.deadline_ns() - u128::from(shift)),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
