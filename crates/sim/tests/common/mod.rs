//! What the tests share: short ways to say a task set, run it, and read what happened.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses some of it, to test"
)]

use shiftwork_model::{
    Affinity, CpuSet, Happening, Instant, JobId, Record, Span, Task, TaskId, TaskSet,
};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Outcome, Simulation};

pub const AT: fn(u64) -> Instant = Instant::from_ns;
pub const NS: fn(u64) -> Span = Span::from_ns;

pub fn id(index: usize) -> TaskId {
    TaskId::from_index(index)
}

/// A task on any of `cpus` CPUs that costs `cost` every `period`.
pub fn task(cpus: usize, name: &str, cost: u64, period: u64) -> Task {
    let all = Affinity::new(CpuSet::first(cpus)).unwrap();
    Task::periodic(name, NS(cost), NS(period), all)
}

/// Tasks named T0, T1, ... with these costs and periods.
pub fn set(cpus: usize, tasks: &[(u64, u64)]) -> TaskSet {
    let tasks = tasks
        .iter()
        .enumerate()
        .map(|(index, &(cost, period))| task(cpus, &format!("T{index}"), cost, period))
        .collect();
    TaskSet::new("test", cpus, tasks)
}

pub fn options(horizon: u64) -> Options {
    Options {
        seed: 1,
        horizon: AT(horizon),
        overheads: None,
        reserve_server: false,
    }
}

pub fn simulate(set: &TaskSet, policy: &str, options: Options) -> (Vec<Record>, Outcome) {
    let entry = registry::find(policy).unwrap();
    let policy = entry.build(set).unwrap();
    let mut records: Vec<Record> = Vec::new();
    let outcome = Simulation::new(set, policy, entry.order, options).run(&mut records);
    assert!(
        records.windows(2).all(|pair| pair[0].at <= pair[1].at),
        "time runs forwards"
    );
    (records, outcome)
}

pub fn run(set: &TaskSet, policy: &str, horizon: u64) -> Vec<Record> {
    simulate(set, policy, options(horizon)).0
}

/// When the task's jobs finished, in the order of jobs.
pub fn finishes(records: &[Record], task: usize) -> Vec<u64> {
    records
        .iter()
        .filter(
            |record| matches!(record.what, Happening::Completed { job } if job.task == id(task)),
        )
        .map(|record| record.at.as_ns())
        .collect()
}

/// Everything that happened to the task itself, one short line each: `4 ready 8`.
pub fn story(records: &[Record], task: usize) -> Vec<String> {
    let of = |job: &JobId| job.task == id(task);
    let line = |record: &Record| {
        let at = record.at.as_ns();
        Some(match &record.what {
            Happening::Released { job, deadline } if of(job) => {
                format!("{at} released {} due {}", job.number, deadline.as_ns())
            }
            Happening::Ready { job, deadline, .. } if of(job) => {
                format!("{at} ready {} by {}", job.number, deadline.as_ns())
            }
            Happening::NotReady { job, reason } if of(job) => format!("{at} {reason:?}"),
            Happening::Completed { job } if of(job) => format!("{at} completed {}", job.number),
            Happening::BudgetSpent { job } if of(job) => format!("{at} spent"),
            Happening::Replenished {
                task: of,
                budget,
                deadline,
            } if *of == id(task) => {
                format!(
                    "{at} replenished {} by {}",
                    budget.as_ns(),
                    deadline.as_ns()
                )
            }
            Happening::Entered { task: of } if *of == id(task) => format!("{at} entered"),
            Happening::Left { task: of } if *of == id(task) => format!("{at} left"),
            _ => return None,
        })
    };
    records.iter().filter_map(line).collect()
}

/// What each CPU ran, one short line per switch: `4 cpu1 T0.2` (`-` for nothing).
pub fn switches(records: &[Record]) -> Vec<String> {
    let line = |record: &Record| match record.what {
        Happening::Switched { cpu, to, .. } => {
            let to = to.map_or(String::from("-"), |job| format!("{job:?}"));
            Some(format!("{} cpu{cpu} {to}", record.at.as_ns()))
        }
        _ => None,
    };
    records.iter().filter_map(line).collect()
}
