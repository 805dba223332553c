//! Schedulability studies: task sets are drawn by the million, and policies are asked about each.
//!
//! This crate owns what a study is ([`Plan`]), what is asked about one task set ([`Plan::trial`]),
//! how answers are counted ([`Tally`]), kept and merged. It must never draw or analyse in ways of
//! its own: it uses the generators and tests of the other crates. It reads a clock only to report
//! progress and to cut work into pieces.
//!
//! Every task set has a random stream of its own, keyed by the study's seed, the cell and the index
//! in it; and all that is kept are sums of whole numbers. So results do not depend on the
//! distribution or order of the work, nor on interruptions.
//!
//! Start reading at [`Plan`], then `trial.rs` for one task set, [`run()`] for all of them on this computer, [`chunks`]
//! for others, and [`Store`] for the folder in which everything is kept.

mod binding;
mod clock;
mod cover;
mod curves;
mod distributed;
mod error;
mod folder;
pub mod part;
mod plan;
mod queue;
mod results;
mod run;
mod store;
mod summary;
mod table;
mod tally;
mod trial;
mod work;

pub use curves::{Figure, figures, page};
pub use distributed::{chunks, keep};
pub use error::StudyError;
pub use plan::{Cell, Contender, Files, Plan, Question, QuestionKind, read};
pub use results::{PARTIAL, RESULTS, Results, Row};
pub use run::{Options, Outcome, Progress, conclude, run};
pub use store::{Remark, Store, name_of};
pub use summary::{Summary, summaries};
pub use tally::{Reply, Tally};
pub use work::{Batch, Counted, Shard, Work, join};
