//! Budgets and suspensions, with schedules computed by hand.

mod common;

use common::{NS, finishes, run, set, story};
use shiftwork_model::{OnOverrun, Phase, Work};

#[test]
fn overrun_is_throttled_and_delays_later_jobs() {
    let mut set = set(1, &[(1, 4)]);
    set.tasks[0].work = Work::Trace(vec![NS(3), NS(1), NS(1), NS(1)]);
    let expected = [
        "0 released 1 due 4",
        "0 ready 1 by 4",
        "1 spent",
        "1 Throttled",
        "4 released 2 due 8",
        "4 replenished 1 by 8",
        "4 ready 1 by 8",
        "5 spent",
        "5 Throttled",
        "8 released 3 due 12",
        "8 replenished 1 by 12",
        "8 ready 1 by 12",
        // A job may complete at the end of its budget; the job released at 4 has none.
        "9 completed 1",
        "12 released 4 due 16",
        "12 replenished 1 by 16",
        "12 ready 2 by 16",
        "13 completed 2",
    ];
    assert_eq!(story(&run(&set, "g-edf", 14), 0), expected);
}

#[test]
fn late_job_is_replenished_at_once() {
    let mut set = set(1, &[(1, 4), (5, 100)]);
    set.tasks[0].deadline = NS(8);
    set.tasks[0].work = Work::Constant(NS(2));
    set.tasks[1].deadline = NS(5);
    let expected = [
        "0 released 1 due 8",
        "0 ready 1 by 8",
        "4 released 2 due 12",
        "6 spent",
        "6 replenished 1 by 12",
        "7 completed 1",
        "8 released 3 due 16",
        "8 replenished 1 by 16",
        "8 ready 2 by 16",
        "9 spent",
        "9 Throttled",
    ];
    for policy in ["g-edf", "strong-edf", "hpa-edf"] {
        assert_eq!(story(&run(&set, policy, 10), 0), expected, "{policy}");
    }
}

#[test]
fn overrun_without_throttling_continues() {
    for on_overrun in [OnOverrun::Continue, OnOverrun::Signal] {
        let mut set = set(1, &[(1, 4)]);
        set.tasks[0].work = Work::Constant(NS(3));
        set.tasks[0].on_overrun = on_overrun;
        assert_eq!(finishes(&run(&set, "g-edf", 12), 0), [3, 7, 11]);
    }
}

#[test]
fn throttling_protects_other_tasks() {
    let mut set = set(1, &[(2, 4), (2, 8)]);
    set.tasks[0].work = Work::Constant(NS(4));
    assert_eq!(finishes(&run(&set, "g-fp", 32), 1), [4, 12, 20, 28]);
    set.tasks[0].on_overrun = OnOverrun::Continue;
    assert_eq!(finishes(&run(&set, "g-fp", 32), 1), [0; 0]);
}

#[test]
fn suspended_job_frees_its_cpu() {
    let mut set = set(1, &[(2, 10), (3, 20)]);
    let run_1 = Phase::Run(NS(1));
    set.tasks[0].work = Work::Phases(vec![run_1, Phase::Sleep(NS(2)), run_1]);
    let records = run(&set, "g-edf", 10);
    let expected = [
        "0 released 1 due 10",
        "0 ready 1 by 10",
        "1 Suspended",
        "3 ready 1 by 10",
        "4 completed 1",
    ];
    assert_eq!(story(&records, 0), expected);
    assert_eq!(finishes(&records, 1), [5]);
}

#[test]
fn job_may_begin_and_end_with_a_suspension() {
    let mut set = set(1, &[(1, 5)]);
    set.tasks[0].work = Work::Phases(vec![
        Phase::Sleep(NS(1)),
        Phase::Run(NS(1)),
        Phase::Sleep(NS(4)),
    ]);
    let expected = [
        "0 released 1 due 5",
        "1 ready 1 by 5",
        "2 Suspended",
        "5 released 2 due 10",
        // The second job waits for the first, and also begins with a suspension.
        "6 completed 1",
        "7 ready 2 by 10",
        "8 Suspended",
        "10 released 3 due 15",
        "12 completed 2",
    ];
    assert_eq!(story(&run(&set, "g-edf", 12), 0), expected);
}

#[test]
fn suspension_keeps_the_remaining_budget() {
    let mut set = set(1, &[(2, 10)]);
    set.tasks[0].work = Work::Phases(vec![
        Phase::Run(NS(1)),
        Phase::Sleep(NS(3)),
        Phase::Run(NS(2)),
    ]);
    let expected = [
        "0 released 1 due 10",
        "0 ready 1 by 10",
        "1 Suspended",
        "4 ready 1 by 10",
        "5 spent",
        "5 Throttled",
        "10 released 2 due 20",
        "10 replenished 2 by 20",
        "10 ready 1 by 20",
        "11 completed 1",
        // One unit is left, to be used by 20; the second job takes it.
        "11 ready 2 by 20",
    ];
    assert_eq!(story(&run(&set, "g-edf", 12), 0), expected);
}

#[test]
fn job_without_work_completes_as_soon_as_it_has_a_cpu() {
    let mut set = set(1, &[(2, 4), (1, 8)]);
    set.tasks[1].work = Work::Constant(NS(0));
    assert_eq!(finishes(&run(&set, "g-edf", 16), 1), [2, 10]);
}
