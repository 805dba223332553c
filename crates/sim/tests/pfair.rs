//! The guarantees of PD2 and S-PD2, in whole runs of the machine: a set that fits the CPUs meets all deadlines if
//! quanta are aligned, and has a tardiness below one quantum if they are staggered.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use common::{AT, NS, id, options, simulate, task};
use shiftwork_model::{
    Action, Arrival, Change, CpuSet, Instant, Phase, RandomStream, Record, RecordKind, Span,
    TaskSet, Work,
};
use shiftwork_policy::registry;

/// Divisible by all numbers of CPUs up to eight.
const QUANTUM: u64 = 840;

fn systems() -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 10_000,
        None => 300,
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Arrivals {
    Synchronous,
    Asynchronous,
    /// With gaps, at boundaries.
    Sporadic,
    /// Anywhere within quanta.
    Unaligned,
}

const ARRIVALS: [Arrivals; 4] = [
    Arrivals::Synchronous,
    Arrivals::Asynchronous,
    Arrivals::Sporadic,
    Arrivals::Unaligned,
];

/// Weights whose sum is a little below the number of CPUs, or exactly it.
fn weights(random: &mut RandomStream, cpus: u64) -> Vec<(u64, u64)> {
    let period = 2 + random.below(15);
    let mut left = cpus * period;
    let kind = random.below(3);
    let mut weights = Vec::new();
    while left > 0 {
        let most = match kind {
            // Light, heavy, and either.
            0 => period.div_ceil(2),
            1 => period,
            _ if random.below(2) == 0 => period.div_ceil(3),
            _ => period,
        };
        let least = if kind == 1 { period.div_ceil(2) } else { 1 };
        let e = (least + random.below(most - least + 1)).min(left);
        left -= e;
        // The same weight in another period, or a part of it in the same.
        match random.below(6) {
            0 => weights.push((2 * e, 2 * period)),
            1 => weights.push((3 * e, 3 * period)),
            _ => weights.push((e, period)),
        }
    }
    if random.below(2) == 0 {
        weights.pop();
    }
    weights
}

fn system(seed: u64, arrivals: Arrivals) -> TaskSet {
    let mut random = RandomStream::new(seed, 92, 0);
    let cpus = 1 + random.below(8);
    let weights = weights(&mut random, cpus);
    let early = random.below(3) == 0;
    let step = if arrivals == Arrivals::Unaligned {
        1
    } else {
        QUANTUM
    };
    let tasks = weights.iter().enumerate().map(|(index, &(e, p))| {
        let period = p * QUANTUM;
        let mut task = task(cpus as usize, &format!("T{index}"), e * QUANTUM, period);
        if arrivals == Arrivals::Synchronous {
            return task;
        }
        let mut at = step * random.below(2 * period / step);
        task.offset = NS(at);
        if arrivals != Arrivals::Asynchronous {
            let mut next = || {
                let release = AT(at);
                at += period + step * random.below(period / step) * random.below(2);
                release
            };
            task.arrival = Arrival::Releases((0..1 + 120 / p).map(|_| next()).collect());
            task.offset = Span::ZERO;
        }
        task
    });
    let mut set = TaskSet::new("random", cpus as usize, tasks.collect());
    set.scheduler.quantum = Some(NS(QUANTUM));
    set.scheduler.early_release = early;
    set
}

/// Maximum tardiness of all jobs due by the horizon; zero if all met their deadlines.
fn tardiness(set: &TaskSet, policy: &str, horizon: u64) -> u64 {
    let (records, _) = simulate(set, policy, options(horizon));
    let mut due = vec![Vec::new(); set.tasks.len()];
    let mut latest = 0;
    for Record { at, kind } in &records {
        match kind {
            RecordKind::Released { job, deadline } => due[job.task.index()].push(Some(*deadline)),
            RecordKind::Completed { job } => {
                let deadline = due[job.task.index()][job.number as usize - 1].take();
                latest = latest.max(at.late_since(deadline.unwrap()).as_ns());
            }
            _ => {}
        }
    }
    let unfinished = due.iter().flatten().flatten();
    let late = |deadline: &Instant| AT(horizon).late_since(*deadline).as_ns();
    unfinished.map(late).max().unwrap_or(0).max(latest)
}

#[test]
fn feasible_sets_meet_deadlines_aligned_and_have_tardiness_below_a_quantum_staggered() {
    let horizon = 150 * QUANTUM;
    let (mut full, mut latest) = (0, 0);
    for seed in 0..systems() {
        let arrivals = ARRIVALS[(seed % 4) as usize];
        let set = system(seed, arrivals);
        let parts = set.platform.cpus as u64;
        let of_task = |task: &shiftwork_model::Task| {
            u128::from(task.cost.as_ns()) * 720_720 / u128::from(task.period.as_ns())
        };
        full +=
            usize::from(set.tasks.iter().map(of_task).sum::<u128>() == u128::from(parts) * 720_720);
        // A release within a quantum takes effect at its end.
        let unseen = match arrivals {
            Arrivals::Unaligned => QUANTUM - 1,
            _ => 0,
        };
        let aligned = tardiness(&set, "pd2", horizon);
        assert!(
            aligned <= unseen,
            "seed {seed}, {arrivals:?}: {aligned} late\n{set:#?}"
        );
        let staggered = tardiness(&set, "s-pd2", horizon);
        let most = unseen + QUANTUM - QUANTUM / parts;
        assert!(
            staggered <= most,
            "seed {seed}, {arrivals:?}: {staggered} late\n{set:#?}"
        );
        if arrivals != Arrivals::Unaligned {
            latest = latest.max(staggered);
        }
    }
    println!(
        "{full} of {} systems are full; {latest} of {QUANTUM} late at most",
        systems()
    );
    assert!(full as u64 > systems() / 4, "only {full} are full");
    assert!(
        latest >= QUANTUM / 2,
        "staggering causes no tardiness: {latest}"
    );
}

