//! V. Bonifaci, B. Brandenburg, G. D'Angelo, A. Marchetti-Spaccamela, "Multiprocessor Real-Time Scheduling with
//! Hierarchical Processor Affinities", ECRTS 2016.
//!
//! `workload.rs` draws the task sets of Section V, `replay.rs` measures what policies take for the events of
//! their runs, and `overheads_page.rs` is the page about Fig. 1.

mod live;
pub mod overheads_page;
pub mod replay;
pub mod schedulability_page;
pub mod workload;

/// The folder of this paper's pages.
const FOLDER: &str = "bonifaci-2016";

/// The policies that are compared: the paper's baseline, ours, and two as published.
pub const POLICIES: [&str; 4] = ["g-fp", "hpa-fp", "hpa-fp-ecrts16", "hpa-fp-ecrts16-alg4"];
