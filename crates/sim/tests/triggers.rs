//! Triggered tasks against their definition, executed one time unit after the other, and against what holds of the records
//! of every policy.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use std::collections::VecDeque;

use common::{AT, NS, contract, finishes, id, options, run, simulate, story, task};
use shiftwork_model::{
    Action, Affinity, Arrival, Change, CpuId, CpuSet, Join, OnOverrun, Phase, Priority, Protocol,
    RandomStream, Record, RecordKind, Resource, ResourceId, TaskId, TaskSet, Trigger, Work,
};
use shiftwork_policy::registry;
use shiftwork_trace::check;

/// A job in the terms of the definition.
struct Job {
    deadline: u64,
    ready_since: u64,
    phases: Vec<Phase>,
    /// Index of the current phase, and what is left of it if it runs.
    at: usize,
    left: u64,
    asleep_until: Option<u64>,
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

    /// Suspends itself if that comes next, adjacent suspensions as one.
    fn suspend(&mut self, now: u64) {
        let mut until = now;
        while self.left == 0
            && let Some(Phase::Sleep(span)) = self.phases.get(self.at)
        {
            until += span.as_ns();
            self.at += 1;
        }
        if until > now {
            self.asleep_until = Some(until);
            self.begin();
        }
    }
}

/// Partitioned scheduling, on the CPU to which each task is bound.
struct Reference<'a> {
    set: &'a TaskSet,
    priorities: Vec<u64>,
    by_priority: bool,
    /// In order of release; only the first can run, and it has begun.
    jobs: Vec<Vec<Job>>,
    /// Of each triggered task, by source, or for all sources together: the instants of the triggers whose jobs have not
    /// begun.
    waiting: Vec<Vec<VecDeque<u64>>>,
    running: Vec<Option<usize>>,
    /// The triggers of this round: source and target.
    fired: Vec<(usize, usize)>,
    finishes: Vec<Vec<u64>>,
    /// Instant, source, target, and whether it was lost.
    triggers: Vec<(u64, usize, usize, bool)>,
}

impl<'a> Reference<'a> {
    fn new(set: &'a TaskSet, by_priority: bool) -> Self {
        let count = set.tasks.len();
        let places = |trigger: &Trigger| match trigger.join {
            Join::Any => 1,
            Join::All => trigger.sources.len(),
        };
        let of = |task: &shiftwork_model::Task| task.trigger().map_or(0, places);
        let waiting = set.tasks.iter().map(|task| vec![VecDeque::new(); of(task)]);
        Self {
            set,
            priorities: set
                .priorities()
                .iter()
                .map(|it| it.number().into())
                .collect(),
            by_priority,
            jobs: (0..count).map(|_| Vec::new()).collect(),
            waiting: waiting.collect(),
            running: vec![None; set.platform.cpus],
            fired: Vec::new(),
            finishes: vec![Vec::new(); count],
            triggers: Vec::new(),
        }
    }

