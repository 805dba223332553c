//! Large sizes, by seed.

use shiftwork_model::{CpuSet, RandomStream};

use crate::drive::{Driver, Promise, Step};

/// What the affinities look like.
#[derive(Clone, Copy)]
pub enum Shape {
    Arbitrary,
    Laminar,
    Global,
}

/// A random family of affinities.
fn masks(random: &mut RandomStream, shape: Shape, cpus: usize, tasks: usize) -> Vec<CpuSet> {
    let nested = nested_masks(random, cpus);
    (0..tasks)
        .map(|_| match shape {
            Shape::Global => CpuSet::first(cpus),
            Shape::Laminar => nested[random.below(nested.len() as u64) as usize],
            Shape::Arbitrary => arbitrary_mask(random, cpus),
        })
        .collect()
}

fn arbitrary_mask(random: &mut RandomStream, cpus: usize) -> CpuSet {
    let share = 1 + random.below(4);
    let mut mask: CpuSet = CpuSet::first(cpus)
        .iter()
        .filter(|_| random.below(4) < share)
        .collect();
    if mask.is_empty() {
        mask.insert(shiftwork_model::CpuId::from_index(
            random.below(cpus as u64) as usize,
        ));
    }
    mask
}

/// Nested affinities over randomly ordered CPUs: ranges cut in two again and again, some of them
/// left out so that nodes with one child and uncovered CPUs occur.
fn nested_masks(random: &mut RandomStream, cpus: usize) -> Vec<CpuSet> {
    let mut order: Vec<_> = CpuSet::first(cpus).iter().collect();
    random.shuffle(&mut order);
    let mut found = Vec::new();
    let mut ranges = vec![(0, cpus)];
    while let Some((first, last)) = ranges.pop() {
        if random.below(4) > 0 {
            found.push(order[first..last].iter().copied().collect());
        }
        if last - first > 1 && random.below(8) > 0 {
            let cut = first + 1 + random.below((last - first - 1) as u64) as usize;
            ranges.extend([(first, cut), (cut, last)]);
        }
    }
    if found.is_empty() {
        found.push(CpuSet::first(cpus));
    }
    found
}

/// Mostly arrivals and departures, and now and then everything else.
fn random_step(random: &mut RandomStream, shape: Shape, cpus: usize, tasks: usize) -> Step {
    let task = random.below(tasks as u64) as usize;
    // Few different deadlines and priorities: ties matter.
    let small = 1 + random.below(12);
    match random.below(40) {
        0 => Step::SetPriority(task, small as u32),
        1 => Step::SetDeadline(task, small),
        2 => Step::SetAffinity(task, masks(random, shape, cpus, 1)[0]),
        3 => Step::ToggleCpu(random.below(cpus as u64) as usize),
        4 => Step::Leave(task),
        5 | 6 => Step::Enter(task, masks(random, shape, cpus, 1)[0]),
        _ => Step::Toggle(task, small),
    }
}

/// Runs random steps for each of `sizes`: CPUs and tasks at most, seeds, steps each.
pub fn run(
    name: &'static str,
    promise: Promise,
    shape: Shape,
    sizes: &[(usize, usize, u64, usize)],
) {
    let factor = if std::env::var_os("SHIFTWORK_LONG").is_some() {
        10
    } else {
        1
    };
    for &(cpus_max, tasks_max, seeds, steps) in sizes {
        for seed in 1..=seeds * factor {
            let mut random = RandomStream::new(seed, cpus_max as u64, tasks_max as u64);
            let cpus = 1 + random.below(cpus_max as u64) as usize;
            let tasks = 1 + random.below(tasks_max as u64) as usize;
            let masks = masks(&mut random, shape, cpus, tasks);
            let mut driver = Driver::new(name, promise, cpus, &masks);
            for _ in 0..steps {
                let step = random_step(&mut random, shape, cpus, tasks);
                // A panic below names the policy and every step; the seed names them shorter.
                let seed_and_step = (seed, driver.steps.len());
                let replay = std::panic::AssertUnwindSafe(|| driver.step(step));
                if let Err(panic) = std::panic::catch_unwind(replay) {
                    eprintln!(
                        "{name}: seed and step {seed_and_step:?}, sizes {cpus_max} {tasks_max}"
                    );
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }
}

/// Sizes that every policy is run at.
pub const SMALL_AND_LARGE: &[(usize, usize, u64, usize)] =
    &[(4, 8, 400, 60), (8, 20, 200, 80), (64, 500, 3, 1200)];
