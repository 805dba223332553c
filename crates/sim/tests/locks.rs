//! Mutexes against their definition, executed one time unit after the other, and against what holds of all of them.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use std::collections::BTreeMap;

use common::{AT, NS, contract, finishes, id, options, simulate, story, task};
use shiftwork_model::{
    Action, Affinity, Change, CpuId, CpuSet, NotReadyReason, OnOverrun, Phase, Priority, Protocol,
    RandomStream, Record, RecordKind, Resource, ResourceId, TaskSet, Work,
};
use shiftwork_policy::registry;
use shiftwork_trace::check;

fn mutex(index: usize) -> ResourceId {
    ResourceId::from_index(index)
}

fn resources(protocols: &[Protocol]) -> Vec<Resource> {
    let of = |(index, &protocol)| Resource {
        name: format!("R{index}"),
        protocol,
    };
    protocols.iter().enumerate().map(of).collect()
}

/// A job in the terms of the definition.
struct Job {
    own_deadline: u64,
    ready_since: u64,
    phases: Vec<Phase>,
    /// Index of the current phase, and what is left of it if it runs.
    at: usize,
    left: u64,
    asleep_until: Option<u64>,
    waits_for: Option<ResourceId>,
    /// The mutexes that it holds, with the instants of the locks.
    held: Vec<(ResourceId, u64)>,
}

impl Job {
    /// Begins the phase at `at`; adjacent runs are one.
    fn begin(&mut self) {
        self.left = 0;
        while let Some(Phase::Run(run)) = self.phases.get(self.at) {
            self.left += run.as_ns();
            self.at += 1;
        }
    }

    fn is_ready(&self) -> bool {
        self.asleep_until.is_none() && self.waits_for.is_none()
    }
}

/// Partitioned scheduling, on the CPU to which each task is bound.
struct Reference<'a> {
    set: &'a TaskSet,
    by_priority: bool,
    priorities: Vec<u64>,
    /// In order of release; only the first can run.
    jobs: Vec<Vec<Job>>,
    running: Vec<Option<usize>>,
    /// The tasks that wait for each mutex, in the order of their requests.
    waiters: BTreeMap<ResourceId, Vec<usize>>,
    finishes: Vec<Vec<u64>>,
    /// Instant, task, mutex, and whether it was locked.
    locks: Vec<(u64, usize, usize, bool)>,
}

impl<'a> Reference<'a> {
    fn new(set: &'a TaskSet, by_priority: bool) -> Self {
        let count = set.tasks.len();
        let priorities = set.priorities();
        Self {
            set,
            by_priority,
            priorities: priorities.iter().map(|it| it.number().into()).collect(),
            jobs: (0..count).map(|_| Vec::new()).collect(),
            running: vec![None; set.platform.cpus],
            waiters: BTreeMap::new(),
            finishes: vec![Vec::new(); count],
            locks: Vec::new(),
        }
    }

    fn run(mut self, horizon: u64) -> Self {
        for now in 0..horizon {
            let mut is_first = true;
            loop {
                let before: Vec<usize> = self.running.iter().flatten().copied().collect();
                let due: Vec<usize> = before
                    .into_iter()
                    .filter(|&task| self.jobs[task][0].left == 0)
                    .collect();
                if due.is_empty() && !is_first {
                    break;
                }
                due.into_iter().for_each(|task| self.step(task, now));
                if is_first {
                    (0..self.jobs.len()).for_each(|task| self.arrive(task, now));
                }
                is_first = false;
                self.assign();
            }
            for task in self.running.iter().flatten() {
                self.jobs[*task][0].left -= 1;
            }
        }
        self
    }

    /// A job that runs has executed what comes before its next phase.
    fn step(&mut self, task: usize, now: u64) {
        let job = &mut self.jobs[task][0];
        let phase = job.phases.get(job.at).copied();
        job.at += 1;
        match phase {
            None => self.complete(task, now),
            Some(Phase::Sleep(span)) => {
                job.asleep_until = Some(now + span.as_ns());
                job.begin();
            }
            Some(Phase::Lock(resource)) => {
                job.begin();
                let is_free = !self.is_held(resource);
                if is_free {
                    self.hold(task, resource, now);
                } else {
                    self.jobs[task][0].waits_for = Some(resource);
                    self.waiters.entry(resource).or_default().push(task);
                }
            }
            Some(Phase::Unlock(resource)) => {
                // All that it unlocks without executing between.
                let mut free = vec![resource];
                job.begin();
                while job.left == 0
                    && let Some(Phase::Unlock(resource)) = job.phases.get(job.at)
                {
                    free.push(*resource);
                    job.at += 1;
                    job.begin();
                }
                job.held.retain(|(held, _)| !free.contains(held));
                let has_ended = job.left == 0 && job.at == job.phases.len();
                for resource in &free {
                    self.locks.push((now, task, resource.index(), false));
                }
                free.into_iter().for_each(|it| self.hand_over(it, now));
                if has_ended {
                    self.complete(task, now);
                }
            }
            Some(Phase::Run(_)) => unreachable!("runs are begun with what precedes them"),
        }
    }

