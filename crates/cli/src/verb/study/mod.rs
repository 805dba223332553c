//! `shiftwork study`: schedulability studies.
//!
//! `run.rs` works a study off, `plot.rs` draws what came of it, `output.rs` is what of it is printed.

mod output;
mod plot;
mod run;

use std::fs;

use shiftwork_study::StudyError;

use crate::args::{StudyArgs, StudyVerb};
use crate::failure::{Answer, Failure};
use crate::output::Console;

pub use output::StudyOutput;

/// Runs or draws a study.
pub fn run(args: &StudyArgs, console: &mut Console) -> Result<Answer, Failure> {
    match &args.verb {
        StudyVerb::Run(args) => run::run(args, console),
        StudyVerb::Plot(args) => plot::run(args, console),
    }
}

/// What went wrong with a study, with its place where there is one to show.
fn failure(error: StudyError) -> Failure {
    match &error {
        StudyError::File { path, error } => {
            // Without the file, if it is gone meanwhile, there is no excerpt.
            let text = fs::read_to_string(path).unwrap_or_default();
            Failure::refused(path, &text, error)
        }
        StudyError::Write { error: cause, .. } if !Failure::is_the_users(cause) => {
            Failure::Machine(error.to_string())
        }
        StudyError::Threads { .. } => Failure::Machine(error.to_string()),
        _ => Failure::input(error),
    }
}
