//! B. Brandenburg, J. Calandrino, J. Anderson, "On the Scalability of Real-Time Scheduling Algorithms on Multicore
//! Platforms: A Case Study", RTSS 2008, as far as the slides of a talk about it say.
//!
//! The study is `studies/rtss-2008.toml`; `findings.rs` has what the slides conclude, as predicates over its curves, and
//! `schedulability_page.rs` puts both beside each other.

pub mod findings;
pub mod schedulability_page;

/// The folder of these pages.
const FOLDER: &str = "brandenburg-2008";

/// The file of the study.
pub const FILE: &str = "rtss-2008.toml";

/// How many task sets of each cell the page has.
pub const SETS: u64 = 100;