    fn hand_over(&mut self, resource: ResourceId, now: u64) {
        let waiters = self.waiters.entry(resource).or_default().clone();
        let Some(&next) = waiters.iter().min_by_key(|&&task| self.rank(task)) else {
            return;
        };
        self.waiters
            .entry(resource)
            .or_default()
            .retain(|task| *task != next);
        self.jobs[next][0].waits_for = None;
        self.jobs[next][0].ready_since = now;
        self.hold(next, resource, now);
    }

    fn hold(&mut self, task: usize, resource: ResourceId, now: u64) {
        self.jobs[task][0].held.push((resource, now));
        self.locks.push((now, task, resource.index(), true));
    }

    fn is_held(&self, resource: ResourceId) -> bool {
        let mut first = self.jobs.iter().filter_map(|jobs| jobs.first());
        first.any(|job| job.held.iter().any(|(held, _)| *held == resource))
    }

    fn complete(&mut self, task: usize, now: u64) {
        self.jobs[task].remove(0);
        self.finishes[task].push(now);
        if let Some(next) = self.jobs[task].first_mut() {
            next.ready_since = now;
        }
    }

    fn arrive(&mut self, task: usize, now: u64) {
        let of = &self.set.tasks[task];
        if let Some(job) = self.jobs[task].first_mut()
            && job.asleep_until == Some(now)
        {
            job.asleep_until = None;
            job.ready_since = now;
        }
        let (offset, period) = (of.offset.as_ns(), of.period.as_ns());
        if now >= offset && (now - offset).is_multiple_of(period) {
            let phases = match &of.work {
                Work::Phases(phases) => phases.clone(),
                _ => vec![Phase::Run(of.cost)],
            };
            let mut job = Job {
                own_deadline: now + of.deadline.as_ns(),
                ready_since: now,
                phases,
                at: 0,
                left: 0,
                asleep_until: None,
                waits_for: None,
                held: Vec::new(),
            };
            job.begin();
            self.jobs[task].push(job);
        }
    }

    /// The least of a job's own rank, of what comes with the mutexes that it holds, and of the ranks of the jobs that
    /// wait for those of them that have inheritance.
    fn rank(&self, task: usize) -> u64 {
        let job = &self.jobs[task][0];
        let own = |task: usize| match self.by_priority {
            true => self.priorities[task],
            false => self.jobs[task][0].own_deadline,
        };
        let mut rank = own(task);
        for &(resource, since) in &job.held {
            match self.set.resources[resource.index()].protocol {
                Protocol::None => {}
                Protocol::Inheritance => {
                    let waiters = self.waiters.get(&resource).into_iter().flatten();
                    rank = waiters
                        .map(|&waiter| self.rank(waiter))
                        .fold(rank, u64::min);
                }
                Protocol::Ceiling => {
                    let users = self.set.iter().filter(|(_, it)| it.locks_one(resource));
                    let ceiling = users.map(|(user, it)| match self.by_priority {
                        true => self.priorities[user.index()],
                        false => since + it.deadline.as_ns(),
                    });
                    rank = ceiling.fold(rank, u64::min);
                }
            }
        }
        rank
    }

    fn assign(&mut self) {
        for cpu in 0..self.running.len() {
            let ready = (0..self.jobs.len()).filter(|&task| {
                let is_bound = self.set.tasks[task].only_cpu() == CpuId::new(cpu);
                is_bound && self.jobs[task].first().is_some_and(Job::is_ready)
            });
            let key = |&task: &usize| (self.rank(task), self.jobs[task][0].ready_since, task);
            self.running[cpu] = ready.min_by_key(key);
        }
    }
}

