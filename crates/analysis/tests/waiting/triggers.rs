//! Tasks of which some trigger others.

use std::collections::BTreeMap;

use shiftwork_analysis::verdicts::{Answer, Found, PolicyAnalysis, analyse, priority_order};
use shiftwork_model::{
    Affinity, Arrival, CpuId, Join, OnOverrun, Phase, Priority, Protocol, RandomStream, Resource,
    ResourceId, Span, Task, TaskId, TaskSet, Trigger, Work,
};
use shiftwork_policy::registry::{self, Entry};

use crate::{STEPS, affinity, candidate, in_time, observe};

const NS: fn(u64) -> Span = Span::from_ns;

/// The longest times from arrivals in several runs: other offsets, sporadic gaps and jitter in each, and in some shorter
/// work.
fn longest(set: &TaskSet, entry: &Entry, seed: u64) -> Vec<u64> {
    let mut stream = RandomStream::new(seed, 141, 0);
    let mut longest = vec![0; set.tasks.len()];
    for run in 0..10 {
        let mut set = set.clone();
        for task in &mut set.tasks {
            if task.trigger().is_none() && run > 0 && !joins_periodic(&task.arrival) {
                task.offset = NS(stream.below(task.period.as_ns()));
            }
            if run % 3 == 2 && task.work == Work::Cost && stream.below(2) == 0 {
                task.work = Work::Uniform(NS(1), task.cost);
            }
        }
        let policy = entry.build(&set).unwrap();
        observe(&set, (entry, policy), seed + run, &mut longest);
    }
    longest
}

/// Offsets of periodic tasks may be joined, and are what the analysis knows.
fn joins_periodic(arrival: &Arrival) -> bool {
    *arrival == Arrival::Periodic
}

/// Up to six tasks on up to three CPUs, of which about half are triggered.
fn random(seed: u64) -> TaskSet {
    let mut stream = RandomStream::new(seed, 140, 0);
    let cpus = 1 + stream.below(3) as usize;
    let count = 2 + stream.below(5) as usize;
    let nested = stream.below(2) == 0;
    let few = stream.below(2) == 0;
    // Then each task is bound to a CPU, without jitter and suspensions.
    let locks = stream.below(4) == 0;
    let mut tasks: Vec<Task> = Vec::new();
    for place in 0..count {
        let period = [10, 20, 30][stream.below(3) as usize] * 10;
        let cost = 1 + stream.below(period / if few { 8 } else { 4 });
        let affinity = match locks {
            true => Affinity::pinned(CpuId::from_index(stream.below(cpus as u64) as usize)),
            false => affinity(&mut stream, cpus, nested),
        };
        let mut task = Task::periodic(&format!("t{place}"), NS(cost), NS(period), affinity);
        task.priority = Priority::new(1 + stream.below(4) as u32);
        task.on_overrun = OnOverrun::Continue;
        if place > 0 && stream.below(2) == 0 {
            let first = stream.below(place as u64) as usize;
            let more = stream.below(3) == 0;
            let sources = (first..place).filter(|&it| it == first || (more && it == place - 1));
            task.arrival = Arrival::Triggered(Trigger {
                sources: sources.map(TaskId::from_index).collect(),
                join: [Join::Any, Join::All][stream.below(2) as usize],
                queue: (stream.below(4) == 0).then(|| 1 + stream.below(2) as u32),
            });
        } else {
            task.offset = NS(stream.below(period));
            if stream.below(2) == 0 {
                task.arrival = Arrival::Sporadic;
            }
            if !locks && stream.below(4) == 0 {
                task.jitter = NS(1 + stream.below(period / 2));
            }
        }
        tasks.push(task);
    }
    let mut set = TaskSet::new("", cpus, tasks);
    for place in 0..count {
        let id = TaskId::from_index(place);
        let targets: Vec<TaskId> = set.triggered_at_completion(id).collect();
        let cost = set.tasks[place].cost;
        if cost.as_ns() >= 2 && stream.below(3) == 0 {
            let first = 1 + stream.below(cost.as_ns() - 1);
            let run = |ns| Phase::Run(NS(ns));
            let mut phases = vec![run(first), run(cost.as_ns() - first)];
            if let Some(target) = targets.first() {
                // Sometimes before it executes.
                let place = usize::from(stream.below(3) > 0);
                phases.insert(place, Phase::Trigger(*target));
                if stream.below(4) == 0 {
                    phases.push(Phase::Trigger(*target));
                }
            }
            if !locks && stream.below(6) == 0 {
                phases.insert(1, Phase::Sleep(NS(1 + stream.below(20))));
            }
            set.tasks[place].work = Work::Phases(phases);
        }
    }
    if locks {
        add_sections(&mut stream, &mut set);
    }
    for place in 0..count {
        let id = TaskId::from_index(place);
        if let Some(period) = set.triggered_period(id) {
            set.tasks[place].period = period;
        }
        let (cost, period) = (set.tasks[place].cost, set.tasks[place].period.as_ns());
        let deadline = match stream.below(4) {
            0 => NS((cost.as_ns() + stream.below(period)).min(period)),
            1 => NS(period + stream.below(2 * period)),
            _ => NS(period),
        };
        set.tasks[place].deadline = deadline.max(cost);
    }
    set
}

