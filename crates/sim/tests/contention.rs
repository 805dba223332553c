//! The costs of an implementation's structure, computed by hand.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use std::collections::BTreeMap;

use common::{AT, NS, finishes, id, options, set, simulate};
use shiftwork_model::{
    Instant, JobId, LinearCost, Overheads, RandomStream, Record, RecordKind, Span, TaskSet,
};
use shiftwork_policy::registry;

const VARIANTS: [&str; 9] = [
    "CEm", "CQm", "S-CQm", "HEm", "FEm", "CE1", "CQ1", "S-CQ1", "FE1",
];

fn cost(base: u64) -> LinearCost {
    LinearCost {
        base: NS(base),
        per_task: NS(0),
    }
}

/// The costs of a release, an enqueue and a dequeue.
fn queue(release: u64, enqueue: u64, dequeue: u64) -> Overheads {
    Overheads {
        release: cost(release),
        enqueue: cost(enqueue),
        dequeue: cost(dequeue),
        ..Overheads::default()
    }
}

/// Completions of the first jobs of all tasks.
fn first(set: &TaskSet, policy: &str, overheads: &Overheads) -> Vec<u64> {
    let mut options = options(100);
    options.overheads = Some(overheads.clone());
    let (records, _) = simulate(set, policy, options);
    let finish = |task| finishes(&records, task)[0];
    (0..set.tasks.len()).map(finish).collect()
}

#[test]
fn operations_under_one_lock_are_sequential() {
    let two = set(2, &[(10, 100), (10, 100)]);
    // CPU 0 is interrupted until 1 and enqueues both jobs until 3; CPU 0 takes one until 6, CPU 1 until 9.
    assert_eq!(first(&two, "CEm", &queue(1, 2, 3)), [16, 19]);
    let all = Overheads {
        schedule: cost(4),
        switch: cost(1),
        ipi: cost(5),
        ..queue(1, 2, 3)
    };
    // CPU 0: schedules until 7, dequeues until 10, switches until 11. CPU 1 is notified at 8: 12, 15, 16.
    assert_eq!(first(&two, "CEm", &all), [21, 26]);
}

#[test]
fn earlier_cpu_gets_the_lock_first() {
    // Notified at 3, CPU 0 dequeues until 6; CPU 1 is notified at 5 and waits for it.
    let late = Overheads {
        ipi: cost(2),
        ..queue(1, 2, 3)
    };
    let two = set(2, &[(10, 100), (10, 100)]);
    assert_eq!(first(&two, "CEm", &late), [16, 19]);
    let later = Overheads {
        ipi: cost(4),
        ..queue(1, 2, 3)
    };
    assert_eq!(first(&two, "CEm", &later), [16, 20]);
}

#[test]
fn fine_grained_queue_inserts_one_by_one_and_pipelines_operations() {
    let two = set(2, &[(10, 100), (10, 100)]);
    // Two levels. CPU 0 inserts until 5 and until 9, and takes until 15; CPU 1 may pass the root at 12.
    assert_eq!(first(&two, "FEm", &queue(1, 4, 6)), [25, 28]);
    assert_eq!(first(&two, "CEm", &queue(1, 4, 6)), [21, 27]);
    // Until 3 and until 5; until 8, and from 7 to 10.
    assert_eq!(first(&two, "FEm", &queue(1, 2, 3)), [18, 20]);
    // With one task there is one level.
    assert_eq!(first(&set(2, &[(10, 100)]), "FEm", &queue(1, 4, 6)), [21]);
}

#[test]
fn only_the_dedicated_cpu_is_interrupted() {
    let mut three = set(3, &[(10, 100), (10, 100), (9, 100)]);
    three.tasks[2].offset = NS(12);
    let ipi = Overheads {
        ipi: cost(5),
        ..queue(1, 2, 3)
    };
    // Enqueued on CPU 0 until 3, known to CPUs 1 and 2 at 8, which take until 11 and 14. The third is
    // enqueued until 15 while both run; CPU 1 takes it at 21.
    assert_eq!(first(&three, "CE1", &ipi), [21, 24, 33]);
    // Of three CPUs that are interrupted, CPU 0 handles the third job until 15: it delays the first.
    let mut one = set(1, &[(10, 100), (9, 100)]);
    one.tasks[1].offset = NS(12);
    assert_eq!(first(&one, "CEm", &queue(1, 2, 3)), [19, 31]);
}

#[test]
fn preempted_job_is_enqueued_by_its_cpu() {
    let mut one = set(1, &[(10, 100), (2, 100)]);
    one.tasks[1].offset = NS(4);
    one.tasks[1].deadline = NS(5);
    for policy in ["CEm", "HEm"] {
        // T0 runs from 2 to 4; enqueued until 5, T0 again until 6, T1 taken until 7; T0 taken until 10.
        assert_eq!(first(&one, policy, &queue(0, 1, 1)), [18, 9], "{policy}");
    }
}

#[test]
fn pending_job_is_enqueued_when_its_predecessor_completes() {
    let mut options = options(30);
    options.overheads = Some(queue(1, 1, 1));
    // Job 1 runs from 3, is interrupted at 8, and ends at 14; job 2 runs from 16, interrupted then and at 24.
    let (records, _) = simulate(&set(1, &[(10, 8)]), "CEm", options);
    assert_eq!(finishes(&records, 0), [14, 28]);
}

