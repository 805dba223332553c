//! Tries to make jobs later than the bounds by waiting levels, on sets that are just accepted, with the simulator.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;

use shiftwork_analysis::affinity::{Bound, waiting_levels_edf, waiting_levels_fp};
use shiftwork_analysis::{Outcome, Placed, Ranked, Sporadic, Steps};
use shiftwork_model::{
    Affinity, Arrival, CpuSet, Instant, JobId, Priority, RandomStream, RecordKind, Recorder, Share,
    Span, Task, TaskSet, Work,
};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};

/// The first is the most urgent under fixed priorities.
#[derive(Clone, Debug)]
struct Unit {
    cost: u64,
    period: u64,
    deadline: u64,
    mask: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Edf,
    Fp,
}

impl Unit {
    fn sporadic(&self) -> Sporadic {
        let [cost, period, deadline] = [self.cost, self.period, self.deadline].map(Span::from_ns);
        Sporadic {
            cost,
            period,
            deadline,
        }
    }
}

fn priority(place: usize) -> Priority {
    Priority::new(place as u32 + 1).unwrap()
}

fn bounds(units: &[Unit], order: Order) -> Option<Vec<u64>> {
    let whole = Share::from_billionths(Share::WHOLE).unwrap();
    let steps = &mut Steps::ordinary();
    let cpus = |unit: &Unit| CpuSet::from_bits(unit.mask);
    let outcome = match order {
        Order::Edf => {
            let placed = units.iter().map(|unit| Placed {
                task: unit.sporadic(),
                cpus: cpus(unit),
            });
            waiting_levels_edf(&placed.collect::<Vec<_>>(), whole, steps)
        }
        Order::Fp => {
            let bound = units.iter().enumerate().map(|(place, unit)| Bound {
                ranked: Ranked {
                    task: unit.sporadic(),
                    priority: priority(place),
                },
                cpus: cpus(unit),
            });
            waiting_levels_fp(&bound.collect::<Vec<_>>(), whole, steps)
        }
    };
    match outcome {
        Outcome::Pass(bounds) => Some(bounds.iter().map(|bound| bound.as_ns()).collect()),
        Outcome::Fail(_) => None,
        Outcome::StepLimit => panic!("out of steps: {units:?}"),
    }
}

/// Affinities as bits: nested, or any three.
fn masks(stream: &mut RandomStream, cpus: u64, is_nested: bool) -> Vec<u64> {
    let all = (1 << cpus) - 1;
    if !is_nested {
        return (0..3).map(|_| 1 + stream.below(all)).collect();
    }
    let mut family: Vec<u64> = vec![all];
    let mut at = 0;
    while at < family.len() {
        let mask = family[at];
        at += 1;
        let part = mask & stream.bits();
        let children = [part, mask & !part];
        family.extend(
            children
                .into_iter()
                .filter(|&child| child != 0 && child != mask),
        );
    }
    family
}

/// A set that is accepted, with costs that grow until none can.
fn just_accepted(
    stream: &mut RandomStream,
    order: Order,
    is_nested: bool,
) -> Option<(Vec<Unit>, Vec<u64>)> {
    let cpus = 2 + stream.below(3);
    let family = masks(stream, cpus, is_nested);
    let mut units: Vec<Unit> = (0..cpus + 1 + stream.below(2 * cpus))
        .map(|_| {
            let period = 4 + stream.below(17);
            let cost = 1 + stream.below(period / 4);
            let deadline = match stream.below(2) {
                0 => period,
                _ => cost + stream.below(period - cost + 1),
            };
            let mask = family[stream.below(family.len() as u64) as usize];
            Unit {
                cost,
                period,
                deadline,
                mask,
            }
        })
        .collect();
    let mut found = bounds(&units, order)?;
    for _ in 0..4 * units.len() {
        let place = stream.below(units.len() as u64) as usize;
        let mut more = units.clone();
        more[place].cost += 1;
        if more[place].cost <= more[place].deadline
            && let Some(bounds) = bounds(&more, order)
        {
            (units, found) = (more, bounds);
        }
    }
    Some((units, found))
}

/// Per task and job: how much later than possible it is released, and its cost.
#[derive(Clone)]
struct Pattern(Vec<Vec<(u64, u64)>>);

const JOBS: usize = 12;

impl Pattern {
    /// Together, or each with an offset.
    fn new(units: &[Unit], stream: &mut RandomStream) -> Self {
        let together = stream.below(2) == 0;
        let of = |unit: &Unit| {
            let mut jobs = vec![(0, unit.cost); JOBS];
            if !together {
                jobs[0].0 = stream.below(2 * unit.period);
            }
            jobs
        };
        Self(units.iter().map(of).collect())
    }

    fn change(&mut self, units: &[Unit], stream: &mut RandomStream) {
        for _ in 0..=stream.below(3) {
            let task = stream.below(units.len() as u64) as usize;
            let job = stream.below(JOBS as u64) as usize;
            let unit = &units[task];
            self.0[task][job] = match stream.below(4) {
                0 => (0, 1 + stream.below(unit.cost)),
                1 => (0, unit.cost),
                _ => (stream.below(unit.period + 1), unit.cost),
            };
        }
    }

