//! Non-preemptive global EDF against its definition, executed one time unit after the other.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use common::{finishes, run, set};
use shiftwork_model::{RandomStream, TaskSet};

/// A job as the definition ranks it: the earlier deadline, the earlier ready, the lower index.
type Rank = (u64, u64, usize);

/// When every job finishes. A job that begins goes on to its end. A CPU whose job ends goes to the most
/// urgent of those that were there before, the next job of the same task among them if it has been
/// released; then those that arrive get what is idle, the most urgent first.
fn by_definition(set: &TaskSet, horizon: u64) -> Vec<Vec<u64>> {
    let tasks: Vec<(u64, u64)> = set
        .tasks
        .iter()
        .map(|task| (task.cost.as_ns(), task.period.as_ns()))
        .collect();
    let mut finished: Vec<Vec<u64>> = vec![Vec::new(); tasks.len()];
    // Who waits to run, and on each CPU who runs until when.
    let mut ready: Vec<Rank> = Vec::new();
    let mut cpus: Vec<Option<(usize, u64)>> = vec![None; set.platform.cpus];
    for now in 0..=horizon {
        for cpu in &mut cpus {
            let Some((task, until)) = *cpu else {
                continue;
            };
            if until > now {
                continue;
            }
            finished[task].push(now);
            let next = finished[task].len() as u64;
            // What is released only now comes with those that arrive.
            if next * tasks[task].1 < now {
                ready.push(((next + 1) * tasks[task].1, now, task));
            }
            *cpu = take(&mut ready, &tasks, now);
        }
        for (task, &(_, period)) in tasks.iter().enumerate() {
            let is_first = finished[task].len() as u64 * period == now;
            if is_first {
                ready.push((now + period, now, task));
            }
        }
        for cpu in &mut cpus {
            if cpu.is_none() {
                *cpu = take(&mut ready, &tasks, now);
            }
        }
    }
    finished
}

/// The most urgent begins.
fn take(ready: &mut Vec<Rank>, tasks: &[(u64, u64)], now: u64) -> Option<(usize, u64)> {
    let most_urgent = ready.iter().min().copied()?;
    ready.retain(|&job| job != most_urgent);
    let task = most_urgent.2;
    Some((task, now + tasks[task].0))
}

#[test]
fn jobs_finish_when_the_definition_says() {
    for seed in 0..400 {
        let mut stream = RandomStream::new(seed, 41, 0);
        let cpus = 1 + stream.below(3) as usize;
        let tasks: Vec<(u64, u64)> = (0..1 + stream.below(7))
            .map(|_| {
                let period = 2 + stream.below(11);
                (1 + stream.below(period), period)
            })
            .collect();
        let set = set(cpus, &tasks);
        let horizon = 400;
        let records = run(&set, "np-g-edf", horizon);
        let found: Vec<Vec<u64>> = (0..tasks.len())
            .map(|task| finishes(&records, task))
            .collect();
        assert_eq!(
            found,
            by_definition(&set, horizon),
            "seed {seed}: {tasks:?} on {cpus} CPUs"
        );
    }
}

/// U. Devi and J. Anderson bound response times by 15 here; a simulation that gives the CPU of a job to
/// others before its pending successor counts has them grow for ever.
#[test]
fn a_fully_used_machine_falls_behind_by_no_more_than_a_bound() {
    let set = set(3, &[(2, 2), (5, 5), (6, 12), (2, 4)]);
    let records = run(&set, "np-g-edf", 6_000);
    for (number, finish) in (0..).zip(finishes(&records, 0)) {
        assert!(finish - 2 * number <= 15, "job {number} ends at {finish}");
    }
}
