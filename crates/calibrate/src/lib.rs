//! What scheduling costs on this machine: measured, summed up, and written as overheads.
//!
//! This crate owns the measurements and their statistics, and what of them goes into which key of
//! an overhead file. It reads clocks and keeps CPUs busy, and must never decide which job runs in a
//! schedule: policies are measured here, and their decisions are discarded.
//!
//! Start reading at [`calibrate`], which goes round by round through the measurements in `measure/`, one file
//! for each, then at [`tables`], which makes overheads of them.

mod agreement;
mod fit;
mod measure;
mod page;
mod place;
mod plan;
mod quantity;
mod session;
mod statistics;
mod structure;
mod tables;

pub use agreement::{Known, Verdict, compare, may_be_chance};
pub use fit::linear;
pub use measure::live::stage as live_cpus;
pub use page::page;
pub use plan::{Aim, Part, Plan};
pub use quantity::{Kind, Quantity};
pub use session::{Calibration, calibrate};
pub use statistics::{Batches, Interval, Summary};
pub use tables::{PolicyFit, QueueFit, absent, fits, queue_fits, tables};
