//! Traces for Perfetto, which this crate can also read back.
//!
//! A trace is a file in Perfetto's own format, for ui.perfetto.dev and its trace processor: one
//! track per CPU with the running jobs, one per task with each job from release to completion. In unknown
//! fields, which Perfetto skips, the file also has the records themselves in compact form, so that [`read()`]
//! returns exactly the recorded run:
//!
//! | field of `TracePacket` | holds |
//! |---|---|
//! | 21335 | a stretch of records, see `records.rs` |
//! | 21336 | the header: provenance of the run, names, number of CPUs |
//! | 21337 | the end: the horizon that was reached |
//! | 21338 | of a flight recorder: what it knows of its records |
//!
//! Start reading at [`Writer`].

mod error;
mod packets;
mod prologue;
mod proto_buffer;
mod read;
mod recorder;
mod records;
mod sched_switch;
mod schema;
#[cfg(test)]
mod tests;
mod writer;

pub use error::TraceError;
pub use read::{TraceFile, read, read_metadata};
pub use recorder::{Absence, EndedTask, Loss, MissedJob, RecorderMetadata};
pub use writer::Writer;

use shiftwork_model::Instant;

/// The provenance of a run: enough to repeat it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The program and its version.
    pub tool: String,
    /// The policy's name.
    pub policy: String,
    /// The seed of random numbers; `None` if the run has none.
    pub seed: Option<u64>,
    /// The requested horizon of the run.
    pub horizon: Instant,
    /// The complete task-set file.
    pub task_set: String,
}
