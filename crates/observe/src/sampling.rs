//! What the counters of threads say, where the kernel's trace cannot be had: CPU time and how often each thread went to
//! sleep. Single jobs are not seen, nor what wakes threads.

use std::collections::BTreeMap;

use shiftwork_model::{Instant, Span};

use crate::error::ObserveError;
use crate::event::Thread;
use crate::measure::{Measurement, Source, ThreadMeasurement};
use crate::process::{ThreadFacts, now, thread};
use crate::process_tree::ProcessTree;
use crate::statistics::{Costs, Distances};

/// Reads the counters of the threads of processes again and again.
pub struct Sampling {
    tree: ProcessTree,
    from: Instant,
    threads: BTreeMap<u32, Sampled>,
}

/// The counters of a thread.
struct Sampled {
    process: u32,
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
    fn new(process: u32, facts: ThreadFacts, is_new: bool) -> Self {
        let first = match is_new {
            true => (0, 0),
            false => counters(&facts),
        };
        Self {
            process,
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
        self.has_ended = false;
    }

    fn measured(self, id: u32, process_name: &str, length: Span) -> ThreadMeasurement {
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
        let thread = Thread {
            process: self.process,
            process_name: process_name.to_owned(),
            name: self.facts.name,
            affinity: self.facts.affinity,
            cpu_time: Some(Span::from_ns(executed)),
            started: self.facts.started,
            has_ended: self.has_ended,
        };
        let costs = Costs {
            p50: mean(executed),
            p99: largest,
            max: largest,
            chosen: largest,
        };
        ThreadMeasurement::counted(id, thread, jobs, costs, distances, length)
    }
}

fn counters(facts: &ThreadFacts) -> (u64, u64) {
    (facts.cpu_ns.unwrap_or(0), facts.sleeps)
}

impl Sampling {
    /// Begins to read the counters of these processes, and of those that they will start.
    ///
    /// # Errors
    /// If the kernel has no counters.
    pub fn begin(tree: ProcessTree) -> Result<Self, ObserveError> {
        let own = std::process::id();
        if thread(own, own).is_some_and(|facts| facts.cpu_ns.is_none()) {
            let path = format!("/proc/{own}/schedstat");
            return Err(ObserveError::NoCounters { path });
        }
        let mut sampling = Self {
            tree,
            from: now(),
            threads: BTreeMap::new(),
        };
        sampling.look(false);
        Ok(sampling)
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

    /// Reads the counters, and returns whether any of the processes is still there. The more often, the more single jobs are
    /// told apart.
    pub fn poll(&mut self) -> bool {
        self.look(true);
        self.tree.has_processes()
    }

    /// What begins while counters are read had none before.
    fn look(&mut self, has_begun: bool) {
        for sampled in self.threads.values_mut() {
            sampled.has_ended = true;
        }
        for (id, process) in self.tree.threads() {
            let Some(facts) = thread(process, id) else {
                continue;
            };
            match self.threads.get_mut(&id) {
                Some(sampled) => sampled.take(facts),
                None => {
                    let sampled = Sampled::new(process, facts, has_begun);
                    self.threads.insert(id, sampled);
                }
            }
        }
    }

    /// What was measured.
    pub fn finish(mut self) -> Measurement {
        self.poll();
        let length = self.elapsed();
        let threads = self.threads.into_iter().map(|(id, it)| {
            let process_name = self.tree.name(it.process);
            it.measured(id, process_name, length)
        });
        Measurement {
            process: self.tree.main(),
            length,
            source: Source::Counters,
            threads: threads.collect(),
            paths: Vec::new(),
            gaps: 0,
            unreadable: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Activity;
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
        let mut sampled = Sampled::new(7, facts(5_000, 100), false);
        // Two jobs of 100 us; a part of a job; its rest; one more.
        for (cpu_us, sleeps) in [(5_200, 102), (5_500, 102), (5_600, 103), (5_700, 104)] {
            sampled.take(facts(cpu_us, sleeps));
        }
        let found = sampled.measured(7, "x", Span::from_ms(40));
        assert_eq!((found.jobs, found.executed), (4, Span::from_us(700)));
        assert_eq!(found.costs.p50, Span::from_us(175));
        assert_eq!(found.costs.max, Span::from_us(400));
        let distance = found.distances.map(|it| it.median);
        assert_eq!(distance, Some(Span::from_ms(10)));
        assert_eq!(found.activity, Activity::Sporadic);
    }
}
