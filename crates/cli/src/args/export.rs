//! The command line of `export`.

use clap::{Args, ValueEnum};

/// Options of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Task-set file, `-` for stdin; an rt-app file (`.json`) is converted on the way.
    pub file: String,
    /// What to write.
    #[arg(long = "as", value_name = "FORMAT")]
    pub format: ExportFormat,
    /// Policy whose scheduling class of Linux is written, instead of the file's: SCHED_DEADLINE for policies by
    /// deadlines, SCHED_FIFO for others and without any.
    #[arg(short, long, value_name = "NAME")]
    pub policy: Option<String>,
    /// Where to write, instead of stdout: a folder for the units of systemd (created if there is none), a file else.
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<String>,
    /// Refuse what cannot be carried over completely (exit status 2).
    #[arg(long)]
    pub strict: bool,
}

/// What `export` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A service unit for every task with a `command`.
    Systemd,
    /// A shell script that starts every task with a `command`.
    Chrt,
    /// An rt-app file.
    RtApp,
}
