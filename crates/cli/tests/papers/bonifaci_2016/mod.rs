//! V. Bonifaci, B. Brandenburg, G. D'Angelo, A. Marchetti-Spaccamela, "Multiprocessor Real-Time
//! Scheduling with Hierarchical Processor Affinities", ECRTS 2016.
//!
//! Single decisions are tables in tests/scenarios (bonifaci_2016_*.toml). Here are statements about
//! whole runs.

use shiftwork_model::{Instant, RandomStream, Span, TaskSet};

use crate::common::{cases, run};
use crate::task;

const fn at_ms(ms: u64) -> Instant {
    Instant::from_ns(ms * 1_000_000)
}

/// Twenty-four CPUs as in the paper's evaluation: some tasks on one CPU, some on a group of six,
/// some on all.
fn three_levels(seed: u64) -> TaskSet {
    let random = &mut RandomStream::new(seed, 2016, 0);
    let tasks = (0..72)
        .map(|index| {
            let cpu = random.below(24);
            let group = cpu / 6 * 6;
            let cpus = match random.below(3) {
                0 => format!("{cpu}"),
                1 => format!("{group}-{}", group + 5),
                _ => "0-23".to_owned(),
            };
            let period = 5 + random.below(46);
            task(
                &format!("t{index}"),
                1 + random.below(period / 3),
                period,
                &cpus,
            )
        })
        .collect();
    TaskSet::new("three-levels", 24, tasks)
}

/// Def. II.1 and II.2: what a weak scheduler leaves waiting, a strong one may run; both run the same
/// jobs where every task may use every CPU.
#[test]
fn with_global_affinities_weak_and_strong_scheduling_are_the_same() {
    for seed in 1..=cases(5, 100) {
        let mut set = three_levels(seed);
        let all = set.platform.all();
        for task in &mut set.tasks {
            task.affinity = shiftwork_model::Affinity::new(all).unwrap();
        }
        let completed = |policy: &str| {
            let done = run(&set, policy, at_ms(200));
            let tasks = &done.summary.tasks;
            tasks
                .iter()
                .map(|task| (task.completed, task.misses, task.response))
                .collect::<Vec<_>>()
        };
        let expected = completed("g-edf");
        for policy in ["weak-edf", "strong-edf", "hpa-edf"] {
            assert_eq!(completed(policy), expected, "{policy}, seed {seed}");
        }
    }
}

/// Section III: the hierarchical algorithms keep the same invariant as those for arbitrary
/// affinities, so every job finishes at the same time under both.
#[test]
fn with_three_levels_the_hierarchical_algorithm_finishes_every_job_when_the_general_one_does() {
    for seed in 1..=cases(5, 100) {
        let set = three_levels(seed);
        for (special, general) in [("hpa-edf", "strong-edf"), ("hpa-fp", "strong-fp")] {
            let (special, general) = (
                run(&set, special, at_ms(200)),
                run(&set, general, at_ms(200)),
            );
            let responses = |done: &crate::common::Done| -> Vec<_> {
                done.summary
                    .tasks
                    .iter()
                    .map(|task| (task.completed, task.response))
                    .collect()
            };
            assert_eq!(responses(&special), responses(&general), "seed {seed}");
        }
    }
}

/// Section I: with affinities, weak scheduling leaves work undone that strong scheduling does.
#[test]
fn strong_scheduling_meets_deadlines_that_weak_scheduling_misses() {
    let mut set = TaskSet::new(
        "two-cpus",
        2,
        vec![task("anywhere", 8, 20, "0-1"), task("pinned", 5, 20, "0")],
    );
    set.tasks[0].deadline = Span::from_ms(10);
    set.tasks[1].deadline = Span::from_ms(12);
    let misses = |policy: &str| run(&set, policy, at_ms(200)).summary.deadline_misses;
    assert_eq!(misses("hpa-edf"), 0);
    assert_eq!(misses("weak-edf"), 10);
}
