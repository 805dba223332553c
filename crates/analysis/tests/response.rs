//! Bounds on response times under global EDF against their formulas in exact fractions, and against
//! schedules.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod ticks;

use num_bigint::BigInt;
use num_rational::Ratio;
use shiftwork_analysis::response::{
    devi_anderson, devi_anderson_non_preemptive, gel, gel_with_points,
};
use shiftwork_analysis::{NotShown, Outcome, Sporadic, Steps};
use shiftwork_model::{RandomStream, Span};
use ticks::{Job, Rules, factor, responses, sporadic};

type Exact = Ratio<BigInt>;
type Bounds = Outcome<NotShown, Vec<Span>>;
type Test = fn(&[Sporadic], usize, &mut Steps) -> Bounds;

fn in_ns(outcome: &Bounds) -> Option<Vec<u64>> {
    match outcome {
        Outcome::Pass(bounds) => Some(bounds.iter().map(|bound| bound.as_ns()).collect()),
        Outcome::Fail(_) => None,
        Outcome::StepLimit => panic!("out of steps"),
    }
}

fn found(test: Test, tasks: &[Sporadic], cpus: usize) -> Option<Vec<u64>> {
    in_ns(&test(tasks, cpus, &mut Steps::ordinary()))
}

fn exact(n: impl Into<BigInt>) -> Exact {
    Exact::from(n.into())
}

fn rate(task: &Sporadic) -> Exact {
    Exact::new(task.cost.as_ns().into(), task.period.as_ns().into())
}

fn ceil(value: &Exact) -> u64 {
    u64::try_from(value.ceil().to_integer()).unwrap()
}

/// ceil(U), or nothing where no bound exists.
fn needed(tasks: &[Sporadic], cpus: usize) -> Option<usize> {
    let sum: Exact = tasks.iter().map(rate).sum();
    let alone = tasks.iter().all(|task| task.cost <= task.period);
    (alone && sum <= exact(cpus)).then(|| ceil(&sum) as usize)
}

fn largest<T: Ord + Clone + std::iter::Sum>(values: &[T], count: usize) -> T {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| b.cmp(a));
    sorted.into_iter().take(count).sum()
}

/// Devi and Anderson, as the module has it.
fn plain_devi_anderson(tasks: &[Sporadic], cpus: usize, preemptive: bool) -> Option<Vec<u64>> {
    let levels = needed(tasks, cpus)?.saturating_sub(1);
    let costs: Vec<u64> = tasks.iter().map(|task| task.cost.as_ns()).collect();
    let rates: Vec<Exact> = tasks.iter().map(rate).collect();
    let least = costs.iter().min()?;
    if !preemptive {
        let (x, left) = plain_non_preemptive(&costs, &rates, cpus);
        let bounds = tasks.iter().map(|task| {
            let beyond = (&left - exact(task.cost.as_ns())) / exact(cpus);
            assert!(beyond <= x, "{beyond} > {x}: {tasks:?} on {cpus}");
            task.period.as_ns() + task.cost.as_ns() + ceil(&beyond)
        });
        return Some(bounds.collect());
    }
    let left = largest(&rates, levels.max(1) - 1);
    let x = exact(largest(&costs, levels).saturating_sub(*least)) / (exact(cpus) - left);
    let bound = |task: &Sporadic| match cpus == 1 {
        true => task.period.as_ns(),
        false => task.period.as_ns() + task.cost.as_ns() + ceil(&x),
    };
    Some(tasks.iter().map(bound).collect())
}

/// x and N + x W.
fn plain_non_preemptive(costs: &[u64], rates: &[Exact], cpus: usize) -> (Exact, Exact) {
    let sum: Exact = rates.iter().sum();
    let levels = usize::try_from(sum.ceil().to_integer() - 1).unwrap();
    let mut sorted = costs.to_vec();
    sorted.sort_by(|a, b| b.cmp(a));
    let last = exact(sorted.get(cpus - 1).copied().unwrap_or(0));
    let some = exact(largest(costs, levels) + largest(costs, cpus - levels - 1));
    let work = exact(largest(costs, cpus)).max(some + (sum - exact(levels)) * last);
    let heaviest = largest(rates, levels);
    let x = (&work - exact(sorted[sorted.len() - 1])) / (exact(cpus) - &heaviest);
    let x = x.max(exact(0));
    let left = work + &x * heaviest;
    (x, left)
}

