//! `shiftwork analyze`: what is guaranteed of a task set, under every policy, and which test shows it.
//!
//! `candidate.rs` finds out where each policy binds the tasks, `found.rs` asks the analysis and gives the
//! answer, `priced.rs` what overheads are charged, `counterexample.rs` simulates where no test decides, `text.rs` and `json.rs` show it.

mod candidate;
mod counterexample;
mod found;
mod json;
mod priced;
mod text;

pub use candidate::bounds;
pub use json::AnalyzeOutput;

use crate::args::AnalyzeArgs;
use crate::failure::{Answer, Failure};
use crate::input::{self, Input};
use crate::output::Console;
use crate::verb::overheads;
use found::Findings;

/// How many steps each test may take for a page: it is to be there at once.
pub const STEPS: u64 = 2_000_000;

/// Says what is guaranteed.
pub fn run(args: &AnalyzeArgs, console: &mut Console) -> Result<Answer, Failure> {
    let input = Input::read(&args.file)?;
    let set = input::task_set(&input, console)?;
    let overheads = overheads::file(args.overheads.as_deref(), &input, &set)?;
    let findings = Findings::of(args, &set, overheads)?;
    for left_out in shiftwork_analysis::verdicts::left_out(&set) {
        console.note(format!(
            "note: {}: not taken into account: {left_out}",
            input.path
        ));
    }
    match console.json {
        true => console.json_line(&json::output(&set, &findings))?,
        false => text::show(&set, &findings, console)?,
    }
    Ok(findings.answer())
}
