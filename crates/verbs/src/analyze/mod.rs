//! What is guaranteed of a task set, under every policy, and which test shows it.
//!
//! `candidate.rs` finds out where each policy binds the tasks, `found.rs` asks the analysis and gives the
//! answer, `price.rs` says what overheads are charged, `counterexample.rs` simulates where no test decides, and
//! `json.rs` is what programs read.

mod candidate;
mod counterexample;
mod error;
mod found;
mod json;
mod price;

pub use candidate::{Named, all, candidate, named};
pub use error::QuestionError;
pub use found::{Findings, Proposal, Question, Scale};
pub use json::{AnalyzeOutput, output};
