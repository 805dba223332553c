//! The simulator against the rules executed directly, one time unit after the other.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use common::{NS, finishes, options, simulate, task};
use shiftwork_model::{
    Arrival, ArrivalCurve, OnOverrun, Pace, Phase, Priority, RandomStream, Record, RecordKind,
    Span, TaskSet, Work,
};

/// An incomplete job in the terms of the rules.
#[derive(Clone)]
struct Pending {
    arrival: u64,
    /// Scheduled by.
    deadline: u64,
    ready_since: u64,
    /// `true`: run for that many units, `false`: sleep.
    phases: Vec<(bool, u64)>,
    /// Sleeping or throttled until then.
    away_until: Option<u64>,
    throttled: bool,
}

#[derive(Clone, Default)]
struct Server {
    start: Option<u64>,
    left: u64,
    deadline: u64,
}

struct Reference<'a> {
    set: &'a TaskSet,
    fixed_priority: bool,
    /// By task, the arrival and the release of each job.
    jobs: Vec<Vec<(u64, u64)>>,
    released: Vec<u64>,
    /// In order of release; only the first can run.
    pending: Vec<Vec<Pending>>,
    servers: Vec<Server>,
    finishes: Vec<Vec<u64>>,
}

impl<'a> Reference<'a> {
    fn new(set: &'a TaskSet, fixed_priority: bool, horizon: u64) -> Self {
        let count = set.tasks.len();
        Self {
            set,
            fixed_priority,
            jobs: (0..count).map(|task| jobs(set, task, horizon)).collect(),
            released: vec![0; count],
            pending: vec![Vec::new(); count],
            servers: vec![Server::default(); count],
            finishes: vec![Vec::new(); count],
        }
    }

    fn run(mut self, horizon: u64) -> Vec<Vec<u64>> {
        for now in 0..=horizon {
            let mut freed = Vec::new();
            for task in 0..self.set.tasks.len() {
                if self.end_phase(task, now, now == horizon) {
                    freed.push(task);
                }
            }
            if now == horizon {
                break;
            }
            for task in 0..self.set.tasks.len() {
                if self.release(task, now) || freed.contains(&task) {
                    self.first_in_line(task, now);
                }
                self.wake(task, now);
            }
            self.run_unit();
        }
        self.finishes
    }

    fn enforces(&self, task: usize) -> bool {
        self.set.tasks[task].on_overrun == OnOverrun::Throttle
    }

    /// Releases the jobs that are due now. Whether the first of them has none before it.
    fn release(&mut self, task: usize, now: u64) -> bool {
        let had_none = self.pending[task].is_empty();
        let mut any = false;
        while let Some(&(arrival, release)) = self.jobs[task].get(self.released[task] as usize)
            && release == now
        {
            self.push(task, arrival, now);
            any = true;
        }
        any && had_none
    }

    fn push(&mut self, task: usize, arrival: u64, now: u64) {
        let of = &self.set.tasks[task];
        let number = self.released[task] as usize;
        self.released[task] += 1;
        let phases = match &of.work {
            Work::Cost => vec![(true, of.cost.as_ns())],
            Work::Trace(runs) => vec![(true, runs[number % runs.len()].as_ns())],
            Work::Phases(phases) => phases
                .iter()
                .map(|phase| match *phase {
                    Phase::Run(span) => (true, span.as_ns()),
                    Phase::Sleep(span) => (false, span.as_ns()),
                    Phase::Lock(_) | Phase::Unlock(_) | Phase::Trigger(_) => {
                        panic!("unexpected phase: {phase:?}")
                    }
                })
                .collect(),
            other => panic!("unexpected work: {other:?}"),
        };
        self.pending[task].push(Pending {
            arrival,
            deadline: arrival + of.deadline.as_ns(),
            ready_since: now,
            phases,
            away_until: None,
            throttled: false,
        });
    }

    /// Begins the first pending job of the task.
    fn first_in_line(&mut self, task: usize, now: u64) {
        let enforces = self.enforces(task);
        let of = &self.set.tasks[task];
        let Some(job) = self.pending[task].first_mut() else {
            return;
        };
        job.ready_since = now;
        let server = &mut self.servers[task];
        let fresh = server
            .start
            .is_none_or(|start| job.arrival >= start + of.period.as_ns());
        if enforces && fresh {
            server.start = Some(job.arrival);
            server.left = of.cost.as_ns();
            server.deadline = job.arrival + of.deadline.as_ns();
        }
        if enforces {
            job.deadline = server.deadline;
        }
        self.want_to_run(task, now);
    }

