//! Non-preemptive EDF on one CPU, exact.

use super::demand::{busy_period, demand, last_deadline};
use super::{Overfull, qpa, span};
use crate::exact::whole;
use crate::{Outcome, Sporadic, Steps};

/// More work may have to be done by the end of an interval than the CPU can do in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedInterval {
    /// The place of the task of which a job has begun one unit of time before the interval, and is due after it;
    /// `None`: the interval is overfull without.
    pub blocker: Option<usize>,
    /// The interval, and the work that is released and due in it. To that comes the cost of the blocker less one.
    pub overfull: Overfull,
}

/// Whether non-preemptive EDF meets all deadlines on one CPU. Exact for sporadic tasks, and for periodic ones
/// of which the offsets are not known.
///
/// All deadlines are met if and only if U <= 1 and for every length L, with dbf(L) the work that is released and
/// due in L if all tasks start together,
///
/// > dbf(L) + max over tasks j with D_j > L of (C_j - 1) <= L
///
/// - *Enough.* Let d be a missed deadline, and t the last time up to d before which no job due by d is pending.
///   From t to d the CPU runs jobs that are released from t on and due by d, but for one job that began before t:
///   time is whole, so at most C_j - 1 of it is left. That job is released before t and due after d, so
///   D_j > d - t.
/// - *Needed.* A job of j is released at -1, when no other is there, and begins; all others follow at 0. If D_j > L,
///   no job of j is due in L, and what is due in L is not done by then.
///
/// Only lengths below that of the longest busy period matter, as t and d lie within one. Lengths of the longest
/// deadline and more have no blocker: these are left to [`qpa()`], which is also asked about shorter ones. Between
/// two neighbouring deadlines of tasks the blocker is always the same, so that the points to examine are found as by
/// QPA, with the cost of the blocker less one as a constant in the demand.
///
/// # Assumes
/// Sporadic tasks, independent, no self-suspension, arbitrary deadlines. A CPU that becomes free takes a job after
/// all completions and arrivals of the instant.
///
/// # Cost
/// That of [`qpa()`], and one step per task and examined point for each deadline; pseudo-polynomial.
///
/// # Source
/// K. Jeffay, D. Stanat, C. Martel, "On Non-Preemptive Scheduling of Periodic and Sporadic Tasks", RTSS 1991, for
/// implicit deadlines; L. George, N. Rivierre, M. Spuri, "Preemptive and Non-Preemptive Real-Time Uni-Processor
/// Scheduling", INRIA RR-2966, 1996, for others.
pub fn np_edf(tasks: &[Sporadic], steps: &mut Steps) -> Outcome<BlockedInterval> {
    match qpa(tasks, whole(), steps) {
        Outcome::Pass(()) => {}
        Outcome::StepLimit => return Outcome::StepLimit,
        Outcome::Fail(overfull) => {
            let blocker = None;
            return Outcome::Fail(BlockedInterval { blocker, overfull });
        }
    }
    match blocked(tasks, steps) {
        None => Outcome::StepLimit,
        Some(None) => Outcome::Pass(()),
        Some(Some(found)) => Outcome::Fail(found),
    }
}

/// An interval that is overfull with a blocker, if there is one; of possible tasks that fit the CPU.
fn blocked(tasks: &[Sporadic], steps: &mut Steps) -> Option<Option<BlockedInterval>> {
    let Some(longest) = tasks.iter().map(Sporadic::deadline_ns).max() else {
        return Some(None);
    };
    let horizon = busy_period(tasks, whole(), Some(longest), steps)?;
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&place| tasks[place].deadline);
    // From the longest deadline down, with the largest cost among all that are longer.
    let mut blocker: Option<usize> = None;
    for pair in order.windows(2).rev() {
        let (before, after) = (pair[0], pair[1]);
        if blocker.is_none_or(|known| tasks[known].cost < tasks[after].cost) {
            blocker = Some(after);
        }
        let lengths = tasks[before].deadline_ns()..tasks[after].deadline_ns().min(horizon);
        let most = blocker.map_or(0, |place| tasks[place].cost_ns() - 1);
        if let Some(overfull) = overfull(tasks, lengths, most, steps)? {
            return Some(Some(BlockedInterval { blocker, overfull }));
        }
    }
    Some(None)
}

/// A length in this range in which more than it is due together with what blocks, if there is one. The range begins
/// with a deadline.
fn overfull(
    tasks: &[Sporadic],
    lengths: std::ops::Range<u128>,
    blocking: u128,
    steps: &mut Steps,
) -> Option<Option<Overfull>> {
    if lengths.is_empty() || blocking == 0 {
        return Some(None);
    }
    let mut at = last_deadline(tasks, lengths.end)?;
    while at >= lengths.start {
        steps.take(tasks.len())?;
        let demand = demand(tasks, at);
        let needed = demand + blocking;
        if needed > at {
            return Some(Some(Overfull {
                length: span(at),
                demand: span(demand),
            }));
        }
        // At every length from `needed` to here no more is needed.
        at = match needed < at {
            true => needed,
            false => last_deadline(tasks, at).unwrap_or(0),
        };
    }
    Some(None)
}
