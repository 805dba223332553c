//! One question about one policy and tasks of any kind: where they have arrival curves, about sporadic ones that do more or
//! less than they, and to the tests for one CPU that take the curves.

use shiftwork_model::{Span, TaskSet};

use super::curves::{responses, still_refutes};
use super::decide::{Decision, Question, decide_by_period};
use super::jitter::{RESPONSE_TIMES, in_time};
use super::{Answer, Criterion};
use crate::curves::{at_mean_distance, at_shortest_distance, has_curves};

/// Answers the question.
///
/// # Assumes
/// As [`analyse_under`](super::analyse_under), and affinities that the policy takes.
///
/// # Cost
/// That of the tests until one passes; linear in the number of tasks where the demand does not fit.
pub fn decide(set: &TaskSet, question: &Question<'_>) -> Decision {
    match set.first_triggered() {
        None if has_curves(set) => decide_by_curves(set, question),
        _ => decide_by_period(set, question),
    }
}

/// As [`decide`], of tasks that all arrive by time.
fn decide_by_curves(set: &TaskSet, question: &Question<'_>) -> Decision {
    let Question { traits, bound, .. } = question;
    let of_less = decide_by_period(&at_mean_distance(set), question);
    if of_less.answer == Answer::Unschedulable && still_refutes(traits, of_less.by.as_slice()) {
        return Decision {
            tardiness: None,
            ..of_less
        };
    }
    let known = decide_by_period(&at_shortest_distance(set), question);
    // What follows counts no overheads.
    if known.answer == Answer::Schedulable || question.price.is_some() {
        return known.with_proof_only();
    }
    let is_asked = |test: &str| question.only.is_none_or(|only| only.contains(&test));
    let in_time = in_time(set, traits, (bound, question.steps), is_asked);
    let shown = |by, tardiness: Span| Decision {
        answer: Answer::Schedulable,
        by,
        tardiness: question.tardiness.then_some(tardiness),
    };
    if let Some(by) = in_time {
        return shown(by.last().copied(), Span::ZERO);
    }
    let responses = match is_asked(RESPONSE_TIMES) {
        true => responses(set, traits, bound, question.steps),
        false => None,
    };
    match responses {
        Some(responses) => {
            let tasks = set.tasks.iter().zip(responses);
            let late = tasks.map(|(task, response)| response.saturating_sub(task.deadline));
            let late = late.max().unwrap_or_default();
            match question.criterion {
                Criterion::Hard if !late.is_zero() => Decision {
                    tardiness: question.tardiness.then_some(late),
                    ..known.with(Answer::Unknown, None)
                },
                Criterion::Hard | Criterion::Soft => shown(Some(RESPONSE_TIMES), late),
            }
        }
        None => known.with_proof_only(),
    }
}

impl Decision {
    /// The same, but that a "no" about tasks that do more than the real ones is none about these.
    fn with_proof_only(self) -> Self {
        match self.answer {
            Answer::Unschedulable => self.with(Answer::Unknown, None),
            Answer::Schedulable | Answer::Unknown => self,
        }
    }
}
