//! The command line of `calibrate`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use shiftwork_calibrate::Part;
use shiftwork_model::{CpuSet, Span};
use shiftwork_taskset::positive_span;

use super::quantities::{cpu_list, size};
use super::run::Attention;

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
    /// Policies to write overheads for, instead of all, as in `p-edf,g-edf`; live runs are made under the first.
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

fn part_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Part::ALL.map(|(_, name)| name))
}
