//! One file per verb. Each has a `run` that takes the verb's options and the console.

pub mod analyze;
pub mod calibrate;
mod chosen;
pub mod convert;
pub mod daemon;
mod daemon_client;
pub mod doctor;
pub mod exec;
mod explained;
pub mod export;
pub mod generate;
mod outputs;
mod overheads;
pub mod pages;
pub mod policies;
pub mod record;
pub mod release;
pub mod report;
pub mod run;
pub mod scenario;
pub mod schema;
mod shown;
pub mod simulate;
pub mod status;
pub mod study;
pub mod top;
mod watch;
