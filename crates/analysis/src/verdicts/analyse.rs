//! The analysis of a task set: of tasks that arrive by time, and of tasks of which some trigger others.
//!
//! When a triggered job arrives depends on responses, and responses on when jobs arrive. What is found so that both agree
//! holds: `docs/theory/triggers.md` has the proof. Nothing is ever refuted where tasks are triggered.

use shiftwork_model::{Affinity, Budgets, PolicyTraits, Preemption, Span, TaskSet};

use super::conclude::{ask_nothing_aside, judgement, nothing_applies};
use super::curves::analyse_by_time;
use super::jitter::note_responses;
use super::judge::utilization;
use super::{Analysis, Answer, Candidate, Criterion, PolicyAnalysis};
use crate::affinity::{Feasibility, Feasible, feasibility};
use crate::policy::is_fp;
use crate::triggers::{Streams, by_time, holistic, triggers_at_start};

/// Analyses of tasks that arrive by time until arrivals and responses agree.
const ROUNDS: usize = 24;

/// All that is known of a task set under these policies. `steps` is how much each test may do for each
/// policy, shared evenly among the parts; the answer depends on it and on nothing else.
///
/// Demand that does not fit decides before any test is asked: those that apply then fail.
///
/// # Assumes
/// Sporadic tasks, independent, and no overheads; [`left_out`](super::left_out) lists what else in
/// a task set is not taken into account. Where tasks have arrival curves, sporadic ones stand for them, unless a test for one
/// CPU takes the curves. Where tasks have jitter, or suspend themselves or lock mutexes within
/// jobs, [others stand for them](crate::stand_ins) under some policies; under others nothing is shown then but what is
/// impossible without. Of tasks that others trigger, it is found out together how late they arrive and how long they take.
///
/// # Cost
/// That of the tests; the same question is asked once, whatever the number of policies to which it is
/// one. Up to three times that where others stand for the tasks.
pub fn analyse(set: &TaskSet, candidates: &[Candidate], steps: u64) -> Analysis {
    let mut analysis = match set.first_triggered() {
        Some(_) => analyse_triggered(set, candidates, steps),
        None => analyse_by_time(set, candidates, steps),
    };
    // What a policy does, some scheduler does.
    let mut hard = analysis.policies.iter().map(|found| &found.hard);
    let shown = hard.find(|hard| hard.answer == Answer::Schedulable);
    if let (Feasible::Unknown, Some(hard)) = (analysis.feasibility.verdict, shown)
        && let Some(&by) = hard.by.first()
    {
        analysis.feasibility.verdict = Feasible::Yes;
        analysis.feasibility.by = by;
    }
    analysis
}

/// What is known of one policy of these properties, which binds the tasks to these CPUs.
pub(super) fn analyse_one(
    set: &TaskSet,
    (traits, bound): (&PolicyTraits, &[Affinity]),
    steps: u64,
) -> Option<PolicyAnalysis> {
    let candidate = Candidate {
        policy: String::new(),
        traits: *traits,
        bound: Ok(bound.to_vec()),
    };
    let analysis = analyse(set, std::slice::from_ref(&candidate), steps);
    analysis.policies.into_iter().next()
}

/// For a task set of which some tasks are triggered.
fn analyse_triggered(set: &TaskSet, candidates: &[Candidate], steps: u64) -> Analysis {
    let streams = Streams::of(set);
    let policy = |candidate: &Candidate| match (&candidate.bound, &streams) {
        (Ok(bound), Some(streams)) => known(set, streams, (candidate, bound), steps),
        _ => nothing_applies(candidate, set.tasks.len()),
    };
    Analysis {
        utilization: utilization(set),
        feasibility: Feasibility {
            verdict: Feasible::Unknown,
            witness: None,
            ..feasibility(set)
        },
        policies: candidates.iter().map(policy).collect(),
    }
}

/// What is known of a policy that binds the tasks to these CPUs.
fn known(
    set: &TaskSet,
    streams: &Streams,
    (candidate, bound): (&Candidate, &[Affinity]),
    steps: u64,
) -> PolicyAnalysis {
    let found = agreed(set, streams, candidate, steps);
    let mut found = found.unwrap_or_else(|| nothing_applies(candidate, set.tasks.len()));
    if is_fp(&candidate.traits)
        && let Some(responses) = holistic(set, streams, bound, steps)
    {
        note_responses(set, &mut found, &responses);
    }
    found
}

/// What is known where tasks that arrive by time stand for the triggered ones; `None` if no arrivals and responses are
/// found that agree.
fn agreed(
    set: &TaskSet,
    streams: &Streams,
    candidate: &Candidate,
    steps: u64,
) -> Option<PolicyAnalysis> {
    let traits = &candidate.traits;
    // Others go by the periods of tasks, which are not those of the stand-ins. And what a job triggers before it executes
    // arrives after the decision to start it, which matters unless it is preempted, and where mutexes are locked.
    let is_preempted =
        matches!(traits.preemption, Preemption::AtEvents) && set.first_locking().is_none();
    let is_covered =
        matches!(traits.budgets, Budgets::OfJobs) && (is_preempted || !triggers_at_start(set));
    if !streams.are_single() || !is_covered {
        return None;
    }
    let mut latest = vec![Span::ZERO; set.tasks.len()];
    for _ in 0..ROUNDS {
        let stand_ins = by_time(set, streams, &latest)?;
        let analysis = analyse_by_time(&stand_ins, std::slice::from_ref(candidate), steps);
        let mut found = analysis.policies.into_iter().next()?;
        let best = found.best.iter();
        let responses: Vec<Option<Span>> = best.map(|it| it.map(|best| best.response)).collect();
        let next = streams.latest(&responses)?;
        if next
            .iter()
            .zip(&latest)
            .all(|(next, latest)| next <= latest)
        {
            ask_nothing_aside(&mut found);
            for criterion in [Criterion::Hard, Criterion::Soft] {
                let judgement = judgement(&mut found, criterion);
                if judgement.answer == Answer::Unschedulable {
                    judgement.answer = Answer::Unknown;
                    judgement.by.clear();
                }
                judgement.witness = None;
            }
            return Some(found);
        }
        let later = next.into_iter().zip(latest);
        latest = later.map(|(next, latest)| next.max(latest)).collect();
    }
    None
}
