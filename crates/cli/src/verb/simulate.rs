//! `shiftwork simulate`: what each policy makes of a task set, exactly.

mod outputs;
mod watch;

use shiftwork_model::{Arrival, Frequency, Instant, Overheads, Share, TaskSet, Work};
use shiftwork_policy::registry::Entry;
use shiftwork_policy::{Policy, PolicyError};
use shiftwork_report::{Colour, Heading, comparison, packing, table};
use shiftwork_sim::{Options, Simulation};
use shiftwork_taskset::overheads::{self, OverheadFile, Use};

use crate::args::{OverheadsUse, SimulateArgs};
use crate::catalogue;
use crate::failure::{Answer, Failure};
use crate::input::{self, Input};
use crate::output::Console;
use outputs::{Finished, Outputs, write_report};
use watch::Watch;

pub use outputs::rank;

/// Policies to choose from where neither the command line nor the file names one.
const EXAMPLES: &str = "`hpa-edf` takes nested affinities, `strong-edf` any, `g-edf` none";

/// Simulates the task set under every policy that is asked for, and shows what came of it.
pub fn run(args: &SimulateArgs, console: &mut Console) -> Result<Answer, Failure> {
    let input = Input::read(&args.file)?;
    let set = input::task_set(&input, console)?;
    note_what_is_ignored(&input, &set, console);
    // Refusals come before the first long simulation.
    let jobs = jobs(args, &input, &set)?;
    let mut watch = Watch::new(console, Instant::ZERO + args.horizon);
    let mut finished = Vec::new();
    for job in jobs {
        finished.push(simulate(args, &set, job, &mut watch));
        if watch.is_interrupted() {
            break;
        }
    }
    watch.finish();
    for run in &finished {
        for (at, action, reason) in &run.refused {
            let name = run.entry.name;
            console.note(format!(
                "note: {name} at {at}: action {} was refused: {reason}",
                action + 1
            ));
        }
    }
    // Results first: a full disk must not lose them.
    show(console, args, &set, &finished)?;
    console.flush()?;
    if let Some(path) = &args.report {
        write_report(path, args, &input, &set, &finished)?;
    }
    if let Some(failure) = finished.iter_mut().find_map(|run| run.failure.take()) {
        return Err(failure);
    }
    Ok(answer(console, args, &finished))
}

/// The file format says more than the policies so far model.
fn note_what_is_ignored(input: &Input, set: &TaskSet, console: &Console) {
    let platform = &set.platform;
    let slow = platform
        .capacities
        .iter()
        .any(|capacity| capacity.billionths() < Share::WHOLE);
    for (key, is_used) in [
        ("capacities", slow),
        ("frequency", platform.frequency != Frequency::Fixed),
    ] {
        if is_used {
            console.note(format!(
                "note: {}: no policy models `{key}`; every CPU runs at full speed",
                input.path
            ));
        }
    }
}

/// One run that is to be made.
struct Job {
    entry: &'static Entry,
    policy: Box<dyn Policy>,
    overheads: Option<Overheads>,
    outputs: Outputs,
}

/// Everything that can be refused is refused here.
fn jobs(args: &SimulateArgs, input: &Input, set: &TaskSet) -> Result<Vec<Job>, Failure> {
    let entries = policies(args, input, set)?;
    let file = overhead_file(args, input, set)?;
    let several = entries.len() > 1;
    let job = |entry: &'static Entry| {
        let refused = |error| Failure::in_file(&input.path, error);
        Ok(Job {
            entry,
            policy: entry.build(set).map_err(refused)?,
            overheads: match &file {
                Some((path, file)) => Some(overheads_of(args, path, file, entry.name)?),
                None => None,
            },
            outputs: Outputs::create(args, set, entry, several)?,
        })
    };
    entries.into_iter().map(job).collect()
}

/// The policies of the command line, otherwise that of the file.
fn policies(
    args: &SimulateArgs,
    input: &Input,
    set: &TaskSet,
) -> Result<Vec<&'static Entry>, Failure> {
    let mut entries: Vec<&'static Entry> = Vec::new();
    for name in &args.policies {
        let entry = catalogue::find(name).map_err(Failure::input)?;
        if !entries.iter().any(|other| other.name == entry.name) {
            entries.push(entry);
        }
    }
    if !entries.is_empty() {
        return Ok(entries);
    }
    let Some(name) = &set.scheduler.policy else {
        return Err(Failure::in_file(
            &input.path,
            format_args!(
                "names no policy; write `policy = \"…\"` under [scheduler], or use --policy: {EXAMPLES}"
            ),
        ));
    };
    let refused = |error: PolicyError| Failure::in_file(&input.path, error);
    Ok(vec![catalogue::find(name).map_err(refused)?])
}

