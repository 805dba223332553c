//! The command line of `generate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use shiftwork_model::Span;
use shiftwork_taskset::positive_span;

/// Options of `generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// How many CPUs the platform has.
    #[arg(short, long, value_name = "N", default_value_t = 4)]
    pub cpus: usize,
    /// How many tasks; the distributions of `--method` draw until `--utilization` is reached instead.
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    pub tasks: usize,
    /// Sum of the utilizations; default: half the CPUs.
    #[arg(short, long, value_name = "U")]
    pub utilization: Option<f64>,
    /// How utilizations are drawn.
    #[arg(short, long, value_name = "METHOD", default_value = "randfixedsum")]
    pub method: Method,
    /// Shortest period.
    #[arg(long, value_name = "SPAN", default_value = "1ms", value_parser = positive_span)]
    pub period_min: Span,
    /// Longest period.
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = positive_span)]
    pub period_max: Span,
    /// What every period is a multiple of.
    #[arg(long, value_name = "SPAN", default_value = "1us", value_parser = positive_span)]
    pub granularity: Span,
    /// How periods are spread.
    #[arg(long, value_name = "SPREAD", default_value = "log-uniform")]
    pub periods: PeriodSpread,
    /// Deadlines: the period, from cost to period, or from cost to twice the period.
    #[arg(long, value_name = "KIND", default_value = "implicit")]
    pub deadlines: DeadlineKind,
    /// What the affinities look like together.
    #[arg(short, long, value_name = "SHAPE", default_value = "global")]
    pub affinities: AffinityShape,
    /// CPUs in each cluster or socket (clustered, three-level); default: half the CPUs.
    #[arg(long, value_name = "N")]
    pub cluster_size: Option<usize>,
    /// No task costs less.
    #[arg(long, value_name = "SPAN", default_value = "1ns", value_parser = positive_span)]
    pub min_cost: Span,
    /// Draw again until the affinities leave enough room for every task.
    #[arg(long)]
    pub feasible: bool,
    /// How often to draw before giving up.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub attempts: u32,
    /// Seed of all random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How many task sets; more than one needs `--out-dir` or `--json`.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    pub count: u64,
    /// Write set-0000.toml, set-0001.toml, … into this folder, instead of to stdout.
    #[arg(short, long, value_name = "DIR")]
    pub out_dir: Option<PathBuf>,
    /// How many threads draw; the task sets do not depend on it. Default: one per CPU.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

/// How utilizations are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Stafford's, as used by Emberson et al. 2010: any sum, none above 1.
    Randfixedsum,
    /// Bini and Buttazzo 2005: sums up to 1.
    Uunifast,
    /// Davis and Burns 2009: UUniFast again and again until none is above 1.
    UunifastDiscard,
    /// Brandenburg et al. 2008: uniform in [0.001, 0.1].
    UniformLight,
    /// Brandenburg et al. 2008: uniform in [0.1, 0.4].
    UniformMedium,
    /// Brandenburg et al. 2008: uniform in [0.5, 0.9].
    UniformHeavy,
    /// Brandenburg et al. 2008: heavy with probability 1/9.
    BimodalLight,
    /// Brandenburg et al. 2008: heavy with probability 3/9.
    BimodalMedium,
    /// Brandenburg et al. 2008: heavy with probability 5/9.
    BimodalHeavy,
}

/// How periods are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PeriodSpread {
    /// Every period is as likely.
    Uniform,
    /// Every order of magnitude is as likely.
    LogUniform,
}

/// How deadlines are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeadlineKind {
    /// The period.
    Implicit,
    /// From the cost to the period.
    Constrained,
    /// From the cost to twice the period.
    Arbitrary,
}

/// What affinities look like together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AffinityShape {
    /// Every task may use every CPU.
    Global,
    /// Every task is bound to one CPU.
    Partitioned,
    /// One CPU or all.
    BiLevel,
    /// One cluster or all.
    Clustered,
    /// One CPU, one socket or all, as in Bonifaci et al. 2016.
    ThreeLevel,
    /// A random tree of nested sets.
    Laminar,
    /// Any sets.
    Arbitrary,
}
