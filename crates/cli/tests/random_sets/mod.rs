//! Random task sets with everything that a task-set file can say: all shapes of affinities, all
//! kinds of arrivals and work, overruns, suspensions, and timed changes.

use shiftwork_model::{
    Action, Affinity, Arrival, Change, CpuId, CpuSet, Instant, OnOverrun, Phase, Platform,
    Priority, RandomStream, Span, Task, TaskId, TaskSet, Work,
};

/// How many shapes of affinities there are; the seed walks through them.
pub const SHAPES: u64 = 6;

/// The task set of this seed.
pub fn random_set(seed: u64) -> TaskSet {
    let random = &mut RandomStream::new(seed, 0x636f_6e66, 0);
    // Now and then more CPUs than one machine word has bits.
    let cpus = match random.below(24) {
        0 => 65 + random.below(12) as usize,
        _ => 1 + random.below(8) as usize,
    };
    let (masks, clusters) = shape(seed % SHAPES, cpus, random);
    let count = 1 + random.below(3 * cpus as u64 + 2);
    let tasks = (0..count)
        .map(|index| task(index, &masks, cpus, random))
        .collect();
    let platform = Platform {
        clusters,
        caches: caches(cpus, random),
        ..Platform::uniform(cpus)
    };
    let mut set = TaskSet {
        platform,
        ..TaskSet::new(&format!("seed-{seed}"), cpus, tasks)
    };
    if random.below(3) == 0 {
        set.actions = actions(&set, &masks, random);
    }
    set
}

/// The affinities to choose from, and the clusters.
fn shape(shape: u64, cpus: usize, random: &mut RandomStream) -> (Vec<CpuSet>, Vec<CpuSet>) {
    let all = CpuSet::first(cpus);
    let singles = || (0..cpus).map(|cpu| CpuSet::single(CpuId::from_index(cpu)));
    let clusters: Vec<CpuSet> = ranges(0, cpus, 1 + random.below(4) as usize);
    match shape {
        0 => (vec![all], Vec::new()),
        1 => (singles().collect(), Vec::new()),
        2 => (singles().chain([all]).collect(), Vec::new()),
        3 => (clusters.iter().copied().chain([all]).collect(), clusters),
        4 => {
            let mut masks = Vec::new();
            laminar(0, cpus, random, &mut masks);
            (masks, Vec::new())
        }
        _ => {
            let mask = |random: &mut RandomStream| {
                let set: CpuSet = all.iter().filter(|_| random.below(2) == 0).collect();
                if set.is_empty() { all } else { set }
            };
            ((0..6).map(|_| mask(random)).collect(), Vec::new())
        }
    }
}

/// Cuts `first..last` into pieces of `size`; the last may be shorter.
fn ranges(first: usize, last: usize, size: usize) -> Vec<CpuSet> {
    (first..last)
        .step_by(size)
        .map(|from| CpuSet::first(last.min(from + size)) - CpuSet::first(from))
        .collect()
}

/// A random tree of nested masks over `first..last`.
fn laminar(first: usize, last: usize, random: &mut RandomStream, masks: &mut Vec<CpuSet>) {
    masks.push(CpuSet::first(last) - CpuSet::first(first));
    if last - first < 2 {
        return;
    }
    let middle = first + 1 + random.below((last - first - 1) as u64) as usize;
    // Some CPUs are covered by no smaller mask.
    if random.below(4) > 0 {
        laminar(first, middle, random, masks);
    }
    if random.below(4) > 0 {
        laminar(middle, last, random, masks);
    }
}

fn caches(cpus: usize, random: &mut RandomStream) -> Vec<CpuSet> {
    match random.below(2) {
        0 => Vec::new(),
        _ => ranges(0, cpus, 2)
            .into_iter()
            .chain(ranges(0, cpus, 4))
            .collect(),
    }
}

fn us(random: &mut RandomStream, least: u64, most: u64) -> Span {
    Span::from_us(least + random.below(most - least + 1))
}

