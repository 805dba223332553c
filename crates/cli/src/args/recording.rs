//! The options of every verb that runs a task set: for how long, and what to write and to show.

use std::path::PathBuf;

use clap::Args;
use shiftwork_model::Span;
use shiftwork_taskset::positive_span;

/// Options of every verb that runs a task set, simulated or not.
#[derive(Clone, Debug, Args)]
pub struct RecordingArgs {
    /// How long, from the first release.
    #[arg(long = "for", value_name = "SPAN", default_value = "10s", value_parser = positive_span)]
    pub horizon: Span,
    /// Seed of all random numbers: sporadic gaps, random execution times.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write a table of all jobs (CSV).
    #[arg(long, value_name = "FILE.csv")]
    pub jobs: Option<PathBuf>,
    /// Write a trace for Perfetto (ui.perfetto.dev).
    #[arg(long, value_name = "FILE.pftrace")]
    pub trace: Option<PathBuf>,
    /// Add sched_switch events to the trace, for tools that are made for kernel traces.
    #[arg(long, requires = "trace")]
    pub sched_switch: bool,
    /// Write an HTML page about the run.
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Say what led to the first missed deadlines, and to chains longer than wanted: where the time went, what is to
    /// blame, and which tasks had which CPU. Keeps all records in memory.
    #[arg(long)]
    pub explain: bool,
    /// Exit with status 1 if a deadline is missed, or a requirement on a chain is not met. (`run` does so anyway;
    /// with this also if the machine did not do as the policy decides.)
    #[arg(long)]
    pub strict: bool,
}
