//! The worked examples of `docs/theory/laminar-tardiness.md`.

use crate::system::{System, UNIT, Unit};

/// As cost, period, deadline and affinity.
fn responses(cpus: usize, tasks: &[(u64, u64, u64, u64)]) -> Vec<u64> {
    let unit = |&(cost, period, deadline, mask): &(u64, u64, u64, u64)| Unit {
        cost,
        period,
        deadline,
        mask,
    };
    let tasks = tasks.iter().map(unit).collect();
    let bounds = System { cpus, tasks }.bounds().into_iter();
    // The margin of the fixed point is far below half a nanosecond here.
    bounds
        .map(|ns| ns.next_multiple_of(UNIT / 10) * 10 / UNIT)
        .collect()
}

#[test]
fn a_pinned_task_and_two_global_ones_on_two_full_cpus() {
    let tasks = [(5, 10, 10, 0b01), (3, 4, 4, 0b11), (3, 4, 4, 0b11)];
    // Tenths: late by 5, 4 and 4.
    let expected = [150, 80, 80];
    for (response, expected) in responses(2, &tasks).into_iter().zip(expected) {
        assert!((expected..=expected + 1).contains(&response), "{response}");
    }
}

#[test]
fn three_small_tasks_on_two_cpus_respond_before_their_deadlines() {
    let bounds = responses(2, &[(1, 3, 3, 0b11); 3]);
    assert!(
        bounds.iter().all(|&bound| (20..=21).contains(&bound)),
        "{bounds:?}"
    );
}

#[test]
fn a_task_that_no_task_can_block_responds_within_its_cost() {
    let bounds = responses(2, &[(2, 5, 5, 0b01), (3, 4, 4, 0b11)]);
    assert_eq!(bounds, [20, 30]);
}
