//! Reports of a run: tables for the terminal, and one self-contained HTML page. Also plots.
//!
//! This crate turns records ([`shiftwork_model::Record`]) and their summary
//! ([`shiftwork_trace::RunSummary`]) into text. It must never contain scheduling, nor check a schedule
//! (checkers in `trace` do), and it reads no clock and no file: all contents of a page are arguments, so the
//! same input gives the same bytes.
//!
//! Start reading at [`table`] for the terminal and at [`html`] for the page. Both contain only layout;
//! the data come from `overview` (what holds of the whole run), `misses` (deadline misses and their reasons), and
//! `timeline` (the part of the run that is drawn, reconstructed from its records).

mod excerpt;
mod misses;
mod overview;
mod page;
pub mod plot;
mod run;
pub mod svg;
mod terminal;
mod timeline;
mod units;

/// A length of time in nanoseconds in the largest unit that keeps it at least 1, with at most four significant
/// digits, in plain letters (`us`).
pub fn span(ns: u64) -> String {
    units::span(ns, units::Script::Ascii)
}

/// The same for a difference, which may be negative.
pub fn signed_span(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", span(ns.unsigned_abs()))
}

pub use page::escape::html as escape;
pub use page::{document, html};
pub use run::{Bound, Limits, Provenance, Run};
pub use terminal::{
    Colour, Heading, Judged, Look, at_most, bounds, chains, comparison, judged, packing,
    side_by_side, table,
};

#[cfg(test)]
#[path = "../tests/run_script/mod.rs"]
mod run_script;
