//! How long tardiness bounds under nested affinities take, single thread, beside the limits. CPU time,
//! so that neighbours on the machine do not count.

use std::hint::black_box;

use shiftwork_analysis::affinity::laminar_tardiness;
use shiftwork_analysis::{Outcome, Placed, Sporadic, Steps};
use shiftwork_model::{CpuSet, RandomStream, Span};

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
        let mut times = Vec::new();
        for seed in 0..SYSTEMS {
            let system = system(three_levels, tasks, seed);
            let before = cpu_time_ns();
            for _ in 0..RUNS {
                let outcome = laminar_tardiness(black_box(&system), &mut Steps::ordinary());
                assert!(
                    matches!(outcome, Outcome::Pass(_)),
                    "seed {seed}: {outcome:?}"
                );
            }
            let mean = (cpu_time_ns() - before) as f64 / 1e6 / f64::from(RUNS);
            times.push(mean);
        }
        times.sort_by(f64::total_cmp);
        println!(
            "{name:30} median {:7.3}  worst of {SYSTEMS} {:7.3}  limit {limit:5.1}  {}",
            times[times.len() / 2],
            times[times.len() - 1],
            if times[times.len() - 1] <= limit {
                "within"
            } else {
                "OVER"
            },
        );
    }
}

/// How long this process has been on a CPU: the first number of its schedstat.
fn cpu_time_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux has schedstat");
    let first = text.split_whitespace().next();
    first
        .and_then(|ns| ns.parse().ok())
        .expect("it begins with nanoseconds")
}
