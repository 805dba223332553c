//! What is said of the set as written, against all execution times of all jobs, and what the proof needs.

mod oracle;

use shiftwork_analysis::verdicts::{Answer, Criterion};
use shiftwork_model::{
    Action, Affinities, Affinity, Arrival, Budgets, Change, CpuId, CpuSet, Instant, Invariant,
    Order, Phase, PolicyTraits, Preemption, Priority, Protocol, RandomStream, Resource, ResourceId,
    Share, Span, Task, TaskId, TaskSet, Work,
};
use shiftwork_policy::registry::{Entry, find};
use shiftwork_trace::Counters;

use super::simulate;
use crate::analyze::found::{Findings, Question, Releases, Tardiness};
use crate::analyze::simulated::{CheckedRun, with_full_costs};
use crate::catalogue;
use oracle::{Oracle, UNIT};

fn seeds(few: u64) -> std::ops::Range<u64> {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 0..20 * few,
        None => 0..few,
    }
}

fn units(count: u64) -> Span {
    Span::from_ns(count * UNIT)
}

fn first(cpus: usize) -> CpuSet {
    CpuSet::first(cpus)
}

/// Few tasks on few CPUs in small numbers, at about the limit of what fits, with affinities that the policy takes.
fn random_set(entry: &Entry, seed: u64) -> TaskSet {
    let mut random = RandomStream::new(seed, 62, 0);
    let cpus = 1 + random.below(3) as usize;
    let all = first(cpus);
    let single = |index| CpuSet::single(CpuId::from_index(index));
    let clusters = match cpus {
        3 => vec![first(2), single(2)],
        _ => vec![all],
    };
    let pick = |random: &mut RandomStream| match (entry.traits.affinities, entry.traits.invariant) {
        (Affinities::Global, _) => entry.traits.serving(all),
        (Affinities::Clusters, _) => clusters[random.below(clusters.len() as u64) as usize],
        (_, Invariant::Packed) => single(random.below(cpus as u64) as usize),
        (Affinities::Laminar, _) => match random.below(3) {
            0 => all,
            1 => clusters[0],
            _ => single(random.below(cpus as u64) as usize),
        },
        _ => CpuSet::from_bits(1 + random.below((1 << cpus) - 1)),
    };
    let count = cpus as u64 + 1 + random.below(2);
    let task = |index| {
        let period = [2, 3, 4, 6][random.below(4) as usize];
        let cost = 1 + random.below(period.min(3));
        let deadline = cost + random.below(period - cost + 1);
        let cpus = pick(&mut random);
        let affinity = Affinity::new(cpus).unwrap_or(Affinity::pinned(CpuId::from_index(0)));
        let mut task = Task::periodic(&format!("T{index}"), units(cost), units(period), affinity);
        task.deadline = units(deadline);
        task.offset = units(random.below(5));
        task.priority =
            Priority::new(1 + random.below(3) as u32).filter(|_| seed.is_multiple_of(2));
        task
    };
    let mut set = TaskSet::new("test", cpus, (0..count).map(task).collect());
    if entry.traits.affinities == Affinities::Clusters {
        set.platform.clusters = clusters;
    }
    set
}

fn covered() -> impl Iterator<Item = &'static Entry> {
    catalogue::policies().filter(|entry| entry.traits.is_greedy())
}

#[test]
fn covered_policies_are_preemptive_with_fixed_ranks_and_the_strong_invariant() {
    let names: Vec<&str> = covered().map(|entry| entry.name).collect();
    for name in [
        "p-edf",
        "p-fp",
        "c-edf",
        "c-fp",
        "g-edf",
        "g-fp",
        "g-fl",
        "strong-edf",
        "strong-fp",
        "hpa-edf",
        "hpa-fp",
    ] {
        assert!(names.contains(&name), "{name} is not covered");
    }
    for name in [
        "weak-edf", "weak-fp", "np-g-edf", "np-g-fp", "edzl", "llf", "dl-linux", "dl-sp", "pd2",
        "c-pd2", "CQm", "CQ1",
    ] {
        assert!(!names.contains(&name), "{name} is covered");
    }
    let strong = find("strong-edf").unwrap().traits;
    for otherwise in [
        PolicyTraits {
            order: Order::LeastLaxity,
            ..strong
        },
        PolicyTraits {
            invariant: Invariant::Weak,
            ..strong
        },
        PolicyTraits {
            preemption: Preemption::Never,
            ..strong
        },
        PolicyTraits {
            budgets: Budgets::AsLinuxRepaired,
            ..strong
        },
    ] {
        assert!(!otherwise.is_greedy(), "{otherwise:?}");
    }
}

