//! One file per verb. Each has a `run` that takes the verb's options and the console.

pub mod convert;
pub mod doctor;
pub mod generate;
pub mod pages;
pub mod policies;
pub mod report;
pub mod scenario;
pub mod schema;
pub mod simulate;
