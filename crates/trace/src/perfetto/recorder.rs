//! What a trace from a flight recorder says beside its records.

use prost::Message;
use shiftwork_model::{CpuSet, Instant, JobId, TaskId};

/// What a flight recorder knows of the records that it kept. Instants are those of the trace, in ns, where nothing else
/// is said.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RecorderMetadata {
    /// Instant 0 of the trace on the monotonic clock, in ns.
    #[prost(uint64, tag = "1")]
    pub origin_ns: u64,
    /// From here on all records are there. Earlier ones restate what held at this instant.
    #[prost(uint64, tag = "2")]
    pub since_ns: u64,
    /// The end of the trace, in ns since 1970.
    #[prost(uint64, tag = "3")]
    pub unix_ns: u64,
    /// The CPUs that the scheduler has, as a list. The others count as offline.
    #[prost(string, tag = "4")]
    pub cpus: String,
    /// The job whose miss the trace was kept for.
    #[prost(message, tag = "5")]
    pub missed: Option<MissedJob>,
    /// Stretches in which the recorder did not run.
    #[prost(message, repeated, tag = "6")]
    pub absences: Vec<Absence>,
    /// Events that were lost.
    #[prost(message, repeated, tag = "7")]
    pub losses: Vec<Loss>,
    /// Tasks that have no reservation any more.
    #[prost(message, repeated, tag = "8")]
    pub ended: Vec<EndedTask>,
    /// The number of each task that its owner knows, which another task gets later.
    #[prost(uint32, repeated, tag = "9")]
    pub numbers: Vec<u32>,
}

/// A job that missed its deadline.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct MissedJob {
    /// Index of its task.
    #[prost(uint32, tag = "1")]
    pub task: u32,
    /// Its number.
    #[prost(uint64, tag = "2")]
    pub number: u64,
    /// The cause in a few words; empty if it is not explained.
    #[prost(string, tag = "3")]
    pub cause: String,
    /// What its owner called the task. Others may be called the same, so its name in the trace may have a number.
    #[prost(string, tag = "4")]
    pub name: String,
}

/// A stretch in which the recorder did not run.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Absence {
    /// Its begin.
    #[prost(uint64, tag = "1")]
    pub since_ns: u64,
    /// Its end.
    #[prost(uint64, tag = "2")]
    pub until_ns: u64,
}

/// Events that found no room.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Loss {
    /// When that was found out.
    #[prost(uint64, tag = "1")]
    pub at_ns: u64,
    /// How many.
    #[prost(uint64, tag = "2")]
    pub events: u64,
}

/// The end of a task's reservation.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct EndedTask {
    /// Index of the task.
    #[prost(uint32, tag = "1")]
    pub task: u32,
    /// When.
    #[prost(uint64, tag = "2")]
    pub at_ns: u64,
}

impl RecorderMetadata {
    /// Whether the task had no reservation any more at this instant.
    pub fn has_ended(&self, task: TaskId, at: Instant) -> bool {
        let mut ended = self.ended.iter();
        ended.any(|it| it.task as usize == task.index() && it.at_ns <= at.as_ns())
    }

    /// The job whose miss the trace was kept for.
    pub fn missed_job(&self) -> Option<JobId> {
        let missed = self.missed.as_ref()?;
        Some(JobId {
            task: TaskId::from_index(missed.task as usize),
            number: missed.number,
        })
    }

    /// The CPUs that the scheduler has; none if they are not readable.
    pub fn cpu_set(&self) -> CpuSet {
        self.cpus.parse().unwrap_or_default()
    }
}
