//! What really happens: simulated schedules, and how long the jobs in them take.

use std::collections::VecDeque;

use shiftwork_model::{Arrival, Instant, RandomStream, RecordKind, Recorder, Span, TaskSet, Work};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};

use super::system::System;

/// When the jobs of each task are released and what each of them does.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// By task, ascending, at least a period apart.
    pub releases: Vec<Vec<u64>>,
    /// By task, one for each release, at most the cost.
    pub works: Vec<Vec<u64>>,
}

impl Pattern {
    /// All tasks release from these offsets on, as often as they may, and run for their cost.
    pub fn periodic(system: &System, offsets: &[u64], until: u64) -> Self {
        let periods = system.members.iter().map(|one| one.task.period.as_ns());
        let releases = periods.zip(offsets).map(|(period, &offset)| {
            let from = std::iter::successors(Some(offset), |at| Some(at + period));
            from.take_while(|&at| at < until).collect()
        });
        Self::at(system, releases.collect())
    }

    /// All jobs run for their cost.
    pub fn at(system: &System, releases: Vec<Vec<u64>>) -> Self {
        let works = releases.iter().zip(&system.members);
        let works = works.map(|(jobs, member)| vec![member.task.cost.as_ns(); jobs.len()]);
        Self {
            works: works.collect(),
            releases,
        }
    }

    /// Random offsets, and gaps of a period and up to `longest_gap` more.
    pub fn sporadic(
        system: &System,
        longest_gap: u64,
        until: u64,
        stream: &mut RandomStream,
    ) -> Self {
        let releases = system.members.iter().map(|member| {
            let period = member.task.period.as_ns();
            let mut at = stream.below(period);
            let mut jobs = Vec::new();
            while at < until {
                jobs.push(at);
                let more = match stream.below(2) {
                    0 => 0,
                    _ => stream.below(longest_gap + 1),
                };
                at += period + more;
            }
            jobs
        });
        Self::at(system, releases.collect())
    }

    /// The victim releases a job at `at`. It and the others release as often as they may, the others
    /// with one job where `carry` says.
    pub fn around(system: &System, victim: usize, carry: Carry, at: u64, until: u64) -> Self {
        let due = at + system.members[victim].task.deadline.as_ns();
        let offsets: Vec<u64> = system
            .members
            .iter()
            .enumerate()
            .map(|(place, member)| {
                let period = member.task.period.as_ns();
                let one = match carry {
                    _ if place == victim => at,
                    Carry::JustBefore => at.saturating_sub(1),
                    Carry::AsLateAsPossible => {
                        let late = member.task.deadline - member.task.cost;
                        at.saturating_sub(late.as_ns())
                    }
                    Carry::DueTogether => due.saturating_sub(member.task.deadline.as_ns()),
                };
                one % period
            })
            .collect();
        Self::periodic(system, &offsets, until)
    }

    /// Some jobs are done early.
    pub fn finish_early(&mut self, stream: &mut RandomStream) {
        for work in self.works.iter_mut().flatten() {
            if stream.below(3) == 0 {
                *work = 1 + stream.below(*work);
            }
        }
    }

    /// The task set that releases and does exactly this.
    pub fn applied(&self, system: &System) -> TaskSet {
        let mut set = system.task_set();
        for (index, task) in set.tasks.iter_mut().enumerate() {
            let instants = self.releases[index].iter().copied();
            task.arrival = Arrival::Releases(instants.map(Instant::from_ns).collect());
            if !self.works[index].is_empty() {
                let works = self.works[index].iter().copied();
                task.work = Work::Trace(works.map(Span::from_ns).collect());
            }
        }
        set
    }
}

/// What the jobs of others that are released before the victim's have in common.
#[derive(Clone, Copy, Debug)]
pub enum Carry {
    /// One is released a nanosecond before.
    JustBefore,
    /// One starts, if delayed as much as its deadline allows, as the victim is released.
    AsLateAsPossible,
    /// One is due when the victim is.
    DueTogether,
}

/// Listens to a run and keeps the longest response time of each task.
struct Longest {
    pending: Vec<VecDeque<u64>>,
    longest: Vec<u64>,
}

impl Recorder for Longest {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        match *kind {
            RecordKind::Released { job, .. } => {
                self.pending[job.task.index()].push_back(at.as_ns());
            }
            RecordKind::Completed { job } => {
                let place = job.task.index();
                if let Some(release) = self.pending[place].pop_front() {
                    self.longest[place] = self.longest[place].max(at.as_ns() - release);
                }
            }
            _ => {}
        }
    }
}

/// The longest response time of each task until the horizon. A job that is not finished has taken at
/// least as long as since its release.
///
/// `None` if the policy does not take the set.
pub fn responses(set: &TaskSet, policy: &str, horizon: u64) -> Option<Vec<u64>> {
    let entry = registry::find(policy).expect("the campaign names policies that there are");
    let built = entry.build(set).ok()?;
    let mut longest = Longest {
        pending: vec![VecDeque::new(); set.tasks.len()],
        longest: vec![0; set.tasks.len()],
    };
    let options = Options {
        seed: 1,
        horizon: Instant::from_ns(horizon),
        overheads: None,
        reserve_server: false,
    };
    Simulation::new(set, built, &entry.traits, options).run(&mut longest);
    for (pending, longest) in longest.pending.iter().zip(&mut longest.longest) {
        let waited = pending.front().map_or(0, |release| horizon - release);
        *longest = (*longest).max(waited);
    }
    Some(longest.longest)
}