/// Phases that lock mutexes in the order of their numbers, nested or one after the other, and unlock them in any order.
fn random_phases(random: &mut RandomStream, count: u64) -> Vec<Phase> {
    let mut phases = Vec::new();
    let mut held: Vec<ResourceId> = Vec::new();
    let mut cost = 0;
    for _ in 0..2 + random.below(8) {
        let highest = held.iter().map(|it| it.index() as u64 + 1).max();
        let lowest = highest.unwrap_or(0);
        match random.below(6) {
            0 if matches!(phases.last(), Some(Phase::Run(_))) => {
                cost += 1;
                phases.push(Phase::Sleep(NS(1 + random.below(3))));
                phases.push(Phase::Run(NS(1)));
            }
            1 | 2 if lowest < count => {
                let resource = mutex((lowest + random.below(count - lowest)) as usize);
                held.push(resource);
                phases.push(Phase::Lock(resource));
            }
            3 if !held.is_empty() => {
                let resource = held.swap_remove(random.below(held.len() as u64) as usize);
                phases.push(Phase::Unlock(resource));
            }
            _ => {
                let run = 1 + random.below(3);
                cost += run;
                phases.push(Phase::Run(NS(run)));
            }
        }
    }
    held.iter().for_each(|it| phases.push(Phase::Unlock(*it)));
    if cost == 0 {
        phases.push(Phase::Run(NS(1)));
    }
    phases
}

fn random_set(seed: u64, affinities: &[&str]) -> TaskSet {
    let mut random = RandomStream::new(seed, 11, 0);
    let cpus = 1 + random.below(3) as usize;
    let protocols = [Protocol::None, Protocol::Inheritance, Protocol::Ceiling];
    let mixed = random.below(2) == 0;
    let one = protocols[random.below(3) as usize];
    let count = 1 + random.below(3);
    let protocols: Vec<Protocol> = (0..count)
        .map(|_| match mixed {
            true => protocols[random.below(3) as usize],
            false => one,
        })
        .collect();
    let tasks = (0..2 + random.below(5)).map(|index| {
        let period = 12 + random.below(40);
        let mut task = task(cpus, &format!("T{index}"), 1 + random.below(5), period);
        task.affinity = match affinities {
            [] => Affinity::pinned(CpuId::from_index(random.below(cpus as u64) as usize)),
            some => {
                let list = some[random.below(some.len() as u64) as usize];
                let cpus = list.parse::<CpuSet>().unwrap() & CpuSet::first(cpus);
                Affinity::new(cpus).unwrap()
            }
        };
        task.deadline = NS(6 + random.below(2 * period));
        task.offset = NS(random.below(15));
        task.on_overrun = OnOverrun::Continue;
        if random.below(2) == 0 {
            task.priority = Priority::new(1 + random.below(4) as u32);
        }
        if random.below(4) > 0 {
            task.work = Work::Phases(random_phases(&mut random, count));
        }
        task
    });
    let mut set = TaskSet::new("random", cpus, tasks.collect());
    set.resources = resources(&protocols);
    set
}

fn locks(records: &[Record]) -> Vec<(u64, usize, usize, bool)> {
    let line = |record: &Record| match record.kind {
        RecordKind::Locked { job, resource } => Some((job, resource, true)),
        RecordKind::Unlocked { job, resource } => Some((job, resource, false)),
        _ => None,
    };
    let of = |record: &Record| {
        let (job, resource, locked) = line(record)?;
        let at = record.at.as_ns();
        Some((at, job.task.index(), resource.index(), locked))
    };
    records.iter().filter_map(of).collect()
}

fn sets() -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 200_000,
        None => 3_000,
    }
}

#[test]
fn partitioned_runs_equal_the_definition() {
    const HORIZON: u64 = 400;
    let (mut blocked, mut raised) = (0, 0);
    for seed in 0..sets() {
        let set = random_set(seed, &[]);
        for (policy, by_priority) in [("p-fp", true), ("p-edf", false)] {
            let expected = Reference::new(&set, by_priority).run(HORIZON);
            let (records, _) = simulate(&set, policy, options(HORIZON));
            // A completion exactly at the horizon is part of the run, and not of the reference.
            let before = |at: &u64| *at < HORIZON;
            let found: Vec<Vec<u64>> = (0..set.tasks.len())
                .map(|task| {
                    finishes(&records, task)
                        .into_iter()
                        .filter(before)
                        .collect()
                })
                .collect();
            assert_eq!(
                locks(&records),
                expected.locks,
                "seed {seed}, {policy}: {set:#?}"
            );
            assert_eq!(found, expected.finishes, "seed {seed}, {policy}: {set:#?}");
            for record in &records {
                let kind = &record.kind;
                let waits = matches!(
                    kind,
                    RecordKind::NotReady {
                        reason: NotReadyReason::Blocked(_),
                        ..
                    }
                );
                blocked += u64::from(waits);
                raised += u64::from(matches!(kind, RecordKind::RankChanged { .. }));
            }
        }
    }
    assert!(blocked > sets() && raised > sets(), "{blocked} {raised}");
}