    /// With an empty budget the job waits for the next one, if its period is not over anyway.
    fn want_to_run(&mut self, task: usize, now: u64) {
        let enforces = self.enforces(task);
        let of = &self.set.tasks[task];
        let server = &mut self.servers[task];
        let job = &mut self.pending[task][0];
        if !job.phases[0].0 {
            job.away_until = Some(now + job.phases[0].1);
        } else if enforces && server.left == 0 {
            let end = server.start.unwrap() + of.period.as_ns();
            if now < end {
                (job.away_until, job.throttled) = (Some(end), true);
            } else {
                server.start = Some(end);
                server.left = of.cost.as_ns();
                server.deadline = end + of.deadline.as_ns();
                job.deadline = server.deadline;
            }
        }
    }

    /// Ends the current part of the first pending job. Returns whether the job has completed.
    fn end_phase(&mut self, task: usize, now: u64, is_horizon: bool) -> bool {
        let Some(job) = self.pending[task].first_mut() else {
            return false;
        };
        let slept = job.away_until == Some(now) && !job.throttled;
        if slept && job.phases.len() > 1 {
            return false;
        }
        if slept || (job.away_until.is_none() && job.phases[0] == (true, 0)) {
            job.phases.remove(0);
            if job.phases.is_empty() {
                self.pending[task].remove(0);
                self.finishes[task].push(now);
                return true;
            }
            job.away_until = Some(now + job.phases[0].1);
        } else if !is_horizon && job.away_until.is_none() && job.phases[0].0 {
            self.want_to_run(task, now);
        }
        false
    }

    fn wake(&mut self, task: usize, now: u64) {
        let of = &self.set.tasks[task];
        let Some(job) = self.pending[task].first_mut() else {
            return;
        };
        if job.away_until != Some(now) {
            return;
        }
        job.away_until = None;
        job.ready_since = now;
        if job.throttled {
            job.throttled = false;
            let server = &mut self.servers[task];
            let start = server.start.unwrap() + of.period.as_ns();
            server.start = Some(start);
            server.left = of.cost.as_ns();
            server.deadline = start + of.deadline.as_ns();
            job.deadline = server.deadline;
        } else {
            job.phases.remove(0);
            self.want_to_run(task, now);
        }
    }

    /// Runs the most urgent ready jobs for one unit.
    fn run_unit(&mut self) {
        let priorities = self.set.priorities();
        let mut ready: Vec<_> = (0..self.set.tasks.len())
            .filter_map(|task| {
                let job = self.pending[task]
                    .first()
                    .filter(|job| job.away_until.is_none())?;
                let rank = match self.fixed_priority {
                    true => u64::from(priorities[task].number()),
                    false => job.deadline,
                };
                Some((rank, job.ready_since, task))
            })
            .collect();
        ready.sort_unstable();
        for &(_, _, task) in ready.iter().take(self.set.platform.cpus) {
            self.pending[task][0].phases[0].1 -= 1;
            if self.enforces(task) {
                self.servers[task].left -= 1;
            }
        }
    }
}

/// The arrival and the release of each job that arrives before the horizon: the release is the arrival and a uniform
/// whole number of nanoseconds up to the jitter, but not before the release of the job before it.
fn jobs(set: &TaskSet, task: usize, horizon: u64) -> Vec<(u64, u64)> {
    let of = &set.tasks[task];
    let arrivals: Vec<u64> = match &of.arrival {
        Arrival::Releases(instants) => instants.iter().map(|at| at.as_ns()).collect(),
        Arrival::Curve(curve, _) => earliest(curve.distances(), horizon),
        _ => (0..horizon).step_by(of.period.as_ns() as usize).collect(),
    };
    // The key of the stream is part of the rules: the same seed is to give the same run for ever.
    let mut stream = RandomStream::new(options(horizon).seed, 0x6a69_7474_6572, task as u64);
    let mut last = 0;
    let job = |arrival: u64| {
        let arrival = arrival + of.offset.as_ns();
        last = last.max(arrival + stream.below(of.jitter.as_ns() + 1));
        (arrival, last)
    };
    arrivals.into_iter().map(job).collect()
}

/// The arrivals before the horizon, each as early as its distances from all before it allow.
fn earliest(distances: &[Span], horizon: u64) -> Vec<u64> {
    let mut arrivals = vec![0];
    loop {
        let keeps = |at: u64| {
            let before = arrivals.iter().rev().zip(distances);
            before
                .into_iter()
                .all(|(before, distance)| at - before >= distance.as_ns())
        };
        let last = arrivals[arrivals.len() - 1];
        match (last..horizon).find(|&at| keeps(at)) {
            Some(next) => arrivals.push(next),
            None => return arrivals,
        }
    }
}

