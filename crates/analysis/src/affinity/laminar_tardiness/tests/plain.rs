//! The solver beside plain iteration of the operator from zero with all sets, which converges to the
//! least fixed point.

use shiftwork_model::{CpuSet, RandomStream, Span};

use super::super::bounds::{Bounds, Chosen};
use super::super::component::Component;
use super::super::operator::Operator;
use super::super::{components, groups, solve};
use super::times_if_long;
use crate::exact::whole;
use crate::{Placed, Sporadic, Steps};

/// The limit, if so many iterations reach it.
fn limit(of: &Component, shift: u64) -> Option<Bounds<f64>> {
    let all = of.nodes.iter().map(|node| (0..node.sets.len()).collect());
    let every: Chosen = all.collect();
    let mut operator = Operator::new(of, shift, |ns| ns as f64);
    let mut bounds = Bounds::zero(of);
    for _ in 0..3_000 {
        let next = operator.apply(&bounds, &every, &mut Steps::at_most(u64::MAX))?;
        let pairs = || next.values().zip(bounds.values());
        let is_still = pairs().all(|(next, now)| (next - now).abs() < 1e-3);
        bounds = next;
        if is_still {
            return Some(bounds);
        }
    }
    None
}

/// Nested affinities of one component: chains, combs, and trees of clusters.
fn system(stream: &mut RandomStream) -> Vec<Placed> {
    let cpus = 2 + stream.below(9) as usize;
    let chain = (1..=cpus).map(CpuSet::first);
    let single = (0..cpus).map(|cpu| CpuSet::from_bits(1 << cpu));
    let pairs = (0..cpus / 2).map(|pair| CpuSet::from_bits(0b11 << (2 * pair)));
    let masks: Vec<CpuSet> = match stream.below(4) {
        0 => chain.collect(),
        1 => chain.chain(single).collect(),
        2 => pairs.chain(single).collect(),
        _ => single.collect(),
    };
    let mut tasks: Vec<Placed> = Vec::new();
    for turn in 0..3 * cpus {
        let period = 1_000 * (1 + stream.below(20));
        let part = 1 + stream.below(3);
        let cost = 1 + stream.below(period / part);
        let which = stream.below(masks.len() as u64) as usize;
        let cpus = if turn == 0 {
            CpuSet::first(cpus)
        } else {
            masks[which]
        };
        let deadline = cost + stream.below(2 * period);
        let [cost, period, deadline] = [cost, period, deadline].map(Span::from_ns);
        let task = Sporadic {
            cost,
            period,
            deadline,
        };
        tasks.push(Placed { task, cpus });
        if groups(&tasks, whole()).is_err() {
            tasks.pop();
        }
    }
    tasks
}

#[test]
fn solver_is_at_most_a_hundredth_above_the_limit_of_plain_iteration() {
    let (mut reached, mut all) = (0, 0);
    for seed in 1..=times_if_long(150, 40) {
        let mut stream = RandomStream::new(seed, 9, 0);
        let tasks = system(&mut stream);
        for of in components(&tasks, &groups(&tasks, whole()).unwrap(), None) {
            let deadlines = of.tasks.iter().map(|member| member.task.deadline.as_ns());
            let shift = stream.below(deadlines.min().unwrap() + 1);
            let shown = solve(&of, shift, &mut Steps::at_most(u64::MAX)).unwrap();
            all += 1;
            let Some(limit) = limit(&of, shift) else {
                continue;
            };
            reached += 1;
            for (task, late) in shown.in_ns().into_iter().enumerate() {
                let (late, limit) = (late as f64, limit.late[task]);
                let what = format!("seed {seed}, task {task}: {late}, limit {limit}, {tasks:?}");
                assert!(late >= limit - 0.1, "{what}");
                assert!(late <= limit * 1.01 + 2.0, "{what}");
            }
        }
    }
    println!("{reached} of {all} limits reached");
    assert!(reached * 10 > all * 9, "{reached} of {all}");
}