/// Lets most tasks hold a mutex, for which they spin or which those of a CPU share, for one of their runs.
fn add_sections(stream: &mut RandomStream, set: &mut TaskSet) {
    let protocols = [Protocol::Inheritance, Protocol::Ceiling, Protocol::Spin];
    let protocol = protocols[stream.below(3) as usize];
    let resource = |index| Resource {
        name: format!("r{index}"),
        protocol,
    };
    set.resources = (0..set.platform.cpus).map(resource).collect();
    for task in &mut set.tasks {
        if stream.below(4) == 0 {
            continue;
        }
        let cpu = task.only_cpu().unwrap();
        let id = ResourceId::from_index(match protocol {
            Protocol::Spin => 0,
            _ => cpu.index(),
        });
        let mut phases = match &task.work {
            Work::Phases(phases) => phases.clone(),
            _ => vec![Phase::Run(task.cost)],
        };
        let is_run = |phase: &Phase| matches!(phase, Phase::Run(_));
        let runs = phases.iter().filter(|phase| is_run(phase)).count() as u64;
        let chosen = stream.below(runs) as usize;
        let mut places = (0..phases.len()).filter(|&place| is_run(&phases[place]));
        let place = places.nth(chosen).unwrap();
        phases.insert(place + 1, Phase::Unlock(id));
        phases.insert(place, Phase::Lock(id));
        task.work = Work::Phases(phases);
    }
}

fn known(set: &TaskSet, entry: &Entry) -> Option<PolicyAnalysis> {
    let candidate = candidate(set, entry);
    candidate.bound.as_ref().ok()?;
    analyse(set, &[candidate], STEPS)
        .policies
        .into_iter()
        .next()
}

/// The set as if triggered tasks were sporadic with their periods.
fn as_sporadic(set: &TaskSet) -> TaskSet {
    let mut set = set.clone();
    for task in &mut set.tasks {
        if task.trigger().is_some() {
            task.arrival = Arrival::Sporadic;
        }
        if let Work::Phases(phases) = &mut task.work {
            phases.retain(|phase| !matches!(phase, Phase::Trigger(_)));
        }
    }
    set
}

#[derive(Debug, Default)]
struct Seen {
    sets: u64,
    shown: u64,
    /// Of these the ones that lock mutexes.
    locking: u64,
    bounds: u64,
    /// Bounds that a schedule reached.
    reached: u64,
    /// Sets that would be called schedulable if triggered tasks were sporadic, and miss deadlines.
    misled: u64,
}

#[test]
fn nothing_that_is_shown_of_triggered_tasks_is_wrong() {
    let sets = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 20_000,
        None => 400,
    };
    let mut seen: BTreeMap<&str, Seen> = BTreeMap::new();
    for seed in 0..sets {
        let set = random(seed);
        if set.first_triggered().is_none() {
            continue;
        }
        for entry in registry::POLICIES {
            let Some(known) = known(&set, entry) else {
                continue;
            };
            let seen = seen.entry(entry.name).or_default();
            seen.sets += 1;
            let longest = longest(&set, entry, seed);
            assert_ne!(known.hard.answer, Answer::Unschedulable, "seed {seed}");
            if known.hard.answer == Answer::Schedulable {
                seen.shown += 1;
                seen.locking += u64::from(set.first_locking().is_some());
                let by = &known.hard.by;
                assert!(
                    in_time(&set, &longest),
                    "seed {seed}, {}, {by:?}: {longest:?} {set:#?}",
                    entry.name
                );
            } else if !in_time(&set, &longest)
                && let Some(misled) = self::known(&as_sporadic(&set), entry)
            {
                seen.misled += u64::from(misled.hard.answer == Answer::Schedulable);
            }
            for (place, best) in known.best.iter().enumerate() {
                let Some(best) = best else { continue };
                seen.bounds += 1;
                let response = longest[place];
                assert!(
                    response <= best.response.as_ns(),
                    "seed {seed}, {}, t{place}: {response} above {best:?} {set:#?}",
                    entry.name
                );
                seen.reached += u64::from(response == best.response.as_ns());
            }
        }
    }
    for (policy, seen) in &seen {
        println!("{policy}: {seen:?}");
    }
    let shown = |policy: &str| seen[policy].shown;
    assert!(
        ["p-fp", "p-edf", "strong-edf", "strong-fp"]
            .iter()
            .all(|it| shown(it) > 0)
    );
    assert!(seen.values().any(|seen| seen.misled > 0) && seen["p-fp"].reached > 0);
    assert!(seen["p-fp"].locking > 0 && seen["p-edf"].locking > 0);
}

