//! Task sets are simulated, what the kernel would trace of them is measured, and the proposal has to be the task set again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod traced;

use std::collections::BTreeMap;

use shiftwork_model::{
    Affinity, Arrival, CpuId, CpuSet, Instant, JobId, Join, OnOverrun, Phase, Priority, Protocol,
    RandomStream, RecordKind, Resource, ResourceId, Span, Task, TaskId, TaskSet, Trigger, Work,
};
use shiftwork_observe::{Measurement, Options, Percentile, Proposal, Selection, measure, propose};
use shiftwork_policy::registry;

use traced::{Traced, trace};

const MARGIN_PERCENT: u32 = 20;

/// Up to seven tasks on up to three CPUs, of which about half are triggered by one other each. They use less than half of a
/// CPU, so that a job is hardly ever released before the last one of its task is complete.
fn random(seed: u64) -> TaskSet {
    let mut stream = RandomStream::new(seed, 901, 0);
    let cpus = 1 + stream.below(3) as usize;
    let count = 2 + stream.below(6);
    let mut tasks: Vec<Task> = Vec::new();
    for place in 0..count {
        let source = (place > 0 && stream.below(2) == 0).then(|| stream.below(place) as usize);
        let period = match source {
            Some(source) => tasks[source].period,
            None => Span::from_us([2_000, 5_000, 10_000, 16_670, 40_000][stream.below(5) as usize]),
        };
        let most = period.as_ns() / 1_000 / (2 * count);
        let cost = Span::from_us(30 + stream.below(most - 30));
        let own: CpuSet = (0..cpus)
            .filter(|_| stream.below(2) == 0)
            .map(CpuId::from_index)
            .collect();
        let affinity = Affinity::new(own).unwrap_or(Affinity::new(CpuSet::first(cpus)).unwrap());
        let mut task = Task::periodic(&format!("t{place}"), cost, period, affinity);
        task.priority = Priority::new(1 + stream.below(5) as u32);
        task.on_overrun = OnOverrun::Continue;
        match source {
            Some(source) => {
                task.arrival = Arrival::Triggered(Trigger {
                    sources: vec![TaskId::from_index(source)],
                    join: Join::Any,
                    queue: None,
                });
            }
            None => {
                task.offset = Span::from_ns(stream.below(period.as_ns()));
                if stream.below(3) == 0 {
                    task.arrival = Arrival::Sporadic;
                }
            }
        }
        if stream.below(3) == 0 {
            task.work = Work::Uniform(Span::from_ns(cost.as_ns() / 2), cost);
        }
        tasks.push(task);
    }
    let mut set = TaskSet::new("", cpus, tasks);
    for place in 0..set.tasks.len() {
        let targets: Vec<TaskId> = set
            .triggered_at_completion(TaskId::from_index(place))
            .collect();
        let cost = set.tasks[place].cost.as_ns();
        if stream.below(2) > 0 {
            continue;
        }
        let first = 1 + stream.below(cost - 1);
        let run = |ns| Phase::Run(Span::from_ns(ns));
        let mut phases = vec![run(first), run(cost - first)];
        if let Some(target) = targets.first() {
            phases.insert(1, Phase::Trigger(*target));
        }
        if stream.below(3) == 0 {
            // A job that triggers when it goes on would do so before its thread runs.
            let place = phases.len() - 1;
            phases.insert(place, Phase::Sleep(Span::from_us(1 + stream.below(200))));
        }
        set.tasks[place].work = Work::Phases(phases);
    }
    set
}

fn options(cpus: usize) -> Options {
    Options {
        selection: Selection::All,
        margin_percent: MARGIN_PERCENT,
        percentile: Percentile::MAX,
        online: CpuSet::first(cpus),
    }
}

/// The task of the proposal that was made of this one.
fn proposed<'a>(proposal: &'a Proposal, task: &Task) -> (TaskId, &'a Task) {
    let id = proposal.set.find(&task.name);
    let id = id.unwrap_or_else(|| panic!("no `{}`: {:?}", task.name, proposal.left_out));
    (id, &proposal.set.tasks[id.index()])
}

