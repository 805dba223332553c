//! Lists of releases and costs, improved step by step towards late jobs, with the simulator.

use std::collections::BTreeMap;

use shiftwork_model::{
    Arrival, Instant, JobId, RandomStream, RecordKind, Recorder, Span, TaskSet, Work,
};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};

use crate::game::Seen;
use crate::system::{Deadlines, SHAPES, System, UNIT};
use crate::times_if_long;

/// The longest response of each task.
pub struct Responses {
    released: BTreeMap<JobId, Instant>,
    pub longest: Vec<u64>,
}

impl Responses {
    /// None yet, of so many tasks.
    pub fn of(tasks: usize) -> Self {
        Self {
            released: BTreeMap::new(),
            longest: vec![0; tasks],
        }
    }
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

/// Per task and job: how much later than possible it is released, and its cost.
#[derive(Clone)]
struct Pattern(Vec<Vec<(u64, u64)>>);

const JOBS: u64 = 30;

impl Pattern {
    fn random(system: &System, stream: &mut RandomStream) -> Self {
        let of = |unit: &crate::system::Unit, stream: &mut RandomStream| {
            let first = stream.below(2 * unit.period);
            (0..JOBS)
                .map(|job| (if job == 0 { first } else { 0 }, unit.cost))
                .collect()
        };
        Self(system.tasks.iter().map(|unit| of(unit, stream)).collect())
    }

    fn change(&mut self, system: &System, stream: &mut RandomStream) {
        for _ in 0..=stream.below(3) {
            let task = stream.below(self.0.len() as u64) as usize;
            let job = stream.below(JOBS) as usize;
            let unit = &system.tasks[task];
            match stream.below(4) {
                0 => self.0[task][job].1 = 1 + stream.below(unit.cost),
                1 => self.0[task][job] = (0, unit.cost),
                _ => self.0[task][job].0 = stream.below(unit.period + 1),
            }
        }
    }

    fn apply(&self, system: &System, set: &mut TaskSet) {
        for ((task, unit), jobs) in set.tasks.iter_mut().zip(&system.tasks).zip(&self.0) {
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

fn simulate(set: &TaskSet, policy: &str) -> Vec<u64> {
    let entry = registry::find(policy).unwrap();
    let options = Options {
        seed: 1,
        horizon: Instant::from_ns(100_000),
        overheads: None,
        reserve_server: false,
    };
    let mut responses = Responses::of(set.tasks.len());
    Simulation::new(set, entry.build(set).unwrap(), &entry.traits, options).run(&mut responses);
    responses.longest
}

/// How close the task that comes closest is to its bound.
fn closeness(responses: &[u64], bounds: &[u64]) -> u64 {
    let pairs = responses.iter().zip(bounds);
    pairs
        .map(|(&response, &bound)| response * UNIT * 100_000 / bound)
        .max()
        .unwrap_or(0)
}

#[test]
fn climbing_does_not_get_beyond_a_bound() {
    for (cell, shape) in SHAPES.into_iter().enumerate() {
        let mut seen = Seen::default();
        for seed in 1..=times_if_long(3, 20) {
            let mut stream = RandomStream::new(seed, 200 + cell as u64, 0);
            let deadlines = [Deadlines::Implicit, Deadlines::Any][seed as usize % 2];
            let system = System::random(shape, deadlines, 4, &mut stream);
            let policy = ["hpa-edf", "strong-edf"][stream.below(2) as usize];
            let bounds = system.bounds();
            let mut set = system.task_set();
            let mut worst = vec![0; bounds.len()];
            for _start in 0..2 {
                let mut pattern = Pattern::random(&system, &mut stream);
                let mut best = 0;
                for _ in 0..times_if_long(20, 30) {
                    let mut changed = pattern.clone();
                    changed.change(&system, &mut stream);
                    changed.apply(&system, &mut set);
                    let responses = simulate(&set, policy);
                    let value = closeness(&responses, &bounds);
                    if value >= best {
                        (best, pattern) = (value, changed);
                    }
                    for (worst, response) in worst.iter_mut().zip(responses) {
                        *worst = response.max(*worst);
                    }
                }
            }
            let case = format!("{shape}, {deadlines:?}, {policy}, seed {seed}");
            seen.add(&system, &bounds, &worst, &case);
        }
        seen.print(&format!("{shape} climb"));
    }
}

/// The simulator and a game are two ways to run the same policy: they agree on every response.
#[test]
fn the_simulator_agrees_with_the_game() {
    for seed in 1..=times_if_long(20, 20) {
        let mut stream = RandomStream::new(seed, 300, 0);
        let shape = SHAPES[stream.below(6) as usize];
        let system = System::random(shape, Deadlines::Any, 4, &mut stream);
        let pattern = Pattern::random(&system, &mut stream);
        let mut set = system.task_set();
        pattern.apply(&system, &mut set);
        let mut game = crate::game::Game::new(&system, "hpa-edf");
        let released = |set: &TaskSet, task: usize, at: u64| match &set.tasks[task].arrival {
            Arrival::Releases(instants) => instants.iter().any(|instant| instant.as_ns() == at),
            _ => false,
        };
        for now in 0..3_000 {
            for task in 0..set.tasks.len() {
                if released(&set, task, now) {
                    game.release(task, system.tasks[task].cost);
                }
            }
            game.step();
        }
        assert_eq!(
            simulate(&set, "hpa-edf"),
            game.responses,
            "seed {seed}: {system:?}"
        );
    }
}
