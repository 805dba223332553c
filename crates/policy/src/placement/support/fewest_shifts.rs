//! The placement with the fewest shifts, for changes that concern more than one job at once: exact,
//! and off the dispatch path.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use shiftwork_model::{CpuId, TaskId};

/// A CPU's job is another one than before the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub cpu: CpuId,
    pub to: Option<TaskId>,
}

/// What it costs to place a job away from the CPU that it ran on; other preferences cost at most 1,
/// and fewer than this many jobs have any.
const SHIFT: i64 = 4096;

/// Places the jobs scheduled in `now` with as few of them as possible on other CPUs than in
/// `before`, and says what differs between `now` and that placement.
///
/// `cpus_of` are the CPUs that a job may use, `last_cpu` the one that a job without a CPU in `before`
/// prefers. Jobs keep their CPUs where they may, then the others are added one by one along
/// cheapest augmenting paths, which keeps the cost minimal at every step (successive shortest
/// paths).
///
/// O(a m³) in the worst case for a added jobs and m CPUs, in practice far less.
pub(crate) fn fewest_shifts(
    before: &[Option<TaskId>],
    now: &[Option<TaskId>],
    cpus_of: impl Fn(TaskId) -> Vec<CpuId>,
    last_cpu: impl Fn(TaskId) -> Option<CpuId>,
) -> Vec<Move> {
    let scheduled: BTreeMap<TaskId, Vec<CpuId>> = now
        .iter()
        .flatten()
        .map(|&task| (task, cpus_of(task)))
        .collect();
    let mut homes: BTreeMap<TaskId, CpuId> = BTreeMap::new();
    let mut placed: Vec<Option<TaskId>> = alloc::vec![None; before.len()];
    for (index, task) in before.iter().enumerate() {
        let cpu = CpuId::from_index(index);
        let Some(task) = *task else { continue };
        if scheduled.get(&task).is_some_and(|cpus| cpus.contains(&cpu)) {
            homes.insert(task, cpu);
            placed[index] = Some(task);
        }
    }
    let cost = |task: TaskId, cpu: CpuId| match homes.get(&task) {
        Some(&home) => {
            if home == cpu {
                0
            } else {
                SHIFT
            }
        }
        None => i64::from(last_cpu(task) != Some(cpu)),
    };
    for &task in scheduled.keys().filter(|task| !homes.contains_key(task)) {
        augment(&mut placed, task, &scheduled, &cost);
    }
    (0..now.len())
        .filter(|&index| placed[index] != now[index])
        .map(|index| Move {
            cpu: CpuId::from_index(index),
            to: placed[index],
        })
        .collect()
}

/// Adds one job along the cheapest path to a free CPU (Bellman and Ford; costs may be negative).
fn augment(
    placed: &mut [Option<TaskId>],
    task: TaskId,
    scheduled: &BTreeMap<TaskId, Vec<CpuId>>,
    cost: &impl Fn(TaskId, CpuId) -> i64,
) {
    let mut distance = alloc::vec![i64::MAX; placed.len()];
    let mut came_from: Vec<Option<usize>> = alloc::vec![None; placed.len()];
    for &cpu in &scheduled[&task] {
        distance[cpu.index()] = cost(task, cpu);
    }
    let mut changed = true;
    while changed {
        changed = false;
        for from in 0..placed.len() {
            let (Some(runner), true) = (placed[from], distance[from] < i64::MAX) else {
                continue;
            };
            let left = distance[from] - cost(runner, CpuId::from_index(from));
            for &cpu in &scheduled[&runner] {
                let reached = left + cost(runner, cpu);
                if cpu.index() != from && reached < distance[cpu.index()] {
                    distance[cpu.index()] = reached;
                    came_from[cpu.index()] = Some(from);
                    changed = true;
                }
            }
        }
    }
    let free = (0..placed.len())
        .filter(|&cpu| placed[cpu].is_none() && distance[cpu] < i64::MAX)
        .min_by_key(|&cpu| distance[cpu]);
    let mut cpu = free.expect("the scheduled jobs fit on their CPUs");
    while let Some(from) = came_from[cpu] {
        placed[cpu] = placed[from];
        cpu = from;
    }
    placed[cpu] = Some(task);
}
