//! From the jobs of threads to what is known of each.

use shiftwork_model::{CpuSet, Span};

use crate::event::{Recording, Thread};
use crate::grouping::group;
use crate::jobs::{History, reconstruct};
use crate::statistics::{Costs, Distances, Percentile};
use crate::wakeups::{Path, Relation, WakerShare, paths, relations, shares};

/// A thread with fewer jobs has no distances to speak of.
pub const JOBS_MIN: u64 = 3;

/// How a thread behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// No job, and hardly any CPU time.
    Idle,
    /// Fewer jobs than can be judged.
    Rare,
    /// Nine of ten distances of its wake-ups differ from their median by a tenth at most.
    Periodic,
    /// It wakes up irregularly.
    Sporadic,
    /// It hardly ever sleeps.
    Busy,
}

impl Activity {
    /// As files and JSON name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Rare => "rare",
            Self::Periodic => "periodic",
            Self::Sporadic => "sporadic",
            Self::Busy => "busy",
        }
    }

    /// By what was measured within `length`.
    pub(crate) fn of(
        jobs: u64,
        executed: Span,
        distances: Option<&Distances>,
        length: Span,
    ) -> Self {
        let share = u128::from(executed.as_ns()) * 100 / u128::from(length.as_ns().max(1));
        match (jobs, distances) {
            _ if share >= 95 => Self::Busy,
            (0..JOBS_MIN, _) | (_, None) if share >= 50 => Self::Busy,
            (0, _) => Self::Idle,
            (0..JOBS_MIN, _) | (_, None) => Self::Rare,
            (_, Some(distances)) if distances.regular_percent >= 90 => Self::Periodic,
            _ => Self::Sporadic,
        }
    }
}

/// What was measured of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadMeasurement {
    /// Its number.
    pub id: u32,
    /// The number of its process, which is that of the main thread.
    pub process: u32,
    /// The name of its process, that of the main thread; empty if that was never seen.
    pub process_name: String,
    /// Its name.
    pub name: String,
    /// When it began, in clock ticks since boot.
    pub started: u64,
    /// Whether it ended before the measurement.
    pub has_ended: bool,
    /// The CPUs that it may use.
    pub affinity: CpuSet,
    /// Number of its jobs.
    pub jobs: u64,
    /// Its CPU time, jobs or not.
    pub executed: Span,
    /// CPU time of its jobs.
    pub costs: Costs,
    /// Distances of its wake-ups; `None` if none is known.
    pub distances: Option<Distances>,
    /// How it behaves.
    pub activity: Activity,
    /// How many of its jobs waited for a device or a lock of the kernel.
    pub suspended: u64,
    /// How many wake-ups by threads of the process are counted to the job before.
    pub continued: u64,
    /// What woke it, the most frequent first.
    pub wakers: Vec<WakerShare>,
    /// Whether another thread of the process triggers it.
    pub relation: Relation,
}

impl ThreadMeasurement {
    /// Of a thread whose jobs were counted, without what woke them.
    pub fn counted(
        id: u32,
        thread: Thread,
        jobs: u64,
        costs: Costs,
        distances: Option<Distances>,
        length: Span,
    ) -> Self {
        let executed = thread.cpu_time.unwrap_or_default();
        Self {
            id,
            process: thread.process,
            process_name: thread.process_name,
            name: thread.name,
            started: thread.started,
            has_ended: thread.has_ended,
            affinity: thread.affinity,
            jobs,
            executed,
            costs,
            activity: Activity::of(jobs, executed, distances.as_ref(), length),
            distances,
            suspended: 0,
            continued: 0,
            wakers: Vec::new(),
            relation: Relation::None,
        }
    }

    /// Its name among those of all processes: `name` in the first process, `process/name` in others, `process` for their main
    /// threads.
    pub fn label(&self, measurement: &Measurement) -> String {
        match (self.process == measurement.process, self.id == self.process) {
            (true, _) => self.name.clone(),
            (false, true) => self.process_name.clone(),
            (false, false) => format!("{}/{}", self.process_name, self.name),
        }
    }
}

/// How something was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Every event was traced.
    Trace,
    /// The daemon took the events of the threads, but not what woke them.
    Daemon,
    /// Counters of the threads were read now and then.
    Counters,
}

impl Source {
    /// As JSON names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Daemon => "daemon",
            Self::Counters => "counters",
        }
    }
}

/// What was measured of a process, and of those that it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// The number of the first process.
    pub process: u32,
    /// For how long.
    pub length: Span,
    /// How.
    pub source: Source,
    /// The threads of all, by number.
    pub threads: Vec<ThreadMeasurement>,
    /// Paths of threads of which each triggers the next, from one that no thread triggers to one that triggers none.
    pub paths: Vec<Path>,
    /// Stretches in which events were lost.
    pub gaps: usize,
    /// Lines of the trace that could not be read.
    pub unreadable: u64,
}

impl Measurement {
    /// The main thread; `None` if it was not there.
    pub fn main(&self) -> Option<&ThreadMeasurement> {
        self.find(self.process)
    }

    /// The thread with this number.
    pub fn find(&self, id: u32) -> Option<&ThreadMeasurement> {
        self.threads.iter().find(|thread| thread.id == id)
    }
}

/// Measures the threads of a recording, with costs at this percentile.
pub fn measure(recording: &Recording, percentile: Percentile) -> Measurement {
    let mut histories = reconstruct(recording);
    group(&mut histories);
    let relations = relations(&histories);
    let none = History::default();
    let length = recording.length();
    let threads = recording.threads.iter().map(|(&id, thread)| {
        let history = histories.get(&id).unwrap_or(&none);
        let jobs = history.jobs.as_slice();
        let count = jobs.len() as u64;
        let distances = Distances::of(jobs);
        let executed = thread.cpu_time.unwrap_or_default().max(history.executed);
        let thread = Thread {
            cpu_time: Some(executed),
            ..thread.clone()
        };
        let costs = Costs::of(jobs, percentile);
        ThreadMeasurement {
            suspended: jobs.iter().filter(|job| job.suspensions > 0).count() as u64,
            continued: jobs.iter().map(|job| job.continued).sum(),
            wakers: shares(jobs),
            relation: relations.get(&id).cloned().unwrap_or(Relation::None),
            ..ThreadMeasurement::counted(id, thread, count, costs, distances, length)
        }
    });
    Measurement {
        process: recording.process,
        length,
        source: Source::Trace,
        threads: threads.collect(),
        paths: paths(&histories, &relations),
        gaps: recording.gaps.len(),
        unreadable: recording.unreadable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activity_follows_from_jobs_cpu_time_and_distances() {
        let length = Span::from_s(1);
        let with = |regular_percent| Distances {
            min: Span::from_ms(1),
            median: Span::from_ms(2),
            regular: Span::from_ms(2),
            regular_percent,
        };
        for (jobs, executed_ms, regular, expected) in [
            (0, 0, None, Activity::Idle),
            (2, 1, Some(100), Activity::Rare),
            (9, 1, None, Activity::Rare),
            (0, 600, None, Activity::Busy),
            (900, 960, Some(100), Activity::Busy),
            (900, 600, Some(90), Activity::Periodic),
            (900, 600, Some(89), Activity::Sporadic),
        ] {
            let distances = regular.map(with);
            let found = Activity::of(jobs, Span::from_ms(executed_ms), distances.as_ref(), length);
            assert_eq!(found, expected, "{jobs} {executed_ms} {regular:?}");
        }
    }
}
