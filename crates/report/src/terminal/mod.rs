//! Tables for the terminal: one run, several runs side by side, a packing,
//! and what a real machine made of a simulated run.
//!
//! A miss is marked with `!`, in colour as well, so that nothing is lost without colour.

mod bounds;
mod grid;
mod side_by_side;
mod tables;

pub use bounds::{at_most, bounds};
pub use side_by_side::{Judged, judged, side_by_side};
pub use tables::{comparison, packing, table};

/// Whether tables may use colour. Nothing is told by colour alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// Escape sequences for terminals.
    Always,
    /// Plain text.
    #[default]
    Never,
}

/// What a table says above its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heading<'a> {
    /// Name of the policy.
    pub policy: &'a str,
    /// The seed, if the run used one.
    pub seed: Option<u64>,
}

#[cfg(test)]
mod tests;
