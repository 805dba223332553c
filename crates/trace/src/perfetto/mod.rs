//! Traces that Perfetto shows, and that this crate reads back.
//!
//! A trace is a file in Perfetto's own format, for ui.perfetto.dev and its trace processor: one
//! track per CPU that shows which job runs, one per task that shows each job from release to
//! finish. Beside what Perfetto shows, and skipped by it as unknown fields, the file carries the
//! records themselves in compact form, so that [`read()`] gives exactly what was recorded:
//!
//! | field of `TracePacket` | holds |
//! |---|---|
//! | 21335 | a stretch of records, see `records.rs` |
//! | 21336 | the header: where the run comes from, names, number of CPUs |
//! | 21337 | the end: the horizon that was reached |
//!
//! Start reading at [`Writer`].

mod error;
mod packets;
mod prologue;
mod proto_buffer;
mod read;
mod records;
mod sched_switch;
mod schema;
#[cfg(test)]
mod tests;
mod writer;

pub use error::TraceError;
pub use read::{TraceFile, read};
pub use writer::Writer;

use shiftwork_model::Instant;

/// Where a run comes from: enough to repeat it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The program and its version.
    pub tool: String,
    /// The policy's name.
    pub policy: String,
    /// The seed of everything random; `None` where nothing is.
    pub seed: Option<u64>,
    /// How long the run was meant to be.
    pub horizon: Instant,
    /// The task-set file, whole.
    pub task_set: String,
}
