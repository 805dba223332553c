//! What affinities take from a task set, against the definition: every set of CPUs must supply what the tasks that may
//! run nowhere else need, and every change of one affinity is tried. Exponential, and therefore believable.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use num_bigint::BigInt;
use num_rational::Ratio;
use shiftwork_analysis::Steps;
use shiftwork_analysis::affinity::{AffinityLoss, affinity_loss};
use shiftwork_model::{Affinity, CpuId, CpuSet, RandomStream, Share, Span, Task, TaskSet};

type Factor = Ratio<BigInt>;

fn ratio(numerator: u64, denominator: u64) -> Factor {
    Ratio::new(numerator.into(), denominator.into())
}

/// Tasks of these costs, periods and affinities.
fn set(cpus: usize, tasks: &[(u64, u64, u64)]) -> TaskSet {
    let task = |(place, &(cost, period, mask)): (usize, &(u64, u64, u64))| {
        let [cost, period] = [cost, period].map(Span::from_ns);
        let affinity = Affinity::new(CpuSet::from_bits(mask)).unwrap();
        Task::periodic(&format!("T{place}"), cost, period, affinity)
    };
    TaskSet::new("loss", cpus, tasks.iter().enumerate().map(task).collect())
}

/// The largest factor: of each set of CPUs what it supplies by what is bound to it, and one CPU by the largest task.
fn by_definition(set: &TaskSet, masks: &[u64], supply: &Factor) -> Factor {
    let rate = |place: usize| {
        let task = &set.tasks[place];
        ratio(task.cost.as_ns(), task.period.as_ns())
    };
    let alone = (0..masks.len()).map(|place| rate(place).recip());
    let crowds = (1u64..1 << set.platform.cpus).filter_map(|cpus| {
        let bound = (0..masks.len()).filter(|&place| masks[place] & !cpus == 0);
        let needed = bound.fold(ratio(0, 1), |sum, place| sum + rate(place));
        let available = supply * BigInt::from(cpus.count_ones());
        (needed > ratio(0, 1)).then(|| available / needed)
    });
    alone.chain(crowds).min().unwrap()
}

fn no_reserve() -> Share {
    Share::from_billionths(0).unwrap()
}

fn random(seed: u64) -> TaskSet {
    let mut stream = RandomStream::new(seed, 83, 0);
    let cpus = 1 + stream.below(4) as usize;
    let count = 1 + stream.below(7);
    let few: Vec<u64> = (0..3).map(|_| 1 + stream.below((1 << cpus) - 1)).collect();
    let tasks: Vec<(u64, u64, u64)> = (0..count)
        .map(|_| {
            let period = 1 + stream.below(12);
            let mask = match stream.below(2) {
                0 => few[stream.below(3) as usize],
                _ => 1 + stream.below((1 << cpus) - 1),
            };
            (1 + stream.below(period), period, mask)
        })
        .collect();
    set(cpus, &tasks)
}

fn loss(set: &TaskSet, reserve: Share) -> AffinityLoss {
    affinity_loss(set, reserve, &mut Steps::ordinary()).unwrap()
}

