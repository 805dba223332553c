//! Task sets in whole units, and the releases of adversaries.

use shiftwork_analysis::{Placed, Sporadic};
use shiftwork_model::{CpuSet, RandomStream, Span};

use crate::schedule::Job;

/// Cost, period, deadline, CPUs as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    pub cost: u64,
    pub period: u64,
    pub deadline: u64,
    pub mask: u64,
}

impl Plain {
    /// min(D, T).
    pub fn window(&self) -> u64 {
        self.deadline.min(self.period)
    }
}

/// As tests take them, a unit being a nanosecond.
pub fn placed(tasks: &[Plain]) -> Vec<Placed> {
    let one = |task: &Plain| Placed {
        task: Sporadic {
            cost: Span::from_ns(task.cost),
            period: Span::from_ns(task.period),
            deadline: Span::from_ns(task.deadline),
        },
        cpus: CpuSet::from_bits(task.mask),
    };
    tasks.iter().map(one).collect()
}

pub fn masks(tasks: &[Plain]) -> Vec<u64> {
    tasks.iter().map(|task| task.mask).collect()
}

/// A nested family on up to `cpus_max` CPUs; the first is the root.
pub fn family(cpus_max: u64, stream: &mut RandomStream) -> Vec<u64> {
    let cpus = 1 + stream.below(cpus_max) as usize;
    let mut family = Vec::new();
    split(0, cpus, stream, &mut family);
    family
}

/// A range of CPUs, and nodes inside it.
fn split(from: usize, to: usize, stream: &mut RandomStream, family: &mut Vec<u64>) {
    family.push(((1u64 << to) - 1) & !((1u64 << from) - 1));
    let mut at = from;
    while at < to {
        let size = 1 + stream.below((to - at) as u64) as usize;
        if size < to - from && stream.below(4) > 0 {
            split(at, at + size, stream, family);
        }
        at += size;
    }
}

/// Tasks with these affinities; implicit, constrained or arbitrary deadlines, as the stream says.
pub fn tasks(family: &[u64], longest: u64, stream: &mut RandomStream) -> Vec<Plain> {
    let kind = stream.below(3);
    let count = 1 + stream.below(3 + 2 * family.len().min(4) as u64);
    let task = |_| {
        let period = (longest / 2 + stream.below(longest / 2)).max(2);
        let cost = 1 + stream.below(period);
        let deadline = match kind {
            0 => period,
            1 => cost + stream.below(period - cost + 1),
            _ => cost + stream.below(2 * period),
        };
        Plain {
            cost,
            period,
            deadline,
            mask: family[stream.below(family.len() as u64) as usize],
        }
    };
    let mut tasks: Vec<Plain> = (0..count).map(task).collect();
    tasks[0].mask = family[0];
    tasks
}

/// Releases that tend to make jobs late, for so many periods of the longest task: together, from random
/// offsets, due together, or with random gaps; in a third of the cases some jobs are shorter.
pub fn releases(tasks: &[Plain], periods: u64, stream: &mut RandomStream) -> Vec<Vec<Job>> {
    let longest = tasks.iter().map(|task| task.period).max().unwrap_or(1);
    let due = tasks.iter().map(|task| task.deadline).max().unwrap_or(0) + stream.below(2) * longest;
    let until = periods * longest;
    let kind = stream.below(4);
    let some_are_short = stream.below(3) == 0;
    let of = |task: &Plain| {
        let mut release = match kind {
            0 => 0,
            1 | 3 => stream.below(task.period),
            _ => (due - task.deadline) % task.period,
        };
        let mut jobs = Vec::new();
        while release < until {
            jobs.push(Job {
                release,
                cost: match some_are_short && stream.below(3) == 0 {
                    true => 1 + stream.below(task.cost),
                    false => task.cost,
                },
                deadline: release + task.deadline,
            });
            let gap = match kind == 3 && stream.below(2) == 0 {
                true => stream.below(task.period),
                false => 0,
            };
            release += task.period + gap;
        }
        jobs
    };
    tasks.iter().map(of).collect()
}

/// Ties that tend to make jobs late: by the place, larger affinities first, or at random.
pub fn ties<'a>(tasks: &'a [Plain], stream: &'a mut RandomStream) -> impl FnMut(usize) -> u64 + 'a {
    let kind = stream.below(3);
    move |task| match kind {
        0 => task as u64,
        1 => 64 - u64::from(tasks[task].mask.count_ones()),
        _ => stream.below(64),
    }
}

/// The chain of a nested family, from the outside, that needs the highest speed, and the tasks that need it: with all
/// released together, all deadlines as far away and ties by the place, EDF works down the chain, while
/// all of it could be done in `unit` units of time. Deadlines are set to `deadline`.
pub fn chain_tasks(chain: &[u64], unit: u64, deadline: u64) -> Vec<Plain> {
    let size = |mask: u64| u64::from(mask.count_ones());
    let inner = chain.iter().skip(1).map(|&mask| size(mask)).chain([1]);
    let mut tasks = Vec::new();
    for (&mask, inner) in chain.iter().zip(inner) {
        let task = Plain {
            cost: unit / size(mask) * (size(mask) - inner),
            period: deadline,
            deadline,
            mask,
        };
        let count = if task.cost > 0 { size(mask) } else { 0 };
        tasks.extend((0..count).map(|_| task));
    }
    let last = chain.last().expect("a chain has a node");
    tasks.push(Plain {
        cost: unit,
        period: deadline,
        deadline,
        mask: *last,
    });
    tasks
}

/// One job of each task, released together.
pub fn one_job_each(tasks: &[Plain]) -> Vec<Vec<Job>> {
    let job = |task: &Plain| {
        vec![Job {
            release: 0,
            cost: task.cost,
            deadline: task.deadline,
        }]
    };
    tasks.iter().map(job).collect()
}

/// All chains of a nested family, from the root to any node, skipping none.
pub fn chains(family: &[u64]) -> Vec<Vec<u64>> {
    let chain = |&node: &u64| {
        let mut around: Vec<u64> = family
            .iter()
            .copied()
            .filter(|mask| node & !mask == 0)
            .collect();
        around.sort_unstable_by_key(|mask| std::cmp::Reverse(mask.count_ones()));
        around.dedup();
        around
    };
    family.iter().map(chain).collect()
}
