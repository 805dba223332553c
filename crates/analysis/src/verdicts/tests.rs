use std::collections::BTreeSet;

use shiftwork_model::{
    Affinity, Budgets, CpuSet, PolicyTraits, RandomStream, Role, Span, Task, TaskSet, pack,
};
use shiftwork_policy::registry::{self, Entry};

use super::*;
use crate::affinity::Feasible;

const STEPS: u64 = 20_000_000;

/// Cost, period, deadline in milliseconds, and CPUs.
type Line = (u64, u64, u64, &'static str);

fn set(cpus: usize, lines: &[Line]) -> TaskSet {
    let task = |(index, &(cost, period, deadline, list)): (usize, &Line)| {
        let affinity = Affinity::new(list.parse().unwrap()).unwrap();
        let [cost, period, deadline] = [cost, period, deadline].map(Span::from_ms);
        Task {
            deadline,
            ..Task::periodic(&format!("t{}", index + 1), cost, period, affinity)
        }
    };
    TaskSet::new("", cpus, lines.iter().enumerate().map(task).collect())
}

/// Three tasks of which two CPUs can run only two at a time: U = 2.
fn three_of_two_thirds() -> TaskSet {
    set(2, &[(2, 3, 3, "0-1"); 3])
}

/// Example 5 of Tang et al. 2021: U = 17/6 on three CPUs.
fn tang_5() -> TaskSet {
    let lines = [
        (2, 6, 6, "0"),
        (2, 2, 2, "0-2"),
        (1, 6, 6, "1"),
        (2, 2, 2, "0-2"),
        (2, 6, 6, "2"),
    ];
    set(3, &lines)
}

/// Where a policy binds the tasks, as `policy` does it.
fn candidate(name: &str, set: &TaskSet) -> Candidate {
    let entry = registry::find(name).unwrap();
    let own = || set.tasks.iter().map(|task| task.affinity).collect();
    let bound = match name {
        "p-edf" | "p-fp" => {
            let singles: Vec<CpuSet> = set.platform.all().iter().map(CpuSet::single).collect();
            let packed = pack(set, &singles).group_of.into_iter();
            let packed = packed.map(|group| Affinity::new(singles[group.unwrap()]).unwrap());
            Ok(packed.collect())
        }
        "dl-sp" | "pd2" | "s-pd2" => {
            let built = entry.build(set);
            built.map(|_| own()).map_err(|refusal| refusal.to_string())
        }
        _ => Ok(own()),
    };
    Candidate {
        policy: name.to_owned(),
        traits: entry.traits,
        bound,
    }
}

fn found(name: &str, set: &TaskSet) -> PolicyAnalysis {
    let analysis = analyse(set, &[candidate(name, set)], STEPS);
    analysis.policies.into_iter().next().unwrap()
}

/// `hard soft`.
fn answers(name: &str, set: &TaskSet) -> String {
    let found = found(name, set);
    format!("{} {}", found.hard.answer.name(), found.soft.answer.name())
}

fn verdict_of(test: &str, judgement: &Judgement) -> Option<Found> {
    let mut tests = judgement.tests.iter();
    tests
        .find(|(name, _)| *name == test)
        .map(|&(_, found)| found)
}

/// Those that stand for a rule of which tests speak.
fn policies() -> impl Iterator<Item = &'static str> {
    let stands_for_a_rule = |entry: &&Entry| {
        entry.traits.role == Role::Reference && entry.traits.budgets != Budgets::AsLinux
    };
    let entries = registry::POLICIES.iter().filter(stands_for_a_rule);
    entries.map(|entry| entry.name)
}

#[test]
fn no_test_is_asked_twice_about_one_policy() {
    for policy in policies() {
        let traits = &registry::find(policy).unwrap().traits;
        let mut seen = BTreeSet::new();
        for test in TESTS.iter().filter(|test| test.speaks_of(traits)) {
            assert!(
                seen.insert((test.name, test.criterion)),
                "{policy}: {}",
                test.name
            );
        }
        assert!(!seen.is_empty(), "{policy}");
    }
}

#[test]
fn tests_speak_alike_of_all_implementations_of_a_policy() {
    let traits = |name| &registry::find(name).unwrap().traits;
    let speak = |traits: &PolicyTraits| -> Vec<bool> {
        TESTS.iter().map(|test| test.speaks_of(traits)).collect()
    };
    for name in ["CEm", "HEm", "FEm", "CE1", "FE1"] {
        assert_eq!(speak(traits(name)), speak(traits("g-edf")), "{name}");
    }
    for name in ["CQm", "S-CQm", "CQ1", "S-CQ1"] {
        assert!(!speak(traits(name)).contains(&true), "{name}");
        let charged = under_overheads(traits(name));
        assert_eq!(speak(&charged), speak(traits("g-edf")), "{name}");
    }
    assert_eq!(speak(traits("hpa-fp-ecrts16")), speak(traits("hpa-fp")));
    assert!(!speak(traits("dl-linux")).contains(&true));
}

#[test]
fn every_test_has_a_source() {
    for test in TESTS {
        assert!(test.source.len() > 8, "{}", test.name);
    }
}

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

