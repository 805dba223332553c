//! What verdicts and admission make of it.

use shiftwork_analysis::admission::{Guarantee, Terms, admit};
use shiftwork_analysis::verdicts::{
    Answer, Candidate, Criterion, Found, PolicyAnalysis, Question, analyse, decide,
};
use shiftwork_model::{
    Action, Affinity, Change, CpuSet, Instant, Phase, Priority, Span, Task, TaskId, TaskSet, Work,
};
use shiftwork_policy::registry;

const STEPS: u64 = 100_000;

/// Suspends itself after its first unit of execution.
pub fn task([cost, suspension, period]: [u64; 3], priority: u32, cpus: CpuSet) -> Task {
    let affinity = Affinity::new(cpus).unwrap();
    let [cost, suspension, period] = [cost, suspension, period].map(Span::from_ns);
    let first = Span::from_ns(1);
    let phases = vec![
        Phase::Run(first),
        Phase::Sleep(suspension),
        Phase::Run(cost - first),
    ];
    Task {
        priority: Priority::new(priority),
        work: match suspension.is_zero() {
            true => Work::Cost,
            false => Work::Phases(phases),
        },
        ..Task::periodic(&format!("t{priority}"), cost, period, affinity)
    }
}

/// 47/40 of a CPU if suspensions counted as computing.
fn on_one_cpu(cpus: CpuSet) -> Vec<Task> {
    vec![
        task([2, 4, 10], 1, cpus),
        task([3, 6, 20], 2, cpus),
        task([5, 0, 40], 3, cpus),
    ]
}

fn analysis(set: &TaskSet, policy: &str) -> PolicyAnalysis {
    let entry = registry::find(policy).unwrap();
    let own = || set.tasks.iter().map(|task| task.affinity).collect();
    let built = entry.build(set).map_err(|refusal| refusal.to_string());
    let candidate = Candidate {
        policy: policy.to_owned(),
        traits: entry.traits,
        bound: built.map(|built| built.packing().unwrap_or_else(own)),
    };
    let bound = candidate.bound.clone().unwrap();
    let found = analyse(set, &[candidate], STEPS).policies.remove(0);
    for criterion in [Criterion::Hard, Criterion::Soft] {
        let question = Question {
            tardiness: true,
            ..Question::new(entry.traits, &bound, criterion, STEPS)
        };
        let decision = decide(set, &question);
        assert_eq!(
            decision.answer,
            found.judgement(criterion).answer,
            "{policy}"
        );
    }
    found
}

fn responses(found: &PolicyAnalysis) -> Vec<Option<u64>> {
    let best = found.best.iter();
    best.map(|best| best.map(|best| best.response.as_ns()))
        .collect()
}

#[test]
fn tasks_on_one_cpu_are_in_time_that_would_not_fit_if_they_computed_meanwhile() {
    let set = TaskSet::new("", 1, on_one_cpu(CpuSet::first(1)));
    for policy in ["p-fp", "g-fp", "weak-fp", "strong-fp", "hpa-fp"] {
        let found = analysis(&set, policy);
        let hard = &found.hard;
        assert_eq!(
            (hard.answer, &hard.by[..]),
            (Answer::Schedulable, &["fp-rta"][..]),
            "{policy}"
        );
        assert!(
            hard.tests.contains(&("fp-rta", Found::Pass)),
            "{policy}: {:?}",
            hard.tests
        );
        assert_eq!(found.soft.answer, Answer::Schedulable, "{policy}");
        assert_eq!(responses(&found), [Some(6), Some(13), Some(14)], "{policy}");
    }
    for policy in ["p-edf", "g-edf", "weak-edf", "strong-edf", "hpa-edf"] {
        let found = analysis(&set, policy);
        let hard = (found.hard.answer, &found.hard.by[..]);
        assert_eq!(hard, (Answer::Schedulable, &["qpa"][..]), "{policy}");
        assert_eq!(found.soft.answer, Answer::Schedulable, "{policy}");
        // The first, released 10 after a job of the second that is due with it: 6 + 9, and 2 of the job before, less 10.
        assert_eq!(responses(&found), [Some(7), Some(13), Some(15)], "{policy}");
    }
    for policy in ["np-g-edf", "np-g-fp", "g-fl"] {
        assert_eq!(
            analysis(&set, policy).hard.answer,
            Answer::Unknown,
            "{policy}"
        );
    }
}