/// Three tasks that need two thirds of a CPU each, on two CPUs. Released together they miss deadlines; a unit apart they
/// do not.
fn two_thirds() -> TaskSet {
    let all = Affinity::new(first(2)).unwrap();
    let task = |index| Task {
        offset: units(index),
        ..Task::periodic(&format!("T{index}"), units(2), units(3), all)
    };
    TaskSet::new("test", 2, (0..3).map(task).collect())
}

/// What is found of a set under one policy.
fn found(set: &TaskSet, policy: &str, releases: Releases) -> Findings {
    let question = Question {
        policies: vec![policy.to_owned()],
        criterion: Criterion::Hard,
        releases,
        max_steps: 100_000,
        scale: false,
        assign: false,
        remedies: false,
    };
    Findings::of(&question, set, None, &mut |_| ()).unwrap()
}

#[test]
fn answer_follows_the_releases_that_are_asked_about() {
    let set = two_thirds();
    let sporadic = found(&set, "strong-edf", Releases::Sporadic);
    let as_written = found(&set, "strong-edf", Releases::AsWritten);
    assert_eq!(sporadic.known(), Answer::Unschedulable);
    assert_eq!(as_written.known(), Answer::Schedulable);
    assert_eq!(sporadic.as_written, as_written.as_written);
    let known = &as_written.as_written[0];
    assert_eq!(known.until, Some(Instant::ZERO + units(5)));
    assert_eq!((&known.by[..], &known.reason), (&["simulation"][..], &None));
    let [policy] = &as_written.analysis.policies[..] else {
        panic!("one policy is asked about");
    };
    assert_eq!(
        as_written.tardiness(&set, policy),
        Tardiness::Bounded(Some((0, Span::ZERO)))
    );
    assert!(matches!(
        sporadic.tardiness(&set, policy),
        Tardiness::Bounded(Some((_, late))) if !late.is_zero()
    ));
}

