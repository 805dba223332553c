//! Tables for the terminal: one run, several runs side by side, cause-effect chains, a packing,
//! and a simulated run beside a measured one.
//!
//! A miss is marked with `!`, also in colour, so that no information depends on colour.

mod bounds;
mod chains;
mod grid;
mod side_by_side;
mod tables;

pub use bounds::{at_most, bounds};
pub use chains::chains;
pub use side_by_side::{Judged, judged, side_by_side};
pub use tables::{comparison, packing, table};

/// Whether tables may use colour. No information depends on colour alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// Escape sequences for terminals.
    Always,
    /// Plain text.
    #[default]
    Never,
}

/// What tables may look like: [`Colour`] alone stands for any width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Whether there is colour.
    pub colour: Colour,
    /// Maximum number of characters in a line, if there is one. A wider table leaves out its less important columns and
    /// says which, or has its parts below one another; cells are not cut, so that what is left may be wider.
    pub width: Option<usize>,
}

impl From<Colour> for Look {
    fn from(colour: Colour) -> Self {
        Self {
            colour,
            width: None,
        }
    }
}

/// The heading of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heading<'a> {
    /// Name of the policy.
    pub policy: &'a str,
    /// The seed, if the run used one.
    pub seed: Option<u64>,
}

#[cfg(test)]
mod tests;
