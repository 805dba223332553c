//! B. Brandenburg, J. Calandrino, J. Anderson, "On the Scalability of Real-Time Scheduling Algorithms on Multicore
//! Platforms: A Case Study", RTSS 2008, and B. Brandenburg, J. Anderson, "On the Implementation of Global Real-Time
//! Schedulers", RTSS 2009, as far as the slides of talks about them say.
//!
//! `variants.rs` are the nine implementations, `locks.rs` how they wait for one another, `derived.rs` what each costs,
//! `study.rs` which task sets they schedule, and `findings_page.rs` puts that beside the findings of 2009.

pub mod derived;
pub mod findings;
pub mod findings_page;
pub mod locks;
pub mod study;
pub mod theory;
pub mod variants;

use std::path::PathBuf;

use shiftwork_taskset::overheads::OverheadFile;

/// The folder of these pages.
const FOLDER: &str = "brandenburg-2009";

/// How many CPUs the study's machine has.
pub const CPUS: usize = 32;

/// The overheads that the slides of 2008 tabulate.
///
/// # Errors
/// In words, if the file is not there or cannot be read.
pub fn niagara() -> Result<OverheadFile, String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/brandenburg-2008/niagara-2008.toml");
    let text =
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    shiftwork_taskset::overheads::read(&text)
        .map_err(|error| format!("{}: {error}", path.display()))
}
