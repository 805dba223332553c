//! The `shiftwork` command.
//!
//! This crate wires the others together: it reads files and arguments, calls the crates, and shows
//! what they say. It must never contain scheduling, counting, or the text of another crate's error.
//! Only here may a clock, the terminal and the file system be touched.
//!
//! Start reading at [`args`], which defines every verb and option, then `verb/`, one file per verb.

pub mod args;
mod doctor;
mod failure;
mod input;
pub mod json;
mod output;
mod output_files;
mod table;
mod verb;

pub use shiftwork_verbs::catalogue;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Verb};
use crate::failure::{Answer, Failure};
use crate::output::{Console, tell, wants_color};

/// Runs one command line and returns the exit status: 0 yes or done, 1 the answer is no,
/// 2 bad usage or input, 3 this machine cannot, 4 undecided, 130 interrupted.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // A closed pipe is no failure, and no other error could be printed.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let mut console = Console::new(&cli.common);
    let answer = dispatch(&cli.verb, &mut console);
    // What was found out before a failure is worth showing, too.
    let flushed = console.flush();
    match answer.and_then(|answer| flushed.map(|()| answer)) {
        Ok(answer) => ExitCode::from(answer.status()),
        Err(failure) => {
            tell(&failure.render(wants_color(cli.common.color, &io::stderr())));
            ExitCode::from(failure.status())
        }
    }
}

fn dispatch(verb: &Verb, console: &mut Console) -> Result<Answer, Failure> {
    match verb {
        Verb::Init(args) => verb::init::run(args, console),
        Verb::Analyze(args) => verb::analyze::run(args, console),
        Verb::Simulate(args) => verb::simulate::run(args, console),
        Verb::Run(args) => verb::run::run(args, console),
        Verb::Daemon(args) => verb::daemon::run(args, console),
        Verb::Exec(args) => verb::exec::run(args, console),
        Verb::Apply(args) => verb::apply::run(args, console),
        Verb::Change(args) => verb::change::run(args, console),
        Verb::Release(args) => verb::release::run(args, console),
        Verb::Status => verb::status::run(console),
        Verb::Top(args) => verb::top::run(args, console),
        Verb::Record(args) => verb::record::run(args, console),
        Verb::Scenario(args) => verb::scenario::run(args, console),
        Verb::Generate(args) => verb::generate::run(args, console),
        Verb::Convert(args) => verb::convert::run(args, console),
        Verb::Export(args) => verb::export::run(args, console),
        Verb::Calibrate(args) => verb::calibrate::run(args, console),
        Verb::Study(args) => verb::study::run(args, console),
        Verb::Policies => verb::policies::run(console),
        Verb::Report(args) => verb::report::run(args, console),
        Verb::Schema(args) => verb::schema::run(args, console),
        Verb::Doctor => verb::doctor::run(console),
        Verb::Man(args) => verb::pages::man(args, console),
        Verb::Completions(args) => verb::pages::completions(args, console),
    }
}
