//! One question gets the answer that asking everything gives.

use shiftwork_analysis::overheads::Structure;
use shiftwork_analysis::verdicts::{
    Answer, Best, Criterion, Found, PolicyAnalysis, Price, Question, analyse_under, decide,
};
use shiftwork_model::{Overheads, RandomStream, Span, TaskSet};
use shiftwork_policy::registry;

use crate::{candidate, random};

const STEPS: u64 = 20_000;

fn price(policy: &str, set: &TaskSet, criterion: Criterion, overheads: &Overheads) -> Price {
    let overheads = Some(overheads.clone());
    let [worst, average] = match criterion {
        Criterion::Hard => [overheads, None],
        Criterion::Soft => [None, overheads],
    };
    Price {
        structure: Structure::of(&registry::find(policy).unwrap().traits, set),
        worst,
        average,
    }
}

/// The largest bound on tardiness that is known when everything was asked.
fn tardiness(set: &TaskSet, found: &PolicyAnalysis) -> Option<Span> {
    let late = |(best, deadline): (&Option<Best>, Span)| {
        best.as_ref()
            .map(|best| best.response.saturating_sub(deadline))
    };
    let deadlines = set.tasks.iter().map(|task| task.deadline);
    let bounds: Option<Vec<Span>> = found.best.iter().zip(deadlines).map(late).collect();
    bounds.map(|bounds| bounds.into_iter().max().unwrap_or(Span::ZERO))
}

#[test]
fn the_answer_is_that_of_asking_everything() {
    let seeds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 3_000,
        None => 20,
    };
    let mut counts = [0; 3];
    for seed in 0..seeds {
        for policy in registry::POLICIES.iter().map(|entry| entry.name) {
            let mut stream = RandomStream::new(seed, 83, 0);
            let mut set = random::system(policy, &mut stream);
            let overheads = random::overheads(&mut stream);
            if seed % 4 == 0 {
                // Too soon for the cost, and yet tardiness may be bounded.
                let task = &mut set.tasks[0];
                task.deadline = Span::from_ns(task.cost.as_ns().div_ceil(2));
            }
            let candidate = candidate(&set, policy);
            let Ok(bound) = candidate.bound.clone() else {
                continue;
            };
            for criterion in [Criterion::Hard, Criterion::Soft] {
                for overheads in [None, Some(&overheads)] {
                    let context = format!("seed {seed}, {policy}, {criterion:?}, {overheads:?}");
                    let price = overheads.map(|it| price(policy, &set, criterion, it));
                    let asked = [(candidate.clone(), price.clone())];
                    let (all, _) = analyse_under(&set, &asked, STEPS);
                    let all = &all.policies[0];
                    let question = Question {
                        price: price.as_ref().map(|it| &it.structure).zip(overheads),
                        ..Question::new(candidate.traits, &bound, criterion, STEPS)
                    };
                    let found = decide(&set, &question);
                    let judgement = all.judgement(criterion);
                    assert_eq!(found.answer, judgement.answer, "{context}");
                    assert_eq!(found.tardiness, None, "{context}");
                    let question = Question {
                        tardiness: true,
                        ..question
                    };
                    let with_bound = decide(&set, &question);
                    assert_eq!(with_bound.answer, found.answer, "{context}");
                    let expected = tardiness(&set, all);
                    assert_eq!(with_bound.tardiness, expected, "{context}");
                    counts[found.answer as usize] += 1;
                }
            }
        }
    }
    assert!(counts.iter().all(|&count| count > 60), "{counts:?}");
}

#[test]
fn only_the_tests_that_are_named_are_asked() {
    let (mut shown, mut not_shown) = (0, 0);
    for seed in 0..60 {
        let mut stream = RandomStream::new(seed, 103, 0);
        let set = random::system("g-edf", &mut stream);
        let candidate = candidate(&set, "g-edf");
        let bound = candidate.bound.clone().unwrap();
        let (all, _) = analyse_under(&set, &[(candidate.clone(), None)], STEPS);
        for (test, found) in &all.policies[0].hard.tests {
            let question = Question {
                only: Some(&[test]),
                ..Question::new(candidate.traits, &bound, Criterion::Hard, STEPS)
            };
            let decision = decide(&set, &question);
            let context = format!("seed {seed}, {test}: {found:?}, {decision:?}");
            match found {
                Found::Pass => {
                    assert_eq!(decision.answer, Answer::Schedulable, "{context}");
                    assert_eq!(decision.by, Some(*test), "{context}");
                    shown += 1;
                }
                _ => {
                    assert_ne!(decision.answer, Answer::Schedulable, "{context}");
                    not_shown += 1;
                }
            }
        }
    }
    assert!(shown > 30 && not_shown > 30, "{shown}, {not_shown}");
}
