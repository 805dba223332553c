//! Timed changes under the policies that model Linux.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use common::{AT, NS, finishes, id, run, set, story};
use shiftwork_model::{
    Action, Affinity, Change, CpuId, CpuSet, Record, RecordKind, Repairs, Share, TaskSet, Work,
};

const POLICIES: [&str; 2] = ["dl-linux", "dl-sp"];

fn with(mut set: TaskSet, changes: Vec<(u64, Change)>) -> TaskSet {
    let action = |(at, change)| Action { at: AT(at), change };
    set.actions = changes.into_iter().map(action).collect();
    set
}

fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

fn affinity(list: &str) -> Affinity {
    Affinity::new(cpus(list)).unwrap()
}

fn cpu(number: usize) -> CpuId {
    CpuId::from_index(number)
}

fn costs(task: usize, cost: u64) -> Change {
    Change::SetAttributes {
        task: id(task),
        cost: Some(NS(cost)),
        period: None,
        deadline: None,
    }
}

/// The results of requests, one short line each: `4 T0 on 0,1`, `4 refused 2: why`.
fn answers(records: &[Record]) -> Vec<String> {
    let line = |record: &Record| {
        let at = record.at.as_ns();
        Some(match &record.kind {
            RecordKind::Refused { action, reason } => format!("{at} refused {action}: {reason}"),
            RecordKind::AffinitySet { task, affinity } => format!("{at} {task:?} on {affinity}"),
            RecordKind::AttributesSet { task, cost, .. } => {
                format!("{at} {task:?} costs {}", cost.as_ns())
            }
            RecordKind::Entered { task } => format!("{at} {task:?} entered"),
            RecordKind::Left { task } => format!("{at} {task:?} left"),
            RecordKind::CpuOffline { cpu } => format!("{at} CPU {cpu} offline"),
            RecordKind::CpuOnline { cpu } => format!("{at} CPU {cpu} online"),
            _ => return None,
        })
    };
    records.iter().filter_map(line).collect()
}

/// Tardiness of each job of a periodic task with an implicit deadline.
fn tardiness(records: &[Record], task: usize, period: u64, first: u64) -> Vec<u64> {
    let due = (1..).map(|number| first + number * period);
    let finishes = finishes(records, task).into_iter();
    finishes
        .zip(due)
        .map(|(at, due)| at.saturating_sub(due))
        .collect()
}

/// Tang et al. 2021, Example 3: T0 to T3 are its tasks 1 to 4, T4 is its task 5.
fn example_3(moves: bool) -> TaskSet {
    let mut set = set(4, &[(70, 100), (70, 100), (70, 100), (70, 100), (2, 10)]);
    set.platform.clusters = vec![cpus("0"), cpus("1-3")];
    for task in &mut set.tasks[..4] {
        task.affinity = affinity("1-3");
    }
    set.tasks[4].affinity = affinity("0");
    match moves {
        true => with(set, vec![(92, Change::Move(id(3), 0))]),
        false => set,
    }
}

#[test]
fn move_to_another_cluster_keeps_budget_and_deadline() {
    for policy in POLICIES {
        let records = run(&example_3(true), policy, 1_000);
        assert_eq!(answers(&records), ["92 T3 on 0"]);
        let late = tardiness(&records, 4, 10, 0);
        assert_eq!(late[..10], [0; 10], "{policy}");
        assert_eq!(late[10..15], [32, 24, 16, 8, 0], "{policy}");
        // T3 was 40 late when it moved, and its tardiness decreases from job to job.
        assert_eq!(late.iter().max(), Some(&32), "{policy}");
        assert_eq!(late[late.len() - 40..], [0; 40], "{policy}");
        assert_eq!(tardiness(&records, 3, 100, 0)[0], 40, "{policy}");
        assert_eq!(finishes(&records, 3)[0], 140, "{policy}");
        // Three tasks are left on three CPUs, and each has its own.
        for task in 0..3 {
            let late = tardiness(&records, task, 100, 0);
            assert_eq!(late, [0; 10], "{policy}");
        }
        // Without the move only the four tasks on three CPUs are late.
        let records = run(&example_3(false), policy, 1_000);
        assert_eq!(tardiness(&records, 4, 10, 0).into_iter().max(), Some(0));
        assert_eq!(tardiness(&records, 3, 100, 0)[0], 40, "{policy}");
    }
}

#[test]
fn move_to_a_full_cluster_is_refused() {
    let mut set = example_3(true);
    set.tasks[4].cost = NS(3);
    for policy in POLICIES {
        let records = run(&set, policy, 200);
        let refused = "92 refused 0: task `T3` asks for 0.6999998 of a CPU, and cluster 0 {0} has 0.6500005 \
                       left; up to that would be taken";
        assert_eq!(answers(&records), [refused]);
    }
}

