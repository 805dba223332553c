//! Runs, and what is wrong with them.

use std::collections::VecDeque;

use shiftwork_model::{Instant, Order, RecordKind, Recorder, TaskSet};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};
use shiftwork_trace::{Inversion, InversionKind, Inversions};

/// Simulates `set` to `horizon`.
pub fn simulate(set: &TaskSet, policy: &str, horizon: u64, recorder: &mut impl Recorder) {
    let entry = registry::find(policy).unwrap();
    let options = Options {
        seed: 1,
        horizon: Instant::from_ns(horizon),
        overheads: None,
        reserve_server: false,
    };
    Simulation::new(set, entry.build(set).unwrap(), &entry.traits, options).run(recorder);
}

/// How long the jobs of a run took.
#[derive(Debug)]
struct Responses {
    pending: Vec<VecDeque<Instant>>,
    longest: Vec<u64>,
}

impl Recorder for Responses {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        match *kind {
            RecordKind::Released { job, .. } => self.pending[job.task.index()].push_back(at),
            RecordKind::Completed { job } => {
                let place = job.task.index();
                let release = self.pending[place].pop_front().unwrap();
                let took = at.late_since(release).as_ns();
                self.longest[place] = self.longest[place].max(took);
            }
            _ => {}
        }
    }
}

impl Responses {
    fn new(tasks: usize) -> Self {
        Self {
            pending: vec![VecDeque::new(); tasks],
            longest: vec![0; tasks],
        }
    }

    /// The run is over.
    fn finish(&mut self, horizon: u64) {
        for (pending, longest) in self.pending.iter().zip(&mut self.longest) {
            let oldest = pending
                .front()
                .copied()
                .unwrap_or(Instant::from_ns(horizon));
            let waited = Instant::from_ns(horizon).late_since(oldest);
            *longest = (*longest).max(waited.as_ns());
        }
    }
}

/// What came of a run.
#[derive(Debug)]
pub struct Run {
    /// By task, the longest response time; a job that is not finished has taken at least the time since
    /// its release.
    pub longest: Vec<u64>,
    pub inversions: Vec<Inversion>,
}

/// Simulates `set` to `horizon`.
pub fn run(set: &TaskSet, policy: &str, horizon: u64) -> Run {
    let mut found = Vec::new();
    let inversions = Inversions::with_callback(set, Order::Edf, |one| found.push(*one));
    let mut recorders = (Responses::new(set.tasks.len()), inversions);
    simulate(set, policy, horizon, &mut recorders);
    let (mut responses, inversions) = recorders;
    responses.finish(horizon);
    inversions.finish(Instant::from_ns(horizon));
    Run {
        longest: responses.longest,
        inversions: found,
    }
}

/// Whether the inversion is one that is to be expected: until the end of a migrating job at most.
pub fn is_short(set: &TaskSet, inversion: &Inversion) -> bool {
    let Some(job) = inversion.in_the_way else {
        return false;
    };
    let task = &set.tasks[job.task.index()];
    inversion.kind == InversionKind::AffinityRelated
        && task.affinity.cpus().len() > 1
        && inversion.length() <= task.cost
}

/// Work of some tasks that was released and is not done at the end of a run.
#[derive(Debug)]
pub struct Undone {
    costs: Vec<Option<u64>>,
    running: Vec<Option<(usize, Instant)>>,
    released: u64,
    done: u64,
}

impl Undone {
    /// Of the tasks that are not bound to a CPU.
    pub fn of_migrating(set: &TaskSet) -> Self {
        let cost = |task: &shiftwork_model::Task| {
            (task.affinity.cpus().len() > 1).then_some(task.cost.as_ns())
        };
        Self {
            costs: set.tasks.iter().map(cost).collect(),
            running: vec![None; set.platform.cpus],
            released: 0,
            done: 0,
        }
    }

    pub fn finish(mut self, horizon: u64) -> u64 {
        for cpu in 0..self.running.len() {
            self.stop(cpu, Instant::from_ns(horizon));
        }
        self.released - self.done
    }

    fn stop(&mut self, cpu: usize, at: Instant) {
        if let Some((_, since)) = self.running[cpu].take() {
            self.done += at.late_since(since).as_ns();
        }
    }
}

impl Recorder for Undone {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        match *kind {
            RecordKind::Released { job, .. } => {
                self.released += self.costs[job.task.index()].unwrap_or(0);
            }
            RecordKind::Switched { cpu, to, .. } => {
                self.stop(cpu.index(), at);
                let place = to.map(|job| job.task.index());
                let counted = place.filter(|&place| self.costs[place].is_some());
                self.running[cpu.index()] = counted.map(|place| (place, at));
            }
            _ => {}
        }
    }
}
