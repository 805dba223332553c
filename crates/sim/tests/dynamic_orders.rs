//! Orders by priority points and by laxity against their definitions, executed one time unit after the other.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use std::collections::VecDeque;

use common::{NS, contract, options, simulate, task};
use shiftwork_model::{OnOverrun, RandomStream, Record, RecordKind, Span, TaskSet, Work};
use shiftwork_policy::registry;
use shiftwork_trace::check;

/// Length of the compared runs, in time units.
const HORIZON: u64 = 80;

/// The quantum, in time units.
const QUANTUM: u64 = 3;

/// A periodic task in the terms of the definitions.
#[derive(Clone, Debug)]
struct Plan {
    offset: u64,
    period: u64,
    deadline: u64,
    cost: u64,
    /// For how long its jobs execute.
    run: u64,
}

/// The first incomplete job of a task.
#[derive(Clone, Copy, Debug)]
struct Job {
    task: usize,
    number: u64,
    due: u64,
    ready: u64,
    executed: u64,
    cost: u64,
    runs: bool,
}

impl Job {
    /// The deadline less what is left of the cost.
    fn latest_start(&self) -> u64 {
        self.due - self.cost.saturating_sub(self.executed)
    }
}

/// An order: the smaller is the more urgent.
type Rank = fn(&Job, now: u64, cpus: u64) -> (u64, u64);

/// An order, and whether it is applied at each unit of time; else when the ready jobs change and at quanta.
struct Definition {
    policy: &'static str,
    rank: Rank,
    always: bool,
}

const DEFINITIONS: [Definition; 3] = [
    Definition {
        policy: "g-fl",
        // The least whole number that is not below the exact priority point.
        rank: |job, _, cpus| {
            let point = |at: u64| cpus * at >= cpus * job.due - (cpus - 1) * job.cost;
            ((0..).find(|&at| point(at)).unwrap(), 0)
        },
        always: true,
    },
    Definition {
        policy: "edzl",
        rank: |job, now, _| (u64::from(job.latest_start() > now), job.due),
        always: true,
    },
    Definition {
        policy: "llf",
        rank: |job, _, _| (job.latest_start(), u64::from(!job.runs)),
        always: false,
    },
];

/// By time unit the jobs that execute, and the completions: task, job, instant.
#[derive(Debug, Default, PartialEq)]
struct Shown {
    executing: Vec<Vec<(usize, u64)>>,
    finishes: Vec<(usize, u64, u64)>,
}

/// The most urgent jobs execute, as many as there are CPUs; of equals the one that became ready first, then the
/// lower task.
fn by_definition(plans: &[Plan], cpus: usize, of: &Definition) -> Shown {
    let mut waiting: Vec<VecDeque<(u64, u64)>> = vec![VecDeque::new(); plans.len()];
    let mut current: Vec<Option<Job>> = vec![None; plans.len()];
    let mut shown = Shown::default();
    for now in 0..HORIZON {
        let mut changed = of.always || now.is_multiple_of(QUANTUM);
        for (index, plan) in plans.iter().enumerate() {
            if let Some(job) = current[index].filter(|job| job.executed == plan.run) {
                shown.finishes.push((index, job.number, now));
                current[index] = None;
                changed = true;
            }
            if now >= plan.offset && (now - plan.offset).is_multiple_of(plan.period) {
                let number = (now - plan.offset) / plan.period + 1;
                waiting[index].push_back((number, now + plan.deadline));
            }
            if current[index].is_none()
                && let Some((number, due)) = waiting[index].pop_front()
            {
                changed = true;
                current[index] = Some(Job {
                    task: index,
                    number,
                    due,
                    ready: now,
                    executed: 0,
                    cost: plan.cost,
                    runs: false,
                });
            }
        }
        if changed {
            let mut jobs: Vec<Job> = current.iter().flatten().copied().collect();
            jobs.sort_by_key(|job| {
                let rank = (of.rank)(job, now, cpus as u64);
                (rank, job.ready, job.task)
            });
            for (place, job) in jobs.iter().enumerate() {
                let job = current[job.task].as_mut().unwrap();
                job.runs = place < cpus;
            }
        }
        let executing = current.iter_mut().flatten().filter(|job| job.runs);
        let executing = executing.map(|job| {
            job.executed += 1;
            (job.task, job.number)
        });
        shown.executing.push(executing.collect());
    }
    shown.finishes.sort_unstable();
    shown
}

/// The same from the records of a run.
fn of_records(records: &[Record], cpus: usize) -> Shown {
    let mut shown = Shown::default();
    let mut on: Vec<Option<(usize, u64)>> = vec![None; cpus];
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
        let mut executing: Vec<_> = on.iter().flatten().copied().collect();
        executing.sort_unstable();
        shown.executing.push(executing);
    }
    shown.finishes.sort_unstable();
    shown
}

fn random_plans(random: &mut RandomStream, cpus: usize) -> Vec<Plan> {
    let count = cpus as u64 + 1 + random.below(3);
    let mut plan = || {
        let period = 2 + random.below(11);
        let cost = 1 + random.below(period);
        let deadline = cost + random.below(period + 4 - cost);
        let run = match random.below(4) {
            0 => 1 + random.below(cost),
            // Beyond the cost, which is not enforced here.
            1 => cost + random.below(3),
            _ => cost,
        };
        Plan {
            offset: random.below(6),
            period,
            deadline,
            cost,
            run,
        }
    };
    (0..count).map(|_| plan()).collect()
}

fn task_set(plans: &[Plan], cpus: usize) -> TaskSet {
    let task = |(index, plan): (usize, &Plan)| {
        let mut task = task(cpus, &format!("T{index}"), plan.cost, plan.period);
        task.deadline = NS(plan.deadline);
        task.offset = NS(plan.offset);
        task.work = Work::Constant(NS(plan.run));
        task.on_overrun = OnOverrun::Continue;
        task
    };
    let tasks = plans.iter().enumerate().map(task).collect();
    let mut set = TaskSet::new("test", cpus, tasks);
    set.scheduler.quantum = Some(Span::from_ns(QUANTUM));
    set
}

#[test]
fn dynamic_orders_run_their_definitions() {
    let seeds = if std::env::var_os("SHIFTWORK_LONG").is_some() {
        40_000
    } else {
        600
    };
    for definition in &DEFINITIONS {
        let entry = registry::find(definition.policy).unwrap();
        let mut different_from_edf = 0;
        for seed in 1..=seeds {
            let mut random = RandomStream::new(seed, 0, 0);
            let cpus = 1 + random.below(3) as usize;
            let plans = random_plans(&mut random, cpus);
            let set = task_set(&plans, cpus);
            let (records, _) = simulate(&set, definition.policy, options(HORIZON));
            let what = || format!("{}, seed {seed}: {cpus} CPUs, {plans:?}", definition.policy);
            let found = of_records(&records, cpus);
            assert_eq!(found, by_definition(&plans, cpus, definition), "{}", what());
            let contract = contract(entry, &set);
            let violations = check::check(&set, contract, options(HORIZON).horizon, &records);
            assert_eq!(violations, [], "{}", what());
            let edf = simulate(&set, "g-edf", options(HORIZON)).0;
            different_from_edf += u64::from(of_records(&edf, cpus) != found);
        }
        let enough = different_from_edf > seeds / 20;
        assert!(enough, "{}: {different_from_edf}", definition.policy);
    }
}