#[test]
fn parts_of_one_cpu_and_of_several_are_shown_each_by_its_own_test() {
    let pair: CpuSet = CpuSet::first(3).iter().skip(1).collect();
    let mut tasks = on_one_cpu(CpuSet::first(1));
    tasks.push(task([2, 1, 10], 4, pair));
    tasks.push(task([2, 0, 10], 5, pair));
    let set = TaskSet::new("", 3, tasks.clone());
    let found = analysis(&set, "strong-fp");
    assert_eq!(found.hard.answer, Answer::Schedulable);
    assert!(
        found.hard.by.contains(&"fp-rta") && found.hard.by.len() == 2,
        "{:?}",
        found.hard.by
    );
    // Not greedy on two CPUs.
    assert_eq!(analysis(&set, "weak-fp").hard.answer, Answer::Unknown);
    // What does not fit on the pair is not shown, and the bounds of the other part stand.
    tasks[3] = task([8, 3, 10], 4, pair);
    let found = analysis(&TaskSet::new("", 3, tasks), "strong-fp");
    assert_eq!(found.hard.answer, Answer::Unschedulable);
}

#[test]
fn part_with_a_task_that_cannot_be_in_time_leaves_the_tests_of_other_parts() {
    let second: CpuSet = CpuSet::first(2).iter().skip(1).collect();
    let mut tasks = on_one_cpu(CpuSet::first(1));
    let mut late = task([3, 6, 20], 4, second);
    late.deadline = Span::from_ns(8);
    tasks.push(late);
    let found = analysis(&TaskSet::new("", 2, tasks), "p-edf");
    assert_eq!(found.hard.answer, Answer::Unschedulable);
    assert_eq!(found.soft.answer, Answer::Schedulable);
}

#[test]
fn what_is_shown_of_tasks_that_compute_meanwhile_is_not_lost() {
    // The last responds after its period, of which suspensions themselves show nothing.
    let one = CpuSet::first(1);
    let mut late = task([96, 0, 170], 2, one);
    late.deadline = Span::from_ns(400);
    let set = TaskSet::new("", 1, vec![task([78, 2, 200], 1, one), late]);
    let found = analysis(&set, "p-fp");
    assert_eq!(found.hard.answer, Answer::Schedulable);
    assert!(responses(&found)[1] > Some(170), "{found:?}");
    let tasks = set
        .tasks
        .iter()
        .zip([2, 0])
        .map(|(task, suspension)| super::Plain {
            cost: task.cost.as_ns(),
            suspension,
            period: task.period.as_ns(),
            deadline: task.deadline.as_ns(),
            priority: task.priority.unwrap().number(),
        });
    assert_eq!(super::shown(&tasks.collect::<Vec<_>>()), Err(1));
}

/// On two CPUs, 1.15 of each if suspensions counted as computing.
fn on_two_cpus() -> Vec<Task> {
    let [first, pair] = [CpuSet::first(1), CpuSet::first(2)];
    vec![
        task([2, 4, 10], 1, pair),
        task([2, 4, 10], 2, pair),
        task([3, 6, 20], 3, first),
        task([5, 10, 40], 4, pair),
        task([4, 6, 40], 5, pair),
    ]
}

#[test]
fn tasks_on_several_cpus_are_in_time_that_would_not_fit_if_they_computed_meanwhile() {
    let mut set = TaskSet::new("", 2, on_two_cpus());
    for policy in ["strong-fp", "hpa-fp", "strong-edf", "hpa-edf"] {
        let found = analysis(&set, policy);
        let hard = (found.hard.answer, &found.hard.by[..]);
        assert_eq!(
            hard,
            (Answer::Schedulable, &["waiting-levels"][..]),
            "{policy}"
        );
    }
    // C + S = 9, 15 and 10, and waits of 4 while the first two execute for 4 each; of 9, as three tasks execute for 6 each on two CPUs;
    // and of 11 while three execute for 6 and one for 5.
    assert_eq!(
        responses(&analysis(&set, "strong-fp")),
        [6, 6, 13, 24, 21].map(Some)
    );
    assert_eq!(analysis(&set, "weak-fp").hard.answer, Answer::Unknown);
    // All on both CPUs.
    set.tasks[2] = task([3, 6, 20], 3, CpuSet::first(2));
    for (policy, test) in [
        ("g-fp", "bc"),
        ("g-edf", "rta"),
        ("strong-fp", "bc"),
        ("c-edf", "rta"),
    ] {
        let found = analysis(&set, policy);
        let hard = (found.hard.answer, &found.hard.by[..]);
        assert_eq!(hard, (Answer::Schedulable, &[test][..]), "{policy}");
    }
    for policy in ["np-g-edf", "np-g-fp", "g-fl", "edzl"] {
        assert_eq!(
            analysis(&set, policy).hard.answer,
            Answer::Unknown,
            "{policy}"
        );
    }
    // Whole units of time are not those of a task that is suspended for parts of them.
    set.platform.tick_unit = Span::from_ns(2);
    assert_eq!(analysis(&set, "g-fp").hard.answer, Answer::Unknown);
}

