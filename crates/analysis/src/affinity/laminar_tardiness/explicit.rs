//! Bounds without iteration: coarse, but there are always some. They are guesses like any other until
//! the operator is applied to them.

use super::bounds::Bounds;
use super::component::{Component, Member};

/// How late the tasks of the component may be if each cost were longer by `more`: the operator lowers
/// it where `more` is above zero.
///
/// # Cost
/// O(tasks).
///
/// # Source
/// Theorem 2 of `docs/theory/laminar-tardiness.md`.
pub(super) fn by_depth(of: &Component, more: f64) -> Bounds<f64> {
    let nodes = &of.nodes;
    // S of each node; how much more the nodes inside it are blocked (Dp); and than around it (z).
    let costs = |node: usize| of.tasks[nodes[node].all.clone()].iter();
    let costs = |node: usize| costs(node).map(|member| cost(member) + more).sum();
    let costs: Vec<f64> = (0..nodes.len()).map(costs).collect();
    let mut inside = vec![0f64; nodes.len()];
    let mut beyond = vec![0f64; nodes.len()];
    for place in (0..nodes.len()).rev() {
        beyond[place] = (nodes[place].cpus as f64 - 1.0) * inside[place] + costs[place];
        if let Some(parent) = nodes[place].parent {
            inside[parent] = inside[parent].max(beyond[place] + inside[place]);
        }
    }
    let mut busy = beyond.clone();
    let mut around = vec![0f64; nodes.len()];
    for place in 1..nodes.len() {
        if let Some(parent) = nodes[place].parent {
            around[place] = busy[parent];
            busy[place] = busy[parent] + beyond[place];
        }
    }
    let late = |member: &Member| cost(member) + more + busy[member.node];
    Bounds {
        late: of.tasks.iter().map(late).collect(),
        blocked: around.clone(),
        blocked_nearly_done: around,
    }
}

fn cost(member: &Member) -> f64 {
    member.task.cost.as_ns() as f64
}

/// Likewise, with the deadlines earlier by `shift` as priority points; `None` if some affinity is
/// neither the largest nor a single CPU.
///
/// # Source
/// Theorem 3.
pub(super) fn bi_level(of: &Component, shift: u64, more: f64) -> Option<Bounds<f64>> {
    let root = &of.nodes[0];
    if root.cpus < 2 || of.nodes[1..].iter().any(|node| node.cpus > 1) {
        return None;
    }
    let early = |member: &Member| {
        let point = member.task.deadline.as_ns().saturating_sub(shift);
        let before = member.task.period.as_ns().saturating_sub(point) as f64;
        cost(member) * before / member.task.period.as_ns() as f64
    };
    let longer = |member: &Member| cost(member) + more;
    let load = |member: &Member| cost(member) / member.task.period.as_ns() as f64;
    let globals = root.own.clone().map(|task| task..task + 1);
    let alike = globals.chain(of.nodes[1..].iter().map(|node| node.all.clone()));
    let (mut costs, mut loads, mut all_early) = (Vec::new(), Vec::new(), 0.0);
    for tasks in alike {
        let tasks = &of.tasks[tasks];
        let before: f64 = tasks.iter().map(early).sum();
        all_early += before;
        costs.push(tasks.iter().map(longer).sum::<f64>() - before);
        loads.push(tasks.iter().map(load).sum::<f64>());
    }
    let running = root.sets[0].running_max;
    let most = |mut amounts: Vec<f64>| -> f64 {
        amounts.sort_unstable_by(|a, b| b.total_cmp(a));
        amounts.iter().take(running).sum()
    };
    let cpus = root.cpus as f64;
    let blocked = (all_early + most(costs) + more) / (cpus - most(loads));
    let late = |member: &Member| match member.node {
        0 => blocked + longer(member) * (cpus - 1.0) / cpus,
        node => {
            let tasks = &of.tasks[of.nodes[node].all.clone()];
            blocked + tasks.iter().map(longer).sum::<f64>()
        }
    };
    let mut blocked = vec![blocked; of.nodes.len()];
    let late = of.tasks.iter().map(late).collect();
    blocked[0] = 0.0;
    Some(Bounds {
        late,
        blocked: blocked.clone(),
        blocked_nearly_done: blocked,
    })
}
