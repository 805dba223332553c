//! The command line: every verb and option, in one definition. Man pages and completions are made
//! from it.

mod daemon;
mod generate;
mod study;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use shiftwork_calibrate::Part;
use shiftwork_model::{CpuSet, Lagging, Repairs, Span};
use shiftwork_taskset::positive_span;

pub use daemon::{DaemonArgs, ExecArgs, OnOverrunName, RecordArgs, ReservationArgs, TopArgs};
pub use generate::{AffinityShape, DeadlineKind, GenerateArgs, Method, PeriodSpread};
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
    /// Show the reservations and their statistics
    Status,
    /// Show the status repeatedly
    Top(TopArgs),
    /// Show the recorded scheduling events, or why deadlines were missed
    Record(RecordArgs),
    /// Drive a policy through a table of events and check which task runs where after each
    Scenario(ScenarioArgs),
    /// Generate random task sets
    Generate(GenerateArgs),
    /// Convert rt-app, SimSo or SchedCAT files into task-set files
    Convert(ConvertArgs),
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

/// Options of `analyze`.
///
/// The first and the last line say whether all deadlines are met under every policy that is asked about, or with
/// `--criterion soft` whether tardiness is bounded; where it is not so, or not known, the lines before the last name
/// policies, affinities and costs with which it would be so.
///
/// Exit status: 0 if it is shown, 1 if it is proven that it is not so under one of the policies, 4 if neither is known.
/// Where neither `--policy` nor the file names a policy, any of those listed will do. Admission (what `run` says, which
/// keeps the reserve free) is a line of its own and does not count here.
#[derive(Debug, Args)]
pub struct AnalyzeArgs {
    /// Task-set file, `-` for stdin; an rt-app file (`.json`) is converted on the way.
    pub file: String,
    /// Policies to look at, instead of all; without it the file's is the one that counts.
    #[arg(short, long = "policy", value_name = "NAME", value_delimiter = ',')]
    pub policies: Vec<String>,
    /// What is asked of every policy, and answered by the first and the last line and the exit status.
    #[arg(long, value_name = "CRITERION", default_value = "hard")]
    pub criterion: CriterionName,
    /// How many steps each test may take for each policy before it gives up; counted, not timed, so
    /// that the answer is the same on every machine.
    #[arg(long, value_name = "N", default_value_t = 20_000_000)]
    pub max_steps: u64,
    /// Overhead file, instead of the one that the task-set file names; `none`: scheduling costs nothing.
    /// Hard verdicts take the worst overheads into account, soft ones the average.
    #[arg(long, value_name = "FILE.toml")]
    pub overheads: Option<String>,
    /// Find the largest factor on all costs with which the criterion is met, policy by policy.
    #[arg(long)]
    pub scale: bool,
    /// Propose affinities with which the criterion is met, within the file's if possible.
    #[arg(long)]
    pub assign: bool,
}

/// What is asked of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CriterionName {
    /// All deadlines are met.
    Hard,
    /// Tardiness is bounded.
    Soft,
}

/// Options of `simulate`.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// Task-set file, `-` for stdin; an rt-app file (`.json`) is converted on the way.
    pub file: String,
    /// Policy to simulate, instead of the file's; several are compared side by side, and those that do not take
    /// the task set are left out.
    #[arg(short, long = "policy", value_name = "NAME", value_delimiter = ',')]
    pub policies: Vec<String>,
    /// What to keep, and for how long.
    #[command(flatten)]
    pub recording: RecordingArgs,
    /// Overhead file, instead of the one that the task-set file names; `none`: scheduling costs nothing.
    #[arg(long, value_name = "FILE.toml")]
    pub overheads: Option<String>,
    /// Which of the overheads to apply.
    #[arg(long, value_name = "USE", default_value = "worst")]
    pub overheads_use: OverheadsUse,
    /// Give background work that has waited for a second its reserve, as a live machine does.
    #[arg(long)]
    pub reserve_server: bool,
    /// Look for priority inversions: jobs that wait for less urgent ones, or for idle CPUs. Without being
    /// asked, this is done under `dl-*`, for several policies, and with `--report`.
    #[arg(long)]
    pub inversions: bool,
    /// Which of the four repairs of Tang et al. dl-sp has, instead of the file's; without either, all.
    /// dl-linux never has any, and other policies know none.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = repair_names())]
    pub repairs: Vec<String>,
    /// The deadline of a server that is replenished over a period late, instead of the file's: the next
    /// of its own, or one counted from now, as Linux has it. Only for dl-linux and dl-sp.
    #[arg(long, value_name = "RULE", value_parser = PossibleValuesParser::new(Lagging::NAMES))]
    pub lagging: Option<String>,
}