#[test]
fn every_policy_that_takes_locks_keeps_its_contract_and_mutual_exclusion() {
    let mut runs = 0;
    for seed in 0..sets() / 20 {
        let affinities: &[&str] = match seed % 2 {
            0 => &["0-3"],
            _ => &["0-3", "0", "0-1"],
        };
        let set = random_set(seed, affinities);
        for entry in registry::POLICIES {
            if !entry.traits.takes_locks() {
                if set.first_locking().is_some() {
                    let refusal = entry.build(&set).map(drop).unwrap_err().to_string();
                    assert!(refusal.starts_with(entry.name), "{refusal}");
                }
                continue;
            }
            if entry.build(&set).is_err() {
                continue;
            }
            let (records, _) = simulate(&set, entry.name, options(300));
            let found = check::check(&set, contract(entry, &set), AT(300), &records);
            assert_eq!(found, [], "seed {seed}, {}", entry.name);
            let mut holders: BTreeMap<usize, usize> = BTreeMap::new();
            for record in &records {
                match record.kind {
                    RecordKind::Locked { job, resource } => {
                        let before = holders.insert(resource.index(), job.task.index());
                        assert_eq!(before, None, "seed {seed}, {}", entry.name);
                    }
                    RecordKind::Unlocked { job, resource } => {
                        let before = holders.remove(&resource.index());
                        assert_eq!(
                            before,
                            Some(job.task.index()),
                            "seed {seed}, {}",
                            entry.name
                        );
                    }
                    _ => {}
                }
            }
            runs += 1;
        }
    }
    assert!(runs > sets() / 5, "{runs}");
}

/// A task of this priority, whose jobs do this.
fn locking(name: &str, priority: u32, offset: u64, phases: Vec<Phase>) -> shiftwork_model::Task {
    let mut task = task(1, name, 20, 100);
    task.priority = Priority::new(priority);
    task.offset = NS(offset);
    task.work = Work::Phases(phases);
    task
}

/// `low` holds a mutex that `high` needs, and `middle` would run meanwhile.
fn inversion(protocol: Protocol) -> TaskSet {
    let (run, lock, unlock) = (
        |ns| Phase::Run(NS(ns)),
        Phase::Lock(mutex(0)),
        Phase::Unlock(mutex(0)),
    );
    let mut middle = locking("middle", 2, 2, vec![run(10)]);
    middle.work = Work::Constant(NS(10));
    let tasks = vec![
        locking("high", 1, 2, vec![run(1), lock, run(2), unlock]),
        middle,
        locking("low", 3, 0, vec![lock, run(4), unlock, run(1)]),
    ];
    let mut set = TaskSet::new("inversion", 1, tasks);
    set.resources = resources(&[protocol]);
    set
}

#[test]
fn priority_inversion_is_bounded_by_the_section_under_protocols_alone() {
    let finish = |protocol| {
        let (records, _) = simulate(&inversion(protocol), "p-fp", options(50));
        [0, 1, 2].map(|task| finishes(&records, task))
    };
    // `high` waits for the section of `low`, and for all of `middle`.
    assert_eq!(finish(Protocol::None), [[17], [13], [18]]);
    // The section alone, be it when the mutex is requested or at once.
    assert_eq!(finish(Protocol::Inheritance), [[7], [17], [18]]);
    assert_eq!(finish(Protocol::Ceiling), [[7], [17], [18]]);
}

#[test]
fn records_say_what_happens_to_a_job_that_waits_for_a_mutex() {
    let (records, _) = simulate(&inversion(Protocol::Inheritance), "p-fp", options(50));
    assert_eq!(
        story(&records, 0),
        [
            "2 released 1 due 102",
            "2 ready 1 by 102",
            "3 Blocked(R0)",
            "5 ready 1 by 102",
            "7 completed 1"
        ]
    );
    let changes = |record: &Record| match record.kind {
        RecordKind::RankChanged { task, priority, .. } => {
            Some((record.at.as_ns(), task.index(), priority.number()))
        }
        _ => None,
    };
    let changes: Vec<_> = records.iter().filter_map(changes).collect();
    assert_eq!(changes, [(3, 2, 1), (5, 2, 3)]);
}

#[test]
fn task_that_locks_may_not_leave_or_change() {
    let mut set = inversion(Protocol::Inheritance);
    let change = |change| Action { at: AT(1), change };
    set.actions = vec![
        change(Change::Leave(id(2))),
        change(Change::SetPriority(id(0), Priority::MOST_URGENT)),
        change(Change::SetPriority(id(1), Priority::LEAST_URGENT)),
    ];
    let (records, _) = simulate(&set, "p-fp", options(50));
    let refused = |record: &Record| match &record.kind {
        RecordKind::Refused { action, reason } => {
            assert!(reason.contains("locks mutexes"), "{reason}");
            Some(*action)
        }
        _ => None,
    };
    let refused: Vec<usize> = records.iter().filter_map(refused).collect();
    assert_eq!(refused, [0, 1]);
}
