//! Verdicts on tasks whose jobs have to wait, for their release or since they suspend themselves, from those on the tasks
//! that stand for them.
//!
//! What is shown of the latter holds for the former. What is not shown proves nothing. Demand that does not fit without
//! waiting does not fit with it, unless jobs may use CPUs of others while they hold mutexes. Without suspensions and mutexes every "no" of the tasks without jitter holds: jitter may be zero.

use shiftwork_model::{Span, TaskSet};

use super::conclude::nothing_known;
use super::{Answer, Candidate, Found, Judgement, PolicyAnalysis};
use crate::Witness;
use crate::affinity::{Feasibility, Feasible};
use crate::suspensions::{suspends, suspension};

/// Puts what is known of the stand-ins, `None` if there are none, in the place of what is known of these tasks as if no
/// job had to wait.
pub(super) fn settle(
    set: &TaskSet,
    found: &mut PolicyAnalysis,
    candidate: &Candidate,
    known: Option<PolicyAnalysis>,
) {
    let tasks = found.best.len();
    let nothing = || nothing_known(candidate, tasks);
    let is_known = known.is_some();
    let known = known.unwrap_or_else(nothing);
    for (real, of_stand_ins) in [(&mut found.hard, known.hard), (&mut found.soft, known.soft)] {
        match is_known {
            true => real.tests = of_stand_ins.tests,
            false => {
                for (_, found) in &mut real.tests {
                    *found = Found::NotApplicable;
                }
            }
        }
        if !is_refuted(set, real) {
            let is_shown = of_stand_ins.answer == Answer::Schedulable;
            real.answer = if is_shown {
                Answer::Schedulable
            } else {
                Answer::Unknown
            };
            real.by = if is_shown {
                of_stand_ins.by
            } else {
                Vec::new()
            };
            real.witness = None;
        }
    }
    found.bounds = known.bounds;
    found.best = known.best;
}

/// Whether it is a "no" that holds for jobs that have to wait, too.
fn is_refuted(set: &TaskSet, without: &Judgement) -> bool {
    without.answer == Answer::Unschedulable && still_refutes(set, &without.by)
}

/// Whether a "no" by this, found as if no job had to wait, holds for these that may.
pub(super) fn still_refutes(set: &TaskSet, by: &[&str]) -> bool {
    let is_by_demand = by == ["feasibility"] && !set.lends_cpus();
    is_by_demand || !(suspends(set) || set.first_locking().is_some())
}

/// Adds to the bounds of each task the delay of its stand-ins.
pub(super) fn count_from_arrivals(known: &mut PolicyAnalysis, delays: &[Span]) {
    for (place, &delay) in delays.iter().enumerate() {
        let later = |response: &mut Span| *response = (*response + delay).min(Span::MAX);
        for bounds in &mut known.bounds {
            bounds.responses[place].iter_mut().for_each(later);
        }
        let best = known.best[place].iter_mut();
        best.for_each(|best| later(&mut best.response));
    }
}

/// Whether any scheduler meets all deadlines where nothing is known but that the demand does not fit, which does not count
/// where jobs may use CPUs of others.
pub(super) fn not_shown(set: &TaskSet, without: Feasibility) -> Feasibility {
    match without.verdict {
        Feasible::No if !set.lends_cpus() => without,
        Feasible::No | Feasible::Yes | Feasible::Unknown => Feasibility {
            verdict: Feasible::Unknown,
            witness: None,
            ..without
        },
    }
}

/// Whether any scheduler meets all deadlines: one that does for the stand-ins does it here, and where none does without
/// waiting, none does.
pub(super) fn feasible(
    set: &TaskSet,
    without: Feasibility,
    of_stand_ins: Feasibility,
) -> Feasibility {
    match (without.verdict, of_stand_ins.verdict) {
        (Feasible::No, _) => without,
        (_, Feasible::Yes) => of_stand_ins,
        // That the stand-ins do not fit proves nothing.
        _ => not_shown(set, without),
    }
}

/// A task of which one job by itself may take longer from its arrival than until its deadline: with its latest release, the whole
/// cost that it really has and all that it suspends itself.
pub(super) fn too_long(set: &TaskSet) -> Option<Witness> {
    set.iter().find_map(|(id, task)| {
        let executes = task.cost.min(task.longest_run());
        let waits = (task.jitter + suspension(task)).min(Span::MAX);
        let least = (executes + waits).min(Span::MAX);
        (least > task.deadline).then_some(Witness::TooLong {
            task: id,
            least,
            deadline: task.deadline,
        })
    })
}
