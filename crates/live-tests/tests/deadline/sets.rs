//! The task sets: examples of papers, and random ones by seed.

use shiftwork_model::{
    Affinity, Arrival, CpuId, CpuSet, Instant, Lagging, Phase, RandomStream, Span, Task, TaskSet,
    Work,
};

/// What a random task set is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Two clusters of two CPUs, each task in one of them, free to use both.
    Clustered,
    /// Some tasks are bound to a CPU, the others may use all.
    SemiPartitioned,
    /// As the last, and jobs of every second task sleep for a while in between.
    Suspending,
}

/// The clusters of such a task set.
pub const CLUSTERS: [&str; 2] = ["0-1", "2-3"];
/// What a job leaves of its budget, so that no job that keeps to its cost is throttled.
const SPARE: Span = Span::from_ms(1);

const fn ms(ms: u64) -> Span {
    Span::from_ms(ms)
}

fn on(cpus: &str) -> Affinity {
    Affinity::new(cpus.parse().unwrap()).unwrap()
}

fn named(name: String, tasks: Vec<Task>) -> TaskSet {
    let cpus = tasks
        .iter()
        .filter_map(|task| task.affinity.cpus().iter().max());
    let last = cpus.max().map_or(0, CpuId::index);
    let mut set = TaskSet::new(&name, last + 1, tasks);
    set.scheduler.lagging = Lagging::Reset;
    set
}

/// A task set of this kind that is not too sensitive is to be looked for among these.
///
/// Periods are whole tens of milliseconds, and no two tasks begin at the same millisecond of ten: releases,
/// and deadlines that follow from them, never coincide.
pub fn random(kind: Kind, seed: u64) -> TaskSet {
    let mut random = RandomStream::new(seed, kind as u64, 0);
    let cpus = if kind == Kind::Clustered {
        4
    } else {
        2 + random.below(2)
    };
    let tasks =
        (0..cpus + 2 + random.below(3)).map(|index| random_task(kind, cpus, index, &mut random));
    let mut set = named(format!("{kind:?} {seed}"), tasks.collect());
    set.platform.cpus = cpus as usize;
    if kind == Kind::Clustered {
        set.platform.clusters = CLUSTERS.map(|cluster| cluster.parse().unwrap()).to_vec();
    }
    set
}

fn random_task(kind: Kind, cpus: u64, index: u64, random: &mut RandomStream) -> Task {
    let period = ms(10 * (5 + random.below(16)));
    // Two thirds of the CPUs are used, more or less.
    let percent = 20 + random.below(45);
    let cost = ms((period.as_ns() * percent / 100 / 1_000_000).max(10));
    let affinity = match kind {
        Kind::Clustered => on(CLUSTERS[(index % 2) as usize]),
        _ if random.below(2) == 0 => {
            Affinity::pinned(CpuId::from_index(random.below(cpus) as usize))
        }
        _ => Affinity::new(CpuSet::first(cpus as usize)).unwrap(),
    };
    let run = cost - SPARE;
    let work = if kind == Kind::Suspending && index.is_multiple_of(2) {
        let first = Span::from_ns(run.as_ns() * (20 + random.below(60)) / 100);
        let sleep = ms(3 + random.below(30));
        Work::Phases(vec![
            Phase::Run(first),
            Phase::Sleep(sleep),
            Phase::Run(run - first),
        ])
    } else {
        Work::Constant(run)
    };
    Task {
        offset: ms(10 * random.below(period.as_ns() / 10_000_000)) + Span::from_us(1_300 * index),
        work,
        ..Task::periodic(&format!("t{}", index + 1), cost, period, affinity)
    }
}

/// The same with its CPUs counted from the other end.
pub fn mirrored(set: &TaskSet) -> TaskSet {
    let last = set.platform.cpus - 1;
    let mirror = |cpus: &CpuSet| {
        let mut mirrored = CpuSet::EMPTY;
        for cpu in cpus.iter() {
            mirrored.insert(CpuId::from_index(last - cpu.index()));
        }
        mirrored
    };
    let mut set = set.clone();
    for task in &mut set.tasks {
        let start = task.start_cpu.or(task.affinity.cpus().lowest());
        task.start_cpu = start.map(|cpu| CpuId::from_index(last - cpu.index()));
        task.affinity = Affinity::new(mirror(task.affinity.cpus())).unwrap();
    }
    for cluster in &mut set.platform.clusters {
        *cluster = mirror(cluster);
    }
    set
}

/// The same with so much more to do for each stretch.
pub fn longer(set: &TaskSet, by: Span) -> TaskSet {
    let mut set = set.clone();
    for task in &mut set.tasks {
        match &mut task.work {
            Work::Constant(run) => *run += by,
            Work::Phases(phases) => {
                for phase in phases {
                    if let Phase::Run(run) = phase {
                        *run += by;
                    }
                }
            }
            _ => {}
        }
    }
    set
}

/// S. Tang, J. H. Anderson, L. Abeni, RTNS 2021, Example 5, in units of 20 ms. No two tasks begin
/// together, and jobs leave something of their budgets. So the two tasks that may use two CPUs each
/// are never far behind, but the three bound ones push them to and fro.
pub fn tang_5() -> TaskSet {
    let units = |units: u64| ms(20 * units);
    let task = |name: &str, (cost, period): (u64, u64), late: u64, cpus: &str, start: usize| Task {
        work: Work::Constant(units(cost) - SPARE),
        offset: ms(late),
        start_cpu: Some(CpuId::from_index(start)),
        ..Task::periodic(name, units(cost), units(period), on(cpus))
    };
    let releases = |at: &[u64], task: Task| {
        let at = at.iter().map(|&at| Instant::ZERO + units(at));
        Task {
            arrival: Arrival::Releases(at.collect()),
            ..task
        }
    };
    let tasks = vec![
        releases(&[0, 8, 18, 30, 44], task("t1", (2, 6), 0, "0", 0)),
        task("t2", (2, 2), 3, "0-1", 0),
        releases(&[4, 12, 24, 36], task("t3", (1, 6), 6, "1", 1)),
        task("t4", (2, 2), 9, "1-2", 2),
        releases(&[0, 6, 18, 28, 44], task("t5", (2, 6), 12, "2", 2)),
    ];
    named("Tang et al. 2021, Example 5".to_owned(), tasks)
}

