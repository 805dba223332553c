//! A recording: the records of some seconds as a Perfetto trace, with what is needed to explain them.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use shiftwork_model::{Instant, JobId, Record, RecordKind, Recorder as _, TaskSet};
use shiftwork_taskset::TasksetError;
use shiftwork_trace::JobTracker;
use shiftwork_trace::perfetto::{
    Provenance, RecorderMetadata, TraceError, TraceFile, Writer, read, read_metadata,
};

/// The records of some seconds. Instants count from its first record, CPUs are in the machine's numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The daemon and its version.
    pub tool: String,
    /// Its policy.
    pub policy: String,
    /// The tasks, as they were at the beginning.
    pub set: TaskSet,
    /// The user of each task; empty if the recording was read from a file, which names none.
    pub users: Vec<u32>,
    /// What happened.
    pub records: Vec<Record>,
    /// The end.
    pub until: Instant,
    /// What the recorder knows of the records.
    pub metadata: RecorderMetadata,
}

/// Why bytes are no recording.
#[derive(Debug)]
pub enum RecordingError {
    /// They are no trace.
    Trace(TraceError),
    /// The trace is of a run.
    OfARun,
    /// The task set in it cannot be read.
    TaskSet(TasksetError),
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(error) => error.fmt(f),
            Self::OfARun => f.write_str(
                "the trace is of a run and not of the daemon; `shiftwork report --explain` explains it",
            ),
            Self::TaskSet(error) => write!(f, "the task set in the trace: {error}"),
        }
    }
}

impl std::error::Error for RecordingError {}

/// What a recording says of itself before its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingHead {
    /// Its end, in ns since 1970.
    pub unix_ns: u64,
    /// How long all records are in it, in ns.
    pub span_ns: u64,
    /// The task with the miss that it was kept for, and the cause.
    pub missed: Option<(String, String)>,
}

impl RecordingHead {
    /// `None` if the bytes are no recording.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let file = read_metadata(bytes).ok()?;
        let recorder = file.recorder?;
        let until_ns = file.provenance.horizon.as_ns();
        let missed = recorder.missed.map(|missed| (missed.name, missed.cause));
        Some(Self {
            unix_ns: recorder.unix_ns,
            span_ns: until_ns.saturating_sub(recorder.since_ns),
            missed,
        })
    }
}

/// The instant of the wall clock in UTC, as in RFC 3339.
pub fn utc(unix_ns: u64) -> String {
    let at = UNIX_EPOCH + Duration::from_nanos(unix_ns);
    humantime::format_rfc3339_millis(at).to_string()
}

impl Recording {
    /// From here on all records are there.
    pub const fn since(&self) -> Instant {
        Instant::from_ns(self.metadata.since_ns)
    }

    /// How many jobs of the task with this number ended late, among those that were due after this instant of the
    /// monotonic clock.
    pub fn misses_of(&self, number: u32, after: Instant) -> u64 {
        let after = Instant::from_ns(after.as_ns().saturating_sub(self.metadata.origin_ns));
        let numbers = &self.metadata.numbers;
        let mut tracker = JobTracker::default();
        let is_miss = |record: &&Record| {
            let ended = tracker.take(record.at, &record.kind);
            let (RecordKind::Completed {
                job: JobId { task, .. },
            }
            | RecordKind::Left { task }) = record.kind
            else {
                return false;
            };
            let is_late = ended.is_some_and(|job| record.at > job.deadline && job.deadline > after);
            is_late && numbers.get(task.index()) == Some(&number)
        };
        self.records.iter().filter(is_miss).count() as u64
    }

    /// The recording as a Perfetto trace.
    pub fn trace(&self) -> Vec<u8> {
        let provenance = Provenance {
            tool: self.tool.clone(),
            policy: self.policy.clone(),
            seed: None,
            horizon: self.until,
            task_set: shiftwork_taskset::write(&self.set),
        };
        let writer = Writer::new(&self.set, &provenance, Vec::new());
        let mut writer = writer.with_recorder(self.metadata.clone());
        for record in &self.records {
            writer.record(record.at, &record.kind);
        }
        let written = writer.finish(self.until);
        written.expect("writing to memory does not fail")
    }

    /// Reads what [`trace`](Self::trace) wrote.
    ///
    /// # Errors
    /// Why the bytes are no recording.
    pub fn read(bytes: &[u8]) -> Result<Self, RecordingError> {
        let file = read(bytes).map_err(RecordingError::Trace)?;
        let TraceFile {
            provenance,
            ended,
            recorder,
            records,
            ..
        } = file;
        let set = shiftwork_taskset::read(&provenance.task_set).map_err(RecordingError::TaskSet)?;
        Ok(Self {
            tool: provenance.tool,
            policy: provenance.policy,
            set,
            users: Vec::new(),
            records,
            until: ended.unwrap_or(provenance.horizon),
            metadata: recorder.ok_or(RecordingError::OfARun)?,
        })
    }
}
