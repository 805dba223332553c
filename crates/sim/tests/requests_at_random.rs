//! Requests of all kinds at random instants, under the policies that model Linux: the checkers find no error, and
//! all affinities stay within the clusters.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use common::{AT, NS, id, options, simulate, task};
use shiftwork_model::{
    Action, Affinity, Change, CpuId, CpuSet, OnOverrun, Order, Phase, RandomStream, Record,
    RecordKind, Repairs, Share, TaskSet, Work,
};
use shiftwork_policy::registry::{self};
use shiftwork_trace::check::{self, PolicyContract};

const CPUS: usize = 4;
const TASKS: u64 = 6;

fn bits(bits: u64) -> CpuSet {
    CpuSet::from_bits(bits)
}

fn random_clusters(random: &mut RandomStream) -> Vec<CpuSet> {
    let choices: [&[u64]; 5] = [
        &[0b1111],
        &[0b0011, 0b1100],
        &[0b0001, 0b1110],
        &[0b0111, 0b1000],
        &[0b1010, 0b0101],
    ];
    let chosen = choices[random.below(5) as usize];
    chosen.iter().copied().map(bits).collect()
}

fn random_change(random: &mut RandomStream) -> Change {
    let task = id(random.below(TASKS) as usize);
    let cpu = CpuId::from_index(random.below(CPUS as u64) as usize);
    match random.below(14) {
        0..=2 => Change::Enter(task),
        3 | 4 => Change::Leave(task),
        5 | 6 => Change::Move(task, random.below(2) as usize),
        7 => Change::SetClusters(random_clusters(random)),
        8 => Change::CpuOffline(cpu),
        9 => Change::CpuOnline(cpu),
        10 => Change::SetReserve(Share::from_billionths(random.below(400_000_000) as u32).unwrap()),
        11 => Change::SetAffinity(task, Affinity::pinned(cpu)),
        12 => Change::SetAffinity(task, Affinity::new(bits(1 + random.below(15))).unwrap()),
        _ => Change::SetAttributes {
            task,
            cost: Some(NS(1 + random.below(12))),
            period: None,
            deadline: None,
        },
    }
}

/// `narrow`: affinities that Linux accepts only with admission control disabled.
fn random_set(seed: u64, narrow: bool) -> TaskSet {
    let mut random = RandomStream::new(seed, 72, 0);
    let clusters = random_clusters(&mut random);
    let tasks = (0..TASKS).map(|index| {
        let period = 10 + random.below(20);
        let cost = 1 + random.below(period / 2);
        let mut task = task(CPUS, &format!("T{index}"), cost, period);
        if random.below(3) == 0 {
            task.deadline = NS(cost + random.below(period - cost + 1));
        }
        let cluster = clusters[random.below(clusters.len() as u64) as usize];
        let lowest = CpuSet::single(cluster.lowest().unwrap());
        let bound = narrow && random.below(2) == 0;
        task.affinity = Affinity::new(if bound { lowest } else { cluster }).unwrap();
        task.work = match random.below(4) {
            0 => Work::Uniform(NS(1), NS(2 * cost)),
            1 => Work::Phases(vec![
                Phase::Run(NS(1)),
                Phase::Sleep(NS(1 + random.below(6))),
                Phase::Run(NS(cost)),
            ]),
            _ => Work::Cost,
        };
        task.on_overrun = OnOverrun::Throttle;
        task
    });
    let mut set = TaskSet::new("random", CPUS, tasks.collect());
    set.platform.clusters = clusters;
    for _ in 0..30 {
        set.actions.push(Action {
            at: AT(random.below(300)),
            change: random_change(&mut random),
        });
    }
    set.actions.sort_by_key(|action| action.at);
    set
}

/// Asserts that every affinity lies in one of the clusters granted by its instant.
fn assert_within_clusters(set: &TaskSet, records: &[Record], context: &str) {
    let mut clusters = set.platform.clusters.clone();
    let refused: Vec<usize> = records
        .iter()
        .filter_map(|record| match record.kind {
            RecordKind::Refused { action, .. } => Some(action),
            _ => None,
        })
        .collect();
    let mut changes = set
        .actions
        .iter()
        .enumerate()
        .filter_map(|(index, action)| {
            let granted = !refused.contains(&index);
            match &action.change {
                Change::SetClusters(clusters) if granted => Some((action.at, clusters)),
                _ => None,
            }
        });
    let mut next = changes.next();
    for record in records {
        let RecordKind::AffinitySet { affinity, .. } = &record.kind else {
            continue;
        };
        let fits =
            |clusters: &[CpuSet]| clusters.iter().any(|cpus| affinity.cpus().is_subset(cpus));
        while let Some((at, new)) = next
            && (at < record.at || at == record.at && !fits(&clusters))
        {
            clusters.clone_from(new);
            next = changes.next();
        }
        assert!(fits(&clusters), "{context}: {record:?}, {clusters:?}");
    }
}

