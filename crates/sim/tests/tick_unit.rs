//! Time counted in units longer than a nanosecond: all events occur at whole units.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use common::{NS, run, set};
use shiftwork_model::{Arrival, TaskSet, Work};

const UNIT: u64 = 1_000;

/// Random gaps and execution times, which the tick unit rounds to whole units.
fn random_times(unit: u64) -> TaskSet {
    let mut set = set(
        2,
        &[
            (3 * UNIT, 8 * UNIT),
            (5 * UNIT, 11 * UNIT),
            (9 * UNIT, 13 * UNIT),
        ],
    );
    for task in &mut set.tasks {
        task.arrival = Arrival::Sporadic;
        task.work = Work::Uniform(NS(UNIT), task.cost);
    }
    set.platform.tick_unit = NS(unit);
    set
}

#[test]
fn switches_occur_at_whole_units() {
    for policy in ["p-edf", "g-edf", "np-g-edf", "strong-fp", "weak-edf"] {
        let between = |unit: u64| {
            let records = run(&random_times(unit), policy, 1_000 * UNIT);
            assert!(records.len() > 500, "{policy}: {}", records.len());
            records
                .iter()
                .filter(|record| record.at.as_ns() % UNIT != 0)
                .count()
        };
        assert_eq!(between(UNIT), 0, "{policy}");
        assert!(between(1) > 0, "{policy}");
    }
}
