//! A simulated run, as schedules are drawn in papers.

use std::collections::BTreeMap;

use shiftwork_model::{
    CpuId, Instant, JobId, Order, PolicyTraits, Record, RecordKind, Recorder, Span, TaskId, TaskSet,
};
use shiftwork_policy::Policy;
use shiftwork_policy::registry::{self};
use shiftwork_sim::{Options, Simulation};
use shiftwork_trace::{Counters, Inversions, RunSummary};

use crate::measure::Measure;

/// A job that ran on a CPU without a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The job.
    pub job: JobId,
    /// Where.
    pub cpu: CpuId,
    /// From when.
    pub start: Instant,
    /// Until when.
    pub end: Instant,
}

/// What became of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// When it was released.
    pub release: Instant,
    /// Its own deadline, whatever its server's is.
    pub deadline: Instant,
    /// When it finished; `None`: not before the horizon.
    pub finish: Option<Instant>,
}

impl Fate {
    /// By how much it was late; of a job that did not finish nothing is known.
    pub fn tardiness(&self) -> Option<Span> {
        self.finish.map(|finish| finish.late_since(self.deadline))
    }
}

/// The jobs that ran on each CPU, and the outcome of every job.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The records it was made of.
    pub records: Vec<Record>,
    /// In the order in which they ended.
    pub stretches: Vec<Stretch>,
    /// By job.
    pub fates: BTreeMap<JobId, Fate>,
    /// The end of the run.
    pub horizon: Instant,
    cpus: usize,
}

impl Schedule {
    /// Simulates the set under the policy of this name.
    ///
    /// # Errors
    /// In words, if there is no such policy, or it does not take the set.
    pub fn simulate(set: &TaskSet, policy: &str, horizon: Instant) -> Result<Self, String> {
        let entry = registry::find(policy).map_err(|error| error.to_string())?;
        let built = entry.build(set).map_err(|error| error.to_string())?;
        Ok(Self::under(set, built, &entry.traits, horizon))
    }

    /// Simulates the set under a policy that was built for it and has these properties.
    pub fn under(
        set: &TaskSet,
        policy: Box<dyn Policy>,
        traits: &PolicyTraits,
        horizon: Instant,
    ) -> Self {
        let mut records = Vec::new();
        let options = Options {
            seed: 1,
            horizon,
            overheads: None,
            reserve_server: false,
        };
        Simulation::new(set, policy, traits, options).run(&mut records);
        Self::of(records, set.platform.cpus, horizon)
    }

    fn of(records: Vec<Record>, cpus: usize, horizon: Instant) -> Self {
        let mut stretches = Vec::new();
        let mut fates = BTreeMap::new();
        let mut on: Vec<Option<(JobId, Instant)>> = vec![None; cpus];
        for Record { at, kind } in &records {
            match *kind {
                RecordKind::Released { job, deadline } => {
                    let fate = Fate {
                        release: *at,
                        deadline,
                        finish: None,
                    };
                    fates.insert(job, fate);
                }
                RecordKind::Completed { job } => {
                    if let Some(fate) = fates.get_mut(&job) {
                        fate.finish = Some(*at);
                    }
                }
                RecordKind::Switched { cpu, to, .. } => {
                    let before = on[cpu.index()].take();
                    stretches.extend(before.map(|(job, start)| Stretch {
                        job,
                        cpu,
                        start,
                        end: *at,
                    }));
                    on[cpu.index()] = to.map(|job| (job, *at));
                }
                _ => {}
            }
        }
        for (index, running) in on.into_iter().enumerate() {
            stretches.extend(running.map(|(job, start)| Stretch {
                job,
                cpu: CpuId::from_index(index),
                start,
                end: horizon,
            }));
        }
        stretches.retain(|stretch| stretch.start < stretch.end);
        Self {
            records,
            stretches,
            fates,
            horizon,
            cpus,
        }
    }

    /// The fates of the jobs of one task, in their order.
    pub fn of_task(&self, task: TaskId) -> impl Iterator<Item = &Fate> {
        let is_its = move |(job, _): &(&JobId, &Fate)| job.task == task;
        self.fates.iter().filter(is_its).map(|(_, fate)| fate)
    }

    /// The tardiness of the finished jobs of one task, in their order.
    pub fn tardiness(&self, task: TaskId) -> Vec<Span> {
        self.of_task(task).filter_map(Fate::tardiness).collect()
    }

    /// The largest tardiness of the jobs of a task that were released before then; nothing if none of
    /// them finished.
    pub fn worst_of_releases_before(&self, task: TaskId, before: Instant) -> Span {
        let fates = self.of_task(task);
        let early = fates.filter(|fate| fate.release < before);
        early
            .filter_map(Fate::tardiness)
            .max()
            .unwrap_or(Span::ZERO)
    }

    /// For how long the task ran before `until`.
    pub fn executed(&self, task: TaskId, until: Instant) -> Span {
        let of_task = self.stretches.iter().filter(|of| of.job.task == task);
        of_task.fold(Span::ZERO, |sum, of| {
            sum + of.end.min(until).late_since(of.start)
        })
    }

    /// The largest tardiness of all finished jobs; nothing if none finished.
    pub fn worst(&self) -> Span {
        let late = self.fates.values().filter_map(Fate::tardiness);
        late.max().unwrap_or(Span::ZERO)
    }

    /// What was refused, and why, in the order in which it was asked for.
    pub fn refusals(&self) -> Vec<(Instant, &str)> {
        let of = |record| match record {
            &Record {
                at,
                kind: RecordKind::Refused { ref reason, .. },
            } => Some((at, &**reason)),
            _ => None,
        };
        self.records.iter().filter_map(of).collect()
    }

    /// Counts of the run, with the inversions of deadlines in it.
    pub fn summary(&self, set: &TaskSet) -> RunSummary {
        let counters = Counters::new(set, self.cpus);
        let mut recorder = (counters, Inversions::new(set, Order::Edf));
        self.replay(&mut recorder);
        let (counters, inversions) = recorder;
        let found = inversions.finish(self.horizon);
        counters.finish(self.horizon).with_inversions(&found)
    }

    /// What evaluations count of the run.
    pub fn measure(&self, set: &TaskSet) -> Measure {
        let mut measure = Measure::new(set);
        self.replay(&mut measure);
        measure
    }

    fn replay(&self, recorder: &mut impl Recorder) {
        for Record { at, kind } in &self.records {
            recorder.record(*at, kind);
        }
    }

    /// Each CPU as a line, a character for each `unit`: the task's number from 1, `-` for idle. Of
    /// several in one unit, the one that runs at its beginning.
    pub fn slots(&self, unit: Span, until: Instant) -> Vec<String> {
        let count = until.as_ns() / unit.as_ns().max(1);
        let at = |slot: u64| Instant::from_ns(slot * unit.as_ns());
        let character = |cpu: usize, slot: u64| {
            let there = self
                .stretches
                .iter()
                .find(|of| of.cpu.index() == cpu && of.start <= at(slot) && at(slot) < of.end);
            there.map_or('-', |of| {
                char::from_digit(of.job.task.index() as u32 + 1, 36).unwrap_or('?')
            })
        };
        (0..self.cpus)
            .map(|cpu| (0..count).map(|slot| character(cpu, slot)).collect())
            .collect()
    }
}
