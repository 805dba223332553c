//! Random systems: heavy and light tasks, full and not, periodic, shifted and sporadic; jobs that end early
//! or late.

use shiftwork_model::RandomStream;

use crate::oracle::{Job, Task};
use crate::system::System;

fn seeds(few: u64) -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 50 * few,
        None => few,
    }
}

/// Weights that fill the CPUs, all but completely or exactly.
fn weights(random: &mut RandomStream, cpus: u64) -> Vec<(u64, u64)> {
    let period = 2 + random.below(11);
    let mut left = cpus * period;
    let mut weights = Vec::new();
    while left > 0 && weights.len() < 12 {
        let heavy = random.below(2) == 0;
        let most = if heavy { period } else { period.div_ceil(2) };
        let e = (1 + random.below(most)).min(left);
        left -= e;
        // The same weight, in another period.
        let times = if e * 3 < period {
            1
        } else {
            1 + random.below(3)
        };
        weights.push((e * times, period * times));
    }
    weights
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Arrivals {
    Synchronous,
    Shifted,
    Sporadic,
}

fn system(seed: u64, arrivals: Arrivals, exact: bool) -> System {
    let mut random = RandomStream::new(seed, 91, arrivals as u64);
    let cpus = 1 + random.below(6);
    let weights = weights(&mut random, cpus);
    let early = random.below(3) == 0;
    let task = |&(e, p): &(u64, u64)| {
        let mut at = match arrivals {
            Arrivals::Synchronous => 0,
            _ => random.below(2 * p),
        };
        let count = 1 + 60 / p;
        let mut job = || {
            let seen = at;
            at += p;
            if arrivals == Arrivals::Sporadic {
                at += random.below(p) * random.below(2);
            }
            let runs = match exact {
                true => e,
                false => 1 + random.below(e + 1),
            };
            Job { seen, runs }
        };
        let jobs = (0..count).map(|_| job()).collect();
        Task { e, p, jobs }
    };
    let tasks = weights.iter().map(task).collect();
    System {
        cpus: cpus as usize,
        early,
        tasks,
    }
}

#[test]
fn full_systems_are_scheduled_by_the_definition_and_never_late() {
    for arrivals in [Arrivals::Synchronous, Arrivals::Shifted, Arrivals::Sporadic] {
        for seed in 0..seeds(150) {
            let system = system(seed, arrivals, true);
            for policy in ["pd2", "s-pd2"] {
                let seen = system.compare(policy, &format!("seed {seed}, {arrivals:?}"));
                assert_eq!(seen.late, 0, "{policy}, seed {seed}: {system:?}");
                if arrivals == Arrivals::Synchronous && !system.early {
                    assert!(seen.lags_fit, "{policy}, seed {seed}: {system:?}");
                }
            }
        }
    }
}

/// With aligned quanta the definition holds whatever jobs need: one that ends early frees its slots, one
/// that needs more goes on at its rate.
#[test]
fn jobs_that_need_less_or_more_are_scheduled_by_the_definition() {
    let mut late = 0;
    for arrivals in [Arrivals::Synchronous, Arrivals::Shifted, Arrivals::Sporadic] {
        for seed in 0..seeds(150) {
            let system = system(seed, arrivals, false);
            late += system
                .compare("pd2", &format!("seed {seed}, {arrivals:?}"))
                .late;
        }
    }
    assert!(late > 0, "some systems are overloaded");
}
