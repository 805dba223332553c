//! The command line: every verb and option, in one definition. Man pages and completions are made
//! from it.

mod analyze;
mod calibrate;
mod convert;
mod daemon;
mod export;
mod generate;
mod init;
mod quantities;
mod recording;
mod reservations;
mod run;
mod simulate;
mod study;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub use analyze::{AnalyzeArgs, CriterionName, ReleasesName};
pub use calibrate::{CalibrateArgs, CalibratedMachine};
pub use convert::{ConvertArgs, ConvertFrom};
pub use daemon::{DaemonArgs, ExecArgs, OnOverrunName, RecordArgs, ReservationArgs, TopArgs};
pub use export::{ExportArgs, ExportFormat};
pub use generate::{AffinityShape, DeadlineKind, GenerateArgs, Method, PeriodSpread};
pub use init::InitArgs;
pub use quantities::{cpu_list, size};
pub use recording::RecordingArgs;
pub use reservations::{ApplyArgs, ChangeArgs, ReleaseArgs};
pub use run::{Attention, MachineName, RunArgs};
pub use simulate::{NO_REPAIRS, OverheadsUse, SimulateArgs};
pub use study::{StudyArgs, StudyPlotArgs, StudyRunArgs, StudyVerb};

/// Schedules real-time tasks on multicore machines with any processor affinities.
///
/// A task-set file says which tasks there are, what they cost, when they are due and which CPUs they
/// may use. `analyze` says what is guaranteed, `simulate` shows exactly what each scheduling policy
/// makes of it, `run` makes it happen on this machine.
///
/// Exit status: 0 yes or done; 1 the answer is no; 2 bad usage or input; 3 this machine cannot; 4
/// undecided; 130 interrupted (Ctrl-C, SIGTERM) before there was an answer.
#[derive(Debug, Parser)]
#[command(
    name = "shiftwork",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "`shiftwork man [VERB]` prints the man pages, `shiftwork completions SHELL` the \
                  completions of a shell."
)]
pub struct Cli {
    /// Options of every verb.
    #[command(flatten)]
    pub common: Common,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Under which the help lists the options of every verb.
const EVERYWHERE: &str = "Options of every verb";

/// Options of every verb.
#[derive(Debug, Args)]
pub struct Common {
    /// Print results as JSON: one object, or one per line.
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub json: bool,
    /// When to colour; NO_COLOR is honoured.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = EVERYWHERE)]
    pub color: When,
    /// Say nothing on stderr but errors.
    #[arg(short, long, global = true, help_heading = EVERYWHERE)]
    pub quiet: bool,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Write a first task-set file: an example, or what is measured of a running program
    Init(InitArgs),
    /// Say what is guaranteed of a task set: feasibility, admission, every schedulability test, bounds
    Analyze(AnalyzeArgs),
    /// Simulate a task set exactly under one or more policies
    Simulate(SimulateArgs),
    /// Admit a task set and run it for real on this machine
    Run(RunArgs),
    /// Schedule this machine for programs that come and go, until stopped
    #[command(alias = "agent")]
    Daemon(DaemonArgs),
    /// Run a program with a reservation from the daemon
    Exec(ExecArgs),
    /// Reserve for every task of a file, all or none
    Apply(ApplyArgs),
    /// Change a reservation
    Change(ChangeArgs),
    /// Give reservations back
    Release(ReleaseArgs),
    /// Show the reservations and their statistics
    Status,
    /// Watch the reserved threads: sort, filter, look into misses
    Top(TopArgs),
    /// Show the recorded scheduling events, or why deadlines were missed
    Record(RecordArgs),
    /// Drive a policy through a table of events and check which task runs where after each
    Scenario(ScenarioArgs),
    /// Generate random task sets
    Generate(GenerateArgs),
    /// Convert rt-app, SimSo or SchedCAT files into task-set files
    Convert(ConvertArgs),
    /// Export a task set to systemd, chrt or rt-app: files that run without shiftwork
    Export(ExportArgs),
    /// Measure what scheduling costs on this machine, and write an overhead file
    Calibrate(CalibrateArgs),
    /// Run schedulability studies over random task sets, and draw what comes of them
    Study(StudyArgs),
    /// List the policies: what each is, what it takes, where it comes from
    Policies,
    /// Make an HTML report from a trace
    Report(ReportArgs),
    /// Print the JSON schema of what a verb prints
    Schema(SchemaArgs),
    /// Say what this machine can do for real-time scheduling, and what to change
    Doctor,
    /// Print or write man pages
    #[command(hide = true)]
    Man(ManArgs),
    /// Print or write shell completions
    #[command(hide = true)]
    Completions(CompletionsArgs),
}

/// Options of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Print the page of this verb; without it, that of the command.
    pub verb: Option<String>,
    /// Write all pages into this folder instead.
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    pub out_dir: Option<PathBuf>,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(required_unless_present = "out_dir")]
    pub shell: Option<Shell>,
    /// Write the completions of bash, zsh and fish into this folder instead.
    #[arg(long, value_name = "DIR", conflicts_with = "shell")]
    pub out_dir: Option<PathBuf>,
}

/// Options of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Describe the output of this verb, or this kind of file: `task-set`, `scenario`, `study`,
    /// `overheads`, `daemon`; without it, all.
    pub name: Option<String>,
    /// Describe the file where a verb has the same name: `scenario`, `study`.
    #[arg(long)]
    pub input: bool,
}

/// Options of `scenario`.
#[derive(Debug, Args)]
pub struct ScenarioArgs {
    /// Scenario file, `-` for stdin.
    pub file: String,
    /// Policy to drive, instead of the file's.
    #[arg(short, long, value_name = "NAME")]
    pub policy: Option<String>,
}

/// Options of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Traces written by shiftwork (`.pftrace`); several are shown side by side on one page.
    #[arg(required = true, value_name = "FILE.pftrace")]
    pub files: Vec<String>,
    /// Where to write the page, instead of stdout.
    #[arg(short, long, value_name = "FILE.html")]
    pub output: Option<PathBuf>,
    /// Instead of a page, say what led to the first missed deadlines of each trace, and to chains longer than wanted.
    #[arg(long, conflicts_with = "output")]
    pub explain: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_of_a_verb_says_whether_it_takes_several_policies() {
        let command = Cli::command();
        let (mut one, mut several) = (Vec::new(), Vec::new());
        for verb in command.get_subcommands() {
            let policy = verb.get_arguments().find(|it| it.get_short() == Some('p'));
            if let Some(policy) = policy {
                let help = policy.get_help().unwrap().to_string();
                let shows_comma = help.contains("`p-edf,g-edf`");
                let takes_comma = policy.get_value_delimiter() == Some(',');
                assert_eq!(shows_comma, takes_comma, "{}: {help}", verb.get_name());
                let verbs = if takes_comma { &mut several } else { &mut one };
                verbs.push(verb.get_name());
            }
        }
        assert_eq!(one, ["run", "scenario", "export"]);
        assert_eq!(several, ["analyze", "simulate", "calibrate"]);
        let help = command
            .clone()
            .find_subcommand_mut("run")
            .unwrap()
            .render_long_help();
        assert!(!help.to_string().contains("several policies"), "{help}");
    }
}
