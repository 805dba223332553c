//! What is guaranteed of a task set, under every policy, and which test shows it.
//!
//! `candidate.rs` finds out where each policy binds the tasks, `found.rs` asks the analysis and gives the
//! answer, `chains.rs` bounds cause-effect chains, `proposal.rs` proposes affinities, `remedy.rs` searches for what
//! would make it yes, `price.rs` says what overheads are charged, and `json.rs` is what programs read. Two files simulate (`simulated.rs`: a simulation that is
//! checked): `counterexample.rs` where no test decides, `as_written.rs` for the releases that the file states.

mod as_written;
mod candidate;
mod chains;
mod counterexample;
mod error;
mod found;
mod json;
mod price;
mod proposal;
mod remedy;
mod simulated;

pub use as_written::AsWritten;
pub use candidate::{all, candidate, named};
pub use chains::ChainBound;
pub use error::QuestionError;
pub use found::{Findings, Question, Releases, Scale, Stage, Tardiness};
pub use json::{AnalyzeOutput, output};
pub use proposal::Proposal;
pub use remedy::{Change, Remedies, Substitute};
