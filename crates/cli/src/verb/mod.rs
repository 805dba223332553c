//! One file per verb. Each has a `run` that takes the verb's options and the console.

pub mod analyze;
pub mod calibrate;
mod chosen;
pub mod convert;
pub mod doctor;
mod explained;
pub mod generate;
mod outputs;
mod overheads;
pub mod pages;
pub mod policies;
pub mod report;
pub mod run;
pub mod scenario;
pub mod schema;
mod shown;
pub mod simulate;
pub mod study;
mod watch;
