//! The page about Sections 3 to 5.

use super::FOLDER;
use super::{examples, repairs};
use crate::chapter::Chapter;
use crate::page::Page;

const HEAD: &str = "\
<!-- Written by `make papers`; changes here are lost. -->
# Tang, Anderson, Abeni 2021

S. Tang, J. H. Anderson, L. Abeni, \"On the Defectiveness of SCHED_DEADLINE w.r.t. Tardiness and Affinities, and a
Partial Fix\", RTNS 2021. Linux's deadline scheduler as it is (`dl-linux`), and with the four repairs of the paper
(`dl-sp`), example by example, beside two policies that shift running jobs (`strong-edf`, which is the paper's SAPA-EDF,
and `hpa-edf`). The evaluation of Section 6 is on [a page of its own](evaluation.md).

The task sets are in [examples/tang-2021](../../../examples/tang-2021). Times are those of the paper, in milliseconds. What is
marked † is not in the paper's text: it follows from its rules, by hand, where the paper has a figure or only says that
something grows.

In the pictures a row for each CPU shows the jobs that run there, `t2.3` being the third job of t2. Below is a lane for each task, with
where it may run: an arrow up is a release, an arrow down a deadline, a circle a completion, and a red bar is
lateness.
";

/// The page with its figures.
///
/// # Errors
/// In words, if an example cannot be read or run.
pub fn pages() -> Result<Vec<Page>, String> {
    let mut page = Chapter::new(FOLDER);
    page.say(HEAD);
    page.say("## The examples");
    for chapter in examples::all()? {
        page.append(chapter);
    }
    page.append(repairs::defects()?);
    page.append(repairs::left_out()?);
    page.append(repairs::compared()?);
    Ok(page.into_pages("README"))
}
