//! From a running program to a task set.
//!
//! This crate owns what is found out about the threads of a process, and of those that it started, from outside, without changing how they are
//! scheduled: their jobs, what these cost, how far apart they are, and which thread wakes which; and the task-set file
//! that is proposed. It must never load a scheduler or change a thread, and it leaves nothing behind in the kernel.
//!
//! ```text
//! tracefs.rs -> collector.rs, trace_line.rs -> Recording -> jobs.rs, grouping.rs -> wakeups.rs, measure.rs -> Measurement
//! sampling.rs ---------------------------------------------------------------------------------------------> Measurement
//! Measurement -> proposal.rs -> Proposal
//! ```
//!
//! `process_tree.rs` follows what a process starts, for both. `running.rs` finds threads of running programs again, by the names in such a file.
//!
//! Everything from [`Recording`] on is a function of its input. Start reading at [`Event`], then [`measure`].

mod collector;
mod error;
mod event;
mod grouping;
mod jobs;
mod measure;
mod process;
mod process_tree;
mod proposal;
mod running;
mod sampling;
mod statistics;
mod trace_line;
mod tracefs;
mod wakeups;

pub use error::ObserveError;
pub use event::{Event, EventKind, Recording, SwitchedOut, Thread, Waker};
pub use measure::{Activity, JOBS_MIN, Measurement, Source, ThreadMeasurement, measure};
pub use process_tree::ProcessTree;
pub use proposal::{LeftOut, Options, Proposal, Selection, check_names, propose, summary};
pub use running::{RunningThread, is_asleep, running_threads};
pub use sampling::Sampling;
pub use statistics::{Costs, Distances, Percentile};
pub use trace_line::{Line, TraceEvent, TraceLine, TraceLineError, parse};
pub use tracefs::TraceSession;
pub use wakeups::{Path, Relation, WakerShare, Within};
