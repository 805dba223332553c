//! Reaction times of a machine: from an event to the start of the job that runs because of it.

use serde_json::{Value, json};
use shiftwork_model::{Instant, JobId, Record, RecordKind, Recorder, Span, TaskSet};

use crate::statistics::Distribution;

/// Statistics of reactions. A percentile is the shortest span that at least that share of the samples does not
/// exceed, to three digits; the rest is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReactionStatistics {
    /// Number of measured reactions.
    pub samples: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The 99.9th percentile.
    pub p99_9_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl ReactionStatistics {
    /// The value of the key `reaction_ns` of `run --json`.
    pub fn to_json(&self) -> Value {
        json!({
            "min": self.min_ns,
            "p50": self.p50_ns,
            "p99": self.p99_ns,
            "p99_9": self.p99_9_ns,
            "max": self.max_ns,
            "samples": self.samples,
        })
    }
}

/// Collects reactions in constant memory: samples that a machine measured itself
/// ([`Reactions::add`]), or those computed from its records ([`Reactions::of`]).
#[derive(Clone, Debug, Default)]
pub struct Reactions {
    samples: u64,
    distribution: Distribution,
}

impl Reactions {
    /// Adds one reaction.
    pub fn add(&mut self, reaction: Span) {
        self.samples += 1;
        self.distribution.add(reaction);
    }

    /// The reactions in the records of a run of this task set: each time that a CPU starts a job, the time since
    /// the event that caused it.
    ///
    /// For a job that runs for the first time since it became ready, that event is its becoming ready, or the
    /// last later event that freed a CPU; for a job that ran before (it resumes, or is shifted), the last event
    /// of any kind. An unrelated event in between makes the reaction appear shorter, never longer.
    pub fn of(set: &TaskSet, records: &[Record]) -> Self {
        let mut observer = Observer {
            reactions: Self::default(),
            tasks: vec![None; set.tasks.len()],
            freed: Instant::ZERO,
            any: Instant::ZERO,
        };
        for record in records {
            observer.record(record.at, &record.kind);
        }
        observer.reactions
    }

    /// The statistics so far; `None` without samples.
    pub fn statistics(&self) -> Option<ReactionStatistics> {
        let samples = self.samples;
        // At least `share` thousandths of the samples do not exceed the span of this rank.
        let ranked = |share: u64| {
            let beyond = u128::from(samples) * u128::from(1_000 - share) / 1_000;
            let beyond = u64::try_from(beyond).unwrap_or(samples);
            self.distribution.ranked_ns(samples - beyond)
        };
        let extremes = self.distribution.statistics(samples)?;
        Some(ReactionStatistics {
            samples,
            min_ns: extremes.min_ns,
            p50_ns: ranked(500)?,
            p99_ns: ranked(990)?,
            p99_9_ns: ranked(999)?,
            max_ns: extremes.max_ns,
        })
    }
}

/// A job that became ready and has not run since.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    number: u64,
    since: Instant,
}

struct Observer {
    reactions: Reactions,
    /// Per task.
    tasks: Vec<Option<Awaited>>,
    /// The last event that may have freed a CPU.
    freed: Instant,
    /// The last event of any kind.
    any: Instant,
}

impl Recorder for Observer {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        match *kind {
            RecordKind::Switched { to, .. } => {
                if let Some(job) = to {
                    self.got(at, job);
                }
            }
            RecordKind::Ready { job, .. } => {
                self.any = at;
                if let Some(task) = self.tasks.get_mut(job.task.index()) {
                    *task = Some(Awaited {
                        number: job.number,
                        since: at,
                    });
                }
            }
            // No job runs because of these: a release is followed by `Ready`, and a spent budget by `NotReady`.
            RecordKind::Released { .. }
            | RecordKind::BudgetSpent { .. }
            | RecordKind::Spinning { .. }
            | RecordKind::Locked { .. }
            | RecordKind::Unlocked { .. }
            | RecordKind::Entered { .. }
            | RecordKind::Demoted { .. }
            | RecordKind::AttributesSet { .. }
            | RecordKind::Refused { .. } => {}
            _ => {
                self.any = at;
                self.freed = at;
            }
        }
    }
}