/// The terms of the equation for s: the sum of the S, and every line as its slope and its value at 0.
fn equation(tasks: &[Sporadic], cpus: usize) -> (Exact, Vec<(Exact, Exact)>) {
    let least = tasks.iter().map(|task| task.deadline).min().unwrap();
    let zero = exact(0);
    let mut sum = zero.clone();
    let mut lines = Vec::new();
    for task in tasks {
        let point = exact((task.deadline - least).as_ns());
        let cost = exact(task.cost.as_ns());
        let own = &cost * (exact(1) - point / exact(task.period.as_ns()));
        let own = own.max(zero.clone());
        sum += &own;
        let start = &cost - own - rate(task) * &cost / exact(cpus);
        lines.push((rate(task), start));
    }
    (sum, lines)
}

/// The bounds that s gives.
fn from_s(tasks: &[Sporadic], cpus: usize, s: &Exact) -> Vec<u64> {
    let least = tasks.iter().map(|task| task.deadline).min().unwrap();
    let bound = |task: &Sporadic| {
        let beyond = (s - Exact::new(task.cost.as_ns().into(), cpus.into())).ceil();
        let fixed = (task.deadline - least).as_ns() + task.cost.as_ns();
        u64::try_from(beyond.to_integer() + fixed).unwrap()
    };
    tasks.iter().map(bound).collect()
}

/// s where these lines are the largest.
fn solved(cpus: usize, sum: &Exact, chosen: &[&(Exact, Exact)]) -> Exact {
    let slope: Exact = chosen.iter().map(|line| &line.0).sum();
    let start: Exact = chosen.iter().map(|line| &line.1).sum();
    (sum + start) / (exact(cpus) - slope)
}

/// The exact bounds, from every choice of lines: s is the largest of what they give.
fn gel_by_every_choice(tasks: &[Sporadic], cpus: usize) -> Option<Vec<u64>> {
    let count = needed(tasks, cpus)? - 1;
    let (sum, lines) = equation(tasks, cpus);
    let choices = (0..1u32 << lines.len()).filter(|choice| choice.count_ones() == count as u32);
    let s = choices.map(|choice| {
        let chosen = (0..lines.len()).filter(|place| choice >> place & 1 == 1);
        let chosen: Vec<_> = chosen.map(|place| &lines[place]).collect();
        solved(cpus, &sum, &chosen)
    });
    Some(from_s(tasks, cpus, &s.max()?))
}

/// The same for many tasks: the largest lines at s, until they stay the same.
fn gel_by_fractions(tasks: &[Sporadic], cpus: usize) -> Option<Vec<u64>> {
    let count = needed(tasks, cpus)? - 1;
    let (sum, lines) = equation(tasks, cpus);
    let mut s = exact(0);
    loop {
        let mut at: Vec<_> = lines
            .iter()
            .map(|line| (&line.0 * &s + &line.1, line))
            .collect();
        at.sort_by(|a, b| b.0.cmp(&a.0));
        let chosen: Vec<_> = at[..count].iter().map(|&(_, line)| line).collect();
        let next = solved(cpus, &sum, &chosen);
        if next <= s {
            return Some(from_s(tasks, cpus, &s));
        }
        s = next;
    }
}

/// Tasks of short periods, which often need a whole number of CPUs exactly.
fn small(stream: &mut RandomStream, most: u64, implicit: bool) -> Vec<Sporadic> {
    (0..1 + stream.below(most))
        .map(|_| {
            let period = [1, 2, 3, 4, 6, 8, 12][stream.below(7) as usize];
            let cost = 1 + stream.below(period);
            let deadline = match implicit {
                true => period,
                false => 1 + stream.below(3 * period),
            };
            sporadic(cost, period, deadline)
        })
        .collect()
}

