//! Theorem 1: densities under nested affinities.

use num_bigint::BigInt;
use num_rational::Ratio;
use shiftwork_analysis::affinity::{laminar_tardiness, nested_density, reduction_edf};
use shiftwork_analysis::global_edf::gfb;
use shiftwork_analysis::speedup::speedup;
use shiftwork_analysis::{NotShown, Outcome, Sporadic, Steps};
use shiftwork_model::{RandomStream, Span};

use crate::naive::{Density, Exact, WRONG_DENSITIES, exact, load};
use crate::schedule::run;
use crate::system::{
    Plain, chain_tasks, chains, family, masks, one_job_each, placed, releases, tasks, ties,
};
use crate::{times_if_long, whole};

/// A multiple of all sizes and of differences of the fractions that chains of them have.
const UNIT: u64 = 2520;

fn decide(tasks: &[Plain]) -> Outcome<NotShown> {
    nested_density(&placed(tasks), whole(), &mut Steps::ordinary())
}

fn is_shown(tasks: &[Plain]) -> bool {
    decide(tasks) == Outcome::Pass(())
}

/// Multiplies all costs by the factor, rounded down, or to 1 at least.
fn scale(tasks: &mut [Plain], factor: &Exact) {
    for task in tasks {
        let cost: Exact = factor * exact(task.cost, 1);
        let cost = u64::try_from(cost.floor().to_integer()).unwrap();
        task.cost = cost.clamp(1, task.window());
    }
}

#[test]
fn nested_density_is_the_definition() {
    let (mut passed, mut equal) = (0, 0);
    let rounds = times_if_long(2_000, 50);
    for seed in 0..rounds {
        let mut stream = RandomStream::new(seed, 71, 0);
        let family = family(6, &mut stream);
        let mut tasks = tasks(&family, 24, &mut stream);
        let before = load(&tasks, Density::True);
        // At the boundary, rounded down, or anywhere near it.
        let percent = [100, 90 + stream.below(25)][seed as usize % 2];
        scale(&mut tasks, &(exact(percent, 100) / before));
        let load = load(&tasks, Density::True);
        let expected = load <= exact(1, 1);
        assert_eq!(is_shown(&tasks), expected, "seed {seed}: {tasks:?}");
        passed += u64::from(expected);
        equal += u64::from(load == exact(1, 1));
    }
    println!("{passed} of {rounds} pass, {equal} with equality");
    let failed = rounds - passed;
    assert!(passed > rounds / 2 && failed > rounds / 10 && equal > rounds / 100);
}

#[test]
fn nested_density_decides_equality_and_the_least_more() {
    // Primes, so that the common multiple has hundreds of bits; the last task fills what is left.
    let primes = [
        1_000_003, 1_000_033, 1_000_037, 1_000_039, 1_000_081, 1_000_099,
    ];
    let mut all: Vec<Plain> = primes
        .iter()
        .map(|&period| Plain {
            cost: period / 7,
            period,
            deadline: period,
            mask: 0b1,
        })
        .collect();
    let root = |cost, period| Plain {
        cost,
        period,
        deadline: period,
        mask: 0b11,
    };
    // With one pinned CPU used up to U the rest of the root may have 2 - 2 U.
    all.push(root(1, 4));
    let used: Exact = all[..6]
        .iter()
        .map(|task| exact(task.cost, task.period))
        .sum();
    let free = exact(2, 1) - exact(2, 1) * used;
    let numbers = [free.numer(), free.denom()].map(|number| u64::try_from(number.clone()));
    assert!(
        numbers[1].is_err(),
        "the fraction is too long for a task: {free}"
    );
    assert!(load(&all, Density::True) != exact(1, 1));
    assert_eq!(is_shown(&all), load(&all, Density::True) <= exact(1, 1));
    // (U + (m - 1) delta) / m = 1 with U = 3 delta, to the last of 64 bits.
    let long = 1 << 62;
    let half = [
        root(long / 2, long),
        root(long / 2, long),
        root(long / 2, long),
    ];
    assert!(is_shown(&half));
    let mut more = half.to_vec();
    more.push(Plain {
        mask: 0b1,
        ..root(1, u64::MAX)
    });
    assert!(!is_shown(&more));
    let few = &mut Steps::at_most(7);
    assert_eq!(
        nested_density(&placed(&half), whole(), few),
        Outcome::StepLimit
    );
}