fn name(set: &TaskSet, id: TaskId) -> &str {
    &set.tasks[id.index()].name
}

fn assert_task(set: &TaskSet, proposal: &Proposal, id: TaskId, context: &str) {
    let task = &set.tasks[id.index()];
    let (_, found) = proposed(proposal, task);
    assert_eq!(found.affinity, task.affinity, "{context}");
    // Steps of 10 us, and times that are exact to 1 us.
    let most = (task.cost.as_ns() + 1_000) * u64::from(100 + MARGIN_PERCENT) / 100 + 10_000;
    let least = match task.work {
        Work::Uniform(least, _) => least,
        _ => task.cost,
    };
    let within = least.as_ns()..=most;
    assert!(within.contains(&found.cost.as_ns()), "{context}: {found:?}");
    assert_eq!(found.longest_run(), found.cost, "{context}: {found:?}");
    match task.trigger() {
        Some(trigger) => {
            let by = found.trigger().map(|it| it.sources.clone());
            let by = by.unwrap_or_else(|| panic!("{context}: {found:?} has no trigger"));
            let names: Vec<&str> = by.iter().map(|id| name(&proposal.set, *id)).collect();
            assert_eq!(names, [name(set, trigger.sources[0])], "{context}");
        }
        None if task.arrival == Arrival::Periodic => {
            assert_eq!(found.arrival, Arrival::Periodic, "{context}: {found:?}");
            assert_eq!(found.period, task.period, "{context}");
        }
        None => {
            assert_eq!(found.arrival, Arrival::Sporadic, "{context}: {found:?}");
            let within = task.period.as_ns()..=task.period.as_ns() * 3 / 2;
            assert!(
                within.contains(&found.period.as_ns()),
                "{context}: {found:?}"
            );
        }
    }
}

/// A trigger well within a job is one in the phases of the proposal, at the same share of the cost; one close to the end is
/// not. Returns whether it is.
fn assert_phases(set: &TaskSet, proposal: &Proposal, id: TaskId, context: &str) -> bool {
    let task = &set.tasks[id.index()];
    let (_, found) = proposed(proposal, task);
    let mut executed = 0;
    let mut at = BTreeMap::new();
    for phase in task.phases() {
        match phase {
            Phase::Run(run) => executed += run.as_ns(),
            Phase::Trigger(target) => drop(at.insert(*target, executed)),
            _ => {}
        }
    }
    let cost = task.cost.as_ns();
    let mut is_within = false;
    for target in set.tasks.iter().filter(|other| {
        other
            .trigger()
            .is_some_and(|trigger| trigger.sources.contains(&id))
    }) {
        let at = at
            .get(&set.find(&target.name).unwrap())
            .copied()
            .unwrap_or(cost);
        let (wanted, _) = proposed(proposal, target);
        let mut before = 0;
        let position = found.phases().iter().find_map(|phase| match phase {
            Phase::Run(run) => {
                before += run.as_ns();
                None
            }
            Phase::Trigger(target) if *target == wanted => Some(before),
            _ => None,
        });
        let left = cost - at;
        match position {
            Some(position) => {
                is_within = true;
                assert!(left > 20_000 && left * 10 > cost, "{context}: {found:?}");
                let share = u128::from(found.cost.as_ns()) * u128::from(at) / u128::from(cost);
                let difference = u128::from(position).abs_diff(share);
                assert!(difference <= 1_000, "{context}: {found:?}");
            }
            None => assert!(
                left <= 20_000 || left * 10 <= cost + 10,
                "{context}: {found:?}"
            ),
        }
    }
    is_within
}

/// All chains of triggers, from a task that none triggers to one that triggers none.
fn expected_chains(set: &TaskSet) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    for (id, _) in set.iter() {
        let is_source = set.tasks.iter().any(|task| {
            task.trigger()
                .is_some_and(|trigger| trigger.sources.contains(&id))
        });
        let mut path = vec![name(set, id)];
        let mut next = id;
        while let Some(trigger) = set.tasks[next.index()].trigger() {
            next = trigger.sources[0];
            path.push(name(set, next));
        }
        if !is_source && path.len() > 1 {
            path.reverse();
            found.push(path);
        }
    }
    found.sort_unstable();
    found
}

