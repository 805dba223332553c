//! Timed changes of the task set.

mod common;

use common::{AT, NS, finishes, id, run, set, story, switches, task};
use shiftwork_model::{
    Action, Affinity, Change, CpuId, Priority, Record, RecordKind, Share, TaskSet, Work,
};

fn with(mut set: TaskSet, changes: Vec<(u64, Change)>) -> TaskSet {
    set.actions = changes
        .into_iter()
        .map(|(at, change)| Action { at: AT(at), change })
        .collect();
    set
}

fn pinned(cpu: usize) -> Affinity {
    Affinity::pinned(CpuId::from_index(cpu))
}

/// The refused actions: instant, index and reason.
fn refusals(records: &[Record]) -> Vec<(u64, usize, String)> {
    let refusal = |record: &Record| match &record.kind {
        RecordKind::Refused { action, reason } => {
            Some((record.at.as_ns(), *action, reason.to_string()))
        }
        _ => None,
    };
    records.iter().filter_map(refusal).collect()
}

#[test]
fn task_that_enters_later_is_absent_before() {
    let changes = vec![(3, Change::Enter(id(0))), (9, Change::Leave(id(0)))];
    let set = with(set(1, &[(2, 4)]), changes);
    let expected = [
        "3 entered",
        "3 released 1 due 7",
        "3 ready 1 by 7",
        "5 completed 1",
        "7 released 2 due 11",
        "7 ready 2 by 11",
        "9 completed 2",
        "9 left",
    ];
    assert_eq!(story(&run(&set, "g-edf", 30), 0), expected);
}

#[test]
fn leaving_task_drops_its_jobs_and_may_enter_again() {
    let changes = vec![(5, Change::Leave(id(0))), (10, Change::Enter(id(0)))];
    let set = with(set(1, &[(3, 2)]), changes);
    let records = run(&set, "g-edf", 12);
    let expected = [
        "0 released 1 due 2",
        "0 ready 1 by 2",
        "2 released 2 due 4",
        "3 completed 1",
        "3 ready 2 by 4",
        "4 released 3 due 6",
        "5 left",
        "10 entered",
        "10 released 4 due 12",
        "10 ready 4 by 12",
    ];
    assert_eq!(story(&records, 0), expected);
    let expected = ["0 cpu0 T0.1", "3 cpu0 T0.2", "5 cpu0 -", "10 cpu0 T0.4"];
    assert_eq!(switches(&records), expected);
}

#[test]
fn leaving_and_entering_at_one_instant_restarts_the_task() {
    let changes = vec![(5, Change::Leave(id(0))), (5, Change::Enter(id(0)))];
    let set = with(set(1, &[(3, 4)]), changes);
    let lines = story(&run(&set, "g-edf", 9), 0);
    let expected = [
        "5 left",
        "5 entered",
        "5 released 3 due 9",
        "5 ready 3 by 9",
        "8 completed 3",
    ];
    assert_eq!(lines[lines.len() - 5..], expected);
}

#[test]
fn changed_attributes_apply_to_later_releases() {
    let change = Change::SetAttributes {
        task: id(0),
        cost: Some(NS(1)),
        period: Some(NS(2)),
        deadline: Some(NS(5)),
    };
    // Another task overloads the CPU until 6, so that jobs with the old and the new attributes are pending.
    let mut set = with(set(1, &[(2, 4), (6, 100)]), vec![(5, change)]);
    set.tasks[1].deadline = NS(1);
    let expected = [
        "0 released 1 due 4",
        "0 ready 1 by 4",
        "4 released 2 due 8",
        "8 completed 1",
        "8 released 3 due 13",
        "8 ready 2 by 8",
        "10 completed 2",
        "10 released 4 due 15",
        "10 ready 3 by 13",
        "11 completed 3",
        "11 ready 4 by 15",
        "12 completed 4",
    ];
    assert_eq!(story(&run(&set, "g-edf", 12), 0), expected);
}

#[test]
fn lowered_cost_is_enforced() {
    let change = Change::SetAttributes {
        task: id(0),
        cost: Some(NS(1)),
        period: None,
        deadline: None,
    };
    let mut set = with(set(1, &[(2, 4)]), vec![(5, change)]);
    set.tasks[0].work = Work::Constant(NS(2));
    assert_eq!(finishes(&run(&set, "g-edf", 20), 0), [2, 6, 13]);
}