/// Tang et al. 2021, Example 1: two tasks alternately request 94 of 100, each just before its budget is
/// replenished, and 1 of 100 otherwise.
fn example_1(periods: u64) -> TaskSet {
    let mut changes = vec![
        (1, costs(0, 1)),
        (10, Change::Enter(id(1))),
        (11, costs(1, 1)),
    ];
    for period in 1..periods {
        // The first period is used in time; later ones end as soon as their budgets are used up.
        let first = (188 * period - 94).max(100);
        for (task, replenished) in [(0, first), (1, 188 * period)] {
            changes.push((replenished - 1, costs(task, 94)));
            changes.push((replenished + 1, costs(task, 1)));
        }
    }
    let mut set = with(set(1, &[(94, 100), (94, 100)]), changes);
    for task in &mut set.tasks {
        task.work = Work::Constant(NS(94));
    }
    set
}

#[test]
fn alternating_parameters_obtain_more_than_the_admitted_bandwidth() {
    let set = example_1(12);
    let records = run(&set, "dl-linux", 1_870);
    let refused = |line: &&String| line.contains("refused");
    assert_eq!(answers(&records).iter().find(refused), None);
    let (first, second) = (
        tardiness(&records, 0, 100, 0),
        tardiness(&records, 1, 100, 10),
    );
    assert_eq!(first[..5], [0, 82, 170, 258, 346]);
    assert_eq!(second[..5], [78, 166, 254, 342, 430]);
    let growth = |late: &[u64]| late.windows(2).skip(1).all(|pair| pair[1] == pair[0] + 88);
    assert!(first.len() == 10 && second.len() == 9);
    assert!(growth(&first) && growth(&second), "{first:?} {second:?}");
    // 188 of 100 were granted, of which admission never counted more than 95.
    let budget = |record: &Record| match record.kind {
        RecordKind::Replenished { budget, .. } => Some(budget.as_ns()),
        _ => None,
    };
    assert!(records.iter().filter_map(budget).all(|budget| budget == 94));
}

#[test]
fn fixed_parameters_obtain_the_admitted_bandwidth() {
    let records = run(&example_1(12), "dl-sp", 1_870);
    let answers = answers(&records);
    let expected = [
        "1 refused 0: task `T0` keeps the parameters with which it entered; `leave`, change it, and \
         `enter` again",
        "10 refused 1: task `T1` asks for 0.9399995 of a CPU, and cluster 0 {0} has 0.0100002 left; up \
         to that would be taken",
        // A task that is not present may request any parameters.
        "11 T1 costs 1",
    ];
    assert_eq!(answers[..3], expected);
    assert!(!answers.iter().any(|line| line.ends_with("T1 entered")));
    let late = tardiness(&records, 0, 100, 0);
    assert_eq!((late.len(), late.into_iter().max()), (18, Some(0)));
}

#[test]
fn departed_task_counts_until_its_zero_lag_time() {
    // T0 has used 2 of its 6 when it leaves at 2: 4 are left, and so it counts until 10 - 4 x 10 / 6 = 3.3.
    let enter = |at| (at, Change::Enter(id(1)));
    let changes = vec![
        enter(1),
        (2, Change::Leave(id(0))),
        enter(2),
        enter(3),
        enter(4),
    ];
    let set = with(set(1, &[(6, 10), (6, 10)]), changes);
    for policy in POLICIES {
        let records = run(&set, policy, 20);
        let full = "task `T1` asks for 0.5999994 of a CPU, and cluster 0 {0} has 0.3500003 left; up to \
                    that would be taken";
        let expected = [
            format!("1 refused 0: {full}"),
            String::from("2 T0 left"),
            format!("2 refused 2: {full}"),
            format!("3 refused 3: {full}"),
            String::from("4 T1 entered"),
        ];
        assert_eq!(answers(&records), expected, "{policy}");
        assert_eq!(finishes(&records, 1), [10, 20], "{policy}");
    }
}

#[test]
fn reentering_task_counts_with_its_old_and_its_new_server() {
    let changes = vec![
        (4, Change::Leave(id(0))),
        (4, Change::Enter(id(0))),
        (5, Change::Enter(id(1))),
        (10, Change::Enter(id(1))),
    ];
    let set = with(set(1, &[(4, 10), (4, 10)]), changes);
    for policy in POLICIES {
        let records = run(&set, policy, 30);
        let expected = [
            "4 T0 left",
            "4 T0 entered",
            "5 refused 2: task `T1` asks for 0.3999996 of a CPU, and cluster 0 {0} has 0.1500005 left; \
             up to that would be taken",
            "10 T1 entered",
        ];
        assert_eq!(answers(&records), expected, "{policy}");
        assert!(story(&records, 0).contains(&String::from("4 ready 2 by 14")));
    }
}

