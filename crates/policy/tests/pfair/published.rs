//! Examples that papers and textbooks give.

use crate::oracle::{Job, Oracle, Task};
use crate::system::System;

/// Jobs that follow each other from slot 0 on.
pub fn periodic(e: u64, p: u64, count: u64) -> Task {
    let job = |number| Job {
        seen: number * p,
        runs: e,
    };
    Task {
        e,
        p,
        jobs: (0..count).map(job).collect(),
    }
}

#[test]
fn three_tasks_of_two_thirds_take_turns_on_two_cpus() {
    let tasks = vec![periodic(2, 3, 4); 3];
    let mut oracle = Oracle::new(tasks.clone(), 2, false);
    let of = |slot: u64| -> Vec<usize> {
        let mut tasks: Vec<usize> = oracle.slot(slot).iter().map(|one| one.task).collect();
        tasks.sort_unstable();
        tasks
    };
    let slots: Vec<Vec<usize>> = (0..6).map(of).collect();
    let turns = [[0, 1], [0, 2], [1, 2]];
    assert_eq!(slots, [turns, turns].concat());
    for policy in ["pd2", "s-pd2", "c-pd2", "cs-pd2"] {
        let system = System {
            cpus: 2,
            early: false,
            tasks: tasks.clone(),
        };
        let seen = system.compare(policy, "thirds");
        assert_eq!(
            (seen.slots, seen.late, seen.lags_fit),
            (12, 0, true),
            "{policy}"
        );
    }
}

/// The task of the textbooks, among others that leave it no choice.
#[test]
fn eight_elevenths_run_within_their_windows() {
    let tasks = [(8, 11), (8, 11), (3, 11), (3, 11)];
    let system = System {
        cpus: 2,
        early: false,
        tasks: tasks.iter().map(|&(e, p)| periodic(e, p, 5)).collect(),
    };
    let seen = system.compare("pd2", "elevenths");
    assert_eq!((seen.slots, seen.late, seen.lags_fit), (55, 0, true));
}
