//! What a run leaves behind, and who judges it.
//!
//! This crate owns everything that is computed from the records of a run: counters and statistics,
//! the table of jobs, the checkers, the replay of measured runs, what led to a miss, and the Perfetto trace with its reader.
//! It knows only the `model`, so that every machine is judged alike, and must never contain
//! anything that influences a run.
//!
//! Start reading at [`Counters`], which shows how records are taken; then [`RunSummary`].

mod backlog;
pub mod check;
pub mod comparison;
mod counters;
pub mod explain;
mod inversions;
mod job_table;
mod jobs;
pub mod perfetto;
mod reactions;
pub mod replay;
mod running;
mod segments;
mod statistics;
mod summary;
#[cfg(test)]
mod testing;

pub use counters::Counters;
pub use inversions::{
    Inversion, InversionCounts, InversionKind, InversionStatistics, InversionSummary, Inversions,
};
pub use job_table::{JOB_TABLE_HEADER, JobTable, SERVER_DEADLINE_COLUMN};
pub use jobs::{JobRow, JobSink, Jobs};
pub use reactions::{ReactionStatistics, Reactions};
pub use segments::{Segment, Segments};
pub use statistics::{Distribution, SpanStatistics};
pub use summary::{RunSummary, SCHEMA_VERSION, TaskSummary};