#[test]
fn nested_density_of_one_affinity_is_gfb() {
    for seed in 0..times_if_long(1_000, 50) {
        let mut stream = RandomStream::new(seed, 71, 1);
        let cpus = 1 + stream.below(6);
        let mut tasks = tasks(&[(1 << cpus) - 1], 24, &mut stream);
        let before = load(&tasks, Density::True);
        scale(&mut tasks, &before.recip());
        let sporadic: Vec<Sporadic> = placed(&tasks).iter().map(|placed| placed.task).collect();
        let expected = gfb(&sporadic, cpus as usize, &mut Steps::ordinary());
        assert_eq!(decide(&tasks), expected, "seed {seed}: {tasks:?}");
    }
}

#[test]
fn nested_density_fails_with_a_task_that_is_outside_its_domain() {
    let fine = Plain {
        cost: 1,
        period: 100,
        deadline: 100,
        mask: 0b111,
    };
    for (what, wrong) in [
        ("no cost", Plain { cost: 0, ..fine }),
        ("no period", Plain { period: 0, ..fine }),
        (
            "no deadline",
            Plain {
                deadline: 0,
                ..fine
            },
        ),
        (
            "above its deadline",
            Plain {
                deadline: 4,
                cost: 5,
                ..fine
            },
        ),
        (
            "above its period",
            Plain {
                period: 4,
                cost: 5,
                ..fine
            },
        ),
        ("nowhere", Plain { mask: 0, ..fine }),
    ] {
        let found = decide(&[fine, wrong]);
        assert_eq!(found, Outcome::Fail(NotShown { place: 1 }), "{what}");
    }
    let overlapping = [0b011, 0b110].map(|mask| Plain { mask, ..fine });
    assert!(matches!(decide(&overlapping), Outcome::Fail(_)));
    assert!(is_shown(&[fine]) && is_shown(&[]));
}

/// Whether some job of the tasks is late under one of so many adversaries.
fn misses(tasks: &[Plain], adversaries: u64, stream: &mut RandomStream) -> bool {
    (0..adversaries).any(|_| {
        let jobs = releases(tasks, 3, stream);
        let mut tie = ties(tasks, stream);
        run(&masks(tasks), &jobs, &mut tie, &mut |_, _| {}).is_late
    })
}

#[test]
fn sets_at_the_boundary_meet_their_deadlines_and_some_beyond_it_do_not() {
    let rounds = times_if_long(200, 50);
    let (mut at, mut beyond) = (0, 0);
    for seed in 0..rounds {
        let mut stream = RandomStream::new(seed, 71, 2);
        let family = family(5, &mut stream);
        let mut tasks = tasks(&family, 120, &mut stream);
        let before = load(&tasks, Density::True);
        let mut more = tasks.clone();
        scale(&mut tasks, &before.recip());
        if !is_shown(&tasks) {
            // A cost of 1 is already too much.
            continue;
        }
        at += 1;
        let late = misses(&tasks, 20, &mut stream);
        assert!(!late, "seed {seed}: {tasks:?}");
        scale(&mut more, &(exact(21, 20) / before));
        beyond += u64::from(misses(&more, 20, &mut stream));
    }
    println!("{at} sets at the boundary, {beyond} miss 5% beyond it");
    assert!(at > rounds / 2 && beyond > at / 200, "{at} {beyond}");
}

