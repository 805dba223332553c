//! Exact response times on one CPU, as bounds and as a test of their own.

use shiftwork_model::TaskId;

use super::super::conclude::in_time;
use super::*;
use crate::Sporadic;

/// A part with one CPU, by itself or among others, has exact response times under EDF and fixed priorities.
#[test]
fn one_cpu_has_exact_response_times() {
    // On CPU 0 the second job of `t2` is the latest; `t3` and `t4` are alone on CPU 1.
    let lines = [
        (26, 70, 70, "0"),
        (62, 100, 120, "0"),
        (3, 10, 5, "1"),
        (4, 10, 8, "1"),
    ];
    let set = set(2, &lines);
    let under = |policy: &str| {
        let found = found(policy, &set);
        let best = found
            .best
            .iter()
            .map(|best| best.expect("on one CPU tardiness is bounded"));
        best.map(|best| format!("{} {}", best.response, best.by))
            .collect::<Vec<String>>()
    };
    let fp = ["26ms fp-rta", "118ms fp-rta", "3ms fp-rta", "7ms fp-rta"];
    for policy in ["p-fp", "weak-fp", "strong-fp", "hpa-fp"] {
        assert_eq!(under(policy), fp, "{policy}");
    }
    let edf = under("p-edf");
    assert!(edf.iter().all(|best| best.ends_with("edf-rta")), "{edf:?}");
    assert_eq!(edf[2..], ["4ms edf-rta", "7ms edf-rta"]);
    for policy in ["weak-edf", "strong-edf", "hpa-edf"] {
        assert_eq!(under(policy), edf, "{policy}");
    }
}

/// A task that is late has its longest response as the bound, not some multiple of its period.
#[test]
fn what_is_late_on_one_cpu_is_so_by_exactly_this() {
    let late = set(1, &[(2, 4, 2, "0"), (2, 4, 3, "0")]);
    for policy in ["p-edf", "g-edf", "strong-edf"] {
        let best = found(policy, &late).best;
        let best: Vec<(Span, &str)> = best
            .iter()
            .flatten()
            .map(|best| (best.response, best.by))
            .collect();
        let exact = |ms| (Span::from_ms(ms), "edf-rta");
        assert_eq!(best, [exact(3), exact(4)], "{policy}");
    }
}

/// Where the steps do not suffice for exact response times, there is the looser bound, and the reason.
#[test]
fn without_steps_for_exact_times_the_looser_bound_remains() {
    let long = set(1, &[(500, 1_000, 1_000, "0"), (499, 998, 100, "0")]);
    let found = |steps| {
        let analysis = analyse(&long, &[candidate("p-edf", &long)], steps);
        let found = analysis.policies.into_iter().next().unwrap();
        let by: Vec<&str> = found.best.iter().flatten().map(|best| best.by).collect();
        (verdict_of("edf-rta", &found.soft), by)
    };
    assert_eq!(found(100), (Some(Found::StepLimit), vec!["gel", "gel"]));
    assert_eq!(
        found(STEPS),
        (Some(Found::Pass), vec!["edf-rta", "edf-rta"])
    );
}

/// A question about `p-edf`.
fn asked(set: &TaskSet, criterion: Criterion, only: Option<&[&str]>, tardiness: bool) -> Decision {
    let bound: Vec<Affinity> = set.tasks.iter().map(|task| task.affinity).collect();
    let question = Question {
        only,
        tardiness,
        ..Question::new(
            registry::find("p-edf").unwrap().traits,
            &bound,
            criterion,
            STEPS,
        )
    };
    decide(set, &question)
}

/// Where a study names the test of response times alone, they decide.
#[test]
fn response_times_have_a_verdict_where_they_are_named() {
    let only: Option<&[&str]> = Some(&["edf-rta"]);
    let in_time = set(1, &[(2, 4, 2, "0"), (2, 4, 4, "0")]);
    let decided = asked(&in_time, Criterion::Hard, only, false);
    assert_eq!(
        (decided.answer, decided.by),
        (Answer::Schedulable, Some("edf-rta"))
    );
    let late = set(1, &[(2, 4, 2, "0"), (2, 4, 3, "0")]);
    let decided = asked(&late, Criterion::Hard, only, false);
    assert_eq!((decided.answer, decided.by), (Answer::Unknown, None));
    let decided = asked(&late, Criterion::Soft, only, false);
    assert_eq!(
        (decided.answer, decided.by),
        (Answer::Schedulable, Some("edf-rta"))
    );
}

/// Studies that ask for tardiness have the exact one.
#[test]
fn decided_tardiness_on_one_cpu_is_exact() {
    let late = set(1, &[(2, 4, 2, "0"), (2, 4, 3, "0")]);
    let decided = |tardiness| asked(&late, Criterion::Soft, None, tardiness);
    assert_eq!(decided(true).tardiness, Some(Span::from_ms(1)));
    assert_eq!(decided(false).tardiness, None);
    assert_eq!(decided(true).answer, decided(false).answer);
    assert_eq!(decided(true).by, decided(false).by);
}

/// Where the bounds of several tests together show that deadlines are met, all of them are named.
#[test]
fn bounds_of_several_tests_are_attributed_to_each() {
    let best = |response, by| {
        let response = Span::from_ms(response);
        Some(Best { response, by })
    };
    let ids = [0, 1].map(TaskId::from_index);
    let span = Span::from_ms;
    let task = |deadline| Sporadic {
        cost: span(1),
        period: span(9),
        deadline: span(deadline),
    };
    let by = |best: &[Option<Best>]| in_time(&ids, &[task(4), task(5)], best);
    let both = [best(3, "gel"), best(5, "devi-anderson")];
    assert_eq!(by(&both), ["devi-anderson", "gel"]);
    assert_eq!(by(&[best(3, "gel"), best(5, "gel")]), ["gel"]);
    let late = [best(3, "gel"), best(6, "devi-anderson")];
    assert!(by(&late).is_empty());
    assert!(by(&[best(3, "gel"), None]).is_empty());
}

/// With the reserve bounds are longer, and only EDF with the strong invariant has any.
#[test]
fn bounds_beside_the_reserve_are_longer_and_for_the_strong_invariant() {
    let lines = [(5, 20, 20, "0"), (6, 20, 20, "0-1"), (8, 30, 30, "0-1")];
    let mut set = set(2, &lines);
    set.scheduler.reserve_server = true;
    let beside = |policy: &str, set: &TaskSet| {
        let best = bounds_beside_reserve(set, &candidate(policy, set), STEPS);
        best.into_iter()
            .map(|best| best.map(|best| best.response))
            .collect::<Vec<Option<Span>>>()
    };
    for policy in ["hpa-edf", "strong-edf"] {
        let without = found(policy, &set).best;
        for (with, without) in beside(policy, &set).into_iter().zip(without) {
            let least = without.unwrap().response + Span::from_ms(40);
            assert!(with.unwrap() >= least, "{with:?} {least}");
        }
    }
    for policy in ["weak-edf", "strong-fp", "p-edf"] {
        assert_eq!(beside(policy, &set), [None; 3], "{policy}");
    }
    // More than the CPUs supply beside the reserve.
    set.tasks[0].cost = Span::from_ms(20);
    assert_eq!(beside("hpa-edf", &set), [None; 3]);
}
