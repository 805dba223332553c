//! Deep trees, where bounds with too few sets are far too high.

use shiftwork_analysis::affinity::laminar_tardiness;
use shiftwork_analysis::{Outcome, Placed, Sporadic, Steps};
use shiftwork_model::{CpuSet, RandomStream, Span};

/// In each of so many nested affinities, of 1, 2, ... CPUs, tasks with these costs and periods in us.
fn chain(levels: usize, tasks: &[(u64, u64)]) -> Vec<Placed> {
    let each = (1..=levels).flat_map(|cpus| tasks.iter().map(move |&task| (cpus, task)));
    each.map(|(cpus, (cost, period))| Placed {
        task: Sporadic {
            cost: Span::from_us(cost),
            period: Span::from_us(period),
            deadline: Span::from_us(period),
        },
        cpus: CpuSet::first(cpus),
    })
    .collect()
}

/// The largest bound, in us, rounded down.
fn largest(tasks: &[Placed], steps: &mut Steps) -> u64 {
    match laminar_tardiness(tasks, steps) {
        Outcome::Pass(bounds) => {
            let bounds = bounds.into_iter().map(|bound| bound.unwrap().as_ns());
            bounds.max().unwrap() / 1000
        }
        other => panic!("{other:?}"),
    }
}

/// By how late at most, plain iteration of the operator from zero converges, in us: as the reference
/// program computes it, with all sets, in `plain_iteration.py`'s words. The deadline comes on top.
#[test]
fn chains_have_the_bounds_of_plain_iteration() {
    let limits = [
        (8, 63_700),
        (12, 100_100),
        (16, 136_500),
        (20, 172_900),
        (24, 209_300),
        (32, 282_100),
    ];
    for (levels, late) in limits {
        let tasks = chain(levels, &[(9_000, 10_000), (100, 1_000)]);
        let bound = largest(&tasks, &mut Steps::ordinary());
        let least = late + 10_000;
        assert!(bound >= least, "{levels} levels: {bound} below {least}");
        assert!(bound * 100 <= least * 101, "{levels} levels: {bound}");
    }
}

/// What does not fit 64 bits, or is not shown within the steps, is no number.
#[test]
fn without_steps_a_deep_chain_has_no_number_and_never_one_that_saturates() {
    let tasks = chain(32, &[(9_000, 10_000), (100, 1_000)]);
    let good = largest(&tasks, &mut Steps::ordinary());
    for steps in [1_000, 10_000, 100_000, 1_000_000, 5_000_000] {
        match laminar_tardiness(&tasks, &mut Steps::at_most(steps)) {
            Outcome::StepLimit => {}
            Outcome::Pass(bounds) => {
                let bounds = bounds.into_iter().flatten();
                assert!(
                    bounds
                        .clone()
                        .all(|bound| bound <= Span::MAX && bound.as_ns() >= 1_000_000)
                );
                let most = bounds.max().map_or(u64::MAX, Span::as_ns);
                assert!(most / 1000 >= good, "{steps} steps: {most}");
            }
            Outcome::Fail(task) => panic!("{task:?}"),
        }
    }
}

/// Random chains and combs of nested affinities, up to full: an answer, and never less than a task's
/// cost.
#[test]
fn random_deep_trees_have_bounds() {
    for seed in 1..=crate::times_if_long(12, 40) {
        let mut stream = RandomStream::new(seed, 300, 0);
        let levels = 2 + stream.below(15) as usize;
        let mut tasks: Vec<Placed> = Vec::new();
        for cpus in 1..=levels {
            for _ in 0..1 + stream.below(4) {
                let period = 1_000 * (1 + stream.below(20));
                let cost = 1 + stream.below(period);
                let comb = stream.below(4) == 0;
                let last = CpuSet::from_bits(1 << (cpus - 1));
                let cpus = if comb { last } else { CpuSet::first(cpus) };
                let mut task = chain(1, &[(cost, period)])[0];
                task.cpus = cpus;
                tasks.push(task);
                let outcome = laminar_tardiness(&tasks, &mut Steps::at_most(0));
                assert_eq!(outcome, Outcome::StepLimit);
                if matches!(
                    laminar_tardiness(&tasks, &mut Steps::at_most(2_000)),
                    Outcome::Fail(_)
                ) {
                    tasks.pop();
                }
            }
        }
        match laminar_tardiness(&tasks, &mut Steps::ordinary()) {
            Outcome::Pass(bounds) => {
                for (bound, of) in bounds.into_iter().zip(&tasks) {
                    let bound = bound.unwrap_or_else(|| panic!("seed {seed}: none of {tasks:?}"));
                    assert!(bound >= of.task.cost, "seed {seed}");
                }
            }
            other => panic!("seed {seed}: {other:?} of {tasks:?}"),
        }
    }
}
