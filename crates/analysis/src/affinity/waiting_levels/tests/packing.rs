//! The longest wait by its definition: a sum of moments, at each of which a set of tasks executes that can keep the
//! job waiting, and no task executes for longer than its work. A linear program, by the simplex method in fractions.

use num_bigint::BigInt;
use num_rational::BigRational;
use shiftwork_model::{CpuSet, RandomStream};

use super::{masks, times_if_long};
use crate::Steps;
use crate::affinity::waiting_levels::levels::Affinities;
use crate::affinity::waiting_levels::prices::Prices;

fn whole(number: u64) -> BigRational {
    BigRational::from_integer(BigInt::from(number))
}

/// The sets of CPUs that grow from the affinity of `own` and that others can fill.
pub(super) fn levels(affinities: &[u64], own: usize) -> Vec<u64> {
    let mut reaches = vec![affinities[own]];
    let mut next = 0;
    while next < reaches.len() {
        let from = reaches[next];
        next += 1;
        for mask in affinities.iter().filter(|&mask| mask & from != 0) {
            if !reaches.contains(&(mask | from)) {
                reaches.push(mask | from);
            }
        }
    }
    reaches.retain(|reach| {
        let inside = affinities.iter().filter(|&mask| mask & !reach == 0);
        inside.count() > reach.count_ones() as usize
    });
    reaches
}

/// The sets of tasks, as bits, that keep a job with the affinity of `own` waiting: at a level, as many as it has CPUs
/// execute, all inside. With `on_cpus` each also has a CPU of its own; without, no
/// affinity has more tasks at a time than CPUs, counted with those inside it that belong to the same levels.
pub(super) fn blockers(affinities: &[u64], own: usize, on_cpus: bool) -> Vec<u32> {
    let levels = levels(affinities, own);
    let chosen = |set: u32| (0..affinities.len()).filter(move |task| set >> task & 1 == 1);
    let around =
        |mask: u64| -> Vec<bool> { levels.iter().map(|level| mask & !level == 0).collect() };
    let fits = |set: u32| {
        affinities.iter().all(|&mask| {
            let inside = chosen(set).filter(|&task| {
                affinities[task] & !mask == 0 && around(affinities[task]) == around(mask)
            });
            inside.count() <= mask.count_ones() as usize
        })
    };
    (1u32..1 << affinities.len())
        .filter(|&set| {
            let is_full = |&reach: &u64| {
                set.count_ones() == reach.count_ones()
                    && chosen(set).all(|task| affinities[task] & !reach == 0)
            };
            let tasks: Vec<u64> = chosen(set).map(|task| affinities[task]).collect();
            levels.iter().any(is_full)
                && if on_cpus {
                    have_cpus(&tasks, 0)
                } else {
                    fits(set)
                }
        })
        .collect()
}

/// Whether each can have a CPU of its own.
fn have_cpus(masks: &[u64], taken: u64) -> bool {
    let Some((first, others)) = masks.split_first() else {
        return true;
    };
    let mut free = (0..64).filter(|cpu| first >> cpu & 1 == 1 && taken >> cpu & 1 == 0);
    free.any(|cpu| have_cpus(others, taken | 1 << cpu))
}

/// The longest time that these sets can be packed into the works.
pub(super) fn longest(sets: &[u32], works: &[u64]) -> BigRational {
    let zero = whole(0);
    let width = sets.len();
    let mut rows: Vec<Vec<BigRational>> = works
        .iter()
        .enumerate()
        .map(|(task, &work)| {
            let uses = sets.iter().map(|set| whole(u64::from(set >> task & 1)));
            let slack = (0..works.len()).map(|other| whole(u64::from(other == task)));
            uses.chain(slack).chain([whole(work)]).collect()
        })
        .collect();
    let mut goal: Vec<BigRational> = vec![zero.clone(); width + works.len() + 1];
    goal[..width].fill(whole(1));
    // The first column that helps, and among equal rows the one of the first basic column: Bland's rule ends.
    let mut basis: Vec<usize> = (width..width + works.len()).collect();
    while let Some(column) = goal[..width + works.len()]
        .iter()
        .position(|gain| *gain > zero)
    {
        let ratio = |row: &usize| rows[*row].last().unwrap() / &rows[*row][column];
        let leaving = (0..rows.len())
            .filter(|&row| rows[row][column] > zero)
            .min_by(|one, other| (ratio(one), basis[*one]).cmp(&(ratio(other), basis[*other])))
            .unwrap();
        let pivot = rows[leaving][column].clone();
        rows[leaving].iter_mut().for_each(|entry| *entry /= &pivot);
        let pivot_row = rows[leaving].clone();
        let others = rows
            .iter_mut()
            .enumerate()
            .filter(|(row, _)| *row != leaving);
        for row in others.map(|(_, row)| row).chain([&mut goal]) {
            let factor = row[column].clone();
            for (entry, pivot) in row.iter_mut().zip(&pivot_row) {
                *entry -= &factor * pivot;
            }
        }
        basis[leaving] = column;
    }
    -goal.last().unwrap().clone()
}

/// What the implementation bounds the wait by.
fn bound(affinities: &[u64], own: usize, works: &[u64]) -> u128 {
    let sets: Vec<CpuSet> = affinities
        .iter()
        .map(|&bits| CpuSet::from_bits(bits))
        .collect();
    let family = Affinities::new(sets.iter());
    let program = family.program(family.of(own));
    let works: Vec<u64> = program.places.iter().map(|&place| works[place]).collect();
    let mut prices = Prices::new(&program).unwrap();
    let steps = &mut Steps::ordinary();
    // Prices that were found for other works are as good.
    let others: Vec<u64> = works.iter().rev().copied().collect();
    prices.bound(&program, &others, 0, steps).unwrap();
    prices.bound(&program, &works, 0, steps).unwrap()
}

#[test]
fn the_wait_is_the_largest_packing_of_blockers() {
    let (mut several, mut sharper) = (0, 0);
    for seed in 0..times_if_long(400, 15) {
        let mut stream = RandomStream::new(seed, 81, 0);
        let is_nested = seed % 4 > 0;
        let cpus = 1 + stream.below(4);
        let family = masks(&mut stream, cpus, is_nested);
        let count = 2 + stream.below(6) as usize;
        let affinities: Vec<u64> = (0..count)
            .map(|_| family[stream.below(family.len() as u64) as usize])
            .collect();
        let most = [3, 10, 1_000_000_007][stream.below(3) as usize];
        let works: Vec<u64> = (0..count).map(|_| stream.below(most)).collect();
        let mut works_without_own = works.clone();
        works_without_own[0] = 0;
        let found = bound(&affinities, 0, &works_without_own);
        let context = format!("seed {seed}: {affinities:x?} {works:?}");
        let real = longest(&blockers(&affinities, 0, true), &works_without_own).floor();
        assert!(
            real.to_integer() <= BigInt::from(found),
            "{context}: {found} < {real}"
        );
        if is_nested {
            let expected = longest(&blockers(&affinities, 0, false), &works_without_own).floor();
            assert_eq!(expected.to_integer(), BigInt::from(found), "{context}");
            several += usize::from(found > 0);
            sharper += usize::from(real < expected);
        }
    }
    assert!(several > 100, "{several} cases with a wait");
    println!("{several} waits, {sharper} of them shorter with CPUs");
}
