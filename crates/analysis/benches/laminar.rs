//! How long tests of nested affinities take, single thread, beside the limits. CPU time, so that
//! neighbours on the machine do not count.

use std::hint::black_box;

use shiftwork_analysis::affinity::{
    Bound, laminar_tardiness, nested_density, waiting_levels_edf, waiting_levels_fp,
};
use shiftwork_analysis::{Outcome, Placed, Ranked, Sporadic, Steps};
use shiftwork_model::{CpuSet, RandomStream, Share, Span};
use shiftwork_taskset::generate::{Key, Options, Shape, Utilizations, generate};

const CPUS: usize = 32;
const SYSTEMS: u64 = 40;
/// Enough that the kernel's ticks, in which it counts, do not matter.
const RUNS: u32 = 20;

/// Tasks until about 31.7 of 32 CPUs are used; periods of 10 to 100 ms in whole ms.
fn system(three_levels: bool, tasks: usize, seed: u64) -> Vec<Placed> {
    let mut stream = RandomStream::new(seed, 122, u64::from(three_levels));
    let whole = 1_000_000;
    let mut nodes: Vec<(u64, u64)> = vec![(u64::MAX >> 32, 0)];
    nodes.extend((0..CPUS).map(|cpu| (1 << cpu, 0)));
    if three_levels {
        nodes.extend((0..CPUS / 4).map(|cluster| (0xf << (4 * cluster), 0)));
    }
    let mut placed = Vec::new();
    let mut left = 31_700_000;
    while placed.len() < tasks {
        let still = (tasks - placed.len()) as u64;
        let mean = left / still;
        let share = (mean / 2 + stream.below(mean + 1)).min(950_000).min(left);
        let share = if still == 1 { left.min(whole) } else { share };
        let kind = stream.below(nodes.len() as u64) as usize;
        let mask = if stream.below(2) == 0 {
            nodes[0].0
        } else {
            nodes[kind].0
        };
        let fits = nodes.iter().all(|&(node, used)| {
            mask & !node != 0 || used + share <= u64::from(node.count_ones()) * whole
        });
        let mask = if fits { mask } else { nodes[0].0 };
        let around = nodes.iter_mut().filter(|node| mask & !node.0 == 0);
        around.for_each(|node| node.1 += share);
        left -= share;
        let period = 10 + stream.below(91);
        placed.push(Placed {
            task: Sporadic {
                cost: Span::from_ns(period * share),
                period: Span::from_ms(period),
                deadline: Span::from_ms(period),
            },
            cpus: CpuSet::from_bits(mask),
        });
    }
    placed
}

fn main() {
    println!("tardiness bounds under nested affinities, {CPUS} CPUs, milliseconds");
    for (name, three_levels, tasks, limit) in [
        ("bi-level, n = 122", false, 122, 10.0),
        ("CPU / 4 CPUs / all, n = 122", true, 122, 50.0),
    ] {
        measure(name, limit, 1e6, RUNS, |seed| {
            let system = system(three_levels, tasks, seed);
            move || {
                let outcome = laminar_tardiness(black_box(&system), &mut Steps::ordinary());
                assert!(
                    matches!(outcome, Outcome::Pass(_)),
                    "seed {seed}: {outcome:?}"
                );
            }
        });
    }
    println!("density test for nested affinities, 64 CPUs, n = 1024, microseconds");
    let supply = Share::from_billionths(Share::WHOLE).expect("a whole is a share");
    for (name, of) in [
        (
            "bi-level",
            (|draw| [u64::MAX, 1 << (draw / 2)][draw % 2]) as fn(usize) -> u64,
        ),
        ("CPU / 4 CPUs / all", |draw| {
            [u64::MAX, 0xf << (draw / 12 * 4), 1 << (draw / 2)][draw % 3]
        }),
        ("chain of 64", |draw| u64::MAX >> (draw / 2)),
    ] {
        measure(name, 20.0, 1e3, 2_000, |seed| {
            let system = light(of, seed);
            move || {
                let outcome = nested_density(black_box(&system), supply, &mut Steps::ordinary());
                assert_eq!(outcome, Outcome::Pass(()), "seed {seed}");
            }
        });
    }
    waiting_levels();
}