/// Utilizations from `low` to `high` tenths of a percent, until the next would exceed `cpus`; periods
/// whole milliseconds from 10 to 100.
fn large(stream: &mut RandomStream, cpus: u64, low: u64, high: u64) -> Vec<Sporadic> {
    let (mut tasks, mut sum) = (Vec::new(), 0);
    loop {
        let thousandths = low + stream.below(high - low + 1);
        sum += thousandths;
        if sum > 1000 * cpus {
            return tasks;
        }
        let period = 1_000_000 * (10 + stream.below(91));
        let cost = (period * thousandths / 1000)
            .saturating_sub(stream.below(1_000))
            .max(1);
        tasks.push(sporadic(cost, period, period));
    }
}

#[test]
fn bounds_are_those_of_the_formulas() {
    let (mut full, mut bounded) = (0, 0);
    for seed in 0..2_500 * factor() {
        let mut stream = RandomStream::new(seed, 71, 0);
        let tasks = small(&mut stream, 8, true);
        let cpus = 1 + stream.below(5) as usize;
        let at = format!("seed {seed} on {cpus}: {tasks:?}");
        let expected = plain_devi_anderson(&tasks, cpus, true);
        assert_eq!(found(devi_anderson, &tasks, cpus), expected, "{at}");
        let expected = plain_devi_anderson(&tasks, cpus, false);
        assert_eq!(
            found(devi_anderson_non_preemptive, &tasks, cpus),
            expected,
            "{at}"
        );
        let expected = gel_by_every_choice(&tasks, cpus);
        assert_eq!(found(gel, &tasks, cpus), expected, "{at}");
        let sum: Exact = tasks.iter().map(rate).sum();
        full += u64::from(sum == exact(cpus));
        bounded += u64::from(expected.is_some());
    }
    assert!(full > 50 && bounded > 500, "{full} {bounded}");
}

#[test]
fn bounds_for_other_deadlines_are_those_of_the_formulas() {
    let mut bounded = 0;
    for seed in 0..2_000 * factor() {
        let mut stream = RandomStream::new(seed, 71, 1);
        let tasks = small(&mut stream, 8, false);
        let cpus = 1 + stream.below(5) as usize;
        let expected = gel_by_every_choice(&tasks, cpus);
        assert_eq!(
            found(gel, &tasks, cpus),
            expected,
            "seed {seed} on {cpus}: {tasks:?}"
        );
        bounded += u64::from(expected.is_some());
    }
    assert!(bounded > 500, "{bounded}");
}

#[test]
fn large_sets_have_the_bounds_of_the_formulas() {
    for seed in 0..factor() {
        for (cpus, low, high) in [(32, 100, 400), (8, 100, 900), (32, 1, 100)] {
            let mut stream = RandomStream::new(seed, 71, 2);
            let tasks = large(&mut stream, cpus, low, high);
            let cpus = cpus as usize;
            let at = format!("seed {seed}: {} tasks on {cpus}", tasks.len());
            let expected = plain_devi_anderson(&tasks, cpus, true);
            assert!(expected.is_some(), "{at}");
            assert_eq!(found(devi_anderson, &tasks, cpus), expected, "{at}");
            let expected = plain_devi_anderson(&tasks, cpus, false);
            assert_eq!(
                found(devi_anderson_non_preemptive, &tasks, cpus),
                expected,
                "{at}"
            );
            let expected = gel_by_fractions(&tasks, cpus);
            assert_eq!(found(gel, &tasks, cpus), expected, "{at}");
        }
    }
}

