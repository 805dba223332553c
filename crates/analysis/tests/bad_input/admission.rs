//! Feasibility and admission answer every input, too.

use shiftwork_analysis::Sporadic;
use shiftwork_analysis::admission::{Guarantee, Terms, Verdict, admit};
use shiftwork_analysis::affinity::{Feasible, feasibility};
use shiftwork_model::{
    Affinity, CPUS_MAX, CpuId, CpuSet, RandomStream, Share, Span, Task, TaskSet,
};
use shiftwork_policy::registry;

use super::{ODD, sporadic, without_common_periods};

/// A task set as only a program could build it: no file reader lets these times through.
fn set_of(tasks: &[Sporadic], cpus: usize) -> TaskSet {
    let last = CpuId::from_index(cpus.saturating_sub(1));
    let tasks = tasks.iter().enumerate().map(|(place, task)| {
        let all = Affinity::new(CpuSet::first(cpus.max(1))).unwrap();
        let affinity = if place % 3 == 2 {
            Affinity::pinned(last)
        } else {
            all
        };
        let name = format!("T{place}");
        let mut of = Task::periodic(&name, task.cost, task.period, affinity);
        of.deadline = task.deadline;
        of
    });
    TaskSet::new("odd", cpus, tasks.collect())
}

const POLICIES: [&str; 8] = [
    "p-edf",
    "g-edf",
    "weak-edf",
    "strong-edf",
    "hpa-edf",
    "p-fp",
    "g-fp",
    "strong-fp",
];

/// Feasibility and admission of a set, and what holds of their answers.
fn ask(tasks: &[Sporadic], cpus: usize) {
    let set = set_of(tasks, cpus);
    let found = feasibility(&set);
    let cannot_be = tasks.iter().any(|task| {
        [task.cost, task.period, task.deadline].contains(&Span::ZERO)
            || task.cost > task.period
            || task.cost > task.deadline
    });
    assert_eq!(
        found.witness.is_some(),
        found.verdict == Feasible::No,
        "{set:?}"
    );
    assert!(
        !cannot_be || found.verdict == Feasible::No,
        "{found:?} {set:?}"
    );
    let reserve = Share::from_billionths(0).unwrap();
    for policy in POLICIES {
        let terms = Terms::new(&registry::find(policy).unwrap().traits, reserve).unwrap();
        let decision = admit(&set, &[], terms);
        let refused = decision.verdict() == Verdict::Refused;
        assert!(!decision.reason.is_empty(), "{policy} {set:?}");
        assert!(
            !refused || decision.guarantee == Guarantee::None,
            "{policy} {decision:?}"
        );
        if found.verdict == Feasible::No {
            let hard = decision.guarantee == Guarantee::Hard;
            assert!(!hard, "{policy}: {found:?}, but {decision:?}");
        }
    }
}

#[test]
fn odd_task_sets_are_admitted_or_refused_in_words() {
    for seed in 0..400 {
        let mut stream = RandomStream::new(seed, 42, 4);
        let cpus = [0, 1, 2, 3, 64, CPUS_MAX][stream.below(6) as usize];
        let mut odd = || ODD[stream.below(ODD.len() as u64) as usize];
        let tasks: Vec<Sporadic> = (0..4).map(|_| sporadic(odd(), odd(), odd())).collect();
        ask(&tasks[..1 + seed as usize % 4], cpus);
    }
}

#[test]
fn a_crowd_of_ten_thousand_is_admitted_or_refused() {
    for (cpus, load) in [(1, 50), (1_024, 60_000)] {
        let mut stream = RandomStream::new(load, 42, 5);
        ask(&without_common_periods(10_000, load, &mut stream), cpus);
    }
}
