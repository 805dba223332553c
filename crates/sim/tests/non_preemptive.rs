//! Non-preemptive global EDF against its definition, executed one time unit after the other.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use std::collections::VecDeque;

use common::{AT, NS, contract, finishes, options, random_set, run, set, simulate, task};
use shiftwork_model::{
    Arrival, CpuId, Instant, LinearCost, OnOverrun, Overheads, Phase, RandomStream, Record,
    RecordKind, TaskSet, Work,
};
use shiftwork_policy::registry;
use shiftwork_sim::Options;
use shiftwork_trace::check;

/// Length of the compared runs, in time units.
const HORIZON: u64 = 60;

/// A task in the terms of the definition. Its jobs alternate between execution and suspension.
#[derive(Clone, Debug)]
struct Plan {
    releases: Vec<u64>,
    deadline: u64,
    /// The execution times of each job.
    runs: Vec<u64>,
    /// The lengths of the suspensions between them.
    sleeps: Vec<u64>,
}

/// The state of the current job of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Doing {
    /// There is no job.
    Nothing,
    /// It has waited since then.
    Waits(u64),
    Runs {
        cpu: usize,
        left: u64,
    },
    Sleeps {
        until: u64,
    },
}

struct State {
    doing: Doing,
    /// Deadlines of the jobs that are released and have not begun.
    pending: VecDeque<u64>,
    deadline: u64,
    number: u64,
    /// Index in `runs` of the current or next part.
    part: usize,
    last_cpu: Option<usize>,
}

/// The observable schedule: the running jobs by instant and CPU, and the completions.
#[derive(Debug, Default, PartialEq)]
struct Shown {
    /// By time unit and CPU the task and the number of its job.
    cpus: Vec<Vec<Option<(usize, u64)>>>,
    /// Task, job and instant.
    starts: Vec<(usize, u64, u64)>,
    finishes: Vec<(usize, u64, u64)>,
}

/// At each instant all completed jobs leave, then released and woken jobs are added to the waiting ones, and only
/// then each free CPU takes a job: the waiting job with the earliest deadline, then the one that has waited
/// longest, then the lower task; on the CPU where it last ran if that is free, else on the lowest.
fn by_definition(plans: &[Plan], cpus: usize) -> Shown {
    let state = |_: &Plan| State {
        doing: Doing::Nothing,
        pending: VecDeque::new(),
        deadline: 0,
        number: 0,
        part: 0,
        last_cpu: None,
    };
    let mut tasks: Vec<State> = plans.iter().map(state).collect();
    let mut shown = Shown::default();
    for now in 0..HORIZON {
        for (index, (task, plan)) in tasks.iter_mut().zip(plans).enumerate() {
            if let Doing::Runs { left: 0, .. } = task.doing {
                task.part += 1;
                task.doing = match plan.sleeps.get(task.part - 1) {
                    Some(sleep) => Doing::Sleeps { until: now + sleep },
                    None => {
                        shown.finishes.push((index, task.number, now));
                        Doing::Nothing
                    }
                };
            }
        }
        for (task, plan) in tasks.iter_mut().zip(plans) {
            if task.doing == (Doing::Sleeps { until: now }) {
                task.doing = Doing::Waits(now);
            }
            if plan.releases.contains(&now) {
                task.pending.push_back(now + plan.deadline);
            }
            if task.doing == Doing::Nothing
                && let Some(deadline) = task.pending.pop_front()
            {
                (task.deadline, task.part) = (deadline, 0);
                task.number += 1;
                task.doing = Doing::Waits(now);
            }
        }
        fill(&mut tasks, plans, cpus, now, &mut shown);
        let mut row = vec![None; cpus];
        for (index, task) in tasks.iter_mut().enumerate() {
            if let Doing::Runs { cpu, left } = &mut task.doing {
                row[*cpu] = Some((index, task.number));
                *left -= 1;
            }
        }
        shown.cpus.push(row);
    }
    shown.finishes.sort_unstable();
    shown.starts.sort_unstable();
    shown
}