/// The least deadline of all tasks of a chain for which this variant of the test passes.
fn deadline_of(chain: &[u64], variant: Density) -> u64 {
    let load: Ratio<BigInt> = load(&chain_tasks(chain, UNIT, UNIT), variant) * exact(UNIT, 1);
    u64::try_from(load.ceil().to_integer()).unwrap()
}

#[test]
fn every_nested_family_has_a_set_at_the_boundary_that_a_nanosecond_makes_miss() {
    for seed in 0..times_if_long(300, 20) {
        let mut stream = RandomStream::new(seed, 71, 3);
        let family = family(6, &mut stream);
        for chain in chains(&family) {
            let deadline = deadline_of(&chain, Density::True);
            let late = |deadline| {
                let tasks = chain_tasks(&chain, UNIT, deadline);
                let jobs = one_job_each(&tasks);
                let mut by_place = |task| task as u64;
                let late = run(&masks(&tasks), &jobs, &mut by_place, &mut |_, _| {}).is_late;
                (is_shown(&tasks), late)
            };
            assert_eq!(late(deadline), (true, false), "{chain:?}");
            assert_eq!(late(deadline - 1), (false, true), "{chain:?}");
        }
    }
}

#[test]
fn a_schedule_refutes_every_change_of_a_constant() {
    for variant in WRONG_DENSITIES {
        let refuted = (0..3_000).find(|&seed| {
            let mut stream = RandomStream::new(seed, 71, 4);
            let family = family(6, &mut stream);
            if seed % 2 == 0 {
                let chains = chains(&family);
                let chain = &chains[stream.below(chains.len() as u64) as usize];
                let deadline = deadline_of(chain, variant).max(UNIT);
                let tasks = chain_tasks(chain, UNIT, deadline);
                let jobs = one_job_each(&tasks);
                let mut by_place = |task| task as u64;
                return run(&masks(&tasks), &jobs, &mut by_place, &mut |_, _| {}).is_late;
            }
            let mut tasks = tasks(&family, 120, &mut stream);
            let before = load(&tasks, variant);
            scale(&mut tasks, &before.recip());
            load(&tasks, variant) <= exact(1, 1) && misses(&tasks, 5, &mut stream)
        });
        println!("{variant:?}: seed {refuted:?}");
        assert!(refuted.is_some(), "{variant:?}");
    }
}

#[test]
fn tests_of_deadlines_under_nested_affinities_complement_each_other() {
    let rounds = times_if_long(200, 25);
    let mut shown = [0; 4];
    let (mut alone, mut others_alone) = (0, 0);
    for seed in 0..rounds {
        let mut stream = RandomStream::new(seed, 71, 5);
        let family = family(4, &mut stream);
        let mut tasks = tasks(&family, 1_000, &mut stream);
        let part = exact(60 + stream.below(80), 100) / load(&tasks, Density::True);
        scale(&mut tasks, &part);
        let placed = placed(&tasks);
        let within = |bounds: &[Option<Span>]| {
            let mut bounds = bounds.iter().zip(&placed);
            bounds.all(|(bound, placed)| bound.is_some_and(|bound| bound <= placed.task.deadline))
        };
        let steps = &mut Steps::ordinary();
        let passes = [
            nested_density(&placed, whole(), steps) == Outcome::Pass(()),
            matches!(reduction_edf(&placed, whole(), steps), Outcome::Pass(_)),
            matches!(laminar_tardiness(&placed, steps), Outcome::Pass(bounds) if within(&bounds)),
            speedup(&placed, steps) == Outcome::Pass(()),
        ];
        for (shown, passes) in shown.iter_mut().zip(passes) {
            *shown += u64::from(passes);
        }
        let others = passes[1..].contains(&true);
        alone += u64::from(passes[0] && !others);
        others_alone += u64::from(!passes[0] && others);
    }
    println!(
        "of {rounds}: nested-density, reduction, laminar-tardiness, speedup show {shown:?}; the first alone \
         {alone}, only others {others_alone}"
    );
    assert!(alone > 0 && others_alone > 0, "{alone} {others_alone}");
}