#[test]
fn random_requests_pass_the_checkers() {
    let seeds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 20_000,
        None => 200,
    };
    let changing = Repairs {
        no_changes: false,
        ..Repairs::ALL
    };
    let cases = [
        ("dl-linux", false, None),
        ("dl-linux", true, None),
        ("dl-sp", true, None),
        ("dl-sp", true, Some(changing)),
    ];
    for (policy, narrow, repairs) in cases {
        let (mut granted, mut refused) = (0, 0);
        for seed in 0..seeds {
            let mut set = random_set(seed, narrow);
            set.scheduler.repairs = repairs;
            let context = format!("seed {seed}, {policy}, narrow {narrow}, {repairs:?}");
            let entry = registry::find(policy).unwrap();
            assert_eq!(entry.traits.order, Order::Edf);
            let contract = PolicyContract::of(&entry.traits, None);
            let (records, _) = simulate(&set, policy, options(400));
            let found = check::check(&set, contract, AT(400), &records);
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert!(found.is_empty(), "{context}: {found:#?}");
            assert_within_clusters(&set, &records, &context);
            let is_refused = |record: &&Record| matches!(record.kind, RecordKind::Refused { .. });
            let count = records.iter().filter(is_refused).count();
            refused += count;
            granted += set.actions.len() - count;
        }
        let enough = 5 * seeds as usize;
        assert!(
            granted > enough && refused > enough,
            "{policy}: {granted} {refused}"
        );
    }
}

/// One CPU without a reserve, and a task without changes, while other tasks enter, leave and change, and use all
/// of their budgets.
fn crowded_set(seed: u64) -> TaskSet {
    let mut random = RandomStream::new(seed, 73, 0);
    let tasks = (0..4).map(|index| {
        let period = 4 + random.below(12);
        let cost = 1 + random.below(period * 2 / 3);
        task(1, &format!("T{index}"), cost, period)
    });
    let mut set = TaskSet::new("crowded", 1, tasks.collect());
    set.scheduler.reserve = Share::from_billionths(0).unwrap();
    for index in 1..4 {
        set.tasks[index].work = Work::Constant(NS(1_000));
        set.actions.push(Action {
            at: AT(0),
            change: Change::Enter(id(index)),
        });
    }
    for _ in 0..300 {
        let other = id(1 + random.below(3) as usize);
        let period = 4 + random.below(12);
        let change = match random.below(5) {
            0 => Change::Leave(other),
            1 | 2 => Change::Enter(other),
            _ => Change::SetAttributes {
                task: other,
                cost: Some(NS([1, 1 + random.below(period)][random.below(2) as usize])),
                period: Some(NS(period)),
                deadline: Some(NS(period)),
            },
        };
        let at = AT(random.below(300));
        set.actions.push(Action { at, change });
    }
    set.actions.sort_by_key(|action| action.at);
    set
}

/// Whether a job of the first task missed its deadline.
fn first_is_late(set: &TaskSet, policy: &str) -> bool {
    let (records, _) = simulate(set, policy, options(400));
    let period = set.tasks[0].period.as_ns();
    let finishes = common::finishes(&records, 0);
    let due = (1..).map(|number| number * period);
    let mut late = finishes.iter().zip(due).filter(|(at, due)| **at > *due);
    late.next().is_some() || (finishes.len() as u64) < 400 / period
}

#[test]
fn requests_of_other_tasks_cause_no_miss_on_one_cpu() {
    let seeds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 50_000,
        None => 500,
    };
    let mut caught = 0;
    for seed in 0..seeds {
        let set = crowded_set(seed);
        assert!(!first_is_late(&set, "dl-sp"), "seed {seed}");
        caught += usize::from(first_is_late(&set, "dl-linux"));
    }
    // Linux lets parameters change while budgets are used.
    assert!(caught > 0);
}