fn random_work(random: &mut RandomStream, cost: u64, period: u64) -> Work {
    let span = |random: &mut RandomStream, longest: u64| NS(1 + random.below(longest));
    match random.below(4) {
        0 => Work::Trace((0..3).map(|_| span(random, cost + 2)).collect()),
        1 => {
            let first = random.below(2) == 0;
            let kind = |turn: u64, span: Span| match turn.is_multiple_of(2) == first {
                true => Phase::Run(span),
                false => Phase::Sleep(span),
            };
            let turns = 1 + random.below(5) + u64::from(!first);
            Work::Phases(
                (0..turns)
                    .map(|turn| kind(turn, span(random, period / 2 + 1)))
                    .collect(),
            )
        }
        _ => Work::Cost,
    }
}

/// What tasks of random sets may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tasks {
    /// Periods, costs and deadlines.
    Plain,
    /// Also budgets, suspensions and listed releases.
    General,
    /// Also jitter.
    Jitter,
    /// Also jitter and arrival curves.
    Curves,
}

fn random_set(seed: u64, tasks_have: Tasks) -> TaskSet {
    let mut random = RandomStream::new(seed, 0, 0);
    let cpus = 1 + random.below(3) as usize;
    let count = 1 + random.below(6);
    let tasks = (0..count).map(|index| {
        let period = 2 + random.below(10);
        let mut task = task(cpus, &format!("T{index}"), 1 + random.below(period), period);
        task.offset = NS(random.below(2) * random.below(6));
        task.deadline = NS(1 + random.below(2 * period));
        if random.below(3) == 0 {
            task.priority = Priority::new(1 + random.below(3) as u32);
        }
        let jitter = [Tasks::Jitter, Tasks::Curves].contains(&tasks_have);
        if jitter && random.below(3) > 0 {
            task.jitter = NS(random.below(3 * period));
        }
        if tasks_have != Tasks::Plain && (tasks_have == Tasks::General || random.below(2) == 0) {
            task.work = random_work(&mut random, task.cost.as_ns(), period);
            task.on_overrun = match random.below(2) {
                0 => OnOverrun::Throttle,
                _ => OnOverrun::Continue,
            };
            if random.below(4) == 0 {
                let mut at = 0;
                let instants = (0..4).map(|_| {
                    at += period + random.below(3);
                    common::AT(at)
                });
                task.arrival = Arrival::Releases(instants.collect());
            }
        }
        if tasks_have == Tasks::Curves && random.below(3) > 0 {
            let mut distances = vec![period];
            for gaps in 1..1 + random.below(4) as usize {
                let split = |first: usize| distances[first] + distances[gaps - 1 - first];
                let least = (0..gaps).map(split).max().unwrap();
                distances.push(least + random.below(2) * random.below(12));
            }
            let curve = ArrivalCurve::new(distances.into_iter().map(NS).collect());
            task.arrival = Arrival::Curve(curve.unwrap(), Pace::Earliest);
        }
        task
    });
    TaskSet::new("random", cpus, tasks.collect())
}

fn compare(seeds: core::ops::RangeInclusive<u64>, tasks_have: Tasks) {
    for seed in seeds {
        let set = random_set(seed, tasks_have);
        let horizon = 40 + seed % 40;
        for (policy, fixed_priority) in [("g-edf", false), ("g-fp", true)] {
            let expected = Reference::new(&set, fixed_priority, horizon).run(horizon);
            let (records, _) = simulate(&set, policy, options(horizon));
            for (task, expected) in expected.iter().enumerate() {
                let found = finishes(&records, task);
                assert_eq!(
                    &found, expected,
                    "seed {seed}, {policy}, task {task} of {set:#?}"
                );
                let deadline = set.tasks[task].deadline.as_ns();
                let due = jobs(&set, task, horizon);
                let due = due.into_iter().filter(|&(_, release)| release < horizon);
                let due: Vec<_> = due
                    .map(|(arrival, release)| (release, arrival + deadline))
                    .collect();
                let found = releases(&records, task);
                assert_eq!(found, due, "seed {seed}, {policy}, task {task} of {set:#?}");
            }
        }
    }
}

/// The instants at which jobs of the task are released, and at which they are due.
fn releases(records: &[Record], task: usize) -> Vec<(u64, u64)> {
    let released = |record: &Record| match record.kind {
        RecordKind::Released { job, deadline } if job.task.index() == task => {
            Some((record.at.as_ns(), deadline.as_ns()))
        }
        _ => None,
    };
    records.iter().filter_map(released).collect()
}

#[test]
fn periodic_jobs_complete_as_in_the_rules() {
    compare(1..=1_500, Tasks::Plain);
}

#[test]
fn jobs_with_budgets_and_suspensions_complete_as_in_the_rules() {
    compare(1..=3_000, Tasks::General);
}

#[test]
fn jobs_with_jitter_complete_as_in_the_rules() {
    compare(1..=3_000, Tasks::Jitter);
}

#[test]
fn jobs_with_arrival_curves_complete_as_in_the_rules() {
    compare(1..=3_000, Tasks::Curves);
}
