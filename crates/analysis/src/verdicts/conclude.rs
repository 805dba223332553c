//! What the parts together show.

use shiftwork_model::{Span, TaskId};

use super::case::Case;
use super::catalogue::{Asked, Criterion, TESTS};
use super::ground::Ground;
use super::{Answer, Best, Bounds, Candidate, Found, Judgement, PolicyAnalysis};
use crate::{Sporadic, Witness};

/// Keeps bounds on the response times of a part.
pub(super) fn keep(found: &mut PolicyAnalysis, test: &'static str, case: &Case, bounds: &[Span]) {
    let count = found.best.len();
    let place = match found.bounds.iter().position(|known| known.test == test) {
        Some(place) => place,
        None => {
            found.bounds.push(Bounds {
                test,
                responses: vec![None; count],
            });
            found.bounds.len() - 1
        }
    };
    for (id, &response) in case.ids.iter().zip(bounds) {
        let index = id.index();
        found.bounds[place].responses[index] = Some(response);
        improve(&mut found.best[index], response, test);
    }
}

pub(super) fn improve(best: &mut Option<Best>, response: Span, by: &'static str) {
    if best.is_none_or(|known| response < known.response) {
        *best = Some(Best { response, by });
    }
}

/// Bounds on response times that are within the deadlines show these, whatever they were meant for: the
/// tests that have the least bounds, each once; none if some bound is missing or too long.
pub(super) fn in_time(
    ids: &[TaskId],
    tasks: &[Sporadic],
    best: &[Option<Best>],
) -> Vec<&'static str> {
    let within = ids
        .iter()
        .zip(tasks)
        .map(|(id, task): (&TaskId, &Sporadic)| {
            let known = best.get(id.index())?.as_ref()?;
            (known.response <= task.deadline).then_some(known.by)
        });
    let by: Option<Vec<&'static str>> = within.collect();
    let mut by = by.unwrap_or_default();
    by.sort_unstable();
    by.dedup();
    by
}

/// What the parts together show.
pub(super) fn conclude(found: &mut PolicyAnalysis, grounds: &mut [Ground]) {
    for ground in grounds.iter_mut() {
        if !ground.is_shown(Criterion::Hard) {
            let by = in_time(&ground.case.ids, &ground.case.tasks, &found.best);
            ground.note_in_time(by);
        }
    }
    for criterion in [Criterion::Hard, Criterion::Soft] {
        let is_shown = grounds.iter().all(|ground| ground.is_shown(criterion));
        let judgement = judgement(found, criterion);
        if is_shown {
            let by = grounds.iter().flat_map(|ground| ground.all_by(criterion));
            let mut by: Vec<&'static str> = by.collect();
            by.sort_unstable();
            by.dedup();
            judgement.answer = Answer::Schedulable;
            judgement.by = by;
        }
    }
    for ground in grounds {
        if let Some(by) = ground.by(Criterion::Hard) {
            for (id, task) in ground.case.ids.iter().zip(&ground.case.tasks) {
                improve(&mut found.best[id.index()], task.deadline, by);
            }
        }
        if let Some((by, witness)) = &ground.refuted {
            refute(&mut found.hard, by, Some(witness.clone()));
        }
    }
}

pub(super) fn refute(judgement: &mut Judgement, by: &'static str, witness: Option<Witness>) {
    if judgement.answer == Answer::Unschedulable {
        return;
    }
    judgement.answer = Answer::Unschedulable;
    judgement.by = vec![by];
    judgement.witness = witness;
}

/// Before anything is asked of a policy about so many tasks.
pub(super) fn nothing_known(candidate: &Candidate, tasks: usize) -> PolicyAnalysis {
    PolicyAnalysis {
        policy: candidate.policy.clone(),
        traits: candidate.traits,
        refusal: None,
        hard: undecided(),
        soft: undecided(),
        bounds: Vec::new(),
        best: vec![None; tasks],
    }
}

/// What is known of a policy of whose tests none applies, with the reason if it refuses the tasks.
pub(super) fn nothing_applies(candidate: &Candidate, tasks: usize) -> PolicyAnalysis {
    let mut found = PolicyAnalysis {
        refusal: candidate.bound.as_ref().err().cloned(),
        ..nothing_known(candidate, tasks)
    };
    let speaking = TESTS
        .iter()
        .filter(|test| test.speaks_of(&candidate.traits));
    for test in speaking {
        let tests = &mut judgement(&mut found, test.criterion).tests;
        tests.push((test.name, Found::NotApplicable));
    }
    found
}

const fn undecided() -> Judgement {
    Judgement {
        answer: Answer::Unknown,
        by: Vec::new(),
        witness: None,
        tests: Vec::new(),
    }
}

/// Takes back what other packings were found to do: what is known was found for the present one.
pub(super) fn ask_nothing_aside(known: &mut PolicyAnalysis) {
    let is_aside = |test: &str| {
        let mut tests = TESTS.iter().filter(|one| one.name == test);
        tests.any(|one| matches!(one.asked, Asked::Aside(_)))
    };
    for judgement in [&mut known.hard, &mut known.soft] {
        for (test, found) in &mut judgement.tests {
            if is_aside(test) {
                *found = Found::NotApplicable;
            }
        }
    }
}

pub(super) const fn judgement(found: &mut PolicyAnalysis, criterion: Criterion) -> &mut Judgement {
    match criterion {
        Criterion::Hard => &mut found.hard,
        Criterion::Soft => &mut found.soft,
    }
}