fn fill(tasks: &mut [State], plans: &[Plan], cpus: usize, now: u64, shown: &mut Shown) {
    loop {
        let runs_on = |wanted: usize| {
            let on = |task: &State| matches!(task.doing, Doing::Runs { cpu, .. } if cpu == wanted);
            tasks.iter().any(on)
        };
        let free: Vec<usize> = (0..cpus).filter(|&cpu| !runs_on(cpu)).collect();
        let waiting = tasks.iter().enumerate().filter_map(|(index, task)| {
            let Doing::Waits(since) = task.doing else {
                return None;
            };
            Some((task.deadline, since, index))
        });
        let (Some((.., first)), Some(&lowest)) = (waiting.min(), free.first()) else {
            return;
        };
        let task = &mut tasks[first];
        let cpu = task.last_cpu.filter(|last| free.contains(last));
        let cpu = cpu.unwrap_or(lowest);
        let left = plans[first].runs[task.part];
        if task.part == 0 {
            shown.starts.push((first, task.number, now));
        }
        task.doing = Doing::Runs { cpu, left };
        task.last_cpu = Some(cpu);
    }
}

/// The observable schedule of a run, from its records.
fn shown(records: &[Record], cpus: usize) -> Shown {
    let mut shown = Shown::default();
    let mut on = vec![None; cpus];
    let mut records = records.iter().peekable();
    for now in 0..HORIZON {
        while let Some(record) = records.next_if(|record| record.at.as_ns() == now) {
            match record.kind {
                RecordKind::Switched { cpu, to, .. } => {
                    on[cpu.index()] = to.map(|job| (job.task.index(), job.number));
                }
                RecordKind::Completed { job } => {
                    shown.finishes.push((job.task.index(), job.number, now));
                }
                _ => {}
            }
        }
        let begins = |&(task, number): &(usize, u64)| {
            let same = |&(other, job, _): &(usize, u64, u64)| (other, job) == (task, number);
            !shown.starts.iter().any(same)
        };
        let begun: Vec<_> = on.iter().flatten().copied().filter(begins).collect();
        let begun = begun.iter().map(|&(task, number)| (task, number, now));
        shown.starts.extend(begun);
        shown.cpus.push(on.clone());
    }
    shown.finishes.sort_unstable();
    shown.starts.sort_unstable();
    shown
}

/// Numbers so small that completions, wake-ups and releases often coincide.
fn random_plans(random: &mut RandomStream) -> Vec<Plan> {
    let periods: &[u64] = match random.below(3) {
        0 => &[4, 6, 8, 12],
        1 => &[5, 10],
        _ => &[3, 4, 5, 6, 7, 8, 9, 10],
    };
    (0..1 + random.below(8))
        .map(|_| {
            let period = periods[random.below(periods.len() as u64) as usize];
            let offset = random.below(4);
            // Sporadic releases are at least a period apart.
            let extra = if random.below(4) == 0 { 4 } else { 1 };
            let mut at = offset;
            let mut releases = Vec::new();
            while at < HORIZON {
                releases.push(at);
                at += period + random.below(extra);
            }
            let parts = 1 + random.below(5).saturating_sub(3) as usize;
            Plan {
                releases,
                deadline: 1 + random.below(2 * period),
                runs: (0..parts).map(|_| 1 + random.below(5)).collect(),
                sleeps: (1..parts).map(|_| 1 + random.below(3)).collect(),
            }
        })
        .collect()
}

fn task_set(plans: &[Plan], cpus: usize) -> TaskSet {
    let task = |(index, plan): (usize, &Plan)| {
        let cost = plan.runs.iter().sum();
        let mut task = task(cpus, &format!("T{index}"), cost, 1);
        task.deadline = NS(plan.deadline);
        task.on_overrun = OnOverrun::Continue;
        task.arrival = Arrival::Releases(plan.releases.iter().copied().map(AT).collect());
        let mut phases = Vec::new();
        for (part, &run) in plan.runs.iter().enumerate() {
            phases.push(Phase::Run(NS(run)));
            phases.extend(plan.sleeps.get(part).map(|&sleep| Phase::Sleep(NS(sleep))));
        }
        task.work = Work::Phases(phases);
        task
    };
    TaskSet::new("test", cpus, plans.iter().enumerate().map(task).collect())
}

fn long(few: u64, many: u64) -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => many,
        None => few,
    }
}

#[test]
fn every_instant_follows_the_definition() {
    let mut coinciding = 0;
    for seed in 0..long(4_000, 100_000) {
        let mut random = RandomStream::new(seed, 41, 0);
        let cpus = 1 + random.below(4) as usize;
        let plans = random_plans(&mut random);
        let records = run(&task_set(&plans, cpus), "np-g-edf", HORIZON);
        let (found, wanted) = (shown(&records, cpus), by_definition(&plans, cpus));
        let differs = (0..HORIZON as usize).find(|&step| found.cpus[step] != wanted.cpus[step]);
        let context = || format!("seed {seed}, step {differs:?}, {cpus} CPUs: {plans:?}");
        if let Some(step) = differs {
            assert_eq!(found.cpus[step], wanted.cpus[step], "{}", context());
        }
        assert_eq!(found.starts, wanted.starts, "{}", context());
        let before = |&&(_, _, at): &&(usize, u64, u64)| at < HORIZON;
        let ends: Vec<_> = found.finishes.iter().filter(before).copied().collect();
        assert_eq!(ends, wanted.finishes, "{}", context());
        coinciding += u64::from(is_coinciding(&records));
    }
    assert!(coinciding > long(4_000, 100_000) / 2, "{coinciding}");
}

