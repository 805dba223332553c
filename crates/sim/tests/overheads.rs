//! Scheduling overheads.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use std::collections::BTreeMap;

use common::{AT, NS, finishes, options, set, simulate};
use shiftwork_model::{
    Affinity, JobId, LinearCost, Overheads, RandomStream, Record, RecordKind, TaskSet,
};

fn cost(base: u64) -> LinearCost {
    LinearCost {
        base: NS(base),
        per_task: NS(0),
    }
}

fn finishes_with(set: &TaskSet, overheads: Overheads, task: usize) -> Vec<u64> {
    let mut options = options(200);
    options.overheads = Some(overheads);
    finishes(&simulate(set, "g-edf", options).0, task)
}

#[test]
fn zero_overheads_change_nothing() {
    let sets = [
        set(2, &[(2, 3), (2, 3), (2, 3)]),
        set(1, &[(3, 7), (2, 5), (1, 4)]),
        set(3, &[(9, 4)]),
    ];
    for (index, set) in sets.iter().enumerate() {
        let mut free = options(500);
        free.overheads = Some(Overheads::default());
        assert_eq!(
            simulate(set, "g-edf", free),
            simulate(set, "g-edf", options(500)),
            "{index}"
        );
    }
}

#[test]
fn release_and_switch_delay_the_job() {
    let overheads = Overheads {
        release: cost(1),
        schedule: cost(2),
        switch: cost(3),
        ..Overheads::default()
    };
    assert_eq!(
        finishes_with(&set(1, &[(10, 100)]), overheads, 0),
        [16, 116]
    );
}

#[test]
fn costs_may_grow_with_the_number_of_tasks() {
    let release = LinearCost {
        base: NS(1),
        per_task: NS(2),
    };
    let overheads = Overheads {
        release,
        ..Overheads::default()
    };
    assert_eq!(
        finishes_with(&set(1, &[(10, 100), (1, 150)]), overheads, 0),
        [20, 115]
    );
}

#[test]
fn only_a_remote_cpu_needs_an_ipi() {
    let overheads = Overheads {
        ipi: cost(5),
        ..Overheads::default()
    };
    let set = set(2, &[(10, 100), (10, 100)]);
    assert_eq!(finishes_with(&set, overheads.clone(), 0), [10, 110]);
    // At first CPU 0 handles the release; then the CPU on which the task last ran.
    assert_eq!(finishes_with(&set, overheads, 1), [15, 110]);
}

#[test]
fn preempted_job_refills_its_caches() {
    let mut set = set(1, &[(10, 100), (2, 100)]);
    set.tasks[1].offset = NS(4);
    set.tasks[1].deadline = NS(5);
    let overheads = Overheads {
        preemption: vec![cost(3)],
        ..Overheads::default()
    };
    assert_eq!(finishes_with(&set, overheads, 0), [15, 115]);
}

#[test]
fn migrated_job_refills_caches_by_distance() {
    // T2 is preempted on CPU 1 at 4 and resumes on CPU 0, where T0 completes at 6.
    let mut set = set(2, &[(6, 100), (10, 100), (10, 100)]);
    set.tasks[0].deadline = NS(20);
    set.tasks[1].offset = NS(4);
    set.tasks[1].deadline = NS(20);
    let finish = |caches: &[&str]| {
        let mut set = set.clone();
        set.platform.caches = caches.iter().map(|list| list.parse().unwrap()).collect();
        let overheads = Overheads {
            migration: vec![cost(1), cost(7)],
            ..Overheads::default()
        };
        finishes_with(&set, overheads, 2)[0]
    };
    assert_eq!(finish(&["0,1"]), 13);
    assert_eq!(finish(&["0", "1"]), 19);
}