/// A copy of the set that says more than periodic tasks with costs.
type Variant = (&'static str, fn(&mut TaskSet));

#[test]
fn what_the_simulation_does_not_cover_is_unknown_and_named() {
    let variants: [Variant; 9] = [
        ("task `T1` has jitter", |set| set.tasks[1].jitter = units(1)),
        ("task `T1` is not periodic", |set| {
            set.tasks[1].arrival = Arrival::Sporadic
        }),
        ("task `T1` is not periodic", |set| {
            set.tasks[1].arrival = Arrival::Releases(vec![Instant::ZERO]);
        }),
        ("the program of task `T2`", |set| {
            set.tasks[2].command = vec!["true".into()]
        }),
        ("timed changes", |set| {
            set.actions.push(Action {
                at: Instant::ZERO,
                change: Change::Enter(TaskId::from_index(0)),
            });
        }),
        ("task `T0` suspends itself", |set| {
            set.tasks[0].work = Work::Phases(vec![
                Phase::Run(units(1)),
                Phase::Sleep(units(1)),
                Phase::Run(units(1)),
            ]);
        }),
        ("jobs of task `T0` may run for", |set| {
            set.tasks[0].work = Work::Constant(units(3))
        }),
        ("`reserve-server`", |set| {
            set.scheduler.reserve_server = true
        }),
        ("CPUs that are not at full speed", |set| {
            set.platform.capacities = vec![Share::from_billionths(500_000_000).unwrap(); 2];
        }),
    ];
    for (reason, vary) in variants {
        let mut set = two_thirds();
        vary(&mut set);
        let found = found(&set, "strong-edf", Releases::AsWritten);
        let known = &found.as_written[0];
        assert_eq!(known.answer, Answer::Unknown, "{reason}");
        assert!(known.reason.as_ref().unwrap().contains(reason), "{known:?}");
        assert_eq!(found.known(), Answer::Unknown, "{reason}");
    }
    // Less work than the cost is covered.
    let mut set = two_thirds();
    set.tasks[0].work = Work::Uniform(units(1), units(2));
    let found = found(&set, "strong-edf", Releases::AsWritten);
    assert_eq!(found.known(), Answer::Schedulable);
}

#[test]
fn a_hyperperiod_of_too_many_jobs_leaves_it_open_unless_a_deadline_is_missed() {
    let cpu = Affinity::pinned(CpuId::from_index(0));
    let entry = find("p-edf").unwrap();
    for (cost, expected) in [(1, Answer::Unknown), (400, Answer::Unschedulable)] {
        let task = |period| Task::periodic(&format!("T{period}"), units(cost), units(period), cpu);
        // Primes: 997 x 1009 x 1013 units.
        let set = TaskSet::new("test", 1, [997, 1009, 1013].map(task).to_vec());
        let known = simulate(&with_full_costs(&set), entry);
        assert_eq!(known.answer, expected);
        if expected == Answer::Unknown {
            let reason = known.reason.unwrap();
            assert!(reason.contains("200000 jobs"), "{reason}");
        }
    }
}

/// On several CPUs tasks that are released together may meet all deadlines, and miss some with other offsets. That
/// refutes sporadic tasks, too.
#[test]
fn a_deadline_that_is_missed_with_offsets_refutes_sporadic_tasks() {
    let entry = find("g-edf").unwrap();
    let mut seen = 0;
    for seed in 0..2_000 {
        let set = random_set(entry, seed);
        let mut together = set.clone();
        for task in &mut together.tasks {
            task.offset = Span::ZERO;
        }
        let [met, missed] =
            [&together, &set].map(|set| simulate(&with_full_costs(set), entry).answer);
        if (met, missed) != (Answer::Schedulable, Answer::Unschedulable) {
            continue;
        }
        seen += 1;
        let found = found(&set, "g-edf", Releases::Sporadic);
        let [policy] = &found.analysis.policies[..] else {
            panic!("one policy is asked about");
        };
        assert_eq!(policy.hard.answer, Answer::Unschedulable, "seed {seed}");
        assert_eq!(policy.hard.by, ["simulation"], "seed {seed}");
        let example = found.example(policy).unwrap();
        assert!(
            example.starts_with("released as the file says, task `T"),
            "{example}"
        );
    }
    assert!(seen > 0, "no set depends on its offsets");
}

/// Without a deadline beyond its period no answer contradicts that for sporadic tasks.
#[test]
fn sporadic_answers_hold_as_written() {
    for entry in catalogue::policies() {
        for seed in 0..60 {
            let set = random_set(entry, seed);
            let found = found(&set, entry.name, Releases::AsWritten);
            let (policy, known) = (&found.analysis.policies[0], &found.as_written[0]);
            let context = || format!("{}, seed {seed}: {known:?} of {set:?}", entry.name);
            match policy.hard.answer {
                Answer::Schedulable => {
                    assert_eq!(known.answer, Answer::Schedulable, "{}", context())
                }
                Answer::Unknown => assert_ne!(known.answer, Answer::Unschedulable, "{}", context()),
                Answer::Unschedulable => {}
            }
            if policy.soft.answer == Answer::Unschedulable {
                assert_ne!(known.answer, Answer::Schedulable, "{}", context());
                let simulated = simulate(&with_full_costs(&set), entry);
                assert_ne!(simulated.answer, Answer::Schedulable, "{}", context());
            }
        }
    }
}

/// A yes holds for every execution time of every job, for ever; a no for whole costs; and one of the two is found.
#[test]
fn answer_is_that_of_all_execution_times_of_all_jobs() {
    for entry in covered() {
        let (mut met, mut missed, mut taken) = (0, 0, 0);
        for seed in seeds(1_000) {
            let set = random_set(entry, seed);
            let Ok(policy) = entry.build(&set) else {
                continue;
            };
            taken += 1;
            let oracle = Oracle::new(&set, entry.traits.order, policy.packing());
            let found = simulate(&with_full_costs(&set), entry);
            let name = entry.name;
            let expected = oracle.any_miss();
            match found.answer {
                Answer::Schedulable => {
                    assert_eq!(expected, None, "{name}, seed {seed}: {set:?}");
                    met += 1;
                }
                Answer::Unschedulable => {
                    let shown = oracle.miss_with_full_costs();
                    assert!(shown.is_some(), "{name}, seed {seed}: {found:?} of {set:?}");
                    missed += 1;
                }
                Answer::Unknown => panic!("{name}, seed {seed}: {found:?} of {set:?}"),
            }
        }
        let name = entry.name;
        assert!(
            taken >= 100 && 20 * met >= taken && 20 * missed >= taken,
            "{name}: {met} met, {missed} missed of {taken}"
        );
    }
}

/// With a deadline beyond the period, a job may become ready after its release, when the job before it completes; of
/// two jobs with equal deadlines that decides. Here `b`, and the second job of `a`, are due at 9. If the first job of
/// `a` takes all its time until 5, `b` comes first, otherwise `a`, and `b` is one unit late.
#[test]
fn deadlines_beyond_periods_are_not_covered_since_shorter_jobs_may_make_others_late() {
    let all = Affinity::new(first(2)).unwrap();
    let tasks = [
        ("b", 5, 4, 12, 4),
        ("a", 0, 3, 4, 5),
        ("e", 5, 1, 12, 1),
        ("f", 0, 2, 12, 2),
        ("g", 0, 2, 12, 2),
    ];
    let task = |(name, offset, cost, period, deadline)| Task {
        offset: units(offset),
        deadline: units(deadline),
        ..Task::periodic(name, units(cost), units(period), all)
    };
    let set = TaskSet::new("test", 2, tasks.map(task).to_vec());
    for name in ["g-edf", "strong-edf", "hpa-edf"] {
        let entry = find(name).unwrap();
        let oracle = Oracle::new(&set, entry.traits.order, None);
        assert_eq!(
            (oracle.miss_with_full_costs(), oracle.any_miss()),
            (None, Some(9))
        );
        let found = simulate(&with_full_costs(&set), entry);
        assert_eq!(found.answer, Answer::Unknown, "{name}");
        assert!(
            found
                .reason
                .unwrap()
                .contains("the deadline of task `a` is beyond its period")
        );
    }
}

/// How many deadlines are missed in a simulation in which each job executes for what its task's list says.
fn misses(set: &TaskSet, entry: &Entry) -> u64 {
    let horizon = Instant::ZERO + units(4 + 4 * 12);
    let mut counters = Counters::new(set, set.platform.cpus);
    let run = CheckedRun {
        of: set,
        set,
        entry,
        policy: entry.build(set).unwrap(),
        horizon,
    };
    let (_, violations) = run.run(&mut counters, |_| true);
    assert_eq!(violations, []);
    counters.finish(horizon).deadline_misses
}

/// Where running jobs are not moved, which CPU a job has depends on the jobs that ran before, and a job that completes
/// earlier may lead another to the CPU that a third one needs.
#[test]
fn weak_placement_is_not_covered_since_shorter_jobs_may_make_others_late() {
    for name in ["weak-edf", "weak-fp"] {
        let entry = find(name).unwrap();
        let (mut met, mut anomalous) = (0, Vec::new());
        for seed in 0..1_000 {
            let set = random_set(entry, seed);
            let found = simulate(&with_full_costs(&set), entry);
            assert_ne!(
                found.answer,
                Answer::Schedulable,
                "{name}, seed {seed}: {set:?}"
            );
            if found.answer == Answer::Unschedulable {
                continue;
            }
            assert_eq!(misses(&set, entry), 0, "{name}, seed {seed}: {set:?}");
            met += 1;
            let mut random = RandomStream::new(seed, 63, 0);
            for _ in 0..20 {
                let mut shorter = set.clone();
                for task in &mut shorter.tasks {
                    let cost = task.cost.as_ns() / UNIT;
                    let mut draw = |_| units(1 + random.below(cost));
                    task.work = Work::Trace((0..12).map(&mut draw).collect());
                }
                if misses(&shorter, entry) > 0 {
                    anomalous.push(seed);
                    break;
                }
            }
        }
        assert!(
            met > 100 && !anomalous.is_empty(),
            "{name}: {anomalous:?} of {met}"
        );
    }
}

/// A mutex without a protocol: released together `urgent` is first, and meets its deadline; 1 ns later `lowest` holds the
/// mutex, and `middle` keeps it from going on.
#[test]
fn an_inversion_at_the_offsets_of_the_file_refutes() {
    let cpu = Affinity::pinned(CpuId::from_index(0));
    let ns = Span::from_ns;
    let mutex = ResourceId::from_index(0);
    let locks = |run| {
        let section = [
            Phase::Lock(mutex),
            Phase::Run(ns(run)),
            Phase::Unlock(mutex),
        ];
        Work::Phases(section.to_vec())
    };
    let task = |(name, cost, period, offset, priority, work)| Task {
        offset: ns(offset),
        priority: Priority::new(priority),
        work,
        ..Task::periodic(name, ns(cost), ns(period), cpu)
    };
    let set = |offset| {
        let tasks = [
            ("urgent", 1, 10, offset, 1, locks(1)),
            ("middle", 12, 60, offset, 2, Work::Cost),
            ("lowest", 2, 60, 0, 3, locks(2)),
        ];
        let mut set = TaskSet::new("test", 1, tasks.map(task).to_vec());
        set.resources = vec![Resource {
            name: "R".to_owned(),
            protocol: Protocol::None,
        }];
        set
    };
    let hard = |offset| {
        found(&set(offset), "p-fp", Releases::Sporadic)
            .analysis
            .policies[0]
            .hard
            .clone()
    };
    assert_eq!(hard(0).answer, Answer::Unknown);
    assert_eq!(
        (hard(1).answer, hard(1).by),
        (Answer::Unschedulable, vec!["simulation"])
    );
}