/// Example 4 there, in units of 2 ms: three tasks for two CPUs; the last to begin suspends itself for a moment
/// when it is late already.
pub fn tang_4() -> TaskSet {
    let units = |units: u64| ms(2 * units);
    let task = |name: &str, offset: Span, start: usize, work: Work| Task {
        offset,
        work,
        start_cpu: Some(CpuId::from_index(start)),
        ..Task::periodic(name, units(63), units(100), on("0-1"))
    };
    let run = units(63) - SPARE;
    let sleeping = Work::Phases(vec![
        Phase::Run(run - ms(2)),
        Phase::Sleep(units(1)),
        Phase::Run(ms(2)),
    ]);
    named(
        "Tang et al. 2021, Example 4".to_owned(),
        vec![
            task("t1", ms(0), 0, Work::Constant(run)),
            task("t2", ms(1), 1, Work::Constant(run)),
            task("t3", ms(2), 0, sleeping),
        ],
    )
}

/// Example 6 there: a task is pushed to a CPU that has not the latest deadline, because the task is
/// counted itself where it waits. It has used up its budget before: a task that sleeps is not
/// pushed but placed when it wakes.
pub fn tang_6() -> TaskSet {
    let task = |name: &str, (cost, period): (u64, u64), offset: Span, cpus: &str| Task {
        offset,
        work: Work::Constant(ms(cost) - SPARE),
        start_cpu: Some(CpuId::from_index(0)),
        ..Task::periodic(name, ms(cost), ms(period), on(cpus))
    };
    named(
        "Tang et al. 2021, Example 6".to_owned(),
        vec![
            task("t1", (100, 700), ms(70), "0"),
            task("t2", (100, 500), ms(71), "1"),
            Task {
                arrival: Arrival::Releases(vec![Instant::ZERO, Instant::ZERO + ms(600)]),
                work: Work::Constant(ms(95)),
                ..task("t3", (50, 100), ms(2), "0-1")
            },
        ],
    )
}

/// The same with a task that sleeps: it stays where it preempts the task with the latest deadline.
pub fn tang_6_asleep() -> TaskSet {
    let mut set = tang_6();
    set.name += ", asleep";
    set.tasks[2].arrival = Arrival::Periodic;
    set.tasks[2].work = Work::Constant(ms(49));
    set
}

/// A job waits though it could preempt one elsewhere: the CPU with the latest deadline of all, the only one
/// that is looked at, is none of its own.
pub fn blind() -> TaskSet {
    let task = |name: &str, (cost, period): (u64, u64), offset: Span, cpus: &str| Task {
        offset,
        work: Work::Constant(ms(cost) - SPARE),
        start_cpu: Some(CpuId::from_index(0)),
        ..Task::periodic(name, ms(cost), ms(period), on(cpus))
    };
    named(
        "a CPU that is none of its own".to_owned(),
        vec![
            task("urgent", (33, 100), ms(10), "0"),
            task("later", (60, 200), ms(11), "1"),
            task("latest", (60, 250), ms(12), "2"),
            task("either", (20, 150), ms(27), "0-1"),
        ],
    )
}

/// Jobs that do twice what their budgets allow, and are throttled in between.
pub fn overrunning() -> TaskSet {
    let task = |name: &str, (cost, period, run): (u64, u64, u64), offset: Span, cpus: &str| Task {
        offset,
        work: Work::Constant(ms(run)),
        ..Task::periodic(name, ms(cost), ms(period), on(cpus))
    };
    named(
        "overruns".to_owned(),
        vec![
            task("greedy", (20, 100, 37), ms(1), "0-1"),
            task("bound", (30, 90, 29), ms(5), "0"),
            task("other", (40, 130, 39), ms(8), "1"),
            task("free", (15, 70, 14), ms(13), "0-1"),
        ],
    )
}

/// Two CPUs are free when a third one is not enough: which of them is taken is not the model's business.
pub fn two_free() -> TaskSet {
    let task = |name: &str, offset: Span, cpus: &str| Task {
        offset,
        work: Work::Constant(ms(29)),
        start_cpu: Some(CpuId::from_index(1)),
        ..Task::periodic(name, ms(30), ms(200), on(cpus))
    };
    named(
        "two free CPUs".to_owned(),
        vec![task("bound", ms(0), "1"), task("free", ms(5), "0-2")],
    )
}

/// Two jobs with the same deadline, to the nanosecond, become ready together on one CPU.
pub fn tie() -> TaskSet {
    let task = |name: &str, cost: u64| Task {
        offset: ms(10),
        work: Work::Constant(ms(cost - 1)),
        ..Task::periodic(name, ms(cost), ms(100), on("0"))
    };
    named("a tie".to_owned(), vec![task("a", 20), task("b", 30)])
}

/// The same where every task after the first `count` is released a little later.
pub fn later_from(set: &TaskSet, count: usize, by: Span) -> TaskSet {
    let mut set = set.clone();
    for task in &mut set.tasks[count..] {
        task.offset += by;
    }
    set
}