#[test]
fn admission_on_several_cpus_counts_suspensions() {
    let set = TaskSet::new("", 2, on_two_cpus());
    let traits = registry::find("strong-edf").unwrap().traits;
    let bound: Vec<Affinity> = set.tasks.iter().map(|task| task.affinity).collect();
    let decision = admit(&set, &bound, Terms::of(&traits, &set).unwrap());
    assert_eq!(decision.guarantee, Guarantee::Hard, "{decision}");
    let expected = "all deadlines are met by waiting-levels, which counts suspensions within jobs";
    assert_eq!(decision.reason, expected);
}

#[test]
fn ticks_round_executions_and_suspensions_up() {
    let mut set = TaskSet::new("", 1, on_one_cpu(CpuSet::first(1)));
    set.platform.tick_unit = Span::from_ns(2);
    // As C = 1, 2, 3, S = 2, 3, 0 and T = 5, 10, 20 ticks: 3 and 7 ticks, and 3 + 3 * 1 + 2 * 2.
    assert_eq!(
        responses(&analysis(&set, "p-fp")),
        [Some(6), Some(14), Some(20)]
    );
}

#[test]
fn jitter_of_tasks_that_suspend_themselves_is_counted() {
    let mut set = TaskSet::new("", 1, on_one_cpu(CpuSet::first(1)));
    set.tasks[2].jitter = Span::from_ns(20);
    let found = analysis(&set, "p-fp");
    assert_eq!(found.hard.answer, Answer::Schedulable);
    assert_eq!(responses(&found), [Some(6), Some(13), Some(34)]);
    set.tasks[2].jitter = Span::from_ns(27);
    assert_eq!(analysis(&set, "p-fp").hard.answer, Answer::Unknown);
}

#[test]
fn admission_under_edf_counts_suspensions() {
    let set = TaskSet::new("", 1, on_one_cpu(CpuSet::first(1)));
    let traits = registry::find("p-edf").unwrap().traits;
    let bound: Vec<Affinity> = set.tasks.iter().map(|task| task.affinity).collect();
    let decision = admit(&set, &bound, Terms::of(&traits, &set).unwrap());
    assert_eq!(decision.guarantee, Guarantee::Hard, "{decision}");
    let expected = "all deadlines are met by qpa, which counts suspensions within jobs";
    assert_eq!(decision.reason, expected);
}

#[test]
fn admission_counts_suspensions_where_nothing_changes() {
    let mut set = TaskSet::new("", 1, on_one_cpu(CpuSet::first(1)));
    let entry = registry::find("p-fp").unwrap();
    let bound: Vec<Affinity> = set.tasks.iter().map(|task| task.affinity).collect();
    let decide = |set: &TaskSet| admit(set, &bound, Terms::of(&entry.traits, set).unwrap());
    let decision = decide(&set);
    assert_eq!(decision.guarantee, Guarantee::Hard, "{decision}");
    let expected = "all deadlines are met by fp-rta, which counts suspensions within jobs";
    assert_eq!(decision.reason, expected);
    set.actions.push(Action {
        at: Instant::from_ns(100),
        change: Change::SetAttributes {
            task: TaskId::from_index(2),
            cost: None,
            period: Some(Span::from_ns(50)),
            deadline: None,
        },
    });
    assert_eq!(decide(&set).guarantee, Guarantee::None);
}
