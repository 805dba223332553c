//! What the counters of threads say, where the kernel's trace cannot be had: CPU time and how often each thread went to
//! sleep. Single jobs are not seen, nor what wakes threads.

use std::collections::BTreeMap;

use shiftwork_model::{Instant, Span};

use crate::error::ObserveError;
use crate::measure::{Activity, Measurement, Source, ThreadMeasurement};
use crate::process::{ThreadFacts, check_process, now, threads};
use crate::statistics::{Costs, Distances};
use crate::wakeups::Relation;

/// Reads the counters of the threads of a process again and again.
pub struct Sampling {
    process: u32,
    from: Instant,
    threads: BTreeMap<u32, Sampled>,
}

/// The counters of a thread.
struct Sampled {
    facts: ThreadFacts,
    /// CPU time and sleeps at the beginning.
    first: (u64, u64),
    /// The same when a sleep was last counted.
    last: (u64, u64),
    /// The largest mean CPU time of the jobs between two readings.
    largest_ns: u64,
    has_ended: bool,
}

impl Sampled {
    fn new(facts: ThreadFacts, is_new: bool) -> Self {
        let first = match is_new {
            true => (0, 0),
            false => counters(&facts),
        };
        Self {
            first,
            last: counters(&facts),
            facts,
            largest_ns: 0,
            has_ended: false,
        }
    }

    fn take(&mut self, facts: ThreadFacts) {
        let (now, last) = (counters(&facts), self.last);
        let sleeps = now.1.saturating_sub(last.1);
        if let Some(mean) = now.0.saturating_sub(last.0).checked_div(sleeps) {
            self.largest_ns = self.largest_ns.max(mean);
            self.last = now;
        }
        self.facts = facts;
    }

    fn measured(self, id: u32, length: Span) -> ThreadMeasurement {
        let now = counters(&self.facts);
        let (executed, jobs) = (
            now.0.saturating_sub(self.first.0),
            now.1.saturating_sub(self.first.1),
        );
        let mean = |whole: u64| Span::from_ns(whole.checked_div(jobs).unwrap_or(0));
        let largest = Span::from_ns(self.largest_ns).max(mean(executed));
        let distance = mean(length.as_ns());
        let distances = (jobs > 1).then_some(Distances {
            min: distance,
            median: distance,
            regular: distance,
            regular_percent: 0,
        });
        let executed_span = Span::from_ns(executed);
        ThreadMeasurement {
            id,
            name: self.facts.name,
            started: self.facts.started,
            has_ended: self.has_ended,
            affinity: self.facts.affinity,
            jobs,
            executed: executed_span,
            costs: Costs {
                p50: mean(executed),
                p99: largest,
                max: largest,
                chosen: largest,
            },
            activity: Activity::of(jobs, executed_span, distances.as_ref(), length),
            distances,
            suspended: 0,
            continued: 0,
            wakers: Vec::new(),
            relation: Relation::None,
        }
    }
}

fn counters(facts: &ThreadFacts) -> (u64, u64) {
    (facts.cpu_ns.unwrap_or(0), facts.sleeps)
}

impl Sampling {
    /// Begins to read the counters of the process.
    ///
    /// # Errors
    /// If there is no such process, or the kernel has no counters.
    pub fn begin(process: u32) -> Result<Self, ObserveError> {
        check_process(process)?;
        let threads = threads(process);
        if threads.values().all(|facts| facts.cpu_ns.is_none()) {
            let path = format!("/proc/{process}/schedstat");
            return Err(ObserveError::NoCounters { path });
        }
        let threads = threads.into_iter();
        Ok(Self {
            process,
            from: now(),
            threads: threads
                .map(|(id, facts)| (id, Sampled::new(facts, false)))
                .collect(),
        })
    }

    /// How long it has read them.
    pub fn elapsed(&self) -> Span {
        now().late_since(self.from)
    }

    /// How long to wait until counters are read again, so that it takes a few percent of a CPU.
    pub fn interval(&self) -> Span {
        Span::from_ms((self.threads.len() as u64).clamp(2, 200))
    }

    /// The names of the threads.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.threads.values().map(|it| it.facts.name.as_str())
    }

    /// Reads the counters, and returns whether the process is still there. The more often, the more single jobs are told
    /// apart.
    pub fn poll(&mut self) -> bool {
        let now = threads(self.process);
        let is_there = !now.is_empty();
        for (id, sampled) in &mut self.threads {
            sampled.has_ended = !now.contains_key(id);
        }
        for (id, facts) in now {
            match self.threads.get_mut(&id) {
                Some(sampled) => sampled.take(facts),
                None => {
                    self.threads.insert(id, Sampled::new(facts, true));
                }
            }
        }
        is_there
    }

    /// What was measured.
    pub fn finish(mut self) -> Measurement {
        self.poll();
        let length = self.elapsed();
        let threads = self.threads.into_iter();
        Measurement {
            process: self.process,
            length,
            source: Source::Counters,
            threads: threads.map(|(id, it)| it.measured(id, length)).collect(),
            paths: Vec::new(),
            gaps: 0,
            unreadable: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::CpuSet;

    #[test]
    fn costs_are_means_and_the_largest_mean_of_a_short_time() {
        let facts = |cpu_us: u64, sleeps| ThreadFacts {
            name: "x".to_owned(),
            affinity: CpuSet::first(1),
            cpu_ns: Some(cpu_us * 1_000),
            sleeps,
            started: 1,
        };
        let mut sampled = Sampled::new(facts(5_000, 100), false);
        // Two jobs of 100 us; a part of a job; its rest; one more.
        for (cpu_us, sleeps) in [(5_200, 102), (5_500, 102), (5_600, 103), (5_700, 104)] {
            sampled.take(facts(cpu_us, sleeps));
        }
        let found = sampled.measured(7, Span::from_ms(40));
        assert_eq!((found.jobs, found.executed), (4, Span::from_us(700)));
        assert_eq!(found.costs.p50, Span::from_us(175));
        assert_eq!(found.costs.max, Span::from_us(400));
        let distance = found.distances.map(|it| it.median);
        assert_eq!(distance, Some(Span::from_ms(10)));
        assert_eq!(found.activity, Activity::Sporadic);
    }
}
