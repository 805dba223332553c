//! Bounds without iteration: coarse, but there is always one. Nanoseconds, rounded up; what does not
//! fit 128 bits saturates.

use super::component::{Component, Member};

/// 2^40: utilizations are multiples of this part of a CPU here, rounded up.
const CPU: u128 = 1 << 40;

/// By how much each task of the component may be late.
///
/// # Cost
/// O(tasks log tasks).
///
/// # Source
/// Theorems 2 and 3 of `docs/theory/laminar-tardiness.md`, task by task the better one.
pub(super) fn explicit(of: &Component, shift: u64) -> Vec<u128> {
    let mut late = by_depth(of);
    if let Some(other) = bi_level(of, shift) {
        for (late, other) in late.iter_mut().zip(other) {
            *late = other.min(*late);
        }
    }
    late
}

/// Theorem 2.
pub(super) fn by_depth(of: &Component) -> Vec<u128> {
    let nodes = &of.nodes;
    // S of each node; how much more the nodes inside it are blocked (Dp); and than around it (z).
    let costs = |node: usize| of.tasks[nodes[node].all.clone()].iter().map(cost).sum();
    let costs: Vec<u128> = (0..nodes.len()).map(costs).collect();
    let mut inside = vec![0u128; nodes.len()];
    let mut more = vec![0u128; nodes.len()];
    for place in (0..nodes.len()).rev() {
        let others = nodes[place].cpus as u128 - 1;
        more[place] = others
            .saturating_mul(inside[place])
            .saturating_add(costs[place]);
        if let Some(parent) = nodes[place].parent {
            inside[parent] = inside[parent].max(more[place].saturating_add(inside[place]));
        }
    }
    let mut blocked = more.clone();
    for place in 1..nodes.len() {
        if let Some(parent) = nodes[place].parent {
            blocked[place] = blocked[parent].saturating_add(more[place]);
        }
    }
    let late = |member| cost(member).saturating_add(blocked[member.node]);
    of.tasks.iter().map(late).collect()
}

fn cost(member: &Member) -> u128 {
    member.task.cost.as_ns().into()
}

/// Theorem 3; `None` if some affinity is neither the largest nor a single CPU.
pub(super) fn bi_level(of: &Component, shift: u64) -> Option<Vec<u128>> {
    let root = &of.nodes[0];
    if root.cpus < 2 || of.nodes[1..].iter().any(|node| node.cpus > 1) {
        return None;
    }
    let early = |member: &Member| {
        let point = member.task.deadline.as_ns().saturating_sub(shift);
        let before: u128 = member.task.period.as_ns().saturating_sub(point).into();
        (cost(member) * before).div_ceil(member.task.period_ns())
    };
    let load = |member: &Member| (cost(member) * CPU).div_ceil(member.task.period_ns());
    let globals = root.own.clone().map(|task| task..task + 1);
    let alike = globals.chain(of.nodes[1..].iter().map(|node| node.all.clone()));
    let (mut costs, mut loads, mut all_early) = (Vec::new(), Vec::new(), 0);
    for tasks in alike {
        let tasks = &of.tasks[tasks];
        let before: u128 = tasks.iter().map(early).sum();
        all_early += before;
        // Rounded up, one nanosecond per task at most above the cost.
        costs.push(tasks.iter().map(cost).sum::<u128>().saturating_sub(before));
        loads.push(tasks.iter().map(load).sum::<u128>());
    }
    let running = root.sets[0].running_max;
    let most = |mut amounts: Vec<u128>| -> u128 {
        amounts.sort_unstable_by(|a, b| b.cmp(a));
        amounts.iter().take(running).sum()
    };
    let (work, load) = (all_early + most(costs), most(loads));
    let left = (root.cpus as u128 * CPU)
        .checked_sub(load)
        .filter(|&left| left > 0)?;
    let blocked = work.checked_mul(CPU)?.div_ceil(left);
    let late = |member: &Member| match member.node {
        0 => blocked + (cost(member) * (root.cpus as u128 - 1)).div_ceil(root.cpus as u128),
        node => {
            blocked
                + of.tasks[of.nodes[node].all.clone()]
                    .iter()
                    .map(cost)
                    .sum::<u128>()
        }
    };
    Some(of.tasks.iter().map(late).collect())
}
