//! Small sizes, all of them: every combination of affinities, every sequence of events to a depth.

use shiftwork_model::{CpuSet, first_overlap};

use crate::drive::{Driver, Promise, Step};

/// How deep sequences go: deeper when `SHIFTWORK_LONG` is set.
fn depth(fast: usize, long: usize) -> usize {
    if std::env::var_os("SHIFTWORK_LONG").is_some() {
        long
    } else {
        fast
    }
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

/// Every sequence of `steps` of the given length, each from a fresh policy.
fn every_sequence(
    name: &'static str,
    promise: Promise,
    cpus: usize,
    masks: &[CpuSet],
    steps: &[Step],
    length: usize,
) {
    for mut code in 0..steps.len().pow(length as u32) {
        let mut driver = Driver::new(name, promise, cpus, masks);
        for _ in 0..length {
            driver.step(steps[code % steps.len()]);
            code /= steps.len();
        }
    }
}

/// Jobs come and go, under all combinations of affinities.
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
        for masks in affinities(cpus, tasks) {
            if !laminar_only || first_overlap(&masks).is_none() {
                every_sequence(name, promise, cpus, &masks, &steps, length);
            }
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
    for masks in affinities(2, 3) {
        for mut code in 0..steps.len().pow(length as u32) {
            let mut driver = Driver::new(name, promise, 2, &masks);
            (0..3).for_each(|task| {
                driver.step(Step::Toggle(task, 50 - task as u64));
            });
            for _ in 0..length {
                driver.step(steps[code % steps.len()]);
                code /= steps.len();
            }
        }
    }
}
