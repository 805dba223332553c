//! Searches for task sets that are feasible at speed 1 and miss a deadline under `hpa-edf` at a
//! speed as high as possible: how close does a real task set come to the speedup bound?
//!
//! A set with costs C that misses on CPUs of speed 1, and would still be feasible with costs s C,
//! is a set that is feasible at speed 1 (costs s C) and misses at speed s. So it looks for sets that
//! miss, with integer costs, and climbs towards the largest s. Bi-level affinities and implicit
//! deadlines, for which feasibility is exact. Offsets are part of the set, so that any release
//! pattern of the first jobs can come up.
//!
//! `cargo run --release -p shiftwork-analysis --example speedup_search -- CPUS ROUNDS [SEED]`

#![allow(clippy::unwrap_used, reason = "an example that cannot go on fails")]

use std::cmp::Ordering;

use shiftwork_analysis::affinity::Speed;
use shiftwork_model::{
    Affinity, CpuId, CpuSet, Instant, RandomStream, Record, RecordKind, Span, Task, TaskSet,
};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};

/// Times are whole; the longest period, so that fractions have room.
const LONGEST: u64 = 2_000;

const TASKS_MAX: usize = 14;

/// A task on one CPU, or on all.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    cost: u64,
    period: u64,
    offset: u64,
    cpu: Option<usize>,
}

/// A fraction, both parts above zero.
#[derive(Clone, Copy, Debug)]
struct Fraction(u128, u128);

impl Fraction {
    fn compare(self, other: Self) -> Ordering {
        (self.0 * other.1).cmp(&(other.0 * self.1))
    }

    fn as_f64(self) -> f64 {
        self.0 as f64 / self.1 as f64
    }
}

/// The factor by which all costs can grow until the set is just feasible, in millionths rounded down.
fn speed(tasks: &[Candidate], cpus: usize) -> Fraction {
    // Sums of C/T with a common denominator, rounded up: the factor is then never overstated.
    const PARTS: u128 = 1 << 60;
    let load = |inside: &dyn Fn(&Candidate) -> bool| -> u128 {
        let tasks = tasks.iter().filter(|&task| inside(task));
        tasks
            .map(|task| (u128::from(task.cost) * PARTS).div_ceil(task.period.into()))
            .sum()
    };
    let alone = tasks
        .iter()
        .map(|task| Fraction(task.period.into(), task.cost.into()));
    let pinned = (0..cpus).map(|cpu| Fraction(PARTS, load(&|task| task.cpu == Some(cpu)).max(1)));
    let all = Fraction(PARTS * cpus as u128, load(&|_| true).max(1));
    let limits = alone.chain(pinned).chain([all]);
    limits
        .min_by(|a, b| a.compare(*b))
        .map(|least| Fraction(least.0 >> 8, (least.1 >> 8) + 1))
        .unwrap()
}

/// A job that waits or runs.
#[derive(Clone, Copy)]
struct Active {
    deadline: u64,
    left: u64,
    task: usize,
}

/// Whether a job misses its deadline under EDF with the strong invariant. Until the horizon; the
/// order is that of the policy (deadline, release, task), and on a tree of two levels the jobs that
/// run are the first that do not exceed one per CPU among the pinned and one per CPU in all.
fn misses(tasks: &[Candidate], cpus: usize) -> bool {
    let horizon = 3 * LONGEST;
    let mut next: Vec<u64> = tasks.iter().map(|task| task.offset).collect();
    let mut active: Vec<Active> = Vec::new();
    let mut now = 0;
    while now < horizon {
        for (task, next) in next
            .iter_mut()
            .enumerate()
            .filter(|(_, next)| **next == now)
        {
            active.push(Active {
                deadline: now + tasks[task].period,
                left: tasks[task].cost,
                task,
            });
            *next = now + tasks[task].period;
        }
        active.sort_unstable_by_key(|job| {
            (
                job.deadline,
                job.deadline - tasks[job.task].period,
                job.task,
            )
        });
        let (mut taken, mut free) = (0u64, cpus);
        let mut running: Vec<usize> = Vec::with_capacity(cpus);
        for (place, job) in active.iter().enumerate() {
            let bit = tasks[job.task].cpu.map_or(0, |cpu| 1 << cpu);
            if free > 0 && taken & bit == 0 {
                taken |= bit;
                free -= 1;
                running.push(place);
            }
        }
        let release = next.iter().copied().min().unwrap();
        let finish = running.iter().map(|&place| now + active[place].left).min();
        let then = finish.map_or(release, |finish| finish.min(release));
        running
            .iter()
            .for_each(|&place| active[place].left -= then - now);
        now = then;
        // Each deadline is an instant that is looked at: there the next job is released.
        if active.iter().any(|job| job.left > 0 && job.deadline <= now) {
            return true;
        }
        active.retain(|job| job.left > 0);
    }
    false
}

