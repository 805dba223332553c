//! On an ideal machine the decider does what the simulator does.

use std::collections::{BTreeMap, BTreeSet};

use shiftwork_model::{
    Affinity, Arrival, Change, CpuId, Instant, Invariant, JobId, NotReadyReason, Preemption,
    Record, RecordKind, Recorder, Span, Task, TaskSet, Work,
};
use shiftwork_policy::registry::Entry;
use shiftwork_sim::{Options, Simulation};
use shiftwork_trace::JobTable;

use super::sets::{Flavour, HORIZON, random_set};
use super::world::{Habits, World};
use super::{policies, seeds};

fn simulate(entry: &Entry, set: &TaskSet, seed: u64) -> Vec<Record> {
    let options = Options {
        seed,
        horizon: HORIZON,
        overheads: None,
        reserve_server: false,
    };
    let mut records = Vec::new();
    let policy = entry.build(set).unwrap();
    Simulation::new(set, policy, &entry.traits, options).run(&mut records);
    records
}

/// The actions that the policy refuses.
fn refused(records: &[Record]) -> BTreeSet<usize> {
    let refused = |record: &Record| match record.kind {
        RecordKind::Refused { action, .. } => Some(action),
        _ => None,
    };
    records.iter().filter_map(refused).collect()
}

/// Whether the policy refuses an action of the set.
pub(super) fn is_any_refused(entry: &Entry, set: &TaskSet, seed: u64) -> bool {
    !refused(&simulate(entry, set, seed)).is_empty()
}

/// One row per job: its release and deadline, its start and its finish.
fn jobs(set: &TaskSet, records: &[Record], until: Instant) -> Vec<String> {
    let mut table = JobTable::new(set, Vec::new());
    for record in records {
        // In a simulation a job that unlocks a mutex at its end completes after the last instant.
        let is_completion = matches!(record.kind, RecordKind::Completed { .. });
        let counts = is_completion && set.first_locking().is_none();
        if record.at < until || record.at == until && counts {
            table.record(record.at, &record.kind);
        }
    }
    let table = String::from_utf8(table.finish(until).unwrap()).unwrap();
    let mut rows: Vec<String> = table.lines().skip(1).map(str::to_owned).collect();
    rows.sort();
    rows
}

/// The running jobs after each instant at which they change.
fn scheduled(records: &[Record], until: Instant) -> Vec<(Instant, Vec<JobId>)> {
    let mut on = BTreeMap::new();
    let mut sets: Vec<(Instant, Vec<JobId>)> = Vec::new();
    let before = records.iter().filter(|record| record.at < until);
    for record in before {
        let RecordKind::Switched { cpu, to, .. } = record.kind else {
            continue;
        };
        on.insert(cpu, to);
        let mut jobs: Vec<JobId> = on.values().copied().flatten().collect();
        jobs.sort_unstable();
        sets.pop_if(|(at, _)| *at == record.at);
        sets.push((record.at, jobs));
    }
    sets.dedup_by(|later, earlier| later.1 == earlier.1);
    sets
}

