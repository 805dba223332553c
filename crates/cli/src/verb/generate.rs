//! `shiftwork generate`: random task sets.

use std::fs;
use std::path::Path;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_model::TaskSet;
use shiftwork_taskset::generate::{
    Deadlines, Distribution, Key, Options, Periods, Shape, Spread, Utilizations, generate,
};
use shiftwork_taskset::{TasksetError, write};
use shiftwork_trace::SCHEMA_VERSION;

use crate::args::{AffinityShape, DeadlineKind, GenerateArgs, Method, PeriodSpread};
use crate::failure::{Answer, Failure};
use crate::output::Console;

/// What `generate --json` prints, one line per task set.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneratedOutput {
    /// Always the same for one release of the format.
    pub schema_version: u64,
    /// From 0.
    pub index: u64,
    /// Where the task set was written; null without `--out-dir`.
    pub file: Option<String>,
    /// CPUs of the platform.
    pub cpus: usize,
    /// Number of tasks.
    pub tasks: usize,
    /// The sum of the utilizations, rounded.
    pub utilization: f64,
    /// `global`, `partitioned`, `bi-level`, `clustered`, `laminar` or `arbitrary`.
    pub affinity_kind: &'static str,
    /// The task-set file; null with `--out-dir`.
    pub toml: Option<String>,
}

/// How many task sets are drawn before they are written: enough to keep all threads busy, few enough
/// to be held in memory.
const BATCH: u64 = 512;

/// Draws the task sets and writes them, in their order.
pub fn run(args: &GenerateArgs, console: &mut Console) -> Result<Answer, Failure> {
    if args.count > 1 && args.out_dir.is_none() && !console.json {
        return Err(Failure::input(format_args!(
            "{} task sets are too many for stdout; use --out-dir DIR or --json",
            args.count
        )));
    }
    let options = options(args)?;
    let threads = rayon::ThreadPoolBuilder::new()
        .num_threads(args.threads.unwrap_or(0))
        .build()
        .map_err(|error| Failure::Machine(format!("cannot start the threads: {error}")))?;
    if let Some(folder) = &args.out_dir {
        fs::create_dir_all(folder)
            .map_err(|error| Failure::writing(&folder.display().to_string(), &error))?;
    }
    for first in (0..args.count).step_by(BATCH as usize) {
        let last = args.count.min(first + BATCH);
        // Each task set has its own random stream, and the batch keeps its order: the result does
        // not depend on the threads.
        let batch: Vec<Result<TaskSet, TasksetError>> = threads.install(|| {
            let draw = |index| {
                generate(
                    &options,
                    Key {
                        seed: args.seed,
                        cell: 0,
                        index,
                    },
                )
            };
            (first..last).into_par_iter().map(draw).collect()
        });
        for (index, set) in (first..last).zip(batch) {
            let set = set.map_err(Failure::input)?;
            if set.tasks.is_empty() {
                console.note(format!(
                    "note: task set {index} has no tasks: the first that was drawn uses more than the utilization asked for"
                ));
            }
            emit(args, console, index, &set)?;
        }
    }
    if let Some(folder) = &args.out_dir {
        console.note(format!("{} task sets in {}", args.count, folder.display()));
    }
    Ok(Answer::Yes)
}

fn options(args: &GenerateArgs) -> Result<Options, Failure> {
    let total = args
        .utilization
        .unwrap_or((args.cpus as f64 / 2.0).max(0.5));
    if !(total.is_finite() && total > 0.0) {
        return Err(Failure::input(format_args!(
            "--utilization {total} is no load; write a number above 0, like 2.5"
        )));
    }
    if total > args.cpus as f64 {
        return Err(Failure::input(format_args!(
            "--utilization {total} is more than {cpus} CPUs can bear; write at most {cpus}, or more --cpus",
            cpus = args.cpus
        )));
    }
    let cluster = args.cluster_size.unwrap_or(args.cpus.div_ceil(2));
    Ok(Options {
        cpus: args.cpus,
        utilizations: utilizations(args, total),
        periods: Periods {
            shortest: args.period_min,
            longest: args.period_max,
            granularity: args.granularity,
            spread: match args.periods {
                PeriodSpread::Uniform => Spread::Uniform,
                PeriodSpread::LogUniform => Spread::LogUniform,
            },
        },
        deadlines: match args.deadlines {
            DeadlineKind::Implicit => Deadlines::Implicit,
            DeadlineKind::Constrained => Deadlines::Constrained,
            DeadlineKind::Arbitrary => Deadlines::Arbitrary,
        },
        shape: match args.affinities {
            AffinityShape::Global => Shape::Global,
            AffinityShape::Partitioned => Shape::Partitioned,
            AffinityShape::BiLevel => Shape::BiLevel,
            AffinityShape::Clustered => Shape::Clustered(cluster),
            AffinityShape::ThreeLevel => Shape::ThreeLevel(cluster),
            AffinityShape::Laminar => Shape::Laminar,
            AffinityShape::Arbitrary => Shape::Arbitrary,
        },
        min_cost: args.min_cost,
        feasible: args.feasible,
        attempts: args.attempts,
    })
}

fn utilizations(args: &GenerateArgs, total: f64) -> Utilizations {
    let tasks = args.tasks;
    let until = |distribution| Utilizations::UntilCap {
        distribution,
        cap: total,
    };
    match args.method {
        Method::Randfixedsum => Utilizations::RandFixedSum { tasks, total },
        Method::Uunifast => Utilizations::UUniFast { tasks, total },
        Method::UunifastDiscard => Utilizations::UUniFastDiscard { tasks, total },
        Method::UniformLight => until(Distribution::UniformLight),
        Method::UniformMedium => until(Distribution::UniformMedium),
        Method::UniformHeavy => until(Distribution::UniformHeavy),
        Method::BimodalLight => until(Distribution::BimodalLight),
        Method::BimodalMedium => until(Distribution::BimodalMedium),
        Method::BimodalHeavy => until(Distribution::BimodalHeavy),
    }
}

/// Writes one task set: into the folder, or to stdout.
fn emit(
    args: &GenerateArgs,
    console: &mut Console,
    index: u64,
    set: &TaskSet,
) -> Result<(), Failure> {
    let toml = write(set);
    let file = match &args.out_dir {
        Some(folder) => Some(save(folder, args.count, index, &toml)?),
        None => None,
    };
    if console.json {
        return console.json_line(&GeneratedOutput {
            schema_version: SCHEMA_VERSION,
            index,
            cpus: set.platform.cpus,
            tasks: set.tasks.len(),
            utilization: set
                .tasks
                .iter()
                .map(|task| task.utilization().as_f64())
                .sum(),
            affinity_kind: set.affinity_kind().name(),
            toml: file.is_none().then_some(toml),
            file,
        });
    }
    if file.is_none() {
        console.text(&toml)?;
    }
    Ok(())
}

fn save(folder: &Path, count: u64, index: u64, toml: &str) -> Result<String, Failure> {
    let digits = (count - 1).to_string().len().max(4);
    let path = folder
        .join(format!("set-{index:0digits$}.toml"))
        .display()
        .to_string();
    fs::write(&path, toml).map_err(|error| Failure::writing(&path, &error))?;
    Ok(path)
}