/// The loads, in twentieths, around which tests of sets like these begin to fail.
const LOADS: std::ops::Range<u64> = 1..13;

/// As in `studies/hpa-2016.toml`, with priorities by period.
fn sockets(seed: u64) -> Vec<Bound> {
    let options = Options {
        cpus: 24,
        utilizations: Utilizations::RandFixedSum {
            tasks: 240,
            total: 1.2 * (LOADS.start + seed % (LOADS.end - LOADS.start)) as f64,
        },
        shape: Shape::ThreeLevel(12),
        min_cost: Span::from_us(500),
        ..Options::default()
    };
    let key = Key {
        seed: 122,
        cell: 3,
        index: seed,
    };
    let set = generate(&options, key).expect("such sets can be drawn");
    let tasks = set.tasks.iter().zip(set.priorities());
    let bound = tasks.map(|(task, priority)| Bound {
        ranked: Ranked {
            task: Sporadic::from(task),
            priority,
        },
        cpus: *task.affinity.cpus(),
    });
    bound.collect()
}

fn waiting_levels() {
    println!("waiting levels, CPU / 12 CPUs / 24, n = 240, loads 0.05 to 0.6, milliseconds");
    let whole = Share::from_billionths(Share::WHOLE).expect("a whole is a share");
    measure("strong EDF", 20.0, 1e6, 2, |seed| {
        let placed = sockets(seed).into_iter().map(|bound| Placed {
            task: bound.ranked.task,
            cpus: bound.cpus,
        });
        let placed: Vec<Placed> = placed.collect();
        move || {
            let outcome = waiting_levels_edf(black_box(&placed), whole, &mut Steps::ordinary());
            black_box(&outcome);
        }
    });
    measure("strong fixed priorities", 20.0, 1e6, 2, |seed| {
        let bound = sockets(seed);
        move || {
            let outcome = waiting_levels_fp(black_box(&bound), whole, &mut Steps::ordinary());
            black_box(&outcome);
        }
    });
}

/// 1024 tasks of 64 CPUs, which `of` chooses by a number below 128; densities of half to one and a half hundredths.
fn light(of: fn(usize) -> u64, seed: u64) -> Vec<Placed> {
    let mut stream = RandomStream::new(seed, 122, 2);
    let task = |_| {
        let period = 10 + stream.below(91);
        Placed {
            task: Sporadic {
                cost: Span::from_ns(period * (5_000 + stream.below(10_000))),
                period: Span::from_ms(period),
                deadline: Span::from_ms(period),
            },
            cpus: CpuSet::from_bits(of(stream.below(128) as usize)),
        }
    };
    (0..1024).map(task).collect()
}

/// Prints how long runs on the systems that `prepare` makes of seeds take, in units of so many nanoseconds.
fn measure<Run: FnMut()>(
    name: &str,
    limit: f64,
    unit_ns: f64,
    runs: u32,
    prepare: impl Fn(u64) -> Run,
) {
    let mut times: Vec<f64> = (0..SYSTEMS)
        .map(|seed| {
            let mut run = prepare(seed);
            let before = cpu_time_ns();
            (0..runs).for_each(|_| run());
            (cpu_time_ns() - before) as f64 / unit_ns / f64::from(runs)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
    let verdict = if worst <= limit { "within" } else { "OVER" };
    println!(
        "{name:30} median {median:7.3}  worst of {SYSTEMS} {worst:7.3}  limit {limit:5.1}  {verdict}"
    );
}

/// How long this process has been on a CPU: the first number of its schedstat.
fn cpu_time_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux has schedstat");
    let first = text.split_whitespace().next();
    first
        .and_then(|ns| ns.parse().ok())
        .expect("it begins with nanoseconds")
}
