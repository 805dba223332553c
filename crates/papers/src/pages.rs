//! All pages of all papers.

use crate::page::Page;
use crate::tang_2021;

/// Pages that are computed in seconds; a test compares them with what the repository has.
///
/// # Errors
/// In words, if an input cannot be read.
pub fn quick() -> Result<Vec<Page>, String> {
    tang_2021::examples_page::pages()
}

/// Pages that take minutes.
///
/// # Errors
/// In words, if a task set cannot be drawn or run.
pub fn slow() -> Result<Vec<Page>, String> {
    tang_2021::evaluation_page::pages()
}
