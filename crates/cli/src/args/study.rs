//! The command line of `study`.

use std::path::PathBuf;

use clap::{Args, Subcommand, value_parser};
use shiftwork_study::Shard;

/// Options of `study`.
#[derive(Debug, Args)]
pub struct StudyArgs {
    /// What to do with a study.
    #[command(subcommand)]
    pub verb: StudyVerb,
}

/// What to do with a study.
#[derive(Debug, Subcommand)]
pub enum StudyVerb {
    /// Run what is missing of a study
    Run(StudyRunArgs),
    /// Draw what came of a study: curves as SVG, their data as CSV, and one page with all of them
    Plot(StudyPlotArgs),
}

/// Options of `study run`.
///
/// Whatever was done before is kept in the folder and not done again, however it ended: Ctrl-C and SIGTERM stop
/// within a second, and a process that is killed loses some seconds. Results depend on the study alone, never on threads,
/// shares and interruptions. When nothing is missing any more they are in `results.parquet`.
///
/// Exit status: 0 if nothing is missing of the share that was asked for, 1 if it was stopped before.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    shiftwork study run studies/example.toml\n  \
    shiftwork study run big.toml --shard \"$SLURM_ARRAY_TASK_ID/64\"   # sbatch --array=1-64\n  \
    cp elsewhere/part-*.parquet big/ && shiftwork study run big.toml   # parts of other computers\n  \
    shiftwork study plot big\n\n\
    Exit status: 0 if nothing is missing of the share that was asked for, 1 if it was stopped before.")]
pub struct StudyRunArgs {
    /// Study file.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The folder in which everything is kept; default: the name of the file without `.toml`.
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Run only this share of the study: 1/8 is the first of eight, 8/8 the last.
    #[arg(long, value_name = "I/N", default_value_t = Shard::ALL)]
    pub shard: Shard,
    /// How many threads; default: one for each CPU.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// How many task sets to draw for each cell, instead of what the file says.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=u64::from(u32::MAX)))]
    pub sets: Option<u64>,
}

/// Options of `study plot`.
#[derive(Debug, Args)]
pub struct StudyPlotArgs {
    /// The folder of a study, or its `results.parquet`.
    #[arg(value_name = "DIR|FILE.parquet")]
    pub results: PathBuf,
    /// The folder for the figures; default: where the results are.
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