fn task(index: u64, masks: &[CpuSet], cpus: usize, random: &mut RandomStream) -> Task {
    let mask = masks[random.below(masks.len() as u64) as usize];
    let affinity = Affinity::new(mask).expect("masks are not empty");
    let period = us(random, 10, 200).checked_mul(100).expect("at most 20 ms");
    let cost = us(random, 50, period.as_ns() / 1_000);
    let deadline = match random.below(3) {
        0 => period,
        1 => cost + us(random, 0, 5_000),
        _ => period + us(random, 0, 20_000),
    };
    Task {
        deadline: deadline.max(cost),
        offset: if random.below(3) == 0 {
            us(random, 0, 20_000)
        } else {
            Span::ZERO
        },
        // Few priorities, so that ties occur.
        priority: (random.below(2) == 0).then(|| priority(random)),
        arrival: arrival(period, random),
        start_cpu: (random.below(4) == 0)
            .then(|| CpuId::from_index(random.below(cpus as u64) as usize)),
        work: work(cost, random),
        on_overrun: match random.below(3) {
            0 => OnOverrun::Continue,
            _ => OnOverrun::Throttle,
        },
        ..Task::periodic(&format!("t{index}"), cost, period, affinity)
    }
}

fn priority(random: &mut RandomStream) -> Priority {
    Priority::new(1 + random.below(4) as u32).expect("from 1 to 4")
}

fn arrival(period: Span, random: &mut RandomStream) -> Arrival {
    match random.below(5) {
        0 => Arrival::Sporadic,
        1 => {
            let mut at = Instant::ZERO;
            let mut next = || {
                at += period + us(random, 0, 3_000);
                at
            };
            Arrival::Releases((0..4).map(|_| next()).collect())
        }
        _ => Arrival::Periodic,
    }
}

fn work(cost: Span, random: &mut RandomStream) -> Work {
    let part = |random: &mut RandomStream, percent: u64| {
        Span::from_ns(1 + cost.as_ns() * random.below(percent) / 100)
    };
    match random.below(8) {
        0 => Work::Constant(part(random, 100)),
        1 => Work::Constant(part(random, 180)),
        2 => Work::Uniform(Span::from_ns(1), cost),
        3 => Work::Uniform(Span::from_ns(1), cost + cost),
        4 => Work::Trace(vec![part(random, 100), cost, part(random, 150)]),
        5 => Work::Phases(vec![
            Phase::Run(part(random, 50)),
            Phase::Sleep(us(random, 1, 4_000)),
            Phase::Run(part(random, 50)),
        ]),
        _ => Work::Cost,
    }
}

fn actions(set: &TaskSet, masks: &[CpuSet], random: &mut RandomStream) -> Vec<Action> {
    let cpus = set.platform.cpus as u64;
    let mut actions: Vec<Action> = (0..1 + random.below(8))
        .map(|_| {
            let task = TaskId::from_index(random.below(set.tasks.len() as u64) as usize);
            let cpu = CpuId::from_index(random.below(cpus) as usize);
            let mask = masks[random.below(masks.len() as u64) as usize];
            let change = match random.below(7) {
                0 => Change::Enter(task),
                1 => Change::Leave(task),
                2 => Change::SetPriority(task, priority(random)),
                3 => Change::CpuOffline(cpu),
                4 => Change::CpuOnline(cpu),
                5 => Change::SetAttributes {
                    task,
                    cost: None,
                    period: Some(us(random, 2_000, 20_000).max(set.tasks[task.index()].cost)),
                    deadline: None,
                },
                _ => Change::SetAffinity(task, Affinity::new(mask).expect("masks are not empty")),
            };
            Action {
                at: Instant::ZERO + us(random, 0, 140).checked_mul(1_000).expect("0.14 s"),
                change,
            }
        })
        .collect();
    actions.sort_by_key(|action| action.at);
    actions
}
