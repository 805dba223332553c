//! How late jobs may be under EDF with the strong invariant, whatever the affinities.

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint};
use num_rational::Ratio;
use shiftwork_model::{CpuSet, Span, TaskId};

use super::Groups;
use super::parts::parts;
use crate::exact::{Rate, whole};
use crate::global_edf::fractions::common_multiple;
use crate::{NotShown, Outcome, Placed, Sporadic, Steps};

/// Bounds on the response times of all tasks under EDF with the strong invariant and any affinities,
/// in the order of the tasks, rounded up to nanoseconds. `None`: longer than any span.
///
/// Tasks that no chain of affinities connects are looked at by themselves. With u = C/T, U the sum of
/// all u of such a component, and b the greatest (T_i + T_j) / (u_i + u_j) of two of its tasks,
///
/// > R_i = D_i + (T_i - b u_i) / 2 + b U + max over j of ((T_j - b u_j) / 2 - D_j)
///
/// A task that is alone in its component responds within its cost. A bound is never below the
/// period of a task that is not alone, so deadlines before the end of the period are not shown.
///
/// # Errors
/// Fails with a task without CPUs, one whose cost, period or deadline is zero or whose cost is above the
/// period, or one of the tasks that together exceed their CPUs.
///
/// # Assumes
/// Sporadic tasks with arbitrary deadlines, independent, preemptive, no self-suspension, no overheads.
/// At every time the strong invariant holds for the deadlines of the current jobs (`strong-edf`;
/// `hpa-edf` where affinities are nested), ties in any way.
///
/// # Cost
/// The flow of [`super::flow`], and O(n) products with the least common multiple of the periods: one
/// step per task and per word of it.
///
/// # Source
/// Theorem 3 of `docs/theory/strong-edf.md`, not refereed. That the response times are bounded at all,
/// for deadlines that are not beyond the period: S. Tang, S. Voronov, J. Anderson, "GEDF Tardiness: Open
/// Problems Involving Uniform Multiprocessors and Affinity Masks Resolved", ECRTS 2019.
pub fn any_affinities(tasks: &[Placed], steps: &mut Steps) -> Outcome<NotShown, Vec<Option<Span>>> {
    if steps.take(tasks.len()).is_none() {
        return Outcome::StepLimit;
    }
    if let Err(place) = fits(tasks) {
        return Outcome::Fail(NotShown { place });
    }
    let masks: Vec<CpuSet> = tasks.iter().map(|placed| placed.cpus).collect();
    let mut bounds = vec![None; tasks.len()];
    for part in parts(&masks) {
        let members: Vec<&Sporadic> = part.members.iter().map(|&at| &tasks[at].task).collect();
        let Some(found) = component(&members, steps) else {
            return Outcome::StepLimit;
        };
        for (place, bound) in part.members.into_iter().zip(found) {
            let bound = u64::try_from(bound).ok().map(Span::from_ns);
            bounds[place] = bound.filter(|&bound| bound <= Span::MAX);
        }
    }
    Outcome::Pass(bounds)
}

/// Whether each task fits one CPU and every group of tasks all its CPUs; else the place of a task that
/// does not.
fn fits(tasks: &[Placed]) -> Result<(), usize> {
    let mut groups = Groups::default();
    for (place, placed) in tasks.iter().enumerate() {
        let task = &placed.task;
        let rate = Rate::new(task.cost, task.period).ok_or(place)?;
        if !task.is_possible() || rate.exceeds_one() || placed.cpus.is_empty() {
            return Err(place);
        }
        groups.add(TaskId::from_index(place), placed.cpus, rate);
    }
    let Some(crowd) = groups.shortage(whole()).0 else {
        return Ok(());
    };
    let crowded = |placed: &Placed| crowd.masks.contains(&placed.cpus);
    let first = tasks.iter().position(crowded);
    Err(first.expect("the masks of a crowd are those of tasks"))
}

/// The bounds of the tasks of one component, in nanoseconds. `None` when out of steps.
fn component(tasks: &[&Sporadic], steps: &mut Steps) -> Option<Vec<BigInt>> {
    if let [alone] = tasks {
        return Some(vec![alone.cost.as_ns().into()]);
    }
    let b = steepest(tasks);
    let mut periods: Vec<u64> = tasks.iter().map(|task| task.period.as_ns()).collect();
    periods.sort_unstable();
    periods.dedup();
    let common = common_multiple(&periods, steps)?;
    let words = (common.bits() + b.numer().bits() + b.denom().bits()) / 64 + 1;
    steps.take(usize::try_from(words).ok()?.checked_mul(tasks.len())?)?;
    // All in parts of a nanosecond of which there are 2 q `common`, where b = p/q.
    let (p, q) = (b.numer(), b.denom());
    let common = BigInt::from(common);
    let one = 2 * q * &common;
    let half = |task: &Sporadic| {
        let period = task.period.as_ns();
        q * &common * period - p * (&common / period * task.cost.as_ns())
    };
    let used: BigInt = tasks
        .iter()
        .map(|task| &common / task.period.as_ns() * task.cost.as_ns())
        .sum();
    let halves: Vec<BigInt> = tasks.iter().map(|task| half(task)).collect();
    let beyond = halves.iter().zip(tasks);
    let beyond = beyond.map(|(half, task)| half - &one * task.deadline.as_ns());
    let latest: BigInt = beyond.max()?;
    let latest = latest + 2 * p * used;
    // Positive: it is not below the period. The quotient is rounded up.
    let bound = |(half, task): (&BigInt, &&Sporadic)| {
        let sum: BigInt = half + &latest + &one * task.deadline.as_ns();
        (sum + &one - 1) / &one
    };
    Some(halves.iter().zip(tasks).map(bound).collect())
}

/// b of two tasks or more: the greatest (T_i + T_j) / (u_i + u_j).
///
/// One of the two is the task i with the greatest T_i / u_i. Let b' be the quotient of j and k, so that
/// (T_j - b' u_j) + (T_k - b' u_k) = 0, and let the first term be the one that is not negative. As
/// T_i / u_i >= T_j / u_j, so T_i - b' u_i >= 0, and the quotient of i and j is not below b'.
fn steepest(tasks: &[&Sporadic]) -> Ratio<BigInt> {
    let square = |task: &Sporadic| BigUint::from(task.period.as_ns()).pow(2);
    let slower = |a: &Sporadic, b: &Sporadic| -> Ordering {
        (square(a) * b.cost.as_ns()).cmp(&(square(b) * a.cost.as_ns()))
    };
    let rate = |task: &Sporadic| {
        Rate::new(task.cost, task.period)
            .expect("no period is zero")
            .to_fraction()
    };
    let mut first = 0;
    for place in 1..tasks.len() {
        if slower(tasks[place], tasks[first]) == Ordering::Greater {
            first = place;
        }
    }
    let others = (0..tasks.len()).filter(|&place| place != first);
    let quotient = |place: usize| {
        let periods = tasks[first].period_ns() + tasks[place].period_ns();
        Ratio::from_integer(BigInt::from(periods)) / (rate(tasks[first]) + rate(tasks[place]))
    };
    let quotients = others.map(quotient);
    quotients.max().expect("there are two tasks or more")
}