#[test]
fn aligned_quanta_contend_and_staggered_ones_do_not() {
    let mut two = set(2, &[(10, 100), (10, 100)]);
    two.scheduler.quantum = Some(NS(50));
    let overheads = Overheads {
        tick: cost(1),
        ..queue(0, 0, 3)
    };
    assert_eq!(first(&two, "CQm", &overheads), [14, 17]);
    // CPU 1 begins its quantum at 25.
    assert_eq!(first(&two, "S-CQm", &overheads), [14, 39]);
}

#[test]
fn costs_count_all_tasks() {
    let two = set(3, &[(10, 100), (10, 100)]);
    let overheads = Overheads {
        release: LinearCost {
            base: NS(0),
            per_task: NS(2),
        },
        ..Overheads::default()
    };
    assert_eq!(first(&two, "CE1", &overheads), [14, 14]);
}

/// Costs from nothing to several periods of the tasks below; in some draws none is large.
fn drawn(random: &mut RandomStream) -> Overheads {
    let (most, most_per_task) = (1 + random.below(12), 1 + random.below(2));
    let mut cost = || LinearCost {
        base: NS(random.below(most)),
        per_task: NS(random.below(most_per_task)),
    };
    Overheads {
        release: cost(),
        schedule: cost(),
        switch: cost(),
        tick: cost(),
        ipi: cost(),
        enqueue: cost(),
        dequeue: cost(),
        preemption: vec![cost()],
        migration: vec![cost(), cost()],
    }
}

/// How long the jobs that completed before the horizon had a CPU and executed, by the records of 3 CPUs. A job that completes
/// at the horizon leaves its CPU no more, and how long it was interrupted is not recorded.
fn executed(records: &[Record], horizon: Instant) -> BTreeMap<JobId, Span> {
    let mut running: [Option<(JobId, Instant)>; 3] = [None; 3];
    let (mut had, mut interrupted) = (BTreeMap::new(), BTreeMap::new());
    let mut completed = Vec::new();
    for record in records {
        match record.kind {
            RecordKind::Switched { cpu, to, .. } => {
                let cpu = &mut running[cpu.index()];
                if let Some((job, since)) = *cpu {
                    *had.entry(job).or_insert(Span::ZERO) += record.at.late_since(since);
                }
                *cpu = to.map(|job| (job, record.at));
            }
            RecordKind::Interrupted { job, time } => {
                *interrupted.entry(job).or_insert(Span::ZERO) += time;
            }
            RecordKind::Completed { job } if record.at < horizon => completed.push(job),
            _ => {}
        }
    }
    let of =
        |times: &BTreeMap<JobId, Span>, job: JobId| times.get(&job).copied().unwrap_or(Span::ZERO);
    let rest = |job: JobId| (job, of(&had, job).saturating_sub(of(&interrupted, job)));
    completed.into_iter().map(rest).collect()
}

#[test]
fn runs_under_random_overheads_reach_the_horizon_and_jobs_execute_their_costs() {
    // Short jobs, of which most wait for ever; and long ones that are preempted after a part of their cost.
    const SETS: [&[(u64, u64)]; 2] = [
        &[(1, 2), (1, 2), (2, 3), (3, 40)],
        &[
            (2, 8),
            (3, 8),
            (5, 12),
            (10, 30),
            (9, 40),
            (20, 60),
            (25, 80),
            (30, 120),
        ],
    ];
    const HORIZON: u64 = 480;
    let seeds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 5_000,
        None => 100,
    };
    for (policy, tasks) in VARIANTS.iter().flat_map(|it| SETS.map(|tasks| (it, tasks))) {
        let mut set = set(3, tasks);
        set.scheduler.quantum = Some(NS(2));
        let mut completed = 0;
        for seed in 1..=seeds {
            let mut options = options(HORIZON);
            let overheads = drawn(&mut RandomStream::new(seed, 0, 0));
            options.overheads = Some(overheads.clone());
            let (records, _) = simulate(&set, policy, options);
            let run = format!("{policy}, {tasks:?}, seed {seed}, {overheads:?}");
            for (task, (_, period)) in tasks.iter().enumerate() {
                let released = records.iter().filter(|record| {
                    matches!(record.kind, RecordKind::Released { job, .. } if job.task == id(task))
                });
                assert_eq!(released.count() as u64, HORIZON / period, "T{task}: {run}");
            }
            for (job, time) in executed(&records, AT(HORIZON)) {
                assert_eq!(time, NS(tasks[job.task.index()].0), "{job:?}: {run}");
                completed += 1;
            }
        }
        assert!(completed > seeds, "{policy}: {completed} jobs completed");
    }
}

#[test]
fn zero_overheads_change_nothing() {
    for policy in VARIANTS {
        let mut set = set(3, &[(2, 3), (2, 3), (2, 4), (3, 7), (1, 5)]);
        set.scheduler.quantum = Some(NS(2));
        let mut free = options(400);
        free.overheads = Some(Overheads::default());
        let sorted = |options| {
            let (mut records, _) = simulate(&set, policy, options);
            // CPUs that switch at one instant do so in any order.
            records.sort_by_key(|record| (record.at, format!("{record:?}")));
            records
        };
        assert_eq!(sorted(free), sorted(options(400)), "{policy}");
    }
}

#[test]
fn every_structure_has_its_policy() {
    for policy in VARIANTS {
        let entry = registry::find(&policy.to_lowercase()).unwrap();
        assert_eq!(entry.name, policy);
        assert!(entry.traits.structure.is_some(), "{policy}");
    }
}
