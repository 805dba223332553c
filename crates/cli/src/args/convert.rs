//! The command line of `convert`.

use clap::{Args, ValueEnum};
use shiftwork_model::Span;
use shiftwork_taskset::positive_span;

/// Options of `convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// File to convert, `-` for stdin.
    pub file: String,
    /// What kind of file it is.
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub from: ConvertFrom,
    /// How many CPUs there are, where the file does not say (rt-app, SchedCAT); default: the fewest
    /// that it can mean.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub cpus: Option<u16>,
    /// What a number counts in a SchedCAT file, which does not say.
    #[arg(long, value_name = "SPAN", default_value = "1us", value_parser = positive_span)]
    pub unit: Span,
    /// Where to write the task-set file, instead of stdout.
    #[arg(short, long, value_name = "FILE.toml")]
    pub output: Option<String>,
    /// Refuse what cannot be carried over completely (exit status 2).
    #[arg(long)]
    pub strict: bool,
}

/// What `convert` reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ConvertFrom {
    /// By content.
    Auto,
    /// rt-app, in all its dialects of JSON.
    RtApp,
    /// SimSo's XML.
    Simso,
    /// SchedCAT's XML.
    Schedcat,
}