/// The same answer from the simulator with the real policy.
fn misses_in_the_simulator(tasks: &[Candidate], cpus: usize) -> bool {
    let task = |candidate: &Candidate| {
        let affinity = match candidate.cpu {
            Some(cpu) => Affinity::pinned(CpuId::from_index(cpu)),
            None => Affinity::new(CpuSet::first(cpus)).unwrap(),
        };
        let [cost, period] = [candidate.cost, candidate.period].map(Span::from_ns);
        let mut task = Task::periodic("T", cost, period, affinity);
        task.offset = Span::from_ns(candidate.offset);
        task
    };
    let set = TaskSet::new("", cpus, tasks.iter().map(task).collect());
    let entry = registry::find("hpa-edf").unwrap();
    let options = Options {
        seed: 0,
        horizon: Instant::from_ns(4 * LONGEST),
        overheads: None,
        reserve_server: false,
    };
    let mut records: Vec<Record> = Vec::new();
    Simulation::new(&set, entry.build(&set).unwrap(), &entry.traits, options).run(&mut records);
    let mut due = std::collections::BTreeMap::new();
    let mut late = false;
    for record in &records {
        match record.kind {
            RecordKind::Released { job, deadline } => {
                due.insert(job, deadline);
            }
            RecordKind::Completed { job } => {
                late |= due
                    .remove(&job)
                    .is_some_and(|deadline| deadline < record.at);
            }
            _ => {}
        }
    }
    late
}

fn random_task(stream: &mut RandomStream, cpus: usize) -> Candidate {
    let period = 20 + stream.below(LONGEST - 19);
    Candidate {
        cost: 1 + stream.below(period),
        period,
        offset: stream.below(2) * stream.below(LONGEST),
        cpu: (stream.below(2) == 0).then(|| stream.below(cpus as u64) as usize),
    }
}

/// A little more or less, by a step of any order of magnitude.
fn nudged(value: u64, low: u64, high: u64, stream: &mut RandomStream) -> u64 {
    let most = 1 << stream.below(10);
    let step = 1 + stream.below(most);
    let moved = match stream.below(2) {
        0 => value.saturating_add(step),
        _ => value.saturating_sub(step),
    };
    moved.clamp(low, high)
}

fn changed(tasks: &[Candidate], cpus: usize, stream: &mut RandomStream) -> Vec<Candidate> {
    let mut tasks = tasks.to_vec();
    for _ in 0..1 + stream.below(3) {
        let place = stream.below(tasks.len() as u64) as usize;
        let task = &mut tasks[place];
        match stream.below(10) {
            0..4 => task.cost = nudged(task.cost, 1, task.period, stream),
            4..6 => {
                task.period = nudged(task.period, task.cost.max(20), LONGEST, stream);
            }
            6 => task.offset = nudged(task.offset, 0, LONGEST, stream),
            7 => {
                *task = Candidate {
                    cpu: random_task(stream, cpus).cpu,
                    ..*task
                }
            }
            8 if tasks.len() < TASKS_MAX => {
                let new = match stream.below(2) {
                    0 => tasks[place],
                    _ => random_task(stream, cpus),
                };
                tasks.push(new);
            }
            _ if tasks.len() > 2 => {
                tasks.swap_remove(place);
            }
            _ => {}
        }
    }
    tasks
}

/// The best set of one climb, which begins at random.
fn climb(cpus: usize, rounds: u64, stream: &mut RandomStream) -> Vec<Candidate> {
    let mut best = loop {
        let count = 2 + stream.below(TASKS_MAX as u64 - 4);
        let tasks: Vec<Candidate> = (0..count).map(|_| random_task(stream, cpus)).collect();
        if misses(&tasks, cpus) {
            break tasks;
        }
    };
    let mut found = speed(&best, cpus);
    for _ in 0..rounds {
        let tasks = changed(&best, cpus, stream);
        let candidate = speed(&tasks, cpus);
        if candidate.compare(found) != Ordering::Less && misses(&tasks, cpus) {
            (best, found) = (tasks, candidate);
        }
    }
    best
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| {
        let given = arguments.next().and_then(|text| text.parse().ok());
        given.unwrap_or(default)
    };
    let (cpus, rounds, seed) = (number(2) as usize, number(200_000), number(1));
    let limit = Speed::new(cpus, 1).unwrap().as_f64();
    let mut best = 0.0;
    for start in 0..12 {
        let mut stream = RandomStream::new(seed, 46, start);
        let tasks = climb(cpus, rounds, &mut stream);
        let found = speed(&tasks, cpus).as_f64();
        let late = misses_in_the_simulator(&tasks, cpus);
        assert!(late, "the simulator sees no miss of {tasks:?}");
        if found > best {
            best = found;
            println!("start {start}: {found:.4} of at most {limit:.4} on {cpus} CPUs");
            for task in &tasks {
                let cpu = task.cpu.map_or("all".into(), |cpu| cpu.to_string());
                let Candidate {
                    cost,
                    period,
                    offset,
                    ..
                } = task;
                println!("  cost {cost:4}  period {period:4}  offset {offset:4}  cpus {cpu}");
            }
        }
    }
}
