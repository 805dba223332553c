//! The overheads that were measured on the Niagara, and the example that has them.

use shiftwork_model::{Interrupts, TaskSet};
use shiftwork_taskset::overheads::{OverheadFile, Use, read};

use crate::{inflated, times};

const NIAGARA: &str = include_str!("../../../../examples/brandenburg-2008/niagara-2008.toml");
const MEDIUM: &str = include_str!("../../../../examples/brandenburg-2008/medium.toml");

const POLICIES: [&str; 6] = ["pd2", "s-pd2", "g-edf", "np-g-edf", "c-edf", "p-edf"];

fn file() -> OverheadFile {
    read(NIAGARA).unwrap()
}

/// T1 of the example, whose cost is 29 ms.
fn set() -> TaskSet {
    shiftwork_taskset::read(MEDIUM).unwrap()
}

#[test]
fn the_file_has_every_row_of_the_tables() {
    let file = file();
    for policy in POLICIES {
        let [worst, average] = [Use::Worst, Use::Average].map(|purpose| {
            file.find(purpose, policy)
                .unwrap_or_else(|| panic!("{policy}"))
        });
        for tasks in [1, 100, 450] {
            assert!(worst.tick.at(tasks) > average.tick.at(tasks), "{policy}");
            assert!(
                worst.schedule.at(tasks) > average.schedule.at(tasks),
                "{policy}"
            );
            assert!(
                worst.switch.at(tasks) > average.switch.at(tasks),
                "{policy}"
            );
            for distance in 0..3 {
                let [worst, average] =
                    [worst, average].map(|table| table.cache_cost(distance, tasks));
                assert!(worst >= average, "{policy}");
            }
        }
    }
    assert_eq!(file.tables.len(), 2 * POLICIES.len());
    // 55.2 + 0.26 N us.
    let global = file.find(Use::Worst, "g-edf").unwrap();
    assert_eq!(global.schedule.at(100).as_ns(), 81_200);
}

#[test]
fn the_example_pays_what_was_measured() {
    let (set, file) = (set(), file());
    let cost = |policy: &str, purpose| {
        let overheads = file.find(purpose, policy).unwrap();
        times(&inflated(&set, policy, Interrupts::Global, overheads)[0])[0]
    };
    assert_eq!(set.tasks[0].cost.as_ns(), 29_000_000);
    // With 40 tasks under G-EDF sch = 65.6, cxs = 29.2, rel = 57, tck = 3.12, cpd = 375.4 us, so that
    // 29000 + 2 (65.6 + 29.2 + 3.12 + 40 x 57) + 375.4 = 34131.24 us, at 1 - 0.00312 - 57 us x sum of 1/T.
    let frequency: f64 = set
        .tasks
        .iter()
        .map(|task| 1e9 / task.period.as_ns() as f64)
        .sum();
    let expected = 34_131_240.0 / (1.0 - 0.003_12 - 57e-6 * frequency);
    let found = cost("g-edf", Use::Worst) as f64;
    assert!((found - expected).abs() < 2.0, "{found}, not {expected}");
    // PD2 loses 23.2 + 32.7 + 3.5 + 681.1 of each quantum of 1000 us: 29000 / 259.5 are 112 quanta.
    assert_eq!(cost("pd2", Use::Worst), 112_000_000);
    // S-PD2 loses 16.8 + 43.1 + 3.32 + 104.1: 29000 / 832.68 are 35 quanta.
    assert_eq!(cost("s-pd2", Use::Worst), 35_000_000);
    for policy in POLICIES {
        assert!(
            cost(policy, Use::Average) <= cost(policy, Use::Worst),
            "{policy}"
        );
    }
}
