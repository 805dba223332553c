//! What admission promises, the simulator keeps; and what it refuses as late, is late there.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;

use shiftwork_analysis::Witness;
use shiftwork_analysis::admission::{Decision, Guarantee, Terms, Verdict, admit};
use shiftwork_model::{
    Affinity, Arrival, CpuSet, Instant, JobId, RandomStream, Record, RecordKind, Share, Span, Task,
    TaskId, TaskSet,
};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};

const POLICIES: [&str; 12] = [
    "p-edf",
    "c-edf",
    "g-edf",
    "weak-edf",
    "strong-edf",
    "hpa-edf",
    "p-fp",
    "c-fp",
    "g-fp",
    "weak-fp",
    "strong-fp",
    "hpa-fp",
];

fn hyperperiod(set: &TaskSet) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let periods = set.tasks.iter().map(|task| task.period.as_ns());
    periods.fold(1, |all, period| all / gcd(all, period) * period)
}

/// How late the jobs of each task were at worst, by the half of the horizon in which they were due.
/// Those that are not finished count as finishing at the horizon.
fn tardiness(set: &TaskSet, policy: &str, horizon: u64) -> BTreeMap<TaskId, [u64; 2]> {
    let entry = registry::find(policy).unwrap();
    let options = Options {
        seed: 7,
        horizon: Instant::from_ns(horizon),
        overheads: None,
        reserve_server: false,
    };
    let mut records: Vec<Record> = Vec::new();
    Simulation::new(set, entry.build(set).unwrap(), &entry.traits, options).run(&mut records);
    let mut due: BTreeMap<JobId, u64> = BTreeMap::new();
    let mut late: BTreeMap<TaskId, [u64; 2]> = set.iter().map(|(id, _)| (id, [0; 2])).collect();
    let mut note = |job: JobId, deadline: u64, finish: u64| {
        let half = usize::from(deadline >= horizon / 2);
        let worst = &mut late.get_mut(&job.task).unwrap()[half];
        *worst = (*worst).max(finish.saturating_sub(deadline));
    };
    for record in &records {
        match record.kind {
            RecordKind::Released { job, deadline } => {
                due.insert(job, deadline.as_ns());
            }
            RecordKind::Completed { job } => {
                note(job, due.remove(&job).unwrap(), record.at.as_ns());
            }
            _ => {}
        }
    }
    due.into_iter()
        .for_each(|(job, deadline)| note(job, deadline, horizon));
    late
}

fn random_set(seed: u64, shortest_deadline_percent: u64) -> TaskSet {
    let mut stream = RandomStream::new(seed, 33, 1);
    let cpus = 1 + stream.below(3) as usize;
    let load = 40 + stream.below(60);
    let tasks = (0..1 + stream.below(6)).map(|index| {
        let period = [2, 3, 4, 5, 6, 8, 10, 12][stream.below(8) as usize];
        let cost = 1 + stream.below((period * load / 100).max(1));
        let bits = match stream.below(3) {
            0 => (1 << cpus) - 1,
            1 => 1 << stream.below(cpus as u64),
            _ => 1 + stream.below((1 << cpus) - 1),
        };
        let affinity = Affinity::new(CpuSet::from_bits(bits)).unwrap();
        let ns = Span::from_ns;
        let mut task = Task::periodic(&format!("T{index}"), ns(cost), ns(period), affinity);
        let percent = shortest_deadline_percent + stream.below(101 - shortest_deadline_percent);
        task.deadline = ns((period * percent / 100).max(cost));
        task
    });
    let mut set = TaskSet::new("random", cpus, tasks.collect());
    if cpus == 3 {
        set.platform.clusters = vec![CpuSet::from_bits(0b001), CpuSet::from_bits(0b110)];
    }
    set
}

/// The decision on a set under a policy, `None` if the policy does not take it.
fn decision(set: &TaskSet, policy: &str, reserve: Share) -> Option<Decision> {
    let built = registry::find(policy).unwrap().build(set).ok()?;
    let bound = built.packing().unwrap_or_default();
    Some(admit(
        set,
        &bound,
        Terms::new(&registry::find(policy).unwrap().traits, reserve).unwrap(),
    ))
}