/// A task on these CPUs that arrives by a period, or if that is zero when the task at the place is triggered by it.
fn task(name: &str, (cost, period, deadline): (u64, u64, u64), cpus: &str, by: usize) -> Task {
    let affinity = Affinity::new(cpus.parse().unwrap()).unwrap();
    let mut task = Task::periodic(name, NS(cost), NS(period.max(1)), affinity);
    task.deadline = NS(deadline);
    if period == 0 {
        task.arrival = Arrival::Triggered(Trigger {
            sources: vec![TaskId::from_index(by)],
            join: Join::Any,
            queue: None,
        });
    }
    task
}

/// Gives triggered tasks their periods, and all tasks these priorities.
fn set(cpus: usize, mut tasks: Vec<Task>, priorities: &[u32]) -> TaskSet {
    for (task, &priority) in tasks.iter_mut().zip(priorities) {
        task.priority = Priority::new(priority);
    }
    let mut set = TaskSet::new("", cpus, tasks);
    for id in set.trigger_order().unwrap() {
        if let Some(period) = set.triggered_period(id) {
            set.tasks[id.index()].period = period;
        }
    }
    set
}

#[test]
fn job_that_triggers_when_it_starts_blocks_for_its_whole_cost_unless_it_is_preempted() {
    let tasks = vec![
        task("a", (10, 100, 100), "0", 0),
        task("b", (1, 0, 10), "0", 0),
    ];
    let mut set = set(1, tasks, &[2, 1]);
    let trigger = Phase::Trigger(TaskId::from_index(1));
    set.tasks[0].work = Work::Phases(vec![trigger, Phase::Run(NS(10))]);
    for (policy, answer, response) in [
        ("np-g-fp", Answer::Unknown, 11),
        ("np-g-edf", Answer::Unknown, 11),
        ("g-fp", Answer::Schedulable, 1),
    ] {
        let entry = registry::find(policy).unwrap();
        let known = known(&set, entry).unwrap();
        assert_eq!(known.hard.answer, answer, "{policy}");
        assert_eq!(longest(&set, entry, 1)[1], response, "{policy}");
    }
}

#[test]
fn nothing_is_said_of_other_packings_and_orders_of_triggered_tasks() {
    let tasks = vec![
        task("x", (2, 12, 12), "1", 0),
        task("b", (1, 0, 2), "1", 3),
        task("h", (1, 30, 30), "0", 0),
        task("a", (2, 10, 10), "0", 0),
    ];
    let set = set(2, tasks, &[1, 3, 1, 2]);
    let entry = registry::find("p-fp").unwrap();
    let known = known(&set, entry).unwrap();
    let others = ["ff", "bf", "wf", "ffd", "bfd", "wfd"];
    let tests = known.hard.tests.iter();
    let mut packings = tests.filter(|(test, _)| others.contains(test));
    assert!(
        packings.all(|(_, found)| *found == Found::NotApplicable),
        "{known:?}"
    );
    let mut candidate = |set: &TaskSet| candidate(set, entry);
    assert_eq!(priority_order(&set, &mut candidate, STEPS), None);
}

#[test]
fn jobs_of_a_triggered_task_come_as_close_as_responses_let_them() {
    // `h` delays every fourth job of `a` by 7, so that `a` triggers `b` at 8 and at 11. For all that is known, it might at 10.
    for (policy, deadline, answer) in [
        ("p-edf", 4, Answer::Unknown),
        ("p-fp", 4, Answer::Unknown),
        ("p-fp", 6, Answer::Schedulable),
    ] {
        let tasks = vec![
            task("h", (7, 40, 7), "0", 0),
            task("a", (1, 10, 9), "0", 0),
            task("b", (4, 0, deadline), "1", 1),
        ];
        let set = set(2, tasks, &[1, 2, 3]);
        let entry = registry::find(policy).unwrap();
        let found = known(&set, entry).unwrap();
        assert_eq!(found.hard.answer, answer, "{policy}, {deadline}");
        assert_eq!(longest(&set, entry, 1)[2], 5, "{policy}");
    }
}
