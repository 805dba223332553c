//! Helpers shared by the tests: build task sets, run them, and format their records.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses some of it, to test"
)]

use shiftwork_model::{
    Action, Affinity, Arrival, Change, CpuId, CpuSet, Instant, JobId, OnOverrun, Phase, Priority,
    RandomStream, Record, RecordKind, Span, Task, TaskId, TaskSet, Work,
};
use shiftwork_policy::registry::{self, Entry};
use shiftwork_sim::{Options, Outcome, Simulation};
use shiftwork_trace::check::PolicyContract;

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
    let outcome = Simulation::new(set, policy, &entry.traits, options).run(&mut records);
    assert!(
        records.windows(2).all(|pair| pair[0].at <= pair[1].at),
        "instants do not decrease"
    );
    (records, outcome)
}

pub fn run(set: &TaskSet, policy: &str, horizon: u64) -> Vec<Record> {
    simulate(set, policy, options(horizon)).0
}

/// Completions of the task's jobs, in order.
pub fn finishes(records: &[Record], task: usize) -> Vec<u64> {
    records
        .iter()
        .filter(
            |record| matches!(record.kind, RecordKind::Completed { job } if job.task == id(task)),
        )
        .map(|record| record.at.as_ns())
        .collect()
}

/// The records of the task, one short line each: `4 ready 8`.
pub fn story(records: &[Record], task: usize) -> Vec<String> {
    let of = |job: &JobId| job.task == id(task);
    let line = |record: &Record| {
        let at = record.at.as_ns();
        Some(match &record.kind {
            RecordKind::Released { job, deadline } if of(job) => {
                format!("{at} released {} due {}", job.number, deadline.as_ns())
            }
            RecordKind::Ready { job, deadline, .. } if of(job) => {
                format!("{at} ready {} by {}", job.number, deadline.as_ns())
            }
            RecordKind::NotReady { job, reason } if of(job) => format!("{at} {reason:?}"),
            RecordKind::Completed { job } if of(job) => format!("{at} completed {}", job.number),
            RecordKind::BudgetSpent { job } if of(job) => format!("{at} spent"),
            RecordKind::Replenished {
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
            RecordKind::Entered { task: of } if *of == id(task) => format!("{at} entered"),
            RecordKind::Left { task: of } if *of == id(task) => format!("{at} left"),
            _ => return None,
        })
    };
    records.iter().filter_map(line).collect()
}

/// The switches, one short line each: `4 cpu1 T0.2` (`-` for idle).
pub fn switches(records: &[Record]) -> Vec<String> {
    let line = |record: &Record| match record.kind {
        RecordKind::Switched { cpu, to, .. } => {
            let to = to.map_or(String::from("-"), |job| format!("{job:?}"));
            Some(format!("{} cpu{cpu} {to}", record.at.as_ns()))
        }
        _ => None,
    };
    records.iter().filter_map(line).collect()
}

/// The rules that the policy promises to keep.
pub fn contract(entry: &Entry, set: &TaskSet) -> PolicyContract {
    let policy = entry.build(set).ok();
    PolicyContract::of(&entry.traits, policy.and_then(|policy| policy.packing()))
}

fn random_work(random: &mut RandomStream, cost: u64) -> Work {
    match random.below(5) {
        0 => Work::Uniform(NS(cost / 2), NS(cost * 2)),
        1 => Work::Trace((0..3).map(|_| NS(1 + random.below(2 * cost))).collect()),
        2 => Work::Phases(vec![
            Phase::Run(NS(1 + random.below(cost))),
            Phase::Sleep(NS(1 + random.below(cost))),
            Phase::Run(NS(1 + random.below(cost))),
        ]),
        _ => Work::Cost,
    }
}

fn random_change(random: &mut RandomStream, set: &TaskSet, affinities: &[Affinity]) -> Change {
    let id = id(random.below(set.tasks.len() as u64) as usize);
    let cpu = CpuId::from_index(random.below(set.platform.cpus as u64) as usize);
    match random.below(7) {
        0 => Change::Enter(id),
        1 => Change::Leave(id),
        2 => Change::CpuOffline(cpu),
        3 => Change::CpuOnline(cpu),
        4 => Change::SetPriority(id, Priority::new(1 + random.below(9) as u32).unwrap()),
        5 => Change::SetAffinity(
            id,
            affinities[random.below(affinities.len() as u64) as usize],
        ),
        _ => Change::SetAttributes {
            task: id,
            cost: Some(NS(1 + random.below(20))),
            period: Some(NS(10 + random.below(40))),
            deadline: None,
        },
    }
}

/// Laminar affinities, so that hierarchical policies accept the set, or global ones.
pub fn random_set(seed: u64) -> TaskSet {
    let mut random = RandomStream::new(seed, 7, 0);
    let lists: &[&str] = match seed % 2 {
        0 => &["0-3", "0-1", "2-3", "0", "3"],
        _ => &["0-3"],
    };
    let affinities: Vec<Affinity> = lists
        .iter()
        .map(|list| Affinity::new(list.parse::<CpuSet>().unwrap()).unwrap())
        .collect();
    let tasks = (0..3 + random.below(9)).map(|index| {
        let period = 10 + random.below(40);
        let mut task = task(4, &format!("T{index}"), 1 + random.below(period), period);
        task.affinity = affinities[random.below(affinities.len() as u64) as usize];
        task.deadline = NS(5 + random.below(2 * period));
        task.offset = NS(random.below(20));
        task.work = random_work(&mut random, task.cost.as_ns());
        if random.below(3) == 0 {
            task.arrival = Arrival::Sporadic;
        }
        if random.below(3) == 0 {
            task.on_overrun = OnOverrun::Continue;
        }
        task
    });
    let mut set = TaskSet::new("random", 4, tasks.collect());
    for _ in 0..random.below(8) {
        let change = random_change(&mut random, &set, &affinities);
        set.actions.push(Action {
            at: AT(random.below(300)),
            change,
        });
    }
    set.actions.sort_by_key(|action| action.at);
    set
}
