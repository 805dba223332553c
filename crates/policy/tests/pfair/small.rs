//! Every small system.

use crate::oracle::{Job, Task};
use crate::system::System;

/// All weights with periods up to so many slots.
fn weights(longest: u64) -> Vec<(u64, u64)> {
    let of = |p: u64| (1..=p).map(move |e| (e, p));
    (1..=longest).flat_map(of).collect()
}

fn fits(chosen: &[(u64, u64)], cpus: u64) -> bool {
    let common = 12;
    chosen.iter().map(|&(e, p)| e * common / p).sum::<u64>() <= cpus * common
}

/// Three tasks with periods up to four slots on one and two CPUs, in every order, with every offset up to
/// two slots of the second and the third.
#[test]
fn every_small_system_is_scheduled_by_the_definition() {
    let weights = weights(4);
    let mut systems = 0;
    for cpus in [1, 2] {
        for &first in &weights {
            for &second in &weights {
                for &third in &weights {
                    let chosen = [first, second, third];
                    if !fits(&chosen, cpus) {
                        continue;
                    }
                    for offsets in 0..9 {
                        systems += 1;
                        run(&chosen, [0, offsets % 3, offsets / 3], cpus as usize);
                    }
                }
            }
        }
    }
    assert_eq!(systems, 4_383);
}

fn run(chosen: &[(u64, u64)], offsets: [u64; 3], cpus: usize) {
    let tasks = chosen.iter().zip(offsets).map(|(&(e, p), offset)| Task {
        e,
        p,
        jobs: (0..12 / p)
            .map(|job| Job {
                seen: offset + job * p,
                runs: e,
            })
            .collect(),
    });
    let tasks: Vec<Task> = tasks.collect();
    for early in [false, true] {
        for policy in ["pd2", "s-pd2"] {
            let system = System {
                cpus,
                early,
                tasks: tasks.clone(),
            };
            let seen = system.compare(policy, "small");
            assert_eq!(seen.late, 0, "{policy}: {system:?}");
            let synchronous = offsets == [0; 3] && !early;
            assert!(!synchronous || seen.lags_fit, "{policy}: {system:?}");
        }
    }
}