/// The longest time from the release of the first job to the completion of the last one, by the simulator's records.
fn longest_latency(set: &TaskSet, traced: &Traced, last: TaskId) -> Span {
    let mut parents: BTreeMap<JobId, JobId> = BTreeMap::new();
    let mut released: BTreeMap<JobId, Instant> = BTreeMap::new();
    let mut completed: BTreeMap<JobId, Instant> = BTreeMap::new();
    let mut trigger = None;
    for record in &traced.records {
        match &record.kind {
            RecordKind::Triggered { by, task, .. } => trigger = Some((*by, *task)),
            RecordKind::Released { job, .. } => {
                released.insert(*job, record.at);
                if let Some((by, _)) = trigger.take().filter(|(_, task)| *task == job.task) {
                    parents.insert(*job, by);
                }
            }
            RecordKind::Completed { job } => drop(completed.insert(*job, record.at)),
            _ => {}
        }
    }
    let mut longest = Span::ZERO;
    for (job, end) in completed.iter().filter(|(job, _)| job.task == last) {
        let mut first = *job;
        while let Some(parent) = parents.get(&first).filter(|it| completed.contains_key(it)) {
            first = *parent;
        }
        // A job whose source is not complete belongs to no chain yet. Of a first job it was not seen that its thread slept.
        if set.tasks[first.task.index()].trigger().is_none() && first.number > 1 {
            longest = longest.max(end.late_since(released[&first]));
        }
    }
    longest
}

fn assert_chains(set: &TaskSet, traced: &Traced, found: (&Measurement, &Proposal), context: &str) {
    let (measurement, proposal) = found;
    let chains = proposal.set.chains.iter();
    let names = |tasks: &[TaskId]| -> Vec<&str> {
        tasks.iter().map(|id| name(&proposal.set, *id)).collect()
    };
    let mut chains: Vec<Vec<&str>> = chains.map(|chain| names(&chain.tasks)).collect();
    chains.sort_unstable();
    assert_eq!(chains, expected_chains(set), "{context}");
    for path in &measurement.paths {
        let last = measurement.find(*path.threads.last().unwrap()).unwrap();
        let expected = longest_latency(set, traced, set.find(&last.name).unwrap());
        assert_eq!(path.latency_max, expected, "{context}: {path:?}");
    }
}

#[test]
fn proposal_is_the_task_set_that_was_simulated() {
    let seeds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 5_000,
        None => 300,
    };
    let policies = ["strong-edf", "weak-fp", "strong-fp", "p-edf"];
    let (mut tried, mut triggered, mut within) = (0, 0, 0);
    for seed in 0..seeds {
        let set = random(seed);
        let policy = policies[usize::try_from(seed).unwrap() % policies.len()];
        let entry = registry::find(policy).unwrap();
        // Some sets cannot be packed, and in some a job waits for the one before it.
        let Some(traced) = trace(&set, entry, seed) else {
            continue;
        };
        tried += 1;
        let context = format!("seed {seed}, {policy}");
        let measurement = measure(&traced.recording, Percentile::MAX);
        let proposal = propose(&measurement, &options(set.platform.cpus)).unwrap();
        assert_eq!(proposal.left_out, [], "{context}");
        for (id, task) in set.iter() {
            assert_task(&set, &proposal, id, &context);
            triggered += u64::from(task.trigger().is_some());
            within += u64::from(assert_phases(&set, &proposal, id, &context));
        }
        assert_chains(&set, &traced, (&measurement, &proposal), &context);
        let toml = proposal.to_toml();
        let read = shiftwork_taskset::read(&toml);
        assert_eq!(read.as_ref(), Ok(&proposal.set), "{context}: {toml}");
    }
    println!("{tried} of {seeds} sets, {triggered} triggered tasks, {within} sources within jobs");
    assert!(tried * 2 > seeds && triggered > seeds / 2 && within > seeds / 20);
}

