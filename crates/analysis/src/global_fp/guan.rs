//! Global fixed priorities, hard: response times with carry-in of fewer tasks than CPUs.

use shiftwork_model::Span;

use super::{Known, Rivals, in_order, in_time, preemptive_response};
use crate::{NotShown, Outcome, Ranked, Steps};

/// Bounds on the response times under global fixed priorities, in the order of the tasks; the most
/// urgent task that is not shown to be in time if there is one. Sufficient, not exact; on one CPU and
/// with distinct priorities exact.
///
/// Before a job waits there is a last instant at which not all CPUs ran more urgent tasks. At it at
/// most m - 1 of these had an unfinished job, which had begun. The others are counted from their next
/// release on.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension, constrained deadlines: a task with
/// D > T or C > D is not shown, nor are periods beyond [`Span::MAX`]. Time is whole nanoseconds.
///
/// Tasks of equal priority interfere with each other: among them, the job released first goes
/// first. The paper has distinct priorities. A task of equal priority may wait at that last instant
/// while an earlier job of the analysed task runs. The paper's limit to m - 1 carry-in tasks
/// therefore does not cover tasks of equal priority: all of them count with carry-in, and with what
/// they may run until their deadlines ([`super::bertogna_cirinei()`]).
///
/// # Cost
/// One step per pair of tasks and leap; pseudo-polynomial.
///
/// # Source
/// N. Guan, M. Stigge, W. Yi, G. Yu, "New Response Time Bounds for Fixed Priority Multiprocessor
/// Scheduling", RTSS 2009, for constrained deadlines.
pub fn guan(tasks: &[Ranked], cpus: usize, steps: &mut Steps) -> Outcome<NotShown, Vec<Span>> {
    in_order(tasks, cpus, steps, |rivals, steps| {
        response(rivals, cpus, steps)
    })
}

/// Whether the task at this place is in time, by the same condition with deadlines for the response times of the others;
/// `None` when out of steps.
///
/// # Source
/// R. Davis, A. Burns, "Improved priority assignment for global fixed priority pre-emptive scheduling in multiprocessor
/// real-time systems", Real-Time Systems 47, 2011, the test DA-LC.
pub(crate) fn guan_in_time(
    tasks: &[Ranked],
    place: usize,
    cpus: usize,
    steps: &mut Steps,
) -> Option<bool> {
    in_time(tasks, place, steps, |rivals, steps| {
        response(rivals, cpus, steps)
    })
}

fn response(rivals: &Rivals, cpus: usize, steps: &mut Steps) -> Option<u64> {
    preemptive_response(rivals.task(), cpus, steps, |length, cut, works| {
        work(rivals, length, cut, cpus, works);
    })
}

/// The work of all rivals in a window, of which no more than `cut` can delay.
fn work(rivals: &Rivals, length: u64, cut: u64, cpus: usize, works: &mut Vec<u64>) {
    let urgent = rivals.urgent;
    works.extend(urgent.iter().map(|task| released_in(task, length)));
    // Where carry-in makes a difference, it is for those where it makes the most.
    let mut gains: Vec<(u64, usize, u64)> = urgent
        .iter()
        .zip(works.iter())
        .enumerate()
        .map(|(place, (task, &without))| {
            let with = carried_into(task, length);
            (with.min(cut).saturating_sub(without.min(cut)), place, with)
        })
        .filter(|&(gain, ..)| gain > 0)
        .collect();
    let carried = cpus.saturating_sub(1);
    if carried < gains.len() {
        gains.select_nth_unstable_by(carried, |a, b| b.cmp(a));
        gains.truncate(carried);
    }
    for (_, place, with) in gains {
        works[place] = with;
    }
    works.extend(rivals.equal().map(|task| task.work_in(length)));
}

/// The most that a task without carry-in runs in a window.
pub(super) fn released_in(task: &Known, length: u64) -> u64 {
    length / task.period * task.cost + (length % task.period).min(task.cost)
}

/// The most that a task with carry-in, of a job that had begun, runs in a window.
pub(super) fn carried_into(task: &Known, length: u64) -> u64 {
    let after = length.saturating_sub(task.cost);
    let (jobs, rest) = (after / task.period, after % task.period);
    let carried = rest.saturating_sub(task.period - task.response);
    jobs * task.cost + task.cost.min(length) + carried.min(task.cost - 1)
}
