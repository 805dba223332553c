//! Runs of random task sets under every policy, judged by the checkers, and their determinism.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use common::{AT, NS, options, simulate, task};
use shiftwork_model::{
    Action, Affinity, Arrival, Change, CpuSet, OnOverrun, Phase, Priority, RandomStream, TaskSet,
    Work,
};
use shiftwork_policy::registry::{self, Entry, Invariant, OrderName};
use shiftwork_trace::check::{self, Facts};

fn facts(entry: &Entry, set: &TaskSet) -> Facts {
    Facts {
        invariant: match entry.invariant {
            Invariant::Weak => check::Invariant::Weak,
            Invariant::Strong => check::Invariant::Strong,
            Invariant::Packed => check::Invariant::Packed,
            Invariant::NonPreemptive => check::Invariant::NonPreemptive,
            Invariant::Quanta => check::Invariant::Quanta,
            Invariant::PushPull => check::Invariant::PushPull,
        },
        order: match entry.order {
            OrderName::Edf => check::Order::Edf,
            OrderName::FixedPriority => check::Order::FixedPriority,
        },
        packing: entry.build(set).ok().and_then(|policy| policy.packing()),
        immediate: true,
    }
}

fn random_work(random: &mut RandomStream, cost: u64) -> Work {
    match random.below(5) {
        0 => Work::Uniform(NS(cost / 2), NS(cost * 2)),
        1 => Work::Trace((0..3).map(|_| NS(1 + random.below(2 * cost))).collect()),
        2 => Work::Phases(vec![
            Phase::Run(NS(1 + random.below(cost))),
            Phase::Sleep(NS(1 + random.below(cost))),
            Phase::Run(NS(1 + random.below(cost))),
        ]),
        _ => Work::Cost,
    }
}

fn random_change(random: &mut RandomStream, set: &TaskSet, affinities: &[Affinity]) -> Change {
    let id = common::id(random.below(set.tasks.len() as u64) as usize);
    let cpu = shiftwork_model::CpuId::from_index(random.below(set.platform.cpus as u64) as usize);
    match random.below(7) {
        0 => Change::Enter(id),
        1 => Change::Leave(id),
        2 => Change::CpuOffline(cpu),
        3 => Change::CpuOnline(cpu),
        4 => Change::SetPriority(id, Priority::new(1 + random.below(9) as u32).unwrap()),
        5 => Change::SetAffinity(
            id,
            affinities[random.below(affinities.len() as u64) as usize],
        ),
        _ => Change::SetAttributes {
            task: id,
            cost: Some(NS(1 + random.below(20))),
            period: Some(NS(10 + random.below(40))),
            deadline: None,
        },
    }
}

/// Laminar affinities, so that the hierarchical policies take part, or global ones.
fn random_set(seed: u64) -> TaskSet {
    let mut random = RandomStream::new(seed, 7, 0);
    let lists: &[&str] = match seed % 2 {
        0 => &["0-3", "0-1", "2-3", "0", "3"],
        _ => &["0-3"],
    };
    let affinities: Vec<Affinity> = lists
        .iter()
        .map(|list| Affinity::new(list.parse::<CpuSet>().unwrap()).unwrap())
        .collect();
    let tasks = (0..3 + random.below(9)).map(|index| {
        let period = 10 + random.below(40);
        let mut task = task(4, &format!("T{index}"), 1 + random.below(period), period);
        task.affinity = affinities[random.below(affinities.len() as u64) as usize];
        task.deadline = NS(5 + random.below(2 * period));
        task.offset = NS(random.below(20));
        task.work = random_work(&mut random, task.cost.as_ns());
        if random.below(3) == 0 {
            task.arrival = Arrival::Sporadic;
        }
        if random.below(3) == 0 {
            task.on_overrun = OnOverrun::Continue;
        }
        task
    });
    let mut set = TaskSet::new("random", 4, tasks.collect());
    for _ in 0..random.below(8) {
        let change = random_change(&mut random, &set, &affinities);
        set.actions.push(Action {
            at: AT(random.below(300)),
            change,
        });
    }
    set.actions.sort_by_key(|action| action.at);
    set
}

/// Deadlines up to the period.
fn as_linux_takes_it(set: &mut TaskSet) {
    for task in &mut set.tasks {
        task.deadline = task.deadline.min(task.period);
    }
}

#[test]
fn the_checkers_find_nothing_wrong_under_any_policy() {
    for entry in registry::POLICIES {
        let mut runs = 0;
        for seed in 1..=150 {
            let mut set = random_set(seed);
            if entry.invariant == Invariant::PushPull {
                as_linux_takes_it(&mut set);
            }
            if entry.build(&set).is_err() {
                continue;
            }
            runs += 1;
            let horizon = 400;
            let (records, _) = simulate(&set, entry.name, options(horizon));
            let found = check::check(&set, facts(entry, &set), AT(horizon), &records);
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert!(found.is_empty(), "seed {seed}, {}: {found:#?}", entry.name);
        }
        assert!(runs >= 40, "{} took {runs} task sets", entry.name);
    }
}

#[test]
fn the_same_seed_gives_the_same_records_and_another_seed_others() {
    let mut differ = 0;
    for seed in 1..=20 {
        let set = random_set(seed);
        let once = simulate(&set, "strong-edf", options(2_000));
        assert_eq!(
            once,
            simulate(&set, "strong-edf", options(2_000)),
            "seed {seed}"
        );
        let mut other = options(2_000);
        other.seed = 2;
        differ += usize::from(once != simulate(&set, "strong-edf", other));
    }
    assert!(
        differ >= 15,
        "{differ} of 20 sets have random numbers that matter"
    );
}

#[test]
fn a_longer_run_begins_like_a_shorter_one() {
    for seed in 1..=20 {
        let set = random_set(seed);
        let (short, _) = simulate(&set, "strong-edf", options(150));
        let (long, _) = simulate(&set, "strong-edf", options(900));
        let before = |records: &[shiftwork_model::Record]| {
            records
                .iter()
                .filter(|record| record.at < AT(150))
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(before(&short), before(&long), "seed {seed}");
    }
}
