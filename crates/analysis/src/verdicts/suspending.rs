//! Verdicts on tasks that suspend themselves, from those on tasks that compute instead.
//!
//! What is shown of the latter holds for the former. What is not shown proves nothing. Demand that does not fit
//! without the suspensions does not fit with them.

use super::conclude::nothing_known;
use super::{Answer, Candidate, Found, Judgement, PolicyAnalysis};
use crate::affinity::{Feasibility, Feasible};

/// Puts what is known of the tasks that compute instead, `None` if they say nothing of these, in the place of
/// what is known of these without their suspensions.
pub(super) fn settle(
    found: &mut PolicyAnalysis,
    candidate: &Candidate,
    known: Option<PolicyAnalysis>,
) {
    let tasks = found.best.len();
    let nothing = || nothing_known(candidate, tasks);
    let is_known = known.is_some();
    let known = known.unwrap_or_else(nothing);
    for (real, computing) in [(&mut found.hard, known.hard), (&mut found.soft, known.soft)] {
        match is_known {
            true => real.tests = computing.tests,
            false => {
                for (_, found) in &mut real.tests {
                    *found = Found::NotApplicable;
                }
            }
        }
        if !is_by_demand(real) {
            let is_shown = computing.answer == Answer::Schedulable;
            real.answer = if is_shown {
                Answer::Schedulable
            } else {
                Answer::Unknown
            };
            real.by = if is_shown { computing.by } else { Vec::new() };
            real.witness = None;
        }
    }
    found.bounds = known.bounds;
    found.best = known.best;
}

/// Whether it is a "no" since the demand does not fit.
fn is_by_demand(judgement: &Judgement) -> bool {
    judgement.answer == Answer::Unschedulable && judgement.by == ["feasibility"]
}

/// Whether any scheduler meets all deadlines: one that does where the tasks compute instead does it here, and
/// where none does without the suspensions, none does.
pub(super) fn feasible(without: Feasibility, computing: Feasibility) -> Feasibility {
    match (without.verdict, computing.verdict) {
        (Feasible::No, _) => without,
        (_, Feasible::Yes) => computing,
        _ => Feasibility {
            verdict: Feasible::Unknown,
            witness: None,
            ..computing
        },
    }
}