/// The overhead file of the command line, otherwise that of the task-set file.
fn overhead_file(
    args: &SimulateArgs,
    input: &Input,
    set: &TaskSet,
) -> Result<Option<(String, OverheadFile)>, Failure> {
    let path = match (&args.overheads, &set.scheduler.overheads) {
        (Some(path), _) => path.clone(),
        (None, Some(name)) => input.beside(name),
        (None, None) => return Ok(None),
    };
    let input = Input::read(&path)?;
    let file = overheads::read(&input.text).map_err(|error| input.refused(&error))?;
    Ok(Some((input.path, file)))
}

/// What one policy costs. A policy without a table is refused: silently free scheduling would look
/// better than any that was measured.
fn overheads_of(
    args: &SimulateArgs,
    path: &str,
    file: &OverheadFile,
    policy: &str,
) -> Result<Overheads, Failure> {
    let (purpose, word) = match args.overheads_use {
        OverheadsUse::Worst => (Use::Worst, "worst"),
        OverheadsUse::Average => (Use::Average, "average"),
    };
    file.find(purpose, policy).cloned().ok_or_else(|| {
        let known: Vec<&str> = file
            .tables
            .keys()
            .filter(|(other, _)| *other == purpose)
            .map(|(_, policy)| policy.as_str())
            .collect();
        Failure::in_file(
            path,
            format_args!(
                "has no overheads for {policy}; write a table [{word}.{policy}] (there are: {})",
                if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(" ")
                }
            ),
        )
    })
}

fn simulate(args: &SimulateArgs, set: &TaskSet, job: Job, watch: &mut Watch) -> Finished {
    let options = Options {
        seed: args.seed,
        horizon: Instant::ZERO + args.horizon,
        overheads: job.overheads,
        reserve_server: args.reserve_server || set.scheduler.reserve_server,
    };
    let packing = job.policy.packing();
    let mut outputs = job.outputs;
    watch.start(job.entry.name);
    let simulation = Simulation::new(set, job.policy, job.entry.order, options);
    let (outcome, reached) = simulation.run_while(&mut outputs, |now| watch.goes_on(now));
    outputs.finish(job.entry, packing, outcome.events, reached)
}

fn show(
    console: &mut Console,
    args: &SimulateArgs,
    set: &TaskSet,
    finished: &[Finished],
) -> Result<(), Failure> {
    let wanted = Instant::ZERO + args.horizon;
    if console.json {
        for run in finished {
            let mut value = run.summary.to_json(run.entry.name, run.events);
            if run.summary.horizon < wanted {
                value["interrupted"] = true.into();
            }
            console.json_line(&value)?;
        }
        return Ok(());
    }
    let colour = if console.color {
        Colour::Always
    } else {
        Colour::Never
    };
    for run in finished {
        if let Some(bound) = &run.packing {
            console.line(format!("{} packs the tasks like this:", run.entry.name))?;
            console.line(packing(set, bound, colour))?;
        }
    }
    if let [run] = finished {
        let heading = Heading {
            policy: run.entry.name,
            seed: is_random(set).then_some(args.seed),
        };
        return console.text(&table(set, heading, &run.summary, colour));
    }
    let runs: Vec<_> = finished
        .iter()
        .map(|run| (run.entry.name, &run.summary))
        .collect();
    console.text(&comparison(set, &runs, colour))
}

/// Whether anything about the task set depends on the seed.
fn is_random(set: &TaskSet) -> bool {
    set.tasks
        .iter()
        .any(|task| task.arrival == Arrival::Sporadic || matches!(task.work, Work::Uniform(..)))
}

/// Under `--strict` a miss is a no. No miss is a yes only if the run was not cut short.
fn answer(console: &Console, args: &SimulateArgs, finished: &[Finished]) -> Answer {
    let wanted = Instant::ZERO + args.horizon;
    let cut = finished.iter().find(|run| run.summary.horizon < wanted);
    if let Some(run) = cut {
        console.note(format!(
            "interrupted: {} was simulated for {:.3} s of {wanted}",
            run.entry.name,
            run.summary.horizon.as_ns() as f64 / 1e9
        ));
    }
    let missed = finished.iter().any(|run| run.summary.deadline_misses > 0);
    match (args.strict, missed, cut.is_some()) {
        (true, true, _) => Answer::No,
        (true, false, true) => Answer::Undecided,
        _ => Answer::Yes,
    }
}
