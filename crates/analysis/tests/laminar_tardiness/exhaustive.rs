//! All releases of tiny systems in whole units, every job as long as declared: a search through all
//! states. The running jobs follow the definition of the strong invariant by brute force, without a
//! policy.

use std::collections::BTreeSet;

use shiftwork_model::RandomStream;

use crate::game::Seen;
use crate::system::{Deadlines, SHAPES, System};
use crate::times_if_long;

/// A task: units until it may release again, and its unfinished jobs as age and remaining cost.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Now {
    wait: u8,
    jobs: Vec<(u8, u8)>,
}

/// Most urgent first, keep a task if the kept ones still fit: these run.
fn running(system: &System, state: &[Now]) -> Vec<usize> {
    let mut pending: Vec<(i64, std::cmp::Reverse<u8>, usize)> = state
        .iter()
        .enumerate()
        .filter_map(|(task, now)| {
            let &(age, _) = now.jobs.first()?;
            let due = system.tasks[task].deadline as i64 - i64::from(age);
            Some((due, std::cmp::Reverse(age), task))
        })
        .collect();
    pending.sort_unstable();
    let mut kept = Vec::new();
    for (_, _, task) in pending {
        kept.push(task);
        if !fits(system, &kept, 0) {
            kept.pop();
        }
    }
    kept
}

/// Whether each of these tasks can have a CPU of its own beside those taken.
fn fits(system: &System, tasks: &[usize], taken: u64) -> bool {
    let Some((&task, others)) = tasks.split_first() else {
        return true;
    };
    let free = system.tasks[task].mask & !taken;
    let mut cpus = (0..system.cpus)
        .map(|cpu| 1 << cpu)
        .filter(|cpu| free & cpu != 0);
    cpus.any(|cpu| fits(system, others, taken | cpu))
}

/// The longest responses over all patterns, and whether all states were seen.
fn search(system: &System, states_max: usize) -> (Vec<u64>, bool) {
    let idle = vec![
        Now {
            wait: 0,
            jobs: Vec::new()
        };
        system.tasks.len()
    ];
    let mut seen = BTreeSet::from([idle.clone()]);
    let mut open = vec![idle];
    let mut responses = vec![0; system.tasks.len()];
    while let Some(state) = open.pop() {
        let free: Vec<usize> = (0..state.len())
            .filter(|&task| state[task].wait == 0)
            .collect();
        for chosen in 0u32..1 << free.len() {
            let mut next = state.clone();
            for (place, &task) in free.iter().enumerate() {
                if chosen >> place & 1 == 1 {
                    let of = &system.tasks[task];
                    next[task].wait = of.period as u8;
                    next[task].jobs.push((0, of.cost as u8));
                }
            }
            let running = running(system, &next);
            for (task, now) in next.iter_mut().enumerate() {
                now.wait = now.wait.saturating_sub(1);
                now.jobs.iter_mut().for_each(|job| job.0 += 1);
                if running.contains(&task) {
                    now.jobs[0].1 -= 1;
                    if now.jobs[0].1 == 0 {
                        let (age, _) = now.jobs.remove(0);
                        responses[task] = responses[task].max(age.into());
                    }
                }
            }
            if seen.len() < states_max && seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    let is_complete = seen.len() < states_max;
    (responses, is_complete)
}

#[test]
fn no_pattern_of_releases_makes_a_job_later_than_its_bound() {
    let (mut complete, mut systems) = (0, 0);
    for (cell, shape) in SHAPES.into_iter().enumerate() {
        let mut seen = Seen::default();
        for seed in 1..=times_if_long(5, 60) {
            let mut stream = RandomStream::new(seed, 100 + cell as u64, 0);
            let deadlines = [Deadlines::Implicit, Deadlines::Any][seed as usize % 2];
            let mut system = System::random(shape, deadlines, 3, &mut stream);
            system.tasks.retain(|task| task.period <= 6);
            let count = 2 + stream.below(4) as usize;
            system.tasks.truncate(count);
            if system.tasks.is_empty() {
                continue;
            }
            let states = times_if_long(3_000, 30) as usize;
            let (responses, is_complete) = search(&system, states);
            systems += 1;
            complete += u64::from(is_complete);
            let what = format!("{shape}, {deadlines:?}, seed {seed}");
            seen.add(&system, &system.bounds(), &responses, &what);
        }
        seen.print(&format!("{shape} all"));
    }
    println!("all states of {complete} of {systems}");
    assert!(
        complete * 4 > systems,
        "{complete} of {systems} seen completely"
    );
}
