//! What people see of a run: tables for the terminal, and one self-contained HTML page. Plots of anything.
//!
//! This crate turns records ([`shiftwork_model::Record`]) and their summary
//! ([`shiftwork_trace::RunSummary`]) into text. It must never contain scheduling, nor judge whether
//! a schedule was right (checkers in `trace` do), and it reads no clock and no file: everything
//! that appears on a page is an argument, so the same input gives the same bytes.
//!
//! Start reading at [`table`] for the terminal and at [`html`] for the page. Both only lay out;
//! the facts come from `timeline` (the run put back together from its records) and `misses` (what
//! was missed and why).

mod misses;
mod page;
pub mod plot;
mod run;
pub mod svg;
mod terminal;
mod timeline;
mod units;

pub use misses::Rank;
pub use page::html;
pub use run::{Bound, Limits, Provenance, Run};
pub use terminal::{Colour, Heading, agreement, bounds, comparison, packing, side_by_side, table};

#[cfg(test)]
#[path = "../tests/story/mod.rs"]
mod story;