    fn apply(&self, units: &[Unit], set: &mut TaskSet) {
        for ((task, unit), jobs) in set.tasks.iter_mut().zip(units).zip(&self.0) {
            let mut at = 0;
            let mut releases = Vec::new();
            for (delay, _) in jobs {
                releases.push(Instant::from_ns(at + delay));
                at += delay + unit.period;
            }
            task.arrival = Arrival::Releases(releases);
            task.work = Work::Trace(jobs.iter().map(|job| Span::from_ns(job.1)).collect());
        }
    }
}

/// The longest response of each task.
struct Responses {
    released: BTreeMap<JobId, Instant>,
    longest: Vec<u64>,
}

impl Recorder for Responses {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        match kind {
            RecordKind::Released { job, .. } => {
                self.released.insert(*job, at);
            }
            RecordKind::Completed { job } => {
                let response = at.late_since(self.released[job]).as_ns();
                let longest = &mut self.longest[job.task.index()];
                *longest = response.max(*longest);
            }
            _ => {}
        }
    }
}

fn simulate(set: &TaskSet, policy: &str) -> Vec<u64> {
    let entry = registry::find(policy).unwrap();
    let options = Options {
        seed: 1,
        horizon: Instant::from_ns(100_000),
        overheads: None,
        reserve_server: false,
    };
    let mut responses = Responses {
        released: BTreeMap::new(),
        longest: vec![0; set.tasks.len()],
    };
    Simulation::new(set, entry.build(set).unwrap(), &entry.traits, options).run(&mut responses);
    responses.longest
}

fn task_set(units: &[Unit]) -> TaskSet {
    let cpus = units.iter().fold(0, |all, unit| all | unit.mask);
    let task = |(place, unit): (usize, &Unit)| {
        let affinity = Affinity::new(CpuSet::from_bits(unit.mask)).unwrap();
        let Sporadic {
            cost,
            period,
            deadline,
        } = unit.sporadic();
        let mut task = Task::periodic("T", cost, period, affinity);
        task.deadline = deadline;
        task.priority = Some(priority(place));
        task
    };
    let tasks = units.iter().enumerate().map(task).collect();
    TaskSet::new("random", 64 - cpus.leading_zeros() as usize, tasks)
}

/// The sum over tasks of how close each comes to its bound, in percent: the task that comes closest counts most.
fn closeness(longest: &[u64], bounds: &[u64]) -> u64 {
    let parts = longest
        .iter()
        .zip(bounds)
        .map(|(longest, bound)| longest * 100 / bound);
    parts.map(|part| part * part).sum()
}

/// Climbs from some patterns, and counts the tasks that others can delay and that reach their bounds.
fn climb(seed: u64, order: Order) -> Option<(usize, usize)> {
    let mut stream = RandomStream::new(seed, 82, order as u64);
    let is_nested = stream.below(3) > 0;
    let (units, bounds) = just_accepted(&mut stream, order, is_nested)?;
    let policy = match (order, is_nested && stream.below(2) == 0) {
        (Order::Edf, true) => "hpa-edf",
        (Order::Edf, false) => "strong-edf",
        (Order::Fp, true) => "hpa-fp",
        (Order::Fp, false) => "strong-fp",
    };
    let mut set = task_set(&units);
    let mut longest = vec![0; units.len()];
    for _ in 0..2 {
        let mut pattern = Pattern::new(&units, &mut stream);
        let mut best = 0;
        for _ in 0..times_if_long(25, 4) {
            let mut changed = pattern.clone();
            changed.change(&units, &mut stream);
            changed.apply(&units, &mut set);
            let responses = simulate(&set, policy);
            for (place, (&response, &bound)) in responses.iter().zip(&bounds).enumerate() {
                assert!(
                    response <= bound,
                    "seed {seed}, {policy}: task {place} takes {response}, at most {bound}: {units:?}"
                );
                longest[place] = response.max(longest[place]);
            }
            let value = closeness(&responses, &bounds);
            if value >= best {
                (best, pattern) = (value, changed);
            }
        }
    }
    let delayed = (0..units.len()).filter(|&place| bounds[place] > units[place].cost);
    let reached = delayed
        .clone()
        .filter(|&place| longest[place] == bounds[place]);
    Some((delayed.count(), reached.count()))
}

fn times_if_long(few: u64, factor: u64) -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => few * factor,
        None => few,
    }
}

fn no_response_exceeds(order: Order) {
    let (mut sets, mut delayed, mut reached) = (0, 0, 0);
    for seed in 0..times_if_long(250, 24) {
        if let Some(counts) = climb(seed, order) {
            sets += 1;
            delayed += counts.0;
            reached += counts.1;
        }
    }
    println!("{order:?}: {sets} sets, {delayed} tasks that can wait, {reached} at their bounds");
    assert!(sets > 30, "{sets} sets were accepted");
    // Bounds that are a unit too low would be exceeded.
    assert!(reached > sets / 4, "{reached} tasks reach their bounds");
}

#[test]
fn no_response_exceeds_its_bound_under_edf() {
    no_response_exceeds(Order::Edf);
}

#[test]
fn no_response_exceeds_its_bound_under_fixed_priorities() {
    no_response_exceeds(Order::Fp);
}