/// Lets timed tasks hold one mutex for a part of their jobs.
fn add_mutex(set: &mut TaskSet, seed: u64) {
    let mut stream = RandomStream::new(seed, 904, 0);
    let id = ResourceId::from_index(0);
    set.resources = vec![Resource {
        name: "mutex".to_owned(),
        protocol: Protocol::Inheritance,
    }];
    for task in set.tasks.iter_mut().filter(|it| it.trigger().is_none()) {
        let cost = task.cost.as_ns();
        let before = 1 + stream.below(cost / 2);
        let held = 1 + stream.below(cost / 2 - 1);
        let run = |ns| Phase::Run(Span::from_ns(ns));
        task.arrival = Arrival::Periodic;
        task.work = Work::Phases(vec![
            run(before),
            Phase::Lock(id),
            run(held),
            Phase::Unlock(id),
            run(cost - before - held),
        ]);
    }
}

/// A thread that unlocks a mutex wakes the one that waits for it: that is no trigger, and no job of its own.
#[test]
fn locks_are_no_triggers_and_leave_periods_as_they_are() {
    let (mut blocked, mut triggered) = (0, 0);
    for seed in 0..600 {
        let mut set = random(seed);
        add_mutex(&mut set, seed);
        let policy = ["strong-edf", "strong-fp"][usize::try_from(seed % 2).unwrap()];
        let Some(traced) = trace(&set, registry::find(policy).unwrap(), seed) else {
            continue;
        };
        let measurement = measure(&traced.recording, Percentile::MAX);
        // Where jobs wait in nearly every one it cannot be known which wake-up begins a job.
        let is_seldom = |(task, times): (&TaskId, &u64)| {
            let is_own = |kind: &RecordKind| matches!(kind, RecordKind::Released { job, .. } if job.task == *task);
            let jobs = traced.records.iter().filter(|it| is_own(&it.kind));
            times * 10 < jobs.count() as u64 * 9
        };
        if traced.blocked.is_empty() || !traced.blocked.iter().all(is_seldom) {
            continue;
        }
        blocked += traced.blocked.values().sum::<u64>();
        let context = format!("seed {seed}, {policy}");
        let proposal = propose(&measurement, &options(set.platform.cpus)).unwrap();
        for (id, task) in set.iter() {
            assert_task(&set, &proposal, id, &context);
            triggered += u64::from(task.trigger().is_some());
        }
        assert_chains(&set, &traced, (&measurement, &proposal), &context);
    }
    println!("{blocked} times blocked, {triggered} triggered tasks");
    assert!(blocked > 200 && triggered > 50, "{blocked} {triggered}");
}

/// Where events are missing, nothing is measured that is not so.
#[test]
fn lost_events_make_no_job_longer_and_no_distance_shorter() {
    let mut jobs = 0;
    for seed in 0..60 {
        let set = random(seed);
        let Some(mut traced) = trace(&set, registry::find("strong-edf").unwrap(), seed) else {
            continue;
        };
        let whole = measure(&traced.recording, Percentile::MAX);
        let mut stream = RandomStream::new(seed, 902, 0);
        let recording = &mut traced.recording;
        let length = recording.length().as_ns();
        for _ in 0..5 {
            let from = stream.below(length);
            let gap = (
                Instant::from_ns(from),
                Instant::from_ns(from + stream.below(length / 20)),
            );
            recording.gaps.push(gap);
            // Of those in the gap half are missing.
            let in_gap = |at: Instant| gap.0 <= at && at < gap.1;
            recording
                .events
                .retain(|event| !in_gap(event.at) || stream.below(2) == 0);
        }
        let part = measure(recording, Percentile::MAX);
        for (part, whole) in part.threads.iter().zip(&whole.threads) {
            let context = format!("seed {seed}: {part:?} of {whole:?}");
            assert!(part.costs.max <= whole.costs.max, "{context}");
            assert!(part.jobs < whole.jobs, "{context}");
            if let (Some(part), Some(whole)) = (part.distances, whole.distances) {
                assert!(part.min >= whole.min, "{context}");
            }
            jobs += part.jobs;
        }
    }
    assert!(jobs > 10_000, "{jobs}");
}
