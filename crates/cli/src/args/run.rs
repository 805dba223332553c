//! The command line of `run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use shiftwork_model::{CpuSet, Span};
use shiftwork_taskset::positive_span;

use super::quantities::cpu_list;
use super::recording::RecordingArgs;

/// Options of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Task-set file, `-` for stdin; an rt-app file (`.json`) is converted on the way.
    pub file: String,
    /// Policy to run under, instead of the file's: one, while `simulate` and `analyze` take several.
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
