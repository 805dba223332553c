//! The records of a run, and everything that is computed from them.
//!
//! This crate owns counters and statistics, the table of jobs, the checkers, the replay of measured runs, the
//! explanation of misses, and the Perfetto trace with its reader. It depends only on the `model`, so that all
//! machines are checked alike, and must never contain code that influences a run.
//!
//! Start reading at [`Counters`], an example of a recorder; then [`RunSummary`].

mod backlog;
mod chains;
pub mod check;
pub mod comparison;
mod counters;
pub mod explain;
mod inversions;
mod job_table;
mod jobs;
mod packed;
pub mod perfetto;
mod reactions;
pub mod replay;
mod running;
mod segments;
mod shift_chain;
mod statistics;
mod summary;
#[cfg(test)]
mod testing;
mod tracker;

pub use backlog::Pending;
pub use chains::{ChainSummary, ChainTime, EndToEnd};
pub use counters::Counters;
pub use inversions::{
    Inversion, InversionCounts, InversionKind, InversionStatistics, InversionSummary, Inversions,
};
pub use job_table::{JOB_TABLE_HEADER, JobTable, SERVER_DEADLINE_COLUMN};
pub use jobs::{JobRow, JobSink, Jobs};
pub use packed::{PackedRecords, Records};
pub use reactions::{ReactionStatistics, Reactions};
pub use segments::{Segment, Segments};
pub use statistics::{Distribution, SpanStatistics};
pub use summary::{RunSummary, SCHEMA_VERSION, TaskSummary};
pub use tracker::JobTracker;
