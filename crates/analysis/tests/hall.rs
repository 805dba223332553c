//! Whether the demand fits, against the definition: for every set of tasks, the CPUs that any of them
//! may use supply what they need (Hall's condition). Exponential, and therefore believable.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use num_bigint::BigInt;
use num_rational::Ratio;
use shiftwork_analysis::Rate;
use shiftwork_analysis::affinity::{Crowd, Groups, flow, laminar};
use shiftwork_model::{CpuId, CpuSet, RandomStream, Share, Span, TaskId};

/// Work, period, CPUs.
type Task = (u64, u64, CpuSet);

fn groups(tasks: &[Task]) -> Groups {
    let mut groups = Groups::default();
    for (index, &(work, period, cpus)) in tasks.iter().enumerate() {
        let rate = Rate::new(Span::from_ns(work), Span::from_ns(period)).unwrap();
        groups.add(TaskId::from_index(index), cpus, rate);
    }
    groups
}

fn supply(billionths: u32) -> Share {
    Share::from_billionths(billionths).unwrap()
}

fn needed<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> Ratio<BigInt> {
    let rates = tasks.into_iter();
    rates.fold(Ratio::from_integer(0.into()), |sum, &(work, period, _)| {
        sum + Ratio::new(BigInt::from(work), BigInt::from(period))
    })
}

fn available(cpus: &CpuSet, supply: Share) -> Ratio<BigInt> {
    Ratio::new(
        BigInt::from(supply.billionths()),
        BigInt::from(Share::WHOLE),
    ) * BigInt::from(cpus.len())
}

/// All periods up to 12 divide it.
const PARTS: u64 = 27_720;

/// The definition, executed directly over all subsets of tasks. Periods up to 12 only.
fn fits_by_definition(tasks: &[Task], supply: Share) -> bool {
    let parts = |&(work, period, _): &Task| {
        assert_eq!(
            PARTS % period,
            0,
            "a period that the definition cannot count in"
        );
        u128::from(work * (PARTS / period)) * u128::from(Share::WHOLE)
    };
    let cpu = u128::from(PARTS) * u128::from(supply.billionths());
    (1u32..1 << tasks.len()).all(|chosen| {
        let chosen = (0..tasks.len()).filter(|&index| chosen >> index & 1 == 1);
        let (needed, cpus) = chosen.fold((0, CpuSet::EMPTY), |(needed, cpus), index| {
            (needed + parts(&tasks[index]), cpus | tasks[index].2)
        });
        needed <= cpu * cpus.len() as u128
    })
}

/// A crowd must be one: the tasks of its masks lie within its CPUs and need more than those supply.
fn check(crowd: &Crowd, tasks: &[Task], supply: Share, context: &str) {
    let union = crowd
        .masks
        .iter()
        .fold(CpuSet::EMPTY, |all, mask| all | *mask);
    assert_eq!(union, crowd.cpus, "{context}");
    let members = tasks.iter().filter(|task| crowd.masks.contains(&task.2));
    assert!(
        needed(members) > available(&crowd.cpus, supply),
        "{context}: {crowd:?}"
    );
}

/// Compares all algorithms with the definition; whether it fits.
fn compare(tasks: &[Task], supply: Share, context: &str) -> bool {
    let expected = fits_by_definition(tasks, supply);
    let groups = groups(tasks);
    let by_flow = flow::shortage(&groups, supply);
    assert_eq!(by_flow.is_none(), expected, "flow, {context}: {tasks:?}");
    let by_tree = laminar::Tree::new(&groups).map(|tree| tree.shortage(supply));
    if let Some(by_tree) = &by_tree {
        assert_eq!(by_tree.is_none(), expected, "laminar, {context}: {tasks:?}");
    }
    for crowd in by_flow.iter().chain(by_tree.iter().flatten()) {
        check(crowd, tasks, supply, context);
    }
    expected
}

