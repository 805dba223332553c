//! All pages of all papers.

use shiftwork_model::Span;

use crate::page::Page;
use crate::{affinities, bonifaci_2016, brandenburg_2008, brandenburg_2009, tang_2021};

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
    let mut pages = tang_2021::evaluation_page::pages()?;
    pages.extend(brandenburg_2008::schedulability_page::pages()?);
    pages.extend(bonifaci_2016::schedulability_page::pages()?);
    pages.extend(affinities::schedulability_page::pages()?);
    Ok(pages)
}

/// Pages with figures that are measured, others each time. `live` is what the live tests printed, if they ran.
///
/// # Errors
/// In words, if a task set cannot be drawn or run, or if `live` is not what those tests print.
pub fn measured(live: Option<&str>) -> Result<Vec<Page>, String> {
    let mut pages = bonifaci_2016::overheads_page::pages(Span::from_s(10), live)?;
    pages.extend(brandenburg_2009::findings_page::pages()?);
    Ok(pages)
}