/// Whether a CPU became free at an instant at which a job was released.
fn is_coinciding(records: &[Record]) -> bool {
    let ends = |record: &&Record| matches!(record.kind, RecordKind::Completed { .. });
    let arrives = |at: Instant| {
        let mut same = records.iter().filter(|record| record.at == at);
        same.any(|record| matches!(record.kind, RecordKind::Released { .. }))
    };
    records.iter().filter(ends).any(|record| arrives(record.at))
}

/// At 4 the CPU becomes free and `urgent` is released: it runs before `long`, which has waited longer.
#[test]
fn free_cpu_selects_after_the_arrivals_of_the_instant() {
    let mut set = set(1, &[(4, 100), (15, 100), (10, 100)]);
    set.tasks[1].offset = NS(1);
    (set.tasks[2].offset, set.tasks[2].deadline) = (NS(4), NS(24));
    let records = run(&set, "np-g-edf", 100);
    assert_eq!(finishes(&records, 2), [14]);
    assert_eq!(finishes(&records, 1), [29]);
}

/// Replenished jobs, timed changes, sporadic releases, random work: verified by the checker of the definition.
#[test]
fn budgets_changes_and_random_arrivals_follow_the_definition() {
    let entry = registry::find("np-g-edf").unwrap();
    let mut taken = 0;
    for seed in 0..long(600, 20_000) {
        let mut set = random_set(2 * seed + 1);
        for (index, task) in set.tasks.iter_mut().enumerate() {
            if index % 2 == 0 {
                task.on_overrun = OnOverrun::Throttle;
            }
        }
        if entry.build(&set).is_err() {
            continue;
        }
        taken += 1;
        let (records, _) = simulate(&set, "np-g-edf", options(400));
        let found = check::check(&set, contract(entry, &set), AT(400), &records);
        assert!(found.is_empty(), "seed {seed}: {found:#?}");
    }
    assert!(taken > 300, "only {taken} sets were accepted");
}

fn cost(base: u64) -> LinearCost {
    LinearCost {
        base: NS(base),
        per_task: NS(0),
    }
}

/// Deciding at the end of an instant does not change overheads: without preemptions, non-preemptive and
/// preemptive scheduling cost the same.
#[test]
fn overheads_equal_those_of_preemptive_scheduling_without_preemptions() {
    let overheads = Overheads {
        release: cost(1),
        schedule: cost(2),
        switch: cost(3),
        ipi: cost(7),
        ..Overheads::default()
    };
    for seed in 0..long(300, 5_000) {
        let mut random = RandomStream::new(seed, 43, 0);
        let cpus = 2 + random.below(3) as usize;
        let tasks: Vec<(u64, u64)> = (0..cpus)
            .map(|_| (50 + random.below(100), 400 + random.below(300)))
            .collect();
        let mut set = set(cpus, &tasks);
        for task in &mut set.tasks {
            task.offset = NS(random.below(300));
            task.start_cpu = Some(CpuId::from_index(random.below(cpus as u64) as usize));
        }
        let options = || Options {
            overheads: Some(overheads.clone()),
            ..options(3_000)
        };
        let preemptive = simulate(&set, "g-edf", options()).0;
        let found = simulate(&set, "np-g-edf", options()).0;
        for index in 0..cpus {
            assert_eq!(
                finishes(&found, index),
                finishes(&preemptive, index),
                "seed {seed}, task {index}: {tasks:?}"
            );
        }
    }
}

/// U. Devi and J. Anderson bound response times by 15 here. If the CPU of a completed job were assigned before its
/// pending successor is considered, response times would grow without bound.
#[test]
fn response_times_at_full_utilization_are_bounded() {
    let set = set(3, &[(2, 2), (5, 5), (6, 12), (2, 4)]);
    let records = run(&set, "np-g-edf", 6_000);
    for (number, finish) in (0..).zip(finishes(&records, 0)) {
        assert!(finish - 2 * number <= 15, "job {number} ends at {finish}");
    }
}