#[test]
fn factors_and_best_changes_are_those_of_trying_everything() {
    let (mut losses, mut single, mut grouped, mut none) = (0, 0, 0, 0);
    for seed in 0..2_000 {
        let set = random(seed);
        let reserve = [0, 50_000_000][(seed % 2) as usize];
        let supply = Ratio::new(
            BigInt::from(Share::WHOLE - reserve),
            BigInt::from(Share::WHOLE),
        );
        let masks: Vec<u64> = set
            .tasks
            .iter()
            .map(|task| task.affinity.cpus().as_bits().unwrap())
            .collect();
        let found = loss(&set, Share::from_billionths(reserve).unwrap());
        let expected = by_definition(&set, &masks, &supply);
        assert_eq!(found.factor, expected, "seed {seed}: {set:?}");
        let all = vec![(1 << set.platform.cpus) - 1; masks.len()];
        let without = by_definition(&set, &all, &supply);
        assert_eq!(found.without, without, "seed {seed}: {set:?}");

        // The bottleneck is one: what is bound to its CPUs fills them.
        assert_eq!(
            found.bottleneck.is_some(),
            expected < without,
            "seed {seed}"
        );
        if let Some(bottleneck) = &found.bottleneck {
            losses += 1;
            let bits = bottleneck.cpus.as_bits().unwrap();
            let bound = (0..masks.len()).filter(|&place| masks[place] & !bits == 0);
            let places = bottleneck.tasks.iter().map(|task| task.index());
            assert!(bound.eq(places), "seed {seed}: {bottleneck:?} of {set:?}");
            let needed = bottleneck.tasks.iter().fold(ratio(0, 1), |sum, task| {
                let task = &set.tasks[task.index()];
                sum + ratio(task.cost.as_ns(), task.period.as_ns())
            });
            let available = &supply * BigInt::from(bottleneck.cpus.len());
            assert_eq!(available / needed, expected, "seed {seed}: {set:?}");
        }

        // The best change of one task, and of all tasks with one affinity.
        let after = |changed: &dyn Fn(usize) -> bool, cpu: usize| {
            let masks: Vec<u64> = (0..masks.len())
                .map(|place| masks[place] | u64::from(changed(place)) << cpu)
                .collect();
            by_definition(&set, &masks, &supply)
        };
        let pairs =
            || (0..masks.len()).flat_map(|a| (0..set.platform.cpus).map(move |cpu| (a, cpu)));
        let of_one = pairs().map(|(task, cpu)| after(&|place| place == task, cpu));
        let of_one = of_one.max().unwrap();
        let of_group = pairs().map(|(task, cpu)| after(&|place| masks[place] == masks[task], cpu));
        let of_group = of_group.max().unwrap();
        let mut wanted = Vec::new();
        if of_one > expected {
            single += 1;
            wanted.push(of_one.clone());
        }
        if of_group > of_one {
            grouped += 1;
            wanted.push(of_group);
        }
        none += usize::from(expected < without && wanted.is_empty());
        let factors: Vec<Factor> = found.changes.iter().map(|one| one.factor.clone()).collect();
        assert_eq!(factors, wanted, "seed {seed}: {found:?} of {set:?}");
        for change in &found.changes {
            let is_changed = |place: usize| change.tasks.iter().any(|task| task.index() == place);
            let reached = after(&is_changed, change.cpu.index());
            assert_eq!(reached, change.factor, "seed {seed}: {change:?} of {set:?}");
        }
    }
    println!("{losses} losses, {single} and {grouped} changes, {none} without any");
    assert!(
        losses > 300 && single > 300 && grouped > 50,
        "{losses} {single} {grouped}"
    );
}

#[test]
fn bottleneck_is_named_with_the_change_that_relieves_it() {
    // 5/4 on CPU 0; 1/4 on CPU 1.
    let set = set(2, &[(1, 2, 1), (3, 4, 1), (1, 4, 2)]);
    let found = loss(&set, no_reserve());
    assert_eq!(found.factor, ratio(4, 5));
    assert_eq!(found.without, ratio(4, 3));
    let bottleneck = found.bottleneck.unwrap();
    assert_eq!(bottleneck.cpus, CpuSet::single(CpuId::from_index(0)));
    assert_eq!(bottleneck.tasks.len(), 2);
    // Wherever the one of 3/4 may run too, CPUs are full as with any affinities: 4/3.
    let [change] = &found.changes[..] else {
        panic!("one task alone wins everything back: {:?}", found.changes);
    };
    assert_eq!(change.tasks[0].index(), 1);
    assert_eq!(change.cpu, CpuId::from_index(1));
    assert_eq!(change.factor, ratio(4, 3));
}

#[test]
fn two_bottlenecks_of_one_factor_leave_no_single_change() {
    // 5/4 on CPU 0 and on CPU 1; CPU 2 is idle.
    let set = set(3, &[(1, 2, 1), (3, 4, 1), (1, 2, 2), (3, 4, 2)]);
    let found = loss(&set, no_reserve());
    assert_eq!((found.factor, found.without), (ratio(4, 5), ratio(6, 5)));
    assert!(found.bottleneck.is_some());
    assert_eq!(found.changes, []);
}

#[test]
fn few_steps_leave_the_factors_exact_and_name_no_change() {
    let set = set(2, &[(1, 2, 1), (3, 4, 1), (1, 4, 2)]);
    let found = affinity_loss(&set, no_reserve(), &mut Steps::at_most(0)).unwrap();
    assert_eq!((found.factor, found.without), (ratio(4, 5), ratio(4, 3)));
    assert_eq!(found.changes, []);
}

#[test]
fn sets_with_nothing_to_scale_have_no_factor() {
    let of = |set: &TaskSet| affinity_loss(set, no_reserve(), &mut Steps::ordinary());
    assert_eq!(of(&set(2, &[])), None);
    // No CPU of the affinity is there.
    assert_eq!(of(&set(1, &[(1, 2, 2)])), None);
    assert_eq!(of(&set(1, &[(0, 2, 1)])), None);
}