/// Options of every verb that runs a task set, simulated or not.
#[derive(Clone, Debug, Args)]
pub struct RecordingArgs {
    /// How long, from the first release.
    #[arg(long = "for", value_name = "SPAN", default_value = "10s", value_parser = positive_span)]
    pub horizon: Span,
    /// Seed of all random numbers: sporadic gaps, random execution times.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write a table of all jobs (CSV). With several policies, the policy's name goes before the
    /// extension of every file written.
    #[arg(long, value_name = "FILE.csv")]
    pub jobs: Option<PathBuf>,
    /// Write a trace for Perfetto (ui.perfetto.dev).
    #[arg(long, value_name = "FILE.pftrace")]
    pub trace: Option<PathBuf>,
    /// Add sched_switch events to the trace, for tools that are made for kernel traces.
    #[arg(long, requires = "trace")]
    pub sched_switch: bool,
    /// Write an HTML page; with several policies, one page that shows them side by side.
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Say what led to the first missed deadlines: where the time went, what is to blame, and which tasks had
    /// which CPU. Keeps all records in memory.
    #[arg(long)]
    pub explain: bool,
    /// Exit with status 1 if a deadline is missed. (`run` does so anyway; with this also if the machine did
    /// not do as the policy decides.)
    #[arg(long)]
    pub strict: bool,
}

/// Options of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Task-set file, `-` for stdin; an rt-app file (`.json`) is converted on the way.
    pub file: String,
    /// Policy to run under, instead of the file's.
    #[arg(short, long, value_name = "NAME")]
    pub policy: Option<String>,
    /// What runs the tasks.
    #[arg(short, long, value_name = "MACHINE", default_value = "auto")]
    pub machine: MachineName,
    /// How an agent waits for something to decide on.
    #[arg(long, value_name = "HOW", default_value = "dedicated")]
    pub agent: Attention,
    /// What to keep, and for how long.
    #[command(flatten)]
    pub recording: RecordingArgs,
    /// Run also what admission refuses, since it does not fit or nothing can be guaranteed of it: no guarantee holds then.
    #[arg(long)]
    pub best_effort: bool,
    /// CPUs of the machine to use, as many as the file has: its CPU 0 is the first of the list, and so
    /// on. Default: the CPUs of the same numbers.
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub on_cpus: Option<CpuSet>,
    /// Folder of a BPF file system in which to pin the scheduler, so that it outlives this command.
    #[arg(long, value_name = "DIR")]
    pub pin: Option<PathBuf>,
    /// How much of the kernel's trace may wait to be read, in KiB. What finds no room is lost, and
    /// counted.
    #[arg(long, value_name = "KIB", default_value_t = 16384, value_parser = clap::value_parser!(u32).range(4..=1_048_576))]
    pub trace_buffer: u32,
    /// How long the machine may take to carry out a decision before it counts as a disagreement with the
    /// policy. Choose what `calibrate` finds on this machine as the largest reaction.
    #[arg(long, value_name = "SPAN", value_parser = positive_span, default_value = "200us")]
    pub window: Span,
    /// Do not judge the run by its policy afterwards, nor simulate the same to show both side by side.
    #[arg(long)]
    pub no_compare: bool,
}

/// What runs the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MachineName {
    /// The first of the following that can: kernel, agent, fifo; if none, what is in the way and what to
    /// do instead.
    Auto,
    /// The kernel decides and carries out, through sched_ext.
    Kernel,
    /// An agent on a CPU of its own decides, any policy; the kernel carries out, through sched_ext.
    Agent,
    /// The same on any kernel: fixed priorities (SCHED_FIFO) carry out.
    Fifo,
    /// The simulation: nothing is really run.
    Sim,
}

/// How an agent waits for something to decide on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Attention {
    /// It looks all the time, and has its CPU for itself.
    Dedicated,
    /// It sleeps meanwhile, and leaves its CPU to others: slower by a wake-up.
    Shared,
}