#[test]
fn every_small_case_agrees_with_the_definition() {
    // All affinities of 3 tasks on 3 CPUs, with rates whose sums hit whole numbers and the supplies.
    let rates = [(1, 3), (2, 3), (1, 1), (9, 10)];
    let (mut yes, mut no) = (0, 0);
    for masks in 0..7u64.pow(3) {
        for chosen in 0..rates.len().pow(3) {
            let task = |place: u32| {
                let (work, period) = rates[chosen / rates.len().pow(place) % rates.len()];
                let bits = 1 + masks / 7u64.pow(place) % 7;
                (work, period, CpuSet::from_bits(bits))
            };
            let tasks = [task(0), task(1), task(2)];
            for share in [Share::WHOLE, 900_000_000] {
                match compare(&tasks, supply(share), &format!("supply {share}")) {
                    true => yes += 1,
                    false => no += 1,
                }
            }
        }
    }
    assert!(yes > 5_000 && no > 5_000, "{yes} {no}");
}

#[test]
fn random_cases_agree_with_the_definition() {
    let (mut yes, mut no, mut nested) = (0, 0, 0);
    for seed in 0..3_000 {
        let mut stream = RandomStream::new(seed, 31, 1);
        let cpus = 1 + stream.below(6);
        let tasks: Vec<Task> = (0..1 + stream.below(9))
            .map(|_| {
                let period = 1 + stream.below(12);
                let cpus = CpuSet::from_bits(1 + stream.below((1 << cpus) - 1));
                (1 + stream.below(period), period, cpus)
            })
            .collect();
        let share = [Share::WHOLE, 950_000_000, 333_333_333, 0][stream.below(4) as usize];
        nested += usize::from(laminar::Tree::new(&groups(&tasks)).is_some());
        match compare(&tasks, supply(share), &format!("seed {seed}")) {
            true => yes += 1,
            false => no += 1,
        }
    }
    assert!(yes > 200 && no > 200 && nested > 200, "{yes} {no} {nested}");
}

/// A nested family by repeated splitting, and tasks that bring every node to its brim and then, for
/// one node, over it by the least that there is.
fn brimful(seed: u64) -> (Vec<Task>, usize) {
    let mut stream = RandomStream::new(seed, 31, 2);
    let cpus = 2 + stream.below(40) as usize;
    let mut masks = vec![CpuSet::first(cpus)];
    let mut place = 0;
    while place < masks.len() && masks.len() < 60 {
        let members: Vec<CpuId> = masks[place].iter().collect();
        if members.len() > 1 {
            let cut = 1 + stream.below(members.len() as u64 - 1) as usize;
            masks.push(members[..cut].iter().copied().collect());
            masks.push(members[cut..].iter().copied().collect());
        }
        place += 1;
    }
    let mut tasks = Vec::new();
    for cpu in 0..cpus {
        // What each CPU supplies is shared among the nodes that hold it: sevenths, so no power of two
        // divides it.
        for part in 0..7 {
            let holders = masks
                .iter()
                .filter(|mask| mask.contains(CpuId::from_index(cpu)));
            let holders: Vec<&CpuSet> = holders.collect();
            let holder = holders[stream.below(holders.len() as u64) as usize];
            tasks.push((1_000_003 + part, 7 * (1_000_003 + part), *holder));
        }
    }
    (tasks, cpus)
}

/// Whether the tasks that may use only CPUs of this set need more than those supply. Periods up to
/// 12 only.
fn is_crowded(tasks: &[Task], bits: u64, supply: Share) -> bool {
    let cpus = CpuSet::from_bits(bits);
    let inside: Vec<Task> = tasks
        .iter()
        .filter(|task| task.2.is_subset(&cpus))
        .copied()
        .collect();
    needed(&inside) > available(&cpus, supply)
}

