//! Small sizes, all of them: every combination of affinities, every sequence of events to a depth.

use std::hash::{DefaultHasher, Hash, Hasher};

use shiftwork_model::{CpuId, CpuSet, first_overlap};

use crate::drive::{Driver, Promise, Step};

/// Whether `SHIFTWORK_LONG` is set.
fn is_long() -> bool {
    std::env::var_os("SHIFTWORK_LONG").is_some()
}

/// How deep sequences go: deeper in long tests.
fn depth(fast: usize, long: usize) -> usize {
    if is_long() { long } else { fast }
}

/// All combinations of non-empty affinities of `tasks` tasks on `cpus` CPUs.
fn affinities(cpus: usize, tasks: usize) -> impl Iterator<Item = Vec<CpuSet>> {
    let masks = (1u64 << cpus) - 1;
    (0..masks.pow(tasks as u32)).map(move |mut code| {
        (0..tasks)
            .map(|_| {
                let mask = CpuSet::from_bits(code % masks + 1);
                code /= masks;
                mask
            })
            .collect()
    })
}

/// The ways to rename three CPUs: by index, which each becomes.
const RENAMINGS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

/// Whether affinities on three CPUs stand for all that differ from them only in the names of the CPUs, which
/// matter to policies only where they break ties. Which of these do is as good as random, so that no name is preferred.
fn stand_for_their_class(masks: &[CpuSet]) -> bool {
    let order = |masks: &[CpuSet]| {
        let mut hasher = DefaultHasher::new();
        masks.hash(&mut hasher);
        hasher.finish()
    };
    let renamed = |names: &[usize; 3]| -> Vec<CpuSet> {
        let rename = |cpu: CpuId| CpuId::from_index(names[cpu.index()]);
        masks
            .iter()
            .map(|mask| mask.iter().map(rename).collect())
            .collect()
    };
    let own = order(masks);
    RENAMINGS.iter().all(|names| own <= order(&renamed(names)))
}

/// Every sequence of `steps` of the given length, each from a fresh policy that has taken the steps `first`. Sequences
/// that begin as the one before are compared from where they differ: a policy is a function of its events.
fn every_sequence(
    name: &'static str,
    promise: Promise,
    (cpus, masks): (usize, &[CpuSet]),
    first: &[Step],
    steps: &[Step],
    length: usize,
) {
    // The index of each step in `steps`, the last of which counts fastest.
    let mut sequence = vec![0; length];
    let mut compared = 0;
    loop {
        let mut driver = Driver::new(name, promise, cpus, masks);
        let own = sequence.iter().map(|&index| steps[index]);
        for (at, step) in first.iter().copied().chain(own).enumerate() {
            match at < compared {
                true => driver.repeat(step),
                false => driver.step(step),
            };
        }
        let Some(next) = sequence.iter().rposition(|&index| index + 1 < steps.len()) else {
            return;
        };
        sequence[next] += 1;
        sequence[next + 1..].fill(0);
        compared = first.len() + next;
    }
}

/// Jobs come and go, under all combinations of affinities; on 3 CPUs, where there are 2,401, under one of each class of
/// [`stand_for_their_class`], and under all in long tests.
pub fn arrivals_and_departures(name: &'static str, promise: Promise, laminar_only: bool) {
    for (cpus, tasks, length) in [
        (2, 3, depth(6, 7)),
        (2, 4, depth(6, 7)),
        (3, 4, depth(5, 6)),
    ] {
        // Deadlines against the order of the tasks: priorities and deadlines rank differently.
        let steps: Vec<Step> = (0..tasks)
            .map(|task| Step::Toggle(task, 100 - 7 * task as u64))
            .collect();
        let is_tried = |masks: &Vec<CpuSet>| {
            (!laminar_only || first_overlap(masks).is_none())
                && (cpus < 3 || is_long() || stand_for_their_class(masks))
        };
        for masks in affinities(cpus, tasks).filter(is_tried) {
            every_sequence(name, promise, (cpus, &masks), &[], &steps, length);
        }
    }
}

/// On 2 CPUs with 3 tasks: everything that can happen.
pub fn all_events(name: &'static str, promise: Promise) {
    let mut steps: Vec<Step> = (0..3)
        .map(|task| Step::Toggle(task, 50 - task as u64))
        .collect();
    for task in 0..3 {
        steps.push(Step::SetPriority(task, 9));
        steps.push(Step::SetDeadline(task, 90));
        steps.push(Step::SetDeadline(task, 10));
        steps.extend((1..4).map(|bits| Step::SetAffinity(task, CpuSet::from_bits(bits))));
    }
    steps.extend([Step::ToggleCpu(0), Step::ToggleCpu(1), Step::Leave(2)]);
    steps.push(Step::Enter(2, CpuSet::from_bits(3)));
    // All tasks wake first, so that the sequences start where there is something to change.
    let length = depth(2, 3);
    let first = [0, 1, 2].map(|task| Step::Toggle(task, 50 - task as u64));
    for masks in affinities(2, 3) {
        every_sequence(name, promise, (2, &masks), &first, &steps, length);
    }
}