/// Which overheads to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OverheadsUse {
    /// The worst that was measured, as for hard deadlines.
    Worst,
    /// The average, as for soft deadlines.
    Average,
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

/// Options of `calibrate`.
///
/// Exit status: 0 when done; 1 if `--check` finds that more than one in 20 means differ.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Which machine the overheads are to describe.
    #[arg(short, long, value_name = "MACHINE", default_value = "auto")]
    pub machine: CalibratedMachine,
    /// How an agent waits in live runs.
    #[arg(long, value_name = "HOW", default_value = "dedicated")]
    pub agent: Attention,
    /// Policies to write overheads for, instead of all; live runs are made under the first.
    #[arg(short, long = "policy", value_name = "NAME", value_delimiter = ',')]
    pub policies: Vec<String>,
    /// CPUs to measure on; default: all that this process may use.
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub cpus: Option<CpuSet>,
    /// Working set of the preemption and migration delays in the overhead file; 0: no delays, as
    /// for synthetic work.
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = size)]
    pub working_set: u64,
    /// The largest working set to measure; default: twice the last-level cache, at most 64MiB.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub largest_set: Option<u64>,
    /// What to measure, instead of all; without `decide` there is nothing to write into an overhead file, and
    /// without `queues` nothing for the nine implementations of global EDF.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = part_names())]
    pub measure: Vec<String>,
    /// How long to measure, about; default: 100 s, or with `--quick` 15 s.
    #[arg(long = "for", value_name = "SPAN", value_parser = positive_span)]
    pub budget: Option<Span>,
    /// Take 15 seconds instead of 100: wider intervals, and working sets to 1MiB.
    #[arg(long)]
    pub quick: bool,
    /// Write the overheads into this file.
    #[arg(short, long, value_name = "FILE.toml")]
    pub output: Option<PathBuf>,
    /// Write an HTML page with distributions and plots.
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Compare with an earlier calibration, of which this is what `--json` printed.
    #[arg(long, value_name = "FILE.json")]
    pub check: Option<String>,
}

/// Which machine overheads are to describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CalibratedMachine {
    /// The first of the following that can be measured here: agent, fifo, in-kernel.
    Auto,
    /// `run --machine agent`.
    Agent,
    /// `run --machine fifo`.
    Fifo,
    /// A scheduler inside the kernel, that decides on the CPU that switches.
    InKernel,
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
    /// Instead of a page, say what led to the first missed deadlines of each trace.
    #[arg(long, conflicts_with = "output")]
    pub explain: bool,
}

/// What `--repairs` takes beside the names of repairs: that there are none.
pub const NO_REPAIRS: &str = "none";

fn repair_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Repairs::NAMES.into_iter().chain([NO_REPAIRS]))
}

fn part_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Part::ALL.map(|(_, name)| name))
}

/// Reads the CPUs of a list like `0-3,7`, at least one.
pub fn cpu_list(text: &str) -> Result<CpuSet, String> {
    let cpus: CpuSet = text.parse().map_err(|error| format!("{error}"))?;
    if cpus.is_empty() {
        return Err(format!(
            "`{text}` names no CPU; write a list like `2-5` or `0,2,4`"
        ));
    }
    Ok(cpus)
}

/// Reads a number of bytes, like `64KiB`.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "KiB" => Some(10),
        "MiB" => Some(20),
        "GiB" => Some(30),
        "B" => Some(0),
        "" if digits == "0" => Some(0),
        _ => None,
    };
    let number = digits.parse::<u64>().ok();
    let bytes = number
        .zip(shift)
        .and_then(|(number, shift)| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| {
        format!(
            "`{text}` is no number of bytes; write it with its unit, like `4KiB` or `1MiB`, or `0`"
        )
    })
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
    fn sizes_need_a_unit() {
        let sizes = ["0", "64KiB", "3MiB", "2GiB", "17B"].map(size);
        assert_eq!(sizes, [0, 64 << 10, 3 << 20, 2 << 30, 17].map(Ok));
        for text in [
            "",
            "64",
            "64k",
            "64KB",
            "KiB",
            "-1KiB",
            "99999999999GiB",
            "1.5MiB",
            "\u{b5}",
        ] {
            assert!(size(text).unwrap_err().contains("like `4KiB`"), "{text}");
        }
    }
}