    fn run(mut self, horizon: u64) -> Self {
        for now in 0..horizon {
            let mut is_first = true;
            loop {
                let running: Vec<usize> = self.running.iter().flatten().copied().collect();
                let is_due = |task: &usize| self.jobs[*task][0].left == 0;
                let due: Vec<usize> = running.into_iter().filter(is_due).collect();
                if due.is_empty() && !is_first {
                    break;
                }
                due.into_iter().for_each(|task| self.step(task, now));
                if is_first {
                    (0..self.jobs.len()).for_each(|task| self.complete_asleep(task, now));
                    (0..self.jobs.len()).for_each(|task| self.arrive(task, now));
                }
                for (source, target) in std::mem::take(&mut self.fired) {
                    let is_kept = self.deliver(source, target, now);
                    self.triggers.push((now, source, target, !is_kept));
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

    /// A job that runs has executed what comes before its next phase. What it does without executing between is one step
    /// up to the end of a suspension.
    fn step(&mut self, task: usize, now: u64) {
        loop {
            let job = &mut self.jobs[task][0];
            let phase = job.phases.get(job.at).copied();
            match phase {
                None => return self.complete(task, now),
                Some(Phase::Sleep(_)) => return job.suspend(now),
                Some(Phase::Trigger(target)) => {
                    job.at += 1;
                    self.fired.push((task, target.index()));
                    job.begin();
                    if job.left > 0 {
                        return;
                    }
                }
                Some(other) => unreachable!("{other:?}"),
            }
        }
    }

    fn complete(&mut self, task: usize, now: u64) {
        self.jobs[task].remove(0);
        self.finishes[task].push(now);
        for (target, of) in self.set.iter() {
            let sources = of.trigger().map_or(&[][..], |it| &it.sources);
            let mut earlier = self.set.tasks[task].triggers();
            if sources.contains(&id(task)) && !earlier.any(|it| it == target) {
                self.fired.push((task, target.index()));
            }
        }
        self.begin_first(task, now);
    }

    /// The first job of the task begins, if there is one, with the first trigger of each kind.
    fn begin_first(&mut self, task: usize, now: u64) {
        let Some(job) = self.jobs[task].first_mut() else {
            return;
        };
        job.ready_since = now;
        job.suspend(now);
        for place in &mut self.waiting[task] {
            place.pop_front().unwrap();
        }
    }

    fn deliver(&mut self, source: usize, target: usize, now: u64) -> bool {
        let trigger = self.set.tasks[target].trigger().unwrap().clone();
        let place = match trigger.join {
            Join::Any => 0,
            Join::All => trigger
                .sources
                .iter()
                .position(|it| it.index() == source)
                .unwrap(),
        };
        // Pending jobs but the first have their triggers waiting.
        let released = self.jobs[target].len().saturating_sub(1);
        let complete =
            |waiting: &[VecDeque<u64>]| waiting.iter().all(|place| place.len() > released);
        self.waiting[target][place].push_back(now);
        let is_idle = self.jobs[target].is_empty();
        let releases = complete(&self.waiting[target]);
        let limit = trigger.queue.map_or(usize::MAX, |limit| limit as usize);
        if self.waiting[target][place].len() > limit && !(is_idle && releases) {
            self.waiting[target][place].pop_back();
            return false;
        }
        if releases {
            self.release(target, now);
        }
        true
    }

    /// Completes a job that ends with a suspension.
    fn complete_asleep(&mut self, task: usize, now: u64) {
        if let Some(job) = self.jobs[task].first()
            && job.asleep_until == Some(now)
            && job.left == 0
            && job.at == job.phases.len()
        {
            self.complete(task, now);
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
        let by_time = of.trigger().is_none();
        if by_time && now >= offset && (now - offset).is_multiple_of(period) {
            self.release(task, now);
        }
    }

    fn release(&mut self, task: usize, now: u64) {
        let of = &self.set.tasks[task];
        let phases = match &of.work {
            Work::Phases(phases) => phases.clone(),
            _ => vec![Phase::Run(of.cost)],
        };
        let mut job = Job {
            deadline: now + of.deadline.as_ns(),
            ready_since: now,
            phases,
            at: 0,
            left: 0,
            asleep_until: None,
        };
        job.begin();
        self.jobs[task].push(job);
        if self.jobs[task].len() == 1 {
            self.begin_first(task, now);
        }
    }

    fn assign(&mut self) {
        for cpu in 0..self.running.len() {
            let ready = (0..self.jobs.len()).filter(|&task| {
                let is_bound = self.set.tasks[task].only_cpu() == CpuId::new(cpu);
                let first = self.jobs[task].first();
                is_bound && first.is_some_and(|job| job.asleep_until.is_none())
            });
            let key = |&task: &usize| {
                let job = &self.jobs[task][0];
                let rank = match self.by_priority {
                    true => self.priorities[task],
                    false => job.deadline,
                };
                (rank, job.ready_since, task)
            };
            self.running[cpu] = ready.min_by_key(key);
        }
    }
}

/// Tasks of which some trigger others, at completions or before them, once or several times.
fn random_set(seed: u64, affinities: &[&str]) -> TaskSet {
    let mut random = RandomStream::new(seed, 12, 0);
    let cpus = 1 + random.below(3) as usize;
    let count = 2 + random.below(5) as usize;
    let tasks = (0..count).map(|index| {
        let period = 12 + random.below(30);
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
        task.on_overrun = OnOverrun::Continue;
        if random.below(2) == 0 {
            task.priority = Priority::new(1 + random.below(4) as u32);
        }
        let is_triggered = index > 0 && random.below(2) == 0;
        if is_triggered {
            let first = random.below(index as u64) as usize;
            let sources = (first..index).filter(|&it| it == first || random.below(3) == 0);
            let sources: Vec<TaskId> = sources.map(id).collect();
            let join = match random.below(2) {
                0 => Join::Any,
                _ => Join::All,
            };
            let least = u64::from(join == Join::All);
            task.arrival = Arrival::Triggered(Trigger {
                sources,
                join,
                queue: (random.below(2) == 0).then(|| (least + random.below(3)) as u32),
            });
        } else {
            task.offset = NS(random.below(15));
        }
        task
    });
    let mut set = TaskSet::new("random", cpus, tasks.collect());
    for source in 0..count {
        let targets: Vec<TaskId> = (source + 1..count)
            .map(id)
            .filter(|target| {
                let trigger = set.tasks[target.index()].trigger();
                trigger.is_some_and(|it| it.sources.contains(&id(source)))
            })
            .collect();
        if random.below(2) == 0 {
            set.tasks[source].work = Work::Phases(random_phases(&mut random, &targets));
        }
    }
    set
}

fn random_phases(random: &mut RandomStream, targets: &[TaskId]) -> Vec<Phase> {
    let mut phases = vec![Phase::Run(NS(1))];
    for _ in 0..random.below(6) {
        let of = random.below(targets.len().max(1) as u64) as usize;
        phases.push(match (random.below(4), targets.get(of)) {
            (0, _) => Phase::Sleep(NS(1 + random.below(3))),
            (1 | 2, Some(target)) => Phase::Trigger(*target),
            _ => Phase::Run(NS(1 + random.below(3))),
        });
    }
    if random.below(4) == 0 {
        phases.rotate_right(1);
    }
    phases
}

fn triggers(records: &[Record]) -> Vec<(u64, usize, usize, bool)> {
    let of = |record: &Record| match record.kind {
        RecordKind::Triggered { by, task, is_lost } => {
            Some((record.at.as_ns(), by.task.index(), task.index(), is_lost))
        }
        _ => None,
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
    let (mut kept, mut lost) = (0, 0);
    for seed in 0..sets() {
        let set = random_set(seed, &[]);
        for (policy, by_priority) in [("p-fp", true), ("p-edf", false)] {
            let expected = Reference::new(&set, by_priority).run(HORIZON);
            let (records, _) = simulate(&set, policy, options(HORIZON));
            let found = triggers(&records);
            assert_eq!(found, expected.triggers, "seed {seed}, {policy}: {set:#?}");
            // A completion exactly at the horizon is part of the run, and not of the reference.
            let before = |at: &u64| *at < HORIZON;
            for (task, expected) in expected.finishes.iter().enumerate() {
                let all = finishes(&records, task);
                let found: Vec<u64> = all.into_iter().filter(before).collect();
                assert_eq!(found, *expected, "seed {seed}, {policy}, T{task}: {set:#?}");
            }
            lost += found.iter().filter(|it| it.3).count() as u64;
            kept += found.iter().filter(|it| !it.3).count() as u64;
        }
    }
    assert!(kept > sets() && lost > sets(), "{kept} {lost}");
}

/// What the records say of the triggers of each task, judged by the definition: whether each is rightly kept or lost, and
/// whether a job is released exactly if it should be. Returns the number of jobs that triggers released.
fn judge(set: &TaskSet, records: &[Record]) -> Result<u64, String> {
    let mut waiting: Vec<Vec<u64>> = set
        .tasks
        .iter()
        .map(|task| match task.trigger() {
            Some(it) if it.join == Join::All => vec![0; it.sources.len()],
            _ => vec![0],
        })
        .collect();
    // Pending jobs, and whether the task takes part.
    let mut pending = vec![0_u64; set.tasks.len()];
    let mut present: Vec<bool> = set.iter().map(|(id, _)| !set.enters_later(id)).collect();
    // A release that has to follow at once.
    let mut expected: Option<TaskId> = None;
    let mut released = 0;
    for (step, record) in records.iter().enumerate() {
        let wrong = |what: &str| Err(format!("record {step} {record:?}: {what}"));
        if let Some(task) = expected.take() {
            let is_release =
                matches!(record.kind, RecordKind::Released { job, .. } if job.task == task);
            if !is_release {
                return wrong("a triggered job is not released");
            }
            released += 1;
        } else if let RecordKind::Released { job, .. } = record.kind
            && set.tasks[job.task.index()].trigger().is_some()
        {
            return wrong("a job is released without triggers");
        }
        match record.kind {
            RecordKind::Released { job, .. } => pending[job.task.index()] += 1,
            RecordKind::Completed { job } => {
                let task = job.task.index();
                pending[task] -= 1;
                if pending[task] > 0 && set.tasks[task].trigger().is_some() {
                    waiting[task].iter_mut().for_each(|count| *count -= 1);
                }
            }
            RecordKind::Left { task } => {
                (pending[task.index()], present[task.index()]) = (0, false);
                waiting[task.index()].fill(0);
            }
            RecordKind::Entered { task } => present[task.index()] = true,
            RecordKind::Triggered { by, task, is_lost } => {
                let trigger = set.tasks[task.index()].trigger().unwrap();
                let source = trigger.sources.iter().position(|it| *it == by.task);
                let place = match (trigger.join, source) {
                    (_, None) => return wrong("it is no source"),
                    (Join::Any, _) => 0,
                    (Join::All, Some(place)) => place,
                };
                let (pending, present) = (pending[task.index()], present[task.index()]);
                let waiting = &mut waiting[task.index()];
                let unbegun = pending.saturating_sub(1);
                waiting[place] += 1;
                let releases = waiting.iter().all(|count| *count > unbegun);
                let fits = trigger
                    .queue
                    .is_none_or(|limit| waiting[place] <= u64::from(limit));
                let is_kept = present && (fits || (pending == 0 && releases));
                if is_kept == is_lost {
                    return wrong("kept or lost wrongly");
                }
                if !is_kept {
                    waiting[place] -= 1;
                } else if releases {
                    expected = Some(task);
                    if pending == 0 {
                        waiting.iter_mut().for_each(|count| *count -= 1);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(released)
}

#[test]
fn every_policy_keeps_its_contract_and_releases_what_is_triggered() {
    let mut released = 0;
    for seed in 0..sets() / 20 {
        let affinities: &[&str] = match seed % 2 {
            0 => &["0-3"],
            _ => &["0-3", "0", "0-1"],
        };
        let mut set = random_set(seed, affinities);
        let mut random = RandomStream::new(seed, 13, 0);
        if seed % 3 == 0 {
            let of = id(random.below(set.tasks.len() as u64) as usize);
            let changes = [(60, Change::Leave(of)), (90, Change::Enter(of))];
            set.actions = changes
                .map(|(at, change)| Action { at: AT(at), change })
                .to_vec();
        }
        for task in &mut set.tasks {
            if random.below(3) == 0 {
                task.on_overrun = OnOverrun::Throttle;
            }
        }
        for entry in registry::POLICIES {
            let Ok(policy) = entry.build(&set) else {
                continue;
            };
            drop(policy);
            let records = run(&set, entry.name, 300);
            match judge(&set, &records) {
                Ok(count) => released += count,
                Err(wrong) => panic!("seed {seed}, {}: {wrong}: {set:#?}", entry.name),
            }
            let found = check::check(&set, contract(entry, &set), AT(300), &records);
            assert!(
                found.is_empty(),
                "seed {seed}, {}: {found:?} {set:#?}",
                entry.name
            );
        }
    }
    assert!(released > sets(), "{released}");
}

#[test]
fn pfair_refuses_triggered_tasks() {
    let mut set = common::set(2, &[(1, 10), (1, 10)]);
    set.tasks[1].arrival = Arrival::Triggered(Trigger {
        sources: vec![id(0)],
        join: Join::Any,
        queue: None,
    });
    for entry in registry::POLICIES {
        let built = entry.build(&set).map(drop);
        let is_pfair = matches!(
            entry.traits.preemption,
            shiftwork_model::Preemption::Pfair(_)
        );
        assert_eq!(built.is_err(), is_pfair, "{}", entry.name);
    }
}

#[test]
fn pending_jobs_keep_the_deadlines_of_their_arrivals() {
    // T1 is triggered at 1, 3 and 5, and its jobs run one after the other.
    let mut set = common::set(2, &[(5, 100), (10, 100)]);
    set.tasks[1].arrival = Arrival::Triggered(Trigger {
        sources: vec![id(0)],
        join: Join::Any,
        queue: None,
    });
    let (run, trigger) = (Phase::Run, Phase::Trigger(id(1)));
    set.tasks[0].work = Work::Phases(vec![
        run(NS(1)),
        trigger,
        run(NS(2)),
        trigger,
        run(NS(2)),
        trigger,
    ]);
    let records = common::run(&set, "g-edf", 40);
    assert_eq!(
        story(&records, 1),
        [
            "1 released 1 due 101",
            "1 ready 1 by 101",
            "3 released 2 due 103",
            "5 released 3 due 105",
            "11 completed 1",
            "11 ready 2 by 103",
            "21 completed 2",
            "21 ready 3 by 105",
            "31 completed 3"
        ]
    );
}

#[test]
fn job_that_ends_with_an_unlock_and_a_trigger_completes_before_what_arrives_then() {
    let mut set = common::set(2, &[(1, 3), (2, 12), (1, 12)]);
    let (mutex, x) = (ResourceId::from_index(0), id(2));
    for (task, (priority, cpu)) in set.tasks.iter_mut().zip([(1, 0), (2, 0), (3, 1)]) {
        task.priority = Priority::new(priority);
        task.affinity = Affinity::pinned(CpuId::from_index(cpu));
    }
    set.resources = vec![Resource {
        name: "a".into(),
        protocol: Protocol::Ceiling,
    }];
    set.tasks[2].arrival = Arrival::Triggered(Trigger {
        sources: vec![id(1)],
        join: Join::Any,
        queue: None,
    });
    let (lock, unlock) = (Phase::Lock(mutex), Phase::Unlock(mutex));
    let run = Phase::Run(NS(2));
    for end in [
        vec![unlock, Phase::Trigger(x)],
        vec![Phase::Trigger(x), unlock],
    ] {
        set.tasks[1].work = Work::Phases([vec![lock, run], end].concat());
        let records = common::run(&set, "p-fp", 12);
        assert_eq!(finishes(&records, 1), [3]);
        assert_eq!(finishes(&records, 2), [4]);
    }
}