fn nothing() -> Share {
    Share::from_billionths(0).unwrap()
}

#[test]
fn a_task_with_a_hard_promise_is_never_late() {
    for policy in POLICIES {
        let mut promised = 0;
        for seed in 0..700 {
            let mut set = random_set(seed, 60);
            let Some(decision) = decision(&set, policy, nothing()) else {
                continue;
            };
            let hard: Vec<TaskId> = decision
                .tasks
                .iter()
                .filter(|&&(_, guarantee)| guarantee == Guarantee::Hard)
                .map(|&(task, _)| task)
                .collect();
            promised += hard.len();
            if hard.is_empty() {
                continue;
            }
            let horizon = 3 * hyperperiod(&set) + 50;
            for round in 0..3 {
                let mut stream = RandomStream::new(seed, 33, 2 + round);
                for task in set.tasks.iter_mut().filter(|_| round > 0) {
                    task.offset = Span::from_ns(stream.below(task.period.as_ns()));
                    if round == 2 {
                        task.arrival = Arrival::Sporadic;
                    }
                }
                let late = tardiness(&set, policy, horizon);
                for task in &hard {
                    assert_eq!(
                        late[task], [0; 2],
                        "{policy}, seed {seed}, round {round}: {task:?} of {set:?}"
                    );
                }
            }
        }
        assert!(promised > 100, "{policy}: {promised}");
    }
}

#[test]
fn bounded_tardiness_does_not_grow() {
    for policy in ["c-edf", "g-edf", "weak-edf", "strong-edf", "hpa-edf"] {
        let (mut promised, mut late) = (0, 0);
        for seed in 0..2_000 {
            let set = random_set(seed, 80);
            let Some(decision) = decision(&set, policy, nothing()) else {
                continue;
            };
            let worst = tardiness(&set, policy, 24 * hyperperiod(&set));
            for &(task, guarantee) in &decision.tasks {
                if guarantee == Guarantee::BoundedTardiness {
                    promised += 1;
                    let [before, after] = worst[&task];
                    late += usize::from(before > 0);
                    assert!(
                        after <= before,
                        "{policy}, seed {seed}: {task:?} {before} {after} of {set:?}"
                    );
                }
            }
        }
        assert!(promised > 50 && late > 10, "{policy}: {promised} {late}");
    }
}

#[test]
fn what_partitioned_scheduling_refuses_as_late_is_late() {
    for policy in ["p-edf", "p-fp"] {
        let mut refused = 0;
        for seed in 0..700 {
            let set = random_set(seed, 50);
            let decision = decision(&set, policy, nothing()).unwrap();
            let late = matches!(
                decision.witness,
                Some(Witness::Interval { .. } | Witness::Late { .. })
            );
            if decision.verdict() == Verdict::Refused && late {
                refused += 1;
                let worst = tardiness(&set, policy, 3 * hyperperiod(&set) + 50);
                assert!(
                    worst.values().any(|&[before, after]| before + after > 0),
                    "{policy}, seed {seed}: {} but no task is late: {set:?}",
                    decision.reason
                );
            }
        }
        assert!(refused > 50, "{policy}: {refused}");
    }
}

#[test]
fn what_does_not_fit_falls_behind_for_ever() {
    let mut refused = 0;
    for seed in 0..500 {
        let set = random_set(seed, 100);
        let decision = decision(&set, "strong-edf", nothing()).unwrap();
        if matches!(decision.witness, Some(Witness::Crowd { .. })) {
            refused += 1;
            let worst = |hyperperiods| {
                let late = tardiness(&set, "strong-edf", hyperperiods * hyperperiod(&set));
                late.into_values().flatten().max().unwrap()
            };
            assert!(
                worst(60) > worst(30) && worst(30) > 0,
                "seed {seed}: {} but no task falls behind: {set:?}",
                decision.reason
            );
        }
    }
    assert!(refused > 50, "{refused}");
}
