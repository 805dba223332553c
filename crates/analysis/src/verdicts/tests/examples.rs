//! The verdicts on the examples of papers and on the smallest set of each kind.

use super::*;
use crate::affinity::Feasible;

#[test]
fn three_tasks_of_two_thirds_on_two_cpus() {
    let set = three_of_two_thirds();
    for (policy, expected) in [
        ("p-edf", "unschedulable unschedulable"),
        ("p-fp", "unschedulable unschedulable"),
        ("g-edf", "unknown schedulable"),
        ("hpa-edf", "unknown schedulable"),
        ("weak-edf", "unknown schedulable"),
        ("g-fp", "unknown unknown"),
        ("np-g-edf", "unknown schedulable"),
        ("pd2", "schedulable schedulable"),
        ("s-pd2", "unknown schedulable"),
    ] {
        assert_eq!(answers(policy, &set), expected, "{policy}");
    }
}

/// Devi and Anderson's bound is 2 ms of tardiness: x is zero.
#[test]
fn bounds_are_those_of_the_papers() {
    let found = found("g-edf", &three_of_two_thirds());
    let known = found
        .bounds
        .iter()
        .find(|bounds| bounds.test == "devi-anderson");
    assert_eq!(known.unwrap().responses, [Some(Span::from_ms(5)); 3]);
    assert!(
        found
            .best
            .iter()
            .all(|best| best.unwrap().response <= Span::from_ms(5))
    );
}

#[test]
fn example_5_of_tang_is_for_strong_scheduling() {
    let set = tang_5();
    let analysis = analyse(&set, &[candidate("hpa-edf", &set)], STEPS);
    assert_eq!(fraction(&analysis.utilization).unwrap(), "17/6");
    assert_eq!(decimal(&analysis.utilization, 3), "2.833");
    assert_eq!(analysis.feasibility.verdict, Feasible::Yes);
    for (policy, expected) in [
        ("hpa-edf", "unknown schedulable"),
        ("strong-edf", "unknown schedulable"),
        ("weak-edf", "unknown unknown"),
        ("dl-sp", "unknown schedulable"),
        ("pd2", "unknown unknown"),
        // Two tasks need a whole CPU each, so the rest overloads the third, or they do not fit.
        ("p-edf", "unschedulable unschedulable"),
    ] {
        assert_eq!(answers(policy, &set), expected, "{policy}");
    }
    assert_eq!(found("dl-sp", &set).soft.by, ["spl"]);
    assert!(
        found("pd2", &set)
            .refusal
            .unwrap()
            .contains("task t1 may use only CPUs {0}")
    );
}

#[test]
fn each_part_may_be_shown_by_another_test() {
    let lines = [
        (1, 2, 2, "0"),
        (1, 2, 2, "0"),
        (1, 10, 10, "1-2"),
        (1, 10, 10, "1-2"),
        (1, 10, 10, "1-2"),
    ];
    let found = found("strong-edf", &set(3, &lines));
    assert_eq!(found.hard.answer, Answer::Schedulable);
    // On the full CPU only the exact test passes; the others are for several CPUs.
    assert_eq!(found.hard.by, ["gfb", "qpa"]);
    assert_eq!(verdict_of("qpa", &found.hard), Some(Found::NotApplicable));
    assert!(found.best.iter().all(Option::is_some));
}

#[test]
fn a_failure_of_an_exact_test_is_a_proof() {
    let late = set(1, &[(2, 4, 2, "0"), (2, 4, 3, "0")]);
    let found = found("p-edf", &late);
    assert_eq!(found.hard.answer, Answer::Unschedulable);
    assert_eq!(found.hard.by, ["qpa"]);
    let proof = witness(found.hard.witness.as_ref().unwrap(), Names(&late));
    assert_eq!(
        proof,
        "on CPU 0 jobs that need 4ms may all be released and due within 3ms"
    );
    assert_eq!(
        found.soft.answer,
        Answer::Schedulable,
        "one CPU is never far behind"
    );
}

#[test]
fn what_overloads_some_cpus_is_decided_before_any_test() {
    let crowded = set(2, &[(6, 10, 10, "0"), (5, 10, 10, "0"), (1, 10, 10, "0-1")]);
    let analysis = analyse(&crowded, &[candidate("strong-edf", &crowded)], 0);
    assert_eq!(analysis.feasibility.verdict, Feasible::No);
    let found = &analysis.policies[0];
    for judgement in [&found.hard, &found.soft] {
        assert_eq!(judgement.answer, Answer::Unschedulable);
        assert_eq!(judgement.by, ["feasibility"]);
        assert!(
            judgement
                .tests
                .iter()
                .all(|&(_, found)| found != Found::StepLimit)
        );
    }
    let proof = witness(found.hard.witness.as_ref().unwrap(), Names(&crowded));
    assert_eq!(
        proof,
        "tasks `t1` and `t2` need 1.10 of CPU {0}, which is 1.00"
    );
}

/// A job that costs more than its deadline allows is always late; how late is bounded.
#[test]
fn a_deadline_before_the_cost_is_a_hard_no_and_no_soft_one() {
    let tight = set(2, &[(3, 5, 2, "0-1"), (1, 5, 5, "0-1")]);
    assert_eq!(answers("g-edf", &tight), "unschedulable schedulable");
}

#[test]
fn no_tasks_meet_all_deadlines() {
    for policy in policies() {
        let found = found(policy, &set(2, &[]));
        assert_eq!(found.hard.answer, Answer::Schedulable, "{policy}");
        assert_eq!(found.soft.answer, Answer::Schedulable, "{policy}");
    }
}

#[test]
fn without_steps_nothing_is_claimed_that_needs_some() {
    let set = set(2, &[(1, 10, 9, "0-1"), (1, 10, 8, "0-1"), (1, 7, 7, "0-1")]);
    let analysis = analyse(&set, &[candidate("g-edf", &set)], 0);
    let found = &analysis.policies[0];
    assert_eq!(found.hard.answer, Answer::Unknown);
    assert_eq!(verdict_of("rta", &found.hard), Some(Found::StepLimit));
}

/// With equal priorities the first task would wait for both others.
#[test]
fn non_preemptive_verdicts_take_the_priorities_into_account() {
    let mut set = set(1, &[(1, 3, 3, "0"), (2, 12, 12, "0"), (2, 12, 12, "0")]);
    let number = shiftwork_model::Priority::new;
    for (task, priority) in set.tasks.iter_mut().zip([1, 2, 3]) {
        task.priority = number(priority);
    }
    assert_eq!(answers("np-g-fp", &set), "schedulable schedulable");
    set.tasks[0].priority = number(9);
    assert_eq!(answers("np-g-fp", &set), "unschedulable schedulable");
}
