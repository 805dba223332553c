//! The simulator against the rules executed directly, one time unit after the other.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use common::{NS, finishes, options, simulate, task};
use shiftwork_model::{Arrival, OnOverrun, Phase, Priority, RandomStream, Span, TaskSet, Work};

/// An incomplete job in the terms of the rules.
#[derive(Clone)]
struct Pending {
    release: u64,
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
    released: Vec<u64>,
    /// In order of release; only the first can run.
    pending: Vec<Vec<Pending>>,
    servers: Vec<Server>,
    finishes: Vec<Vec<u64>>,
}

impl<'a> Reference<'a> {
    fn new(set: &'a TaskSet, fixed_priority: bool) -> Self {
        let count = set.tasks.len();
        Self {
            set,
            fixed_priority,
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

    fn is_release(&self, task: usize, now: u64) -> bool {
        let of = &self.set.tasks[task];
        let Some(since) = now.checked_sub(of.offset.as_ns()) else {
            return false;
        };
        match &of.arrival {
            Arrival::Releases(instants) => instants.iter().any(|at| at.as_ns() == since),
            _ => since % of.period.as_ns() == 0,
        }
    }

    /// Whether the job released now is the only one.
    fn release(&mut self, task: usize, now: u64) -> bool {
        if !self.is_release(task, now) {
            return false;
        }
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
                })
                .collect(),
            other => panic!("unexpected work: {other:?}"),
        };
        self.pending[task].push(Pending {
            release: now,
            deadline: now + of.deadline.as_ns(),
            ready_since: now,
            phases,
            away_until: None,
            throttled: false,
        });
        self.pending[task].len() == 1
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
            .is_none_or(|start| job.release >= start + of.period.as_ns());
        if enforces && fresh {
            server.start = Some(job.release);
            server.left = of.cost.as_ns();
            server.deadline = job.release + of.deadline.as_ns();
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

fn random_set(seed: u64, plain: bool) -> TaskSet {
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
        if !plain {
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
        task
    });
    TaskSet::new("random", cpus, tasks.collect())
}

fn compare(seeds: core::ops::RangeInclusive<u64>, plain: bool) {
    for seed in seeds {
        let set = random_set(seed, plain);
        let horizon = 40 + seed % 40;
        for (policy, fixed_priority) in [("g-edf", false), ("g-fp", true)] {
            let expected = Reference::new(&set, fixed_priority).run(horizon);
            let (records, _) = simulate(&set, policy, options(horizon));
            for (task, expected) in expected.iter().enumerate() {
                let found = finishes(&records, task);
                assert_eq!(
                    &found, expected,
                    "seed {seed}, {policy}, task {task} of {set:#?}"
                );
            }
        }
    }
}

#[test]
fn periodic_jobs_complete_as_in_the_rules() {
    compare(1..=1_500, true);
}

#[test]
fn jobs_with_budgets_and_suspensions_complete_as_in_the_rules() {
    compare(1..=3_000, false);
}