#[test]
fn no_crowd_lies_within_a_tightened_one() {
    let (mut crowds, mut tighter) = (0, 0);
    for seed in 0..2_000 {
        let mut stream = RandomStream::new(seed, 31, 5);
        let cpus = 2 + stream.below(5);
        let tasks: Vec<Task> = (0..3 + stream.below(9))
            .map(|_| {
                let period = 1 + stream.below(12);
                let cpus = CpuSet::from_bits(1 + stream.below((1 << cpus) - 1));
                (1 + stream.below(period), period, cpus)
            })
            .collect();
        let share = supply([Share::WHOLE, 950_000_000][stream.below(2) as usize]);
        let groups = groups(&tasks);
        let Some(crowd) = flow::shortage(&groups, share) else {
            continue;
        };
        let found = flow::tightened(&groups, crowd.clone(), share);
        check(&found, &tasks, share, &format!("seed {seed}"));
        assert!(found.cpus.is_subset(&crowd.cpus), "seed {seed}");
        let bits = found.cpus.as_bits().unwrap();
        let parts = (1..bits).filter(|part| part & !bits == 0);
        for part in parts {
            assert!(
                !is_crowded(&tasks, part, share),
                "seed {seed}: {part:b} within {bits:b} of {tasks:?}"
            );
        }
        crowds += 1;
        tighter += usize::from(found.cpus != crowd.cpus);
    }
    assert!(crowds > 500 && tighter > 20, "{crowds} {tighter}");
}

#[test]
fn full_to_the_brim_fits_and_the_least_more_does_not_by_either_algorithm() {
    for seed in 0..60 {
        let (mut tasks, _) = brimful(seed);
        let whole = supply(Share::WHOLE);
        let full = groups(&tasks);
        assert_eq!(flow::shortage(&full, whole), None, "seed {seed}");
        let tree = laminar::Tree::new(&full).unwrap();
        assert_eq!(tree.shortage(whole), None, "seed {seed}");
        let most = supply(Share::WHOLE - 1);
        assert!(
            flow::shortage(&full, most).is_some(),
            "seed {seed}: supply too small"
        );
        assert!(
            tree.shortage(most).is_some(),
            "seed {seed}: supply too small"
        );

        let victim = tasks[seed as usize % tasks.len()].2;
        tasks.push((1, 1 << 62, victim));
        let over = groups(&tasks);
        let by_flow = flow::shortage(&over, whole).unwrap();
        check(&by_flow, &tasks, whole, &format!("seed {seed}"));
        let by_tree = laminar::Tree::new(&over).unwrap().shortage(whole).unwrap();
        check(&by_tree, &tasks, whole, &format!("seed {seed}"));
        assert_eq!(
            by_flow.cpus, by_tree.cpus,
            "seed {seed}: the smallest crowd"
        );
    }
}

#[test]
fn both_algorithms_agree_on_many_cpus() {
    let (mut yes, mut no) = (0, 0);
    for seed in 0..40 {
        let mut stream = RandomStream::new(seed, 31, 3);
        let (mut tasks, cpus) = brimful(seed);
        let spare = stream.below(3);
        tasks.retain(|_| stream.below(10) >= spare);
        for _ in 0..stream.below(2) * 3 {
            let place = stream.below(tasks.len() as u64) as usize;
            tasks[place].0 += stream.below(1_000_003 * cpus as u64);
        }
        let groups = groups(&tasks);
        let by_flow = flow::shortage(&groups, supply(Share::WHOLE));
        let tree = laminar::Tree::new(&groups).unwrap();
        let by_tree = tree.shortage(supply(Share::WHOLE));
        assert_eq!(by_flow.is_some(), by_tree.is_some(), "seed {seed}");
        for crowd in by_flow.iter().chain(&by_tree) {
            check(crowd, &tasks, supply(Share::WHOLE), &format!("seed {seed}"));
        }
        match by_flow {
            None => yes += 1,
            Some(_) => no += 1,
        }
    }
    assert!(yes > 5 && no > 5, "{yes} {no}");
}

#[test]
fn a_tree_is_refused_exactly_to_families_that_are_not_nested() {
    for seed in 0..3_000 {
        let mut stream = RandomStream::new(seed, 31, 4);
        let tasks: Vec<Task> = (0..1 + stream.below(5))
            .map(|_| (1, 1, CpuSet::from_bits(1 + stream.below(31))))
            .collect();
        let masks: Vec<CpuSet> = tasks.iter().map(|task| task.2).collect();
        assert_eq!(
            laminar::Tree::new(&groups(&tasks)).is_some(),
            shiftwork_model::first_overlap(&masks).is_none(),
            "seed {seed}: {masks:?}"
        );
    }
}