#[test]
fn times_of_every_size_have_the_bounds_of_the_formulas() {
    for seed in 0..400 * factor() {
        let mut stream = RandomStream::new(seed, 71, 3);
        let size = 2 + stream.below(56);
        let tasks: Vec<Sporadic> = (0..2 + stream.below(9))
            .map(|_| {
                let period = 1 + stream.below(1 << size);
                let cost = 1 + stream.below(period);
                sporadic(cost, period, 1 + stream.below(2 << size))
            })
            .collect();
        let implicit: Vec<Sporadic> = tasks
            .iter()
            .map(|task| Sporadic {
                deadline: task.period,
                ..*task
            })
            .collect();
        let cpus = tasks.len();
        let at = format!("seed {seed}: {tasks:?}");
        assert_eq!(
            found(gel, &tasks, cpus),
            gel_by_fractions(&tasks, cpus),
            "{at}"
        );
        let expected = plain_devi_anderson(&implicit, cpus, true);
        assert_eq!(found(devi_anderson, &implicit, cpus), expected, "{at}");
        let cpus = 1 + seed as usize % tasks.len();
        let expected = plain_devi_anderson(&implicit, cpus, false);
        let bounds = found(devi_anderson_non_preemptive, &implicit, cpus);
        assert_eq!(bounds, expected, "{at}, on {cpus}");
    }
}

/// The longest responses in some schedules must not exceed the bounds. How many reach them.
fn reached(tasks: &[Sporadic], cpus: usize, test: Test, preemptive: bool, seed: u64) -> u64 {
    let Some(bounds) = found(test, tasks, cpus) else {
        return 0;
    };
    let mut stream = RandomStream::new(seed, 71, 9);
    let rules = Rules {
        cpus,
        rank: |job: &Job| job.deadline,
        preemptive,
    };
    let mut reached = 0;
    for _ in 0..3 {
        let releases = ticks::releases(tasks, 100, &mut stream);
        let seen = responses(tasks, &releases, &rules);
        for (seen, bound) in seen.iter().zip(&bounds) {
            assert!(
                seen <= bound,
                "seed {seed} on {cpus}: {tasks:?}: {seen} > {bound}"
            );
            reached += u64::from(seen == bound);
        }
    }
    reached
}

#[test]
fn no_schedule_is_later_than_the_bounds() {
    let mut sum = [0; 4];
    for seed in 0..800 * factor() {
        let mut stream = RandomStream::new(seed, 71, 4);
        let tasks = small(&mut stream, 7, true);
        let others = small(&mut stream, 7, false);
        let cpus = 1 + stream.below(4) as usize;
        sum[0] += reached(&tasks, cpus, devi_anderson, true, seed);
        sum[1] += reached(&tasks, cpus, gel, true, seed);
        sum[2] += reached(&tasks, cpus, devi_anderson_non_preemptive, false, seed);
        // Jobs of a task whose deadlines are in order, as they are with arbitrary deadlines, too.
        sum[3] += reached(&others, cpus, gel, true, seed);
    }
    // Without preemption the bound counts whole costs of jobs that have begun, so it is not reached.
    assert!(sum[0] > 0 && sum[1] > 0 && sum[3] > 0, "{sum:?}");
}

#[test]
fn the_published_bound_without_preemption_is_too_small() {
    let tasks = [
        sporadic(1, 2, 2),
        sporadic(100, 1000, 1000),
        sporadic(100, 1000, 1000),
    ];
    let releases = vec![vec![1], vec![0], vec![0]];
    let rules = Rules {
        cpus: 2,
        rank: |job: &Job| job.deadline,
        preemptive: false,
    };
    let seen = responses(&tasks, &releases, &rules);
    // As published, x = (100 - 1) / 2 and the bound T + C + x = 52.5.
    assert_eq!(seen, [100, 100, 100]);
    let bounds = found(devi_anderson_non_preemptive, &tasks, 2).unwrap();
    assert_eq!(bounds, [103, 1150, 1150]);
}

#[test]
fn published_examples_have_their_published_bounds() {
    // Three tasks of two thirds on two CPUs, the common illustration of tardiness under global EDF
    // (J. Anderson and others): x = 0, and a job may be late by 1.
    let tasks = [sporadic(2, 3, 3); 3];
    assert_eq!(found(devi_anderson, &tasks, 2), Some(vec![5; 3]));
    assert_eq!(found(gel, &tasks, 2), Some(vec![5; 3]));
    let releases = vec![vec![0, 3, 6, 9]; 3];
    let rules = Rules {
        cpus: 2,
        rank: |job: &Job| job.deadline,
        preemptive: true,
    };
    assert_eq!(responses(&tasks, &releases, &rules), [2, 3, 4]);
}

