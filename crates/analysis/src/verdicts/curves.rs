//! Verdicts on tasks with arrival curves: from those on sporadic tasks that do more or less than they, and by the tests for
//! one CPU that take the curves.
//!
//! `docs/theory/curves.md` has the lemmas.

use shiftwork_model::{Affinity, PolicyTraits, Span, TaskSet};

use super::jitter;
use super::judge::{analyse_by_period, utilization};
use super::waiting::settle;
use super::{Analysis, Answer, Candidate, Judgement};
use crate::affinity::{Feasibility, Feasible};
use crate::curves::{at_mean_distance, at_shortest_distance, has_curves};
use crate::policy::{is_edf, is_fp, is_np_edf, is_np_fp};
use crate::triggers::{Streams, holistic};

/// As [`analyse`](super::analyse), of tasks that all arrive by time.
pub(super) fn analyse_by_time(set: &TaskSet, candidates: &[Candidate], steps: u64) -> Analysis {
    if !has_curves(set) {
        return analyse_by_period(set, candidates, steps);
    }
    let mut analysis = analyse_by_period(&at_mean_distance(set), candidates, steps);
    let known = analyse_by_period(&at_shortest_distance(set), candidates, steps);
    analysis.utilization = utilization(set);
    analysis.feasibility = feasible(analysis.feasibility, known.feasibility);
    let policies = analysis.policies.iter_mut().zip(candidates);
    for ((found, candidate), known) in policies.zip(known.policies) {
        for judgement in [&mut found.hard, &mut found.soft] {
            withdraw(judgement, &candidate.traits);
        }
        settle(set, found, candidate, Some(known));
        let Ok(bound) = &candidate.bound else {
            continue;
        };
        if found.hard.answer == Answer::Unknown
            && let Some(by) = jitter::in_time(set, &candidate.traits, (bound, steps), |_| true)
        {
            jitter::note(set, found, &by);
        }
        if let Some(responses) = responses(set, &candidate.traits, bound, steps) {
            jitter::note_responses(set, found, &responses);
        }
    }
    analysis
}

/// Withdraws a "no" about tasks that are the mean distance apart, if it is not one about those with the curves.
fn withdraw(judgement: &mut Judgement, policy: &PolicyTraits) {
    if judgement.answer == Answer::Unschedulable && !still_refutes(policy, &judgement.by) {
        judgement.answer = Answer::Unknown;
        judgement.by.clear();
        judgement.witness = None;
    }
}

/// Whether a "no" by this about tasks that are the mean distance apart is one about those with the curves. Under other
/// policies what jobs get depends on the period of the task, which is the shortest distance.
pub(super) fn still_refutes(policy: &PolicyTraits, by: &[&str]) -> bool {
    let goes_by_rank = [is_edf, is_fp, is_np_edf, is_np_fp];
    by == ["feasibility"] || goes_by_rank.iter().any(|is_it| is_it(policy))
}

/// Whether any scheduler meets all deadlines: one that does for what does more does it here, and where none does for what
/// does less, none does.
fn feasible(of_less: Feasibility, of_more: Feasibility) -> Feasibility {
    match (of_less.verdict, of_more.verdict) {
        (Feasible::No, _) => of_less,
        (_, Feasible::Yes) => of_more,
        _ => Feasibility {
            verdict: Feasible::Unknown,
            witness: None,
            ..of_less
        },
    }
}

/// Bounds on the response times of all tasks under fixed priorities, where each is bound to one CPU.
pub(super) fn responses(
    set: &TaskSet,
    policy: &PolicyTraits,
    bound: &[Affinity],
    steps: u64,
) -> Option<Vec<Span>> {
    let streams = Streams::of(set).filter(|_| is_fp(policy))?;
    holistic(set, &streams, bound, steps)
}
