//! Small runs with schedules computed by hand.

mod common;

use common::{finishes, run, set, story, switches};

#[test]
fn three_tasks_of_two_thirds_on_two_cpus_have_a_tardiness_of_one() {
    let set = set(2, &[(2, 3), (2, 3), (2, 3)]);
    let records = run(&set, "g-edf", 300);
    let expected: Vec<u64> = (0..99).map(|job| 4 + 3 * job).collect();
    assert_eq!(finishes(&records, 2), expected);
    let on_time: Vec<u64> = (0..100).map(|job| 2 + 3 * job).collect();
    assert!(
        finishes(&records, 0)
            .iter()
            .zip(&on_time)
            .all(|(at, on_time)| *at <= on_time + 1)
    );
}

#[test]
fn completion_at_the_horizon_counts_and_release_does_not() {
    let set = set(1, &[(5, 5)]);
    let lines = story(&run(&set, "g-edf", 10), 0);
    let expected = [
        "0 released 1 due 5",
        "0 ready 1 by 5",
        "5 completed 1",
        "5 released 2 due 10",
        "5 ready 2 by 10",
        "10 completed 2",
    ];
    assert_eq!(lines, expected);
    assert_eq!(finishes(&run(&set, "g-edf", 9), 0), [5]);
    assert_eq!(run(&set, "g-edf", 0), []);
}

#[test]
fn only_net_changes_of_an_instant_are_switches() {
    // At 4 the first job of T0 ends and its second begins: T1 is assigned the CPU only within that instant.
    let set = set(1, &[(2, 2), (1, 100)]);
    let records = run(&set, "g-edf", 6);
    assert_eq!(
        switches(&records),
        ["0 cpu0 T0.1", "2 cpu0 T0.2", "4 cpu0 T0.3"]
    );
}

#[test]
fn pending_job_becomes_ready_when_its_predecessor_completes() {
    let set = set(1, &[(3, 2)]);
    let lines = story(&run(&set, "g-edf", 7), 0);
    let expected = [
        "0 released 1 due 2",
        "0 ready 1 by 2",
        "2 released 2 due 4",
        "3 completed 1",
        "3 ready 2 by 4",
        "4 released 3 due 6",
        "6 completed 2",
        "6 released 4 due 8",
        "6 ready 3 by 6",
    ];
    assert_eq!(lines, expected);
}