#[test]
fn on_one_cpu_no_task_is_tardy() {
    let full = [sporadic(1, 2, 2), sporadic(1, 3, 3), sporadic(1, 6, 6)];
    assert_eq!(found(devi_anderson, &full, 1), Some(vec![2, 3, 6]));
    assert_eq!(found(gel, &full, 1), Some(vec![2, 3, 6]));
    let half = [sporadic(1, 4, 4), sporadic(1, 4, 4)];
    assert_eq!(found(devi_anderson, &half, 1), Some(vec![4, 4]));
}

#[test]
fn a_bound_before_the_deadline_is_rounded_towards_zero_where_it_is_negative() {
    // Alone on two CPUs: s = S / 2 = C / 2, so that s - C / m is exactly zero; among others on more
    // CPUs it is below zero for the costly, and the bound is between C and Y + C.
    assert_eq!(found(gel, &[sporadic(5, 10, 10)], 2), Some(vec![5]));
    let tasks = [sporadic(1, 10, 1), sporadic(9, 10, 10)];
    let expected = gel_by_every_choice(&tasks, 4).unwrap();
    assert_eq!(found(gel, &tasks, 4), Some(expected.clone()));
    assert!(expected[1] < 18, "{expected:?}");
}

#[test]
fn the_order_of_points_matters_and_not_their_size() {
    let tasks = [sporadic(3, 7, 7), sporadic(2, 5, 9), sporadic(4, 6, 6)];
    let bounds = |add: u64| {
        let point = |task: &Sporadic| task.deadline + Span::from_ns(add);
        in_ns(&gel_with_points(&tasks, 2, point, &mut Steps::ordinary()))
    };
    assert_eq!(bounds(0), found(gel, &tasks, 2));
    assert_eq!(bounds(1_000_000), bounds(0));
    let first_come = gel_with_points(&tasks, 2, |_| Span::ZERO, &mut Steps::ordinary());
    assert_ne!(in_ns(&first_come), bounds(0));
}

#[test]
fn more_than_there_is_fails_with_the_first_task_that_is_too_much() {
    let tasks = [
        sporadic(2, 3, 3),
        sporadic(1, 3, 3),
        sporadic(1, 1_000_000_007, 1_000_000_007),
    ];
    for test in [devi_anderson as Test, devi_anderson_non_preemptive, gel] {
        let outcome = test(&tasks, 1, &mut Steps::ordinary());
        assert_eq!(outcome, Outcome::Fail(NotShown { place: 2 }));
        assert!(found(test, &tasks[..2], 1).is_some());
        assert_eq!(found(test, &[], 0), Some(vec![]));
        let none = test(&tasks, 0, &mut Steps::ordinary());
        assert_eq!(none, Outcome::Fail(NotShown { place: 0 }));
    }
}

#[test]
fn any_input_has_an_answer() {
    let most = u64::MAX;
    for bad in [
        sporadic(0, 3, 3),
        sporadic(1, 0, 0),
        sporadic(4, 3, 3),
        sporadic(1, 3, 0),
    ] {
        for test in [devi_anderson as Test, devi_anderson_non_preemptive, gel] {
            let outcome = test(&[sporadic(1, 9, 9), bad], 2, &mut Steps::ordinary());
            assert_eq!(outcome, Outcome::Fail(NotShown { place: 1 }), "{bad:?}");
        }
    }
    // A bound that no span can hold is none.
    let longest = [sporadic(most, most, most); 3];
    let many: Vec<Sporadic> = (0..10_000u64)
        .map(|place| {
            let period = 1_000_000_007 + 2 * place;
            sporadic(period / 20, period, period)
        })
        .collect();
    for test in [devi_anderson as Test, devi_anderson_non_preemptive, gel] {
        let outcome = test(&longest, 4, &mut Steps::ordinary());
        assert!(matches!(outcome, Outcome::Fail(_)));
        assert!(found(test, &many, 500).is_some());
        assert_eq!(
            test(&many, 500, &mut Steps::at_most(100)),
            Outcome::StepLimit
        );
    }
}