/// Events of jobs and budgets, in the order of their instants, and sorted within an instant. A spent budget
/// counts if its job has to wait: the simulator has no warnings, and a live machine does not report a budget
/// that is replenished at once.
fn happened(records: &[Record], until: Instant) -> Vec<String> {
    let waits = |spent: &Record, of: JobId| {
        let same = records.iter().filter(|record| record.at == spent.at);
        let mut same = same.map(|record| &record.kind);
        let reason = NotReadyReason::Throttled;
        same.any(|kind| *kind == RecordKind::NotReady { job: of, reason })
    };
    let is_compared = |record: &&Record| {
        if let RecordKind::BudgetSpent { job } = record.kind
            && !waits(record, job)
        {
            return false;
        }
        let of_jobs = matches!(
            record.kind,
            RecordKind::Released { .. }
                | RecordKind::Ready { .. }
                | RecordKind::NotReady { .. }
                | RecordKind::Completed { .. }
                | RecordKind::Triggered { .. }
                | RecordKind::BudgetSpent { .. }
                | RecordKind::Replenished { .. }
                | RecordKind::CpuOffline { .. }
                | RecordKind::CpuOnline { .. }
                | RecordKind::Locked { .. }
                | RecordKind::Unlocked { .. }
                | RecordKind::Spinning { .. }
                | RecordKind::RankChanged { .. }
        );
        record.at < until && of_jobs
    };
    let line = |record: &Record| {
        let at = record.at.as_ns();
        match record.kind {
            // A live machine knows the amount only of the latest jobs.
            RecordKind::Replenished { task, deadline, .. } => {
                format!("{at:>10} {task:?} replenished by {deadline:?}")
            }
            ref kind => format!("{at:>10} {kind:?}"),
        }
    };
    let mut lines: Vec<String> = records.iter().filter(is_compared).map(line).collect();
    lines.sort();
    lines
}

/// Without suspensions that end when they begin: a thread whose next job has been triggered already goes to sleep, and the agent
/// wakes it up.
fn without_moments(lines: Vec<String>) -> Vec<String> {
    let twice: Vec<String> = lines
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| pair[0].replace("Ready { ", ""))
        .collect();
    let is_moment = |line: &String| {
        let suspends = line.contains("reason: Suspended");
        let job = line.split_once("NotReady { ").filter(|_| suspends);
        job.is_some_and(|(at, job)| {
            let job = job.split(',').next().unwrap_or_default();
            twice
                .iter()
                .any(|ready| ready.starts_with(&format!("{at}{job},")))
        })
    };
    let mut rest: Vec<String> = lines.into_iter().filter(|line| !is_moment(line)).collect();
    rest.dedup();
    rest
}

/// Without waiting for mutexes that ends when it begins: of two jobs that request and unlock one at the same instant the simulation
/// begins with that of the lower CPU, and an agent with the one whose report it reads first.
fn without_waits_of_no_time(mut lines: Vec<String>) -> Vec<String> {
    let blocked: Vec<(String, String)> = lines
        .iter()
        .filter(|line| line.contains("reason: Blocked"))
        .filter_map(|line| {
            let (at, job) = line.split_once("NotReady { ")?;
            let job = job.split(',').next()?;
            Some((line.clone(), format!("{at}Ready {{ {job},")))
        })
        .collect();
    for (wait, ready) in blocked {
        if let Some(at) = lines.iter().position(|line| line.starts_with(&ready)) {
            lines.remove(at);
            let at = lines.iter().position(|line| *line == wait);
            lines.remove(at.expect("it is one of them"));
        }
    }
    lines
}

#[track_caller]
fn assert_same<T: PartialEq + std::fmt::Debug>(
    name: &str,
    what: &str,
    live: &[T],
    simulated: &[T],
) {
    if live == simulated {
        return;
    }
    let first = live.iter().zip(simulated).position(|(a, b)| a != b);
    let first = first.unwrap_or(live.len().min(simulated.len()));
    let part = |all: &[T]| -> Vec<String> {
        let from = first.saturating_sub(3);
        let lines = all.iter().enumerate().skip(from).take(8);
        lines.map(|(at, line)| format!("{at}: {line:?}")).collect()
    };
    panic!(
        "{name}: {what} differ from number {first} on: live {:#?}\nsimulated {:#?}",
        part(live),
        part(simulated)
    );
}

/// Runs the set on both. `None` if the policy refuses it; otherwise whether it was compared to the end.
fn compare(entry: &Entry, seed: u64, flavour: Flavour) -> Option<bool> {
    let set = random_set(entry, seed, flavour);
    compare_set(entry, &set, flavour, (seed, Habits::of(seed)))
}

