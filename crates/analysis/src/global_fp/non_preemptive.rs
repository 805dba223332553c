//! Non-preemptive global fixed priorities, hard: response times from latest starts.

use std::cmp::Reverse;

use shiftwork_model::Span;

use super::delay::least_response;
use super::guan::{carried_into, released_in};
use super::{Rivals, in_order, in_time};
use crate::{NotShown, Outcome, Ranked, Steps};

/// Bounds on the response times under non-preemptive global fixed priorities, in the order of the tasks; the most
/// urgent task that is not shown to be in time if there is one. Sufficient, not exact.
///
/// Let a job of task k be released at r and begin at s. From r to s all m CPUs are busy with more urgent jobs and
/// with *blockers*: less urgent jobs that began before r. If s > r + x, that is m (x + 1) of work within the window of
/// length x + 1 that begins with r. So the job begins by r + x for the least x with
///
/// > sum over all others of min(W_i(x + 1), x + 1) < m (x + 1)
///
/// and ends C_k later at most. Two windows are looked at, and the smaller x counts:
///
/// - *From r.* W_i of a more urgent task is what it runs in a window of that length if all its jobs end within its
///   response time, as in the test of Bertogna and Cirinei. Less urgent tasks have no more than the m largest
///   C_i - 1, since a blocker has begun one unit of time before at least.
/// - *From t*, the last time up to r before which no more urgent job waits and not all CPUs run more urgent jobs. From
///   t to r some more urgent job waits, or all CPUs run such jobs: nothing else begins. So from t to s all CPUs are
///   busy with more urgent jobs and with others that began before t, among which an earlier job of k may be. At most m
///   jobs run just before t, at most m - 1 of them more urgent. A more urgent task without one of these is counted
///   from its next release on, as in the test of Guan et al.; of what the others add by it, and of the C_i - 1 of less
///   urgent tasks and of k, the m largest count. As s - t >= s - r, the bound on s - t is one on s - r.
///
/// Tasks of equal priority count in both windows as more urgent ones, with what they may run until their
/// deadlines.
///
/// # Assumes
/// Sporadic tasks, independent, no self-suspension, constrained deadlines: a task with D > T or C > D is not shown,
/// nor are periods beyond [`Span::MAX`]. Time is whole nanoseconds. CPUs that become free take jobs after all
/// completions and arrivals of the instant.
///
/// # Cost
/// One step per pair of tasks and leap, twice; pseudo-polynomial.
///
/// # Source
/// The window from r: M. Bertogna, M. Cirinei, "Response-Time Analysis for globally scheduled Symmetric
/// Multiprocessor Platforms", RTSS 2007, with the start of the job instead of its end, as N. Guan, W. Yi, Z. Gu,
/// Q. Deng, G. Yu, "New Schedulability Test Conditions for Non-preemptive Scheduling on Multiprocessor Platforms",
/// RTSS 2008, look at it. The window from t: N. Guan, M. Stigge, W. Yi, G. Yu, "New Response Time Bounds for Fixed
/// Priority Multiprocessor Scheduling", RTSS 2009, carried over as J. Lee, "Improved Schedulability Analysis Using
/// Carry-In Limitation for Non-Preemptive Fixed-Priority Multiprocessor Scheduling", IEEE Transactions on Computers
/// 66(10), 2017, does; the argument is the one above.
pub fn np_rta(tasks: &[Ranked], cpus: usize, steps: &mut Steps) -> Outcome<NotShown, Vec<Span>> {
    in_order(tasks, cpus, steps, |rivals, steps| {
        response(rivals, cpus, steps)
    })
}

/// Whether the task at this place is in time, by the same condition with deadlines for the response times of the others;
/// `None` when out of steps.
pub(crate) fn np_rta_in_time(
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
    let task = rivals.task();
    let latest = task.response - task.cost;
    let mut blocking: Vec<u64> = rivals.rest.iter().map(|cost| cost - 1).collect();
    keep_largest(&mut blocking, cpus, |&work| work);
    let from_release = least_response(0, latest, cpus, steps, |begin, works| {
        let all = rivals.urgent.iter().chain(rivals.equal());
        works.extend(all.map(|task| task.work_in(begin + 1)));
        works.extend(&blocking);
    })?;
    blocking.push(task.cost - 1);
    let with_carry_in = least_response(0, latest, cpus, steps, |begin, works| {
        limited_work(rivals, &blocking, begin + 1, cpus, works);
    })?;
    Some(task.cost + from_release.min(with_carry_in))
}

/// The work of all others in a window before which at most `cpus` jobs have begun.
fn limited_work(rivals: &Rivals, blocking: &[u64], length: u64, cpus: usize, works: &mut Vec<u64>) {
    works.extend(rivals.urgent.iter().map(|task| released_in(task, length)));
    // What each adds if one of its jobs has begun before, and the place of a more urgent task.
    let urgent = rivals.urgent.iter().zip(works.iter()).enumerate();
    let mut gains: Vec<(u64, Option<usize>)> = urgent
        .map(|(place, (task, &without))| {
            let with = carried_into(task, length).min(length);
            (with.saturating_sub(without.min(length)), Some(place))
        })
        .collect();
    keep_largest(&mut gains, cpus - 1, |&(gain, _)| gain);
    gains.extend(blocking.iter().map(|&work| (work.min(length), None)));
    keep_largest(&mut gains, cpus, |&(gain, _)| gain);
    for (gain, place) in gains {
        match place {
            Some(place) => works[place] = works[place].min(length) + gain,
            None => works.push(gain),
        }
    }
    works.extend(rivals.equal().map(|task| task.work_in(length)));
}

/// Keeps those of which something is largest, `count` at most.
fn keep_largest<T>(all: &mut Vec<T>, count: usize, of: impl Fn(&T) -> u64) {
    if count < all.len() {
        all.sort_by_key(|one| Reverse(of(one)));
        all.truncate(count);
    }
}