#[test]
fn changed_affinity_migrates_the_task_at_once() {
    let set = with(
        set(2, &[(6, 10)]),
        vec![(2, Change::SetAffinity(id(0), pinned(1)))],
    );
    for policy in ["weak-edf", "strong-edf", "strong-fp"] {
        let records = run(&set, policy, 10);
        assert_eq!(
            switches(&records),
            ["0 cpu0 T0.1", "2 cpu0 -", "2 cpu1 T0.1", "6 cpu1 -"]
        );
    }
}

#[test]
fn raised_priority_preempts() {
    let urgent = Change::SetPriority(id(1), Priority::MOST_URGENT);
    let mut set = with(set(1, &[(4, 10), (2, 10)]), vec![(1, urgent)]);
    set.tasks[0].priority = Priority::new(5);
    set.tasks[1].priority = Priority::new(6);
    let records = run(&set, "g-fp", 10);
    assert_eq!(
        switches(&records),
        ["0 cpu0 T0.1", "1 cpu0 T1.1", "3 cpu0 T0.1", "6 cpu0 -"]
    );
}

#[test]
fn jobs_wait_while_their_cpu_is_offline() {
    let cpu = CpuId::from_index(0);
    let changes = vec![(1, Change::CpuOffline(cpu)), (5, Change::CpuOnline(cpu))];
    let set = with(set(1, &[(2, 10)]), changes);
    let records = run(&set, "g-edf", 10);
    assert_eq!(
        switches(&records),
        ["0 cpu0 T0.1", "1 cpu0 -", "5 cpu0 T0.1", "6 cpu0 -"]
    );
}

#[test]
fn invalid_action_is_refused_and_changes_nothing() {
    let cpu = CpuId::from_index(1);
    let changes = vec![
        (1, Change::Enter(id(1))),
        (2, Change::Leave(id(0))),
        (2, Change::Leave(id(0))),
        (3, Change::CpuOnline(cpu)),
        (4, Change::CpuOffline(CpuId::from_index(9))),
        (5, Change::Move(id(1), 1)),
        (6, Change::SetClusters(Vec::new())),
        (7, Change::SetAffinity(id(1), pinned(0))),
        (8, Change::SetReserve(Share::DEFAULT_RESERVE)),
    ];
    let mut set = with(set(2, &[(1, 10), (1, 10)]), changes);
    set.actions.insert(
        0,
        Action {
            at: AT(0),
            change: Change::Leave(id(1)),
        },
    );
    let refused = refusals(&run(&set, "g-edf", 20));
    let expected = [
        (2, 3, "task `T0` takes no part"),
        (3, 4, "CPU 1 is online already"),
        (4, 5, "there is no CPU 9; the CPUs are 0 to 1"),
        (
            5,
            6,
            "task `T1` cannot move to cluster 1: this policy does not model moves between \
             clusters; `set-affinity` changes where a task may run",
        ),
        (
            6,
            7,
            "this policy does not model changes of the clusters; `set-affinity` changes where a \
             task may run",
        ),
        (
            7,
            8,
            "g-edf: task T1 may use only CPUs {0}, and this policy schedules over all of them; \
             `hpa-edf` takes nested affinities, `strong-edf` any",
        ),
    ];
    let expected = expected.map(|(at, action, why)| (at, action, String::from(why)));
    assert_eq!(refused, expected);
}

#[test]
fn actions_at_the_horizon_are_not_part_of_the_run() {
    let set = with(set(1, &[(2, 4)]), vec![(4, Change::Leave(id(0)))]);
    assert!(!story(&run(&set, "g-edf", 4), 0).contains(&String::from("4 left")));
    assert!(story(&run(&set, "g-edf", 5), 0).contains(&String::from("4 left")));
}

#[test]
fn background_work_gets_a_cpu_after_a_second_without_break() {
    let second = 1_000_000_000;
    let ms = 1_000_000;
    let all = |cost: u64, period: u64| {
        let task = task(1, "T0", cost * ms, period * ms);
        TaskSet::new("", 1, vec![task])
    };
    let intervals = |set: &TaskSet| {
        let mut options = common::options(3 * second);
        options.reserve_server = true;
        let records = common::simulate(set, "g-edf", options).0;
        let line = |record: &Record| match record.kind {
            RecordKind::BackgroundStarted { .. } => Some(("start", record.at.as_ns() / ms)),
            RecordKind::BackgroundEnded { .. } => Some(("end", record.at.as_ns() / ms)),
            _ => None,
        };
        records.iter().filter_map(line).collect::<Vec<_>>()
    };
    let expected = [
        ("start", 1_000),
        ("end", 1_050),
        ("start", 2_050),
        ("end", 2_100),
    ];
    assert_eq!(intervals(&all(5, 5)), expected);
    assert_eq!(intervals(&all(4, 5)), []);
}
