//! The eight examples: what the paper says of each, and what comes out here.

mod features;
mod migration;

use shiftwork_model::{CpuId, Instant, TaskId, TaskSet};

use crate::chapter::{Chapter, at, list, ms};
use crate::schedule::{Schedule, Stretch};

const T1: TaskId = TaskId::from_index(0);
const T2: TaskId = TaskId::from_index(1);
const T3: TaskId = TaskId::from_index(2);
const T4: TaskId = TaskId::from_index(3);
const T5: TaskId = TaskId::from_index(4);

/// The chapters of the examples, in their order.
pub(super) fn all() -> Result<Vec<Chapter>, String> {
    Ok(vec![
        features::dynamic_tasks()?,
        features::frequencies()?,
        features::between_cpusets()?,
        features::suspensions()?,
        migration::bypassing()?,
        migration::pushing()?,
        migration::dynamic_affinities()?,
        migration::transient_inversion()?,
    ])
}

/// Simulates so many milliseconds.
fn run(set: &TaskSet, policy: &str, ms: u64) -> Result<Schedule, String> {
    Schedule::simulate(set, policy, at(ms))
}

/// The tardiness of the first jobs of a task.
fn first(run: &Schedule, task: TaskId, count: usize) -> String {
    list(run.tardiness(task).into_iter().take(count))
}

/// Where and when the stretches of a task were, those that begin before `ms`: `CPU 0 [2, 4)`.
fn where_it_ran(run: &Schedule, task: TaskId, before: u64) -> String {
    let of_task = |of: &&Stretch| of.job.task == task && of.start < at(before);
    let mut joined: Vec<(CpuId, Instant, Instant)> = Vec::new();
    for of in run.stretches.iter().filter(of_task) {
        match joined.last_mut() {
            Some((cpu, _, end)) if *cpu == of.cpu && *end == of.start => *end = of.end,
            _ => joined.push((of.cpu, of.start, of.end)),
        }
    }
    let text = |(cpu, start, end): &(CpuId, Instant, Instant)| {
        let [start, end] = [start, end].map(|at| ms(at.late_since(Instant::ZERO)));
        format!("CPU {} [{start}, {end})", cpu.index())
    };
    let texts: Vec<String> = joined.iter().map(text).collect();
    texts.join(", ")
}

/// When a job, counted from 0, finished, in ms.
fn run_finish(run: &Schedule, task: TaskId, job: usize) -> String {
    let finish = run.of_task(task).nth(job).and_then(|fate| fate.finish);
    finish.map_or("never".to_owned(), |at| ms(at.late_since(Instant::ZERO)))
}

/// Where a task ran in a part of the run.
fn after(run: &Schedule, task: TaskId, from: u64, to: u64) -> String {
    let mut part = run.clone();
    part.stretches
        .retain(|of| of.start >= at(from) && of.start < at(to));
    where_it_ran(&part, task, to)
}