fn compare_set(
    entry: &Entry,
    set: &TaskSet,
    flavour: Flavour,
    (seed, habits): (u64, Habits),
) -> Option<bool> {
    entry.build(set).ok()?;
    let simulated = simulate(entry, set, seed);
    let no_attributes = |action: &usize| {
        let change = &set.actions[*action].change;
        matches!(change, Change::SetAttributes { .. })
    };
    if refused(&simulated).iter().any(no_attributes) {
        // The threads of this machine take their parameters from the file.
        return None;
    }
    let mut world = World::new(entry, set, seed, habits, refused(&simulated));
    world.run();
    let until = world.differs_from.min(HORIZON);
    let name = format!("{} {flavour:?}", world.name);
    let live = &world.records;
    let sets = (scheduled(live, until), scheduled(&simulated, until));
    assert_same(&name, "scheduled sets", &sets.0, &sets.1);
    if until == HORIZON {
        let tables = (jobs(set, live, until), jobs(set, &simulated, until));
        assert_same(&name, "jobs", &tables.0, &tables.1);
    }
    if flavour.grid_ns == 1 {
        let mut lines = (happened(live, until), happened(&simulated, until));
        if flavour.has_triggers && lines.0 != lines.1 {
            lines.0 = without_moments(lines.0);
            // A job may lock a mutex twice at one instant.
            lines.1.dedup();
            lines = (
                without_waits_of_no_time(lines.0),
                without_waits_of_no_time(lines.1),
            );
        }
        assert_same(&name, "records", &lines.0, &lines.1);
    }
    Some(until == HORIZON)
}

fn compare_all(flavour: Flavour, few: u64, takes: impl Fn(&Entry) -> bool) {
    // Where ranks follow from costs, budgets have their grace here and none in simulations.
    let is_exact = |entry: &Entry| !(flavour.has_budgets && entry.traits.order.is_by_cost());
    for entry in policies().filter(|entry| takes(entry) && is_exact(entry)) {
        let compared = seeds(few).filter_map(|seed| compare(entry, seed, flavour));
        let whole = compared.filter(|&is_whole| is_whole).count() as u64;
        assert!(
            whole >= few / 8,
            "{}: only {whole} runs were compared to the end",
            entry.name
        );
    }
}

const PLAIN: Flavour = Flavour {
    grid_ns: 1,
    has_budgets: false,
    has_changes: false,
    has_triggers: false,
    has_mutexes: false,
    load: 100,
};

#[test]
fn jobs_start_and_finish_as_simulated_under_every_policy() {
    compare_all(PLAIN, 40, |_| true);
}

#[test]
fn budgets_throttle_as_simulated_under_every_policy() {
    let flavour = Flavour {
        has_budgets: true,
        ..PLAIN
    };
    compare_all(flavour, 40, |_| true);
}

#[test]
fn timed_changes_take_effect_as_simulated_under_every_policy() {
    let flavour = Flavour {
        has_changes: true,
        has_budgets: true,
        ..PLAIN
    };
    compare_all(flavour, 40, |_| true);
}

#[test]
fn mutexes_do_what_they_do_in_simulations_under_every_policy_that_takes_them() {
    let flavour = Flavour {
        has_mutexes: true,
        ..PLAIN
    };
    compare_all(flavour, 120, |entry| entry.traits.takes_locks());
    let flavour = Flavour {
        has_changes: true,
        ..flavour
    };
    compare_all(flavour, 40, |entry| entry.traits.takes_locks());
}

#[test]
fn mutexes_with_triggers_do_what_they_do_in_simulations() {
    let takes =
        |entry: &Entry| entry.traits.takes_locks() && ignores_order_within_an_instant(entry);
    let flavour = Flavour {
        has_mutexes: true,
        has_triggers: true,
        load: 60,
        ..PLAIN
    };
    compare_all(flavour, 40, takes);
}