impl Observer {
    fn got(&mut self, at: Instant, job: JobId) {
        let Some(task) = self.tasks.get_mut(job.task.index()) else {
            return;
        };
        let event = match task.take_if(|awaited| awaited.number == job.number) {
            Some(awaited) => awaited.since.max(self.freed),
            None => self.any,
        };
        self.reactions.add(at.late_since(event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Script, set};
    use shiftwork_model::RandomStream;

    #[test]
    fn percentiles_equal_those_of_sorted_samples_to_three_digits() {
        for seed in 1..=200 {
            let mut random = RandomStream::new(seed, 4, 0);
            let mut samples: Vec<u64> = (0..1 + random.below(3_000))
                .map(|_| random.bits() >> random.below(64))
                .collect();
            let mut reactions = Reactions::default();
            let spans = samples.iter().map(|&ns| Span::from_ns(ns));
            spans.for_each(|span| reactions.add(span));
            let found = reactions.statistics().unwrap();
            samples.sort_unstable();
            let exact = |share: usize| samples[(samples.len() * share).div_ceil(1_000) - 1];
            for (found, exact) in [
                (found.p50_ns, exact(500)),
                (found.p99_ns, exact(990)),
                (found.p99_9_ns, exact(999)),
            ] {
                let near = found.abs_diff(exact) <= exact / 1_000;
                assert!(near, "seed {seed}: {found} for {exact}");
            }
            assert_eq!(found.samples, samples.len() as u64, "seed {seed}");
            assert_eq!(found.min_ns, samples[0], "seed {seed}");
            assert_eq!(found.max_ns, samples[samples.len() - 1], "seed {seed}");
        }
    }

    #[test]
    fn statistics_without_samples_are_none() {
        assert_eq!(Reactions::default().statistics(), None);
    }

    #[test]
    fn json_has_the_documented_keys() {
        let mut reactions = Reactions::default();
        (1..=4).for_each(|ns| reactions.add(Span::from_ns(ns)));
        let expected = json!({
            "min": 1, "p50": 2, "p99": 4, "p99_9": 4, "max": 4, "samples": 4,
        });
        assert_eq!(reactions.statistics().unwrap().to_json(), expected);
    }

    /// The reactions of a script, one by one.
    fn shown(script: &Script) -> Vec<u64> {
        let set = set(2, &[("a", "0-1"), ("b", "0-1"), ("c", "0")]);
        let prefix = |count| Reactions::of(&set, &script.records[..count]);
        let sums = (0..=script.records.len()).map(|count| prefix(count).sum_and_count());
        let sums: Vec<_> = sums.collect();
        let steps = sums.windows(2).filter(|pair| pair[0].1 < pair[1].1);
        steps.map(|pair| pair[1].0 - pair[0].0).collect()
    }

    impl Reactions {
        fn sum_and_count(&self) -> (u64, u64) {
            let mean = self.distribution.statistics(self.samples);
            (mean.map_or(0, |it| it.mean_ns * self.samples), self.samples)
        }
    }

    #[test]
    fn reaction_of_a_released_job_begins_with_its_release() {
        let script = Script::default()
            .at(10)
            .release(0, 1, 99)
            .at(16)
            .switch(0, Some((0, 1)));
        assert_eq!(shown(&script), [6]);
    }

    #[test]
    fn reaction_of_a_waiting_job_begins_when_a_cpu_is_freed() {
        let script = Script::default()
            .at(10)
            .release(0, 1, 99)
            .at(16)
            .switch(0, Some((0, 1)))
            .at(20)
            .release(2, 1, 120)
            .at(50)
            .complete(0, 1)
            .at(56)
            .switch(0, Some((2, 1)));
        assert_eq!(shown(&script), [6, 6]);
    }

    #[test]
    fn reaction_of_a_shift_begins_with_the_last_event() {
        let script = Script::default()
            .at(10)
            .release(0, 1, 99)
            .at(16)
            .switch(0, Some((0, 1)))
            .at(30)
            .release(2, 1, 60)
            .at(36)
            .switch(0, Some((2, 1)))
            .at(42)
            .switch(1, Some((0, 1)));
        // The mean is a whole number in each step.
        assert_eq!(shown(&script), [6, 6, 12]);
    }
}