/// The running task on each CPU at an instant.
fn running(records: &[Record], cpus: usize, at: u64) -> Vec<Option<usize>> {
    let mut on = vec![None; cpus];
    for record in records.iter().filter(|record| record.at <= AT(at)) {
        if let RecordKind::Switched { cpu, to, .. } = record.kind {
            on[cpu.index()] = to.map(|job| job.task.index());
        }
    }
    on
}

/// Tasks in quanta of 12 ns.
fn twelve(cpus: usize, tasks: &[(u64, u64)]) -> TaskSet {
    let tasks: Vec<(u64, u64)> = tasks.iter().map(|&(c, t)| (c * 12, t * 12)).collect();
    let mut set = common::set(cpus, &tasks);
    set.scheduler.quantum = Some(NS(12));
    set
}

#[test]
fn three_tasks_of_weight_two_thirds_alternate() {
    let set = twelve(2, &[(2, 3); 3]);
    let (records, _) = simulate(&set, "pd2", options(72));
    let slots = (0..6).map(|slot| {
        let mut tasks = running(&records, 2, slot * 12 + 5);
        tasks.sort_unstable();
        tasks
    });
    let turns = [[0, 1], [0, 2], [1, 2]].map(|slot| slot.map(Some).to_vec());
    assert_eq!(slots.collect::<Vec<_>>(), [turns.clone(), turns].concat());
    // The second CPU begins half a quantum later.
    let (records, _) = simulate(&set, "s-pd2", options(72));
    let instants: Vec<u64> = records
        .iter()
        .filter_map(|record| match record.kind {
            RecordKind::Switched { cpu, .. } => {
                Some((record.at.as_ns() + 6 * cpu.index() as u64) % 12)
            }
            _ => None,
        })
        .collect();
    assert!(
        !instants.is_empty() && instants.iter().all(|&at| at == 0),
        "{instants:?}"
    );
}

#[test]
fn job_that_ends_within_its_quantum_leaves_the_rest_idle() {
    let mut set = twelve(1, &[(1, 2), (1, 2)]);
    set.tasks[0].work = Work::Constant(NS(5));
    let (records, _) = simulate(&set, "pd2", options(48));
    assert_eq!(running(&records, 1, 4), [Some(0)]);
    assert_eq!(running(&records, 1, 6), [None]);
    assert_eq!(running(&records, 1, 12), [Some(1)]);
}

#[test]
fn release_within_a_quantum_takes_effect_at_the_next() {
    let mut set = twelve(2, &[(1, 4)]);
    set.tasks[0].offset = NS(1);
    let (records, _) = simulate(&set, "pd2", options(48));
    assert_eq!(common::finishes(&records, 0), [24]);
}

#[test]
fn early_release_runs_subtasks_before_their_windows() {
    let mut set = twelve(1, &[(2, 8)]);
    let finish = |set: &TaskSet| common::finishes(&simulate(set, "pd2", options(96)).0, 0);
    assert_eq!(finish(&set), [60]);
    set.scheduler.early_release = true;
    assert_eq!(finish(&set), [24]);
}

#[test]
fn suspended_job_continues_with_later_windows() {
    let mut set = twelve(1, &[(2, 4)]);
    let [run, sleep] = [NS(12), NS(30)];
    set.tasks[0].work = Work::Phases(vec![Phase::Run(run), Phase::Sleep(sleep), Phase::Run(run)]);
    // The first quantum ends at 12, the sleep at 42; the window that would begin at 24 begins at 48.
    let (records, _) = simulate(&set, "pd2", options(62));
    assert_eq!(common::finishes(&records, 0), [60]);
}

#[test]
fn overrunning_job_continues_at_its_rate() {
    let mut set = twelve(1, &[(1, 3)]);
    set.tasks[0].work = Work::Trace(vec![NS(24), NS(12), NS(12)]);
    set.tasks[0].on_overrun = shiftwork_model::OnOverrun::Continue;
    let (records, _) = simulate(&set, "pd2", options(120));
    // The second window begins at 36, and with it the next job waits.
    assert_eq!(common::finishes(&records, 0)[..2], [48, 60]);
}

#[test]
fn each_cluster_has_its_own_quanta() {
    let mut set = twelve(4, &[(2, 3); 6]);
    set.platform.clusters = ["0-1", "2-3"]
        .map(|list| list.parse::<CpuSet>().unwrap())
        .to_vec();
    for (policy, most) in [("c-pd2", 0), ("cs-pd2", 6)] {
        let packing = registry::find(policy)
            .unwrap()
            .build(&set)
            .unwrap()
            .packing();
        assert_eq!(packing.unwrap().len(), 6);
        assert!(tardiness(&set, policy, 144) <= most, "{policy}");
    }
    let quanta = registry::find("cs-pd2")
        .unwrap()
        .build(&set)
        .unwrap()
        .quanta();
    assert_eq!(quanta.unwrap().phases, [0, 6, 0, 6].map(NS));
}

#[test]
fn changed_attributes_apply_to_later_jobs() {
    let mut set = twelve(1, &[(1, 4), (1, 2)]);
    set.actions.push(Action {
        at: AT(24),
        change: Change::SetAttributes {
            task: id(0),
            cost: Some(NS(24)),
            period: None,
            deadline: None,
        },
    });
    assert_eq!(tardiness(&set, "pd2", 480), 0);
    let (records, _) = simulate(&set, "pd2", options(480));
    assert_eq!(common::finishes(&records, 0).len(), 10);
}
