use std::cmp::Reverse;

use shiftwork_model::Span;

use super::rta::least_delay;
use super::slack::{Known, rounds};
use super::{Deadlines, misfit, outcome};
use crate::{NotShown, Outcome, Sporadic, Steps};

/// Whether non-preemptive global EDF is shown to meet all deadlines, by bounds on response times; these bounds.
///
/// Let a job of task k be released at r and begin at s. From r to s all m CPUs are busy with more urgent jobs and with
/// *blockers*: less urgent jobs that began before r. If s > r + x, that is m (x + 1) of work within the window of
/// length x + 1 that begins with r. So the job begins by r + x for the least x with
///
/// > sum over all others of min(w_i, x + 1) < m (x + 1)
///
/// and ends C_k later at most. The work w_i of more urgent jobs of i is that of [`rta`](super::rta()): what i runs in any
/// window of that length, and what jobs due by the deadline of the job run from r on. A blocker is released before r and
/// due later than the job, so D_i > D_k + 1; C_i - 1 is left of it at most. A task has no blocker beside
/// more urgent jobs in the window, since its jobs run in the order of their deadlines; and there are at most m blockers. So
/// w_i is that of the blocker for those m tasks where this adds most.
///
/// # Assumes
/// Sporadic tasks, independent, no self-suspension; constrained deadlines. CPUs that become free take jobs after all
/// completions and arrivals of the instant, and time is whole.
///
/// # Cost
/// One step per other task and look at a task; pseudo-polynomial. Integers throughout.
///
/// # Source
/// M. Bertogna, M. Cirinei, "Response-Time Analysis for Globally Scheduled Symmetric Multiprocessor Platforms", RTSS 2007,
/// for EDF, with the start of the job instead of its end, as N. Guan, W. Yi, Z. Gu, Q. Deng, G. Yu, "New Schedulability
/// Test Conditions for Non-preemptive Scheduling on Multiprocessor Platforms", RTSS 2008, look at it; the argument is the one
/// above.
pub fn np_rta(tasks: &[Sporadic], cpus: usize, steps: &mut Steps) -> Outcome<NotShown, Vec<Span>> {
    if let Some(misfit) = misfit(tasks, cpus, Deadlines::Constrained) {
        return Outcome::Fail(misfit);
    }
    let respond =
        |place: usize, known: &[Known], steps: &mut Steps| response(place, known, cpus, steps);
    outcome(rounds(tasks, steps, respond))
}

/// The response time of the task at a place, if it is in time.
fn response(place: usize, known: &[Known], cpus: usize, steps: &mut Steps) -> Option<Option<u64>> {
    let own = &known[place];
    let latest = own.deadline - own.cost;
    let mut begin = 0;
    loop {
        steps.take(known.len())?;
        let works = works(place, known, begin + 1, cpus);
        match least_delay(&works, begin, latest, cpus, steps)? {
            None => return Some(None),
            Some(least) if least <= begin => return Some(Some(own.cost + begin)),
            Some(least) => begin = least,
        }
    }
}

/// What each other task runs in a window of this length at most, blockers chosen so that the sum is greatest.
fn works(place: usize, known: &[Known], length: u64, cpus: usize) -> Vec<u64> {
    let own = &known[place];
    let urgent = |other: &Known| other.within(length).min(other.due_within(own.deadline));
    let mut works: Vec<u64> = known.iter().map(urgent).collect();
    works[place] = 0;
    let mut gains: Vec<(u64, usize)> = known
        .iter()
        .zip(&works)
        .enumerate()
        .filter(|(_, (other, _))| other.deadline > own.deadline + 1)
        .map(|(other, (task, &work))| {
            let blocking = (task.cost - 1).min(length);
            (blocking.saturating_sub(work.min(length)), other)
        })
        .filter(|&(gain, _)| gain > 0)
        .collect();
    gains.sort_by_key(|&(gain, _)| Reverse(gain));
    for (_, other) in gains.into_iter().take(cpus) {
        works[other] = known[other].cost - 1;
    }
    works
}