/// Random sets on a few CPUs, with deadlines of all kinds.
fn random(stream: &mut RandomStream) -> TaskSet {
    let cpus = 1 + stream.below(3) as usize;
    let task = |stream: &mut RandomStream| {
        let period = 2 + stream.below(9);
        let cost = 1 + stream.below(period);
        let deadline = match stream.below(3) {
            0 => period,
            1 => cost + stream.below(period - cost + 1),
            _ => cost + stream.below(2 * period),
        };
        let mut mask: CpuSet = CpuSet::EMPTY;
        for cpu in CpuSet::first(cpus).iter() {
            if stream.below(2) == 0 {
                mask = mask | CpuSet::single(cpu);
            }
        }
        let affinity = Affinity::new(mask).or(Affinity::new(CpuSet::first(cpus)));
        let [cost, period, deadline] = [cost, period, deadline].map(Span::from_ms);
        Task {
            deadline,
            ..Task::periodic("t", cost, period, affinity.unwrap())
        }
    };
    let count = 1 + stream.below(5);
    let tasks = (0..count).map(|_| task(stream)).collect();
    TaskSet::new("", cpus, tasks)
}

#[test]
fn verdicts_do_not_contradict_each_other() {
    let seeds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 5_000,
        None => 120,
    };
    for seed in 0..seeds {
        let set = random(&mut RandomStream::new(seed, 71, 0));
        let candidates: Vec<Candidate> = policies().map(|name| candidate(name, &set)).collect();
        let together = analyse(&set, &candidates, STEPS);
        for (candidate, found) in candidates.iter().zip(&together.policies) {
            let context = format!("seed {seed}, {}", candidate.policy);
            let (hard, soft) = (found.hard.answer, found.soft.answer);
            if hard == Answer::Schedulable {
                assert_eq!(soft, Answer::Schedulable, "{context}");
                assert_ne!(together.feasibility.verdict, Feasible::No, "{context}");
                let deadlines = set.tasks.iter().map(|task| task.deadline);
                let best = found.best.iter().map(|best| best.unwrap().response);
                assert!(
                    best.zip(deadlines).all(|(best, due)| best <= due),
                    "{context}"
                );
            }
            if soft == Answer::Unschedulable {
                assert_eq!(hard, Answer::Unschedulable, "{context}");
            }
            let proven = hard == Answer::Unschedulable;
            assert_eq!(found.hard.witness.is_some(), proven, "{context}");
            // What is known of one policy does not depend on which others are asked about.
            let alone = analyse(&set, std::slice::from_ref(candidate), STEPS);
            assert_eq!(&alone.policies[0], found, "{context}");
            for criterion in [Criterion::Hard, Criterion::Soft] {
                let shown = judge::is_shown(&set, candidate, criterion, STEPS);
                let known = found.judgement(criterion).answer == Answer::Schedulable;
                assert_eq!(shown, known, "{context}, {criterion:?}");
            }
        }
    }
}

#[test]
fn costs_may_grow_until_a_sum_is_full() {
    let factor = |name: &str, set: &TaskSet, criterion| {
        let mut bind = |set: &TaskSet| candidate(name, set);
        largest_factor(set, &mut bind, criterion, STEPS).map(|factor| factor.to_string())
    };
    let fits = |text: &str| Some(text.to_owned());
    let uneven = set(
        3,
        &[
            (2, 6, 6, "0"),
            (1, 2, 2, "0-2"),
            (1, 6, 6, "1"),
            (1, 2, 2, "0-2"),
        ],
    );
    // t2 and t4 fill a CPU each at a factor of 2, and all together 3 CPUs at 2.
    assert_eq!(factor("strong-edf", &uneven, Criterion::Soft), fits("2"));
    let one = set(1, &[(1, 3, 3, "0"), (1, 4, 4, "0")]);
    assert_eq!(factor("p-edf", &one, Criterion::Hard), fits("12/7"));
    assert_eq!(factor("p-edf", &set(1, &[]), Criterion::Hard), None);
    let tang = tang_5();
    assert_eq!(
        factor("strong-edf", &tang, Criterion::Soft),
        fits("1"),
        "two have a whole CPU"
    );
    let thirds = three_of_two_thirds();
    assert_eq!(
        factor("pd2", &thirds, Criterion::Hard),
        fits("1"),
        "costs are whole quanta"
    );
    let full = set(1, &[(4, 3, 3, "0")]);
    assert_eq!(
        factor("p-edf", &full, Criterion::Hard),
        fits("3/4"),
        "less than it has"
    );
}

#[test]
fn left_out_lists_what_no_test_takes_into_account() {
    use shiftwork_model::{Frequency, Phase, Share, Work};
    let mut set = set(1, &[(2, 10, 10, "0"), (2, 10, 10, "0"), (2, 10, 10, "0")]);
    let [run, sleep] = [Phase::Run(Span::from_ms(1)), Phase::Sleep(Span::from_ms(1))];
    set.tasks[0].work = Work::Phases(vec![run, sleep, run]);
    set.tasks[1].work = Work::Uniform(Span::from_ms(1), Span::from_ms(3));
    let expected = [
        "task `t1` suspends itself within a job",
        "jobs of task `t2` may run for 3ms, longer than its cost of 2ms",
        "CPUs that are not at full speed",
        "frequencies that follow the load",
    ];
    set.platform.capacities = vec![Share::from_billionths(500_000_000).unwrap()];
    set.platform.frequency = Frequency::GrubPa;
    assert_eq!(left_out(&set), expected);
}

/// A question about `p-edf`.
fn asked(set: &TaskSet, criterion: Criterion, only: Option<&[&str]>, tardiness: bool) -> Decision {
    let bound: Vec<Affinity> = set.tasks.iter().map(|task| task.affinity).collect();
    let question = Question {
        traits: registry::find("p-edf").unwrap().traits,
        bound: &bound,
        price: None,
        criterion,
        steps: STEPS,
        only,
        tardiness,
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