#[test]
fn partitioned_scheduler_handles_releases_on_its_own_cpu() {
    // T0 is bound to CPU 1, and T1 and T2 to CPU 0; CPU 0 handles no event of T0.
    let mut set = set(2, &[(10, 100), (20, 100), (30, 100)]);
    for (task, cpus) in set.tasks.iter_mut().zip(["1", "0", "0"]) {
        task.affinity = Affinity::new(cpus.parse().unwrap()).unwrap();
    }
    let release = LinearCost {
        base: NS(1),
        per_task: NS(2),
    };
    let mut options = options(200);
    options.overheads = Some(Overheads {
        release,
        ipi: cost(7),
        ..Overheads::default()
    });
    let records = simulate(&set, "p-edf", options).0;
    assert_eq!(finishes(&records, 0), [13, 113]);
    assert_eq!(finishes(&records, 1), [30, 130]);
    assert_eq!(finishes(&records, 2), [60, 160]);
}

#[test]
fn revised_decision_does_not_delay_the_more_urgent_job() {
    // At 2 CPU 0 still switches to T0; it then switches to T1 alone, and only afterwards to T0.
    let mut set = set(1, &[(10, 100), (10, 100)]);
    set.tasks[1].offset = NS(2);
    set.tasks[1].deadline = NS(50);
    let overheads = Overheads {
        switch: cost(5),
        ..Overheads::default()
    };
    assert_eq!(finishes_with(&set, overheads.clone(), 1), [17, 117]);
    assert_eq!(finishes_with(&set, overheads, 0), [32, 132]);
}

#[test]
fn tick_delays_the_running_job() {
    let mut set = set(1, &[(10, 100)]);
    set.scheduler.quantum = Some(NS(4));
    let overheads = Overheads {
        tick: cost(1),
        ..Overheads::default()
    };
    assert_eq!(finishes_with(&set, overheads, 0)[0], 12);
}

#[test]
fn run_with_overheads_above_capacity_ends() {
    let mut set = set(1, &[(1, 2)]);
    set.scheduler.quantum = Some(NS(1));
    let overheads = Overheads {
        tick: cost(5),
        release: cost(9),
        ..Overheads::default()
    };
    assert_eq!(finishes_with(&set, overheads, 0), [0; 0]);
}

/// The time of a job on its CPUs is its work plus its recorded interruptions.
#[test]
fn interruptions_of_jobs_are_recorded_exactly() {
    for seed in 1..=100 {
        let mut random = RandomStream::new(seed, 0, 0);
        let tasks: Vec<_> = (0..4)
            .map(|_| (2 + random.below(9), 20 + random.below(30)))
            .collect();
        let set = set(2, &tasks);
        let mut options = options(2_000);
        options.overheads = Some(Overheads {
            release: cost(random.below(3)),
            schedule: cost(random.below(3)),
            switch: cost(random.below(3)),
            ipi: cost(random.below(3)),
            tick: cost(random.below(2)),
            preemption: vec![cost(random.below(4))],
            ..Overheads::default()
        });
        let records = simulate(&set, "g-edf", options).0;
        let mut on_cpu: BTreeMap<JobId, u64> = BTreeMap::new();
        let mut not_own: BTreeMap<JobId, u64> = BTreeMap::new();
        let mut since = [0; 2];
        for record in &records {
            let now = record.at.as_ns();
            match record.kind {
                RecordKind::Switched { cpu, from, .. } => {
                    let before = std::mem::replace(&mut since[cpu.index()], now);
                    if let Some(job) = from {
                        *on_cpu.entry(job).or_default() += now - before;
                    }
                }
                RecordKind::Interrupted { job, time } => {
                    *not_own.entry(job).or_default() += time.as_ns();
                }
                _ => {}
            }
        }
        let finished = |record: &Record| match record.kind {
            // A job that completes at the horizon has no switch afterwards.
            RecordKind::Completed { job } if record.at < AT(2_000) => Some(job),
            _ => None,
        };
        for job in records.iter().filter_map(finished) {
            let own = on_cpu[&job] - not_own.get(&job).copied().unwrap_or(0);
            let work = set.tasks[job.task.index()].cost.as_ns();
            assert_eq!(own, work, "seed {seed}, {job:?}");
        }
    }
}
