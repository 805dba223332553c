//! What affinities are worth once scheduling costs something: a study that no paper has.
//!
//! The study is `studies/affinities.toml`; `paid.rs` counts what a run pays for, and `schedulability_page.rs` is the page.

mod paid;
pub mod schedulability_page;

/// The folder of these pages.
const FOLDER: &str = "affinities";

/// The file of the study.
pub const FILE: &str = "affinities.toml";

/// How many task sets of each cell the page has.
pub const SETS: u64 = 30;