/// Threads of jobs that were triggered at one instant wake up one after the other, and those whose jobs had to wait when the agent
/// says so.
#[test]
fn triggers_release_jobs_as_simulated_where_order_within_an_instant_does_not_matter() {
    let flavour = Flavour {
        has_triggers: true,
        load: 60,
        ..PLAIN
    };
    compare_all(flavour, 40, |entry| {
        // Pfair takes no triggers.
        let is_pfair = matches!(entry.traits.preemption, Preemption::Pfair(_));
        !is_pfair && ignores_order_within_an_instant(entry)
    });
}

/// The order of the events of one instant changes nothing if the scheduled set depends only on the jobs that are
/// ready after the instant, and on those that ran before it.
fn ignores_order_within_an_instant(entry: &Entry) -> bool {
    !matches!(
        entry.traits.invariant,
        Invariant::Weak | Invariant::PushPull
    )
}

#[test]
fn order_within_an_instant_does_not_matter() {
    let flavour = Flavour {
        grid_ns: 100_000,
        ..PLAIN
    };
    compare_all(flavour, 40, ignores_order_within_an_instant);
}

/// At 4 ms the CPU becomes free and `urgent` is released: it is finished at 14 ms, before `long` begins.
#[test]
fn free_cpu_chooses_after_arrivals_of_the_instant() {
    let entry = shiftwork_policy::registry::find("np-g-edf").unwrap();
    let all = Affinity::pinned(CpuId::from_index(0));
    let ms = Span::from_ms;
    let task = |(name, cost, offset, deadline)| Task {
        deadline: ms(deadline),
        offset: ms(offset),
        ..Task::periodic(name, ms(cost), ms(100), all)
    };
    let tasks = [
        ("first", 4, 0, 100),
        ("long", 15, 1, 100),
        ("urgent", 10, 4, 24),
    ];
    let set = TaskSet::new("one instant", 1, tasks.map(task).to_vec());
    for seed in 0..8 {
        let mut world = World::new(entry, &set, seed, Habits::of(seed), BTreeSet::new());
        world.run();
        let ends = world.records.iter().filter_map(|record| match record.kind {
            RecordKind::Completed { job } => Some((job.task.index(), record.at)),
            _ => None,
        });
        let ends: Vec<_> = ends.collect();
        let wanted = [(0, 4), (2, 14), (1, 29)].map(|(task, at)| (task, Instant::ZERO + ms(at)));
        assert_eq!(ends, wanted, "{}", world.name);
        assert_eq!(
            compare_set(entry, &set, PLAIN, (seed, Habits::of(seed))),
            Some(true)
        );
    }
}

/// Where the order matters: of jobs that are released at one instant the most urgent comes first.
#[test]
fn most_urgent_of_simultaneous_releases_comes_first() {
    let flavour = Flavour {
        grid_ns: 100_000,
        load: 20,
        ..PLAIN
    };
    for entry in policies() {
        for seed in seeds(40) {
            let mut set = random_set(entry, seed, flavour);
            for task in &mut set.tasks {
                (task.work, task.offset) = (Work::Cost, Span::ZERO);
                task.arrival = Arrival::Periodic;
                task.period = Span::from_ms(10);
            }
            let habits = Habits {
                sleeps: false,
                ..Habits::of(seed)
            };
            compare_set(entry, &set, flavour, (seed, habits));
        }
    }
}

#[test]
fn decisions_do_not_allocate() {
    for has_mutexes in [false, true] {
        let flavour = Flavour {
            has_budgets: !has_mutexes,
            has_mutexes,
            ..PLAIN
        };
        for (entry, seed) in policies().flat_map(|entry| seeds(5).map(move |seed| (entry, seed))) {
            let set = random_set(entry, seed, flavour);
            if entry.build(&set).is_err() {
                continue;
            }
            let mut world = World::new(entry, &set, seed, Habits::of(seed), BTreeSet::new());
            world.run();
            // A change of affinities may allocate.
            let is_affinity =
                |record: &Record| matches!(record.kind, RecordKind::AffinitySet { .. });
            if !world.records.iter().any(is_affinity) {
                assert_eq!(world.allocated, 0, "{}", world.name);
            }
        }
    }
}
