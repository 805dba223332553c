//! EDF on one CPU, exact: quick processor-demand analysis.

use shiftwork_model::{ArrivalCurve, Share, Span};

use super::demand::{Line, Linear, busy_period, demand, last_deadline};
use super::{span, time_for};
use crate::arrivals::Arriving;
use crate::exact::whole;
use crate::filter::{Interval, RATIO, ratio};
use crate::{Outcome, Sporadic, Steps};

/// More work is released and due within an interval than the CPU can do in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overfull {
    /// The length of the interval, from a synchronous release. Zero: already the utilization is
    /// above the supply, so some interval is overfull.
    pub length: Span,
    /// The work due in it.
    pub demand: Span,
}

/// A task whose arrivals keep to a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithCurve<'a> {
    /// The task. Its period is the least separation of arrivals.
    pub task: Sporadic,
    /// `None`: nothing but the period separates arrivals.
    pub curve: Option<&'a ArrivalCurve>,
}

impl Arriving for WithCurve<'_> {
    fn task(&self) -> &Sporadic {
        &self.task
    }

    fn curve(&self) -> Option<&ArrivalCurve> {
        self.curve
    }
}

/// Whether EDF meets all deadlines on one CPU of this supply. Exact for sporadic tasks at supply 1;
/// below 1, exact for a CPU that is slower by that factor.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension.
///
/// # Cost
/// One step per task where the densities fit; else one per task and examined point: few points in practice,
/// pseudo-polynomial at worst.
///
/// # Source
/// F. Zhang, A. Burns, "Schedulability Analysis for Real-Time Systems with EDF Scheduling", IEEE
/// Transactions on Computers 58(9), 2009, Theorem 5, with the smaller of the two bounds on what
/// must be examined: the synchronous busy period and L_a*.
pub fn qpa(tasks: &[Sporadic], supply: Share, steps: &mut Steps) -> Outcome<Overfull> {
    search(tasks, supply, steps).unwrap_or(Outcome::StepLimit)
}

/// The same where arrivals keep to curves.
///
/// # Assumes
/// As [`qpa()`], but for the curves.
///
/// # Cost
/// As [`qpa()`], but what must be examined is bounded by the synchronous busy period alone, and each count of jobs takes a
/// binary search.
///
/// # Source
/// K. Gresser, "An Event Model for Deadline Verification of Hard Real-Time Systems", Euromicro Workshop on Real-Time
/// Systems 1993: on one CPU, EDF is late only if in some interval more is released and due than fits, whatever bounds the
/// releases. The search is that of QPA, which needs of the demand only that it is a step function that does not fall.
/// `docs/theory/curves.md` has the proof.
pub fn qpa_with_curves(
    tasks: &[WithCurve<'_>],
    supply: Share,
    steps: &mut Steps,
) -> Outcome<Overfull> {
    search(tasks, supply, steps).unwrap_or(Outcome::StepLimit)
}

fn search(tasks: &[impl Arriving], supply: Share, steps: &mut Steps) -> Option<Outcome<Overfull>> {
    let hopeless = Outcome::Fail(Overfull {
        length: Span::ZERO,
        demand: Span::ZERO,
    });
    if tasks.is_empty() {
        return Some(Outcome::Pass(()));
    }
    if !tasks.iter().all(|one| one.task().is_possible()) || supply.billionths() == 0 {
        return Some(hopeless);
    }
    steps.take(tasks.len())?;
    if supply == whole() && densities_fit(tasks) {
        return Some(Outcome::Pass(()));
    }
    let limit = match Line::of(tasks, supply) {
        Linear::Overloaded => return Some(hopeless),
        Linear::None => None,
        Linear::Below(line) => Some(line.leaves(0)),
    };
    let horizon = busy_period(tasks, supply, limit, steps)?;
    let least = tasks.iter().map(|one| one.task().deadline_ns()).min()?;
    let mut at = match last_deadline(tasks, horizon.saturating_add(1)) {
        Some(at) => at,
        None => return Some(Outcome::Pass(())),
    };
    loop {
        steps.take(tasks.len())?;
        let demand = demand(tasks, at);
        let needed = time_for(demand, supply)?;
        if needed > at {
            return Some(Outcome::Fail(Overfull {
                length: span(at),
                demand: span(demand),
            }));
        }
        if needed <= least {
            return Some(Outcome::Pass(()));
        }
        at = match needed < at {
            true => needed,
            false => match last_deadline(tasks, at) {
                Some(before) => before,
                None => return Some(Outcome::Pass(())),
            },
        };
    }
}

/// Whether floating point shows that the sum of all C / min(D, T) is at most 1: then all deadlines
/// are met.
fn densities_fit(tasks: &[impl Arriving]) -> bool {
    let sum = Interval::sum_over(tasks, RATIO, |one| {
        let task = one.task();
        ratio(task.cost.as_ns(), task.deadline.min(task.period).as_ns())
    });
    sum.at_most(Interval::of(1)) == Some(true)
}