#[test]
fn new_clusters_widen_the_affinities_of_their_tasks() {
    let mut set = set(4, &[(9, 10), (5, 10), (2, 10)]);
    set.platform.clusters = vec![cpus("0-1"), cpus("2-3")];
    set.tasks[0].affinity = affinity("0");
    set.tasks[1].affinity = affinity("0-1");
    set.tasks[2].affinity = affinity("3");
    let clusters =
        |lists: &[&str]| Change::SetClusters(lists.iter().map(|list| cpus(list)).collect());
    let changes = vec![
        (5, clusters(&["0-2", "3"])),
        (6, clusters(&["0", "1-3"])),
        (7, clusters(&["0-3"])),
        (8, Change::Move(id(2), 0)),
        (9, clusters(&["0-3"])),
        (15, Change::CpuOffline(cpu(3))),
        (16, Change::CpuOffline(cpu(2))),
        (17, Change::CpuOffline(cpu(1))),
        (
            18,
            Change::SetReserve(Share::from_billionths(200_000_001).unwrap()),
        ),
        (19, Change::CpuOnline(cpu(3))),
    ];
    let records = run(&with(set, changes), "dl-sp", 30);
    let expected = [
        "5 T0 on 0-2",
        "5 T1 on 0-2",
        "5 T2 on 3",
        "6 refused 1: cluster 0 {0} would have 0.9499998 of a CPU for tasks that take 1.3999996; tasks \
         must leave or ask for less first",
        "7 refused 2: cluster 1 would be removed, but task `T2` is in it; `move` it first",
        "8 T2 on 0-2",
        "9 T0 on 0-3",
        "9 T1 on 0-3",
        "9 T2 on 0-3",
        "15 CPU 3 offline",
        "16 CPU 2 offline",
        "17 refused 7: cluster 0 {0-3} would have 0.9499998 of a CPU for tasks that take 1.5999994; tasks \
         must leave or ask for less first",
        "18 refused 8: cluster 0 {0-3} would have 1.5999984 of a CPU for tasks that take 1.5999994; tasks \
         must leave or ask for less first",
        "19 CPU 3 online",
    ];
    assert_eq!(answers(&records), expected);
    for task in 0..3 {
        assert_eq!(tardiness(&records, task, 10, 0), [0; 3], "T{task}");
    }
}

#[test]
fn affinities_are_cut_to_the_cluster() {
    let mut set = set(4, &[(1, 10), (1, 10), (1, 10)]);
    set.platform.clusters = vec![cpus("0-1"), cpus("2-3")];
    for task in &mut set.tasks {
        task.affinity = affinity("0-1");
    }
    let changes = vec![
        (2, Change::SetAffinity(id(0), affinity("1-2"))),
        (3, Change::SetAffinity(id(0), affinity("2"))),
        (4, Change::Leave(id(1))),
        (5, Change::SetAffinity(id(1), affinity("1-2"))),
        (20, Change::Enter(id(1))),
    ];
    let set = with(set, changes);
    // Linux as long as it controls admission.
    let lines = answers(&run(&set, "dl-linux", 30));
    assert!(
        lines[0].starts_with("2 refused 0: CPUs {1} of task `T0` are less than its cluster {0,1};")
    );
    assert!(
        lines[1].starts_with("3 refused 1: none of CPUs {2} is in the cluster {0,1} of task `T0`;")
    );
    assert_eq!(lines[2..4], ["4 T1 left", "5 T1 on 1"]);
    assert!(lines[4].starts_with("20 refused 4: CPUs {1} of task `T1` are less than its cluster"));
    // With admission control disabled.
    let mut off = set.clone();
    off.tasks[2].affinity = affinity("1");
    let lines = answers(&run(&off, "dl-linux", 30));
    assert_eq!(lines[0], "2 T0 on 1");
    assert!(lines[1].starts_with("3 refused 1: none of CPUs {2} is in"));
    assert_eq!(lines[2..], ["4 T1 left", "5 T1 on 1", "20 T1 entered"]);
    // With all repairs.
    let lines = answers(&run(&set, "dl-sp", 30));
    assert!(
        lines[0].starts_with("2 refused 0: task `T0` keeps the affinity with which it entered;")
    );
    assert!(lines[1].starts_with("3 refused 1: task `T0` keeps"));
    assert_eq!(lines[2..], ["4 T1 left", "5 T1 on 1", "20 T1 entered"]);
    // The same without the last repair.
    let mut changing = set.clone();
    changing.scheduler.repairs = Some(Repairs {
        no_changes: false,
        ..Repairs::ALL
    });
    let lines = answers(&run(&changing, "dl-sp", 30));
    assert_eq!(lines[0], "2 T0 on 1");
}
