//! `shiftwork simulate`: what each policy makes of a task set, exactly.

use shiftwork_model::{Instant, Lagging, Overheads, Repairs, TaskSet};
use shiftwork_policy::registry::Entry;
use shiftwork_policy::{Policy, PolicyError};
use shiftwork_report::comparison;
use shiftwork_sim::{Options, Simulation};
use shiftwork_taskset::overheads::Use;
use shiftwork_verbs::policies::models_speed;
use shiftwork_verbs::simulate as prepare;

use crate::args::{NO_REPAIRS, OverheadsUse, SimulateArgs};
use crate::failure::{Answer, Failure};
use crate::input::{self, Input};
use crate::output::Console;
use crate::verb::chosen;
use crate::verb::outputs::{Finished, Outputs, Recording};
use crate::verb::overheads;
use crate::verb::shown;
use crate::verb::watch::Watch;

/// Simulates the task set under every policy that is asked for, and shows what came of it.
pub fn run(args: &SimulateArgs, console: &mut Console) -> Result<Answer, Failure> {
    let input = Input::read(&args.file)?;
    let mut set = input::task_set(&input, console)?;
    do_as_asked(args, &mut set)?;
    let recording = Recording {
        args: &args.recording,
        input: &input,
        set: &set,
        machine: "sim",
        verb: "simulate",
        options: options(args),
        has_overheads: overheads::path(args.overheads.as_deref(), &input, &set).is_some(),
        takes_reserve: args.reserve_server || set.scheduler.reserve_server,
        inversions: args.inversions,
    };
    // Refusals come before the first long simulation.
    let (jobs, left_out) = jobs(args, &recording)?;
    refuse_rules_without_policy(args, &set, &jobs)?;
    let entries = jobs.iter().map(|job| job.entry);
    let ignoring = entries.filter(|entry| !models_speed(entry));
    let names: Vec<&str> = ignoring.map(|entry| entry.name).collect();
    chosen::note_what_is_ignored(&input, &set, &names, console);
    let mut watch = Watch::new(console, recording.wanted());
    let (wanted, mut finished) = (jobs.len(), Vec::new());
    for job in jobs {
        finished.push(simulate(args, &set, job, &mut watch));
        if watch.is_interrupted() {
            break;
        }
    }
    watch.finish();
    shown::refusals(console, &finished);
    // Results first: a full disk must not lose them.
    show(console, &recording, &finished)?;
    show_left_out(console, &left_out)?;
    console.flush()?;
    recording.write_report(&finished, &left_out)?;
    if let Some(failure) = finished.iter_mut().find_map(|run| run.failure.take()) {
        return Err(failure);
    }
    let is_no = recording.args.strict && finished.iter().any(shown::has_failed);
    Ok(match shown::answer(console, &recording, &finished, is_no) {
        // Between two policies.
        Answer::Yes if finished.len() < wanted => Answer::Interrupted,
        answer => answer,
    })
}

/// What the command line says of how Linux is to be copied goes before what the file says.
fn do_as_asked(args: &SimulateArgs, set: &mut TaskSet) -> Result<(), Failure> {
    let repairs = match &args.repairs[..] {
        [] => None,
        [only] if only == NO_REPAIRS => Some(Repairs::NONE),
        names => Some(repairs(names)?),
    };
    set.scheduler.repairs = repairs.or(set.scheduler.repairs);
    let lagging = args.lagging.as_deref().and_then(Lagging::find);
    set.scheduler.lagging = lagging.unwrap_or(set.scheduler.lagging);
    Ok(())
}

fn repairs(names: &[String]) -> Result<Repairs, Failure> {
    let all = names
        .iter()
        .try_fold(Repairs::NONE, |repairs, name| repairs.with(name));
    all.ok_or_else(|| {
        Failure::input(format_args!(
            "--repairs names `{NO_REPAIRS}` beside others; write `{NO_REPAIRS}` alone, or some of {}",
            Repairs::NAMES.join(",")
        ))
    })
}

/// Refuses options that change nothing under any of the policies: the user expects something else.
fn refuse_rules_without_policy(
    args: &SimulateArgs,
    set: &TaskSet,
    jobs: &[Job],
) -> Result<(), Failure> {
    let rules = || {
        let budgets = jobs.iter().map(|job| job.entry.traits.budgets);
        budgets.filter_map(|budgets| budgets.linux_rules(&set.scheduler))
    };
    if args.lagging.is_some() && rules().next().is_none() {
        return Err(Failure::input(
            "--lagging is for dl-linux and dl-sp; simulate one of them (--policy dl-linux)",
        ));
    }
    let wanted = set.scheduler.repairs;
    if !args.repairs.is_empty() && !rules().any(|rules| Some(rules.repairs) == wanted) {
        return Err(Failure::input(
            "--repairs is for dl-sp; simulate it (--policy dl-sp), since dl-linux never has any repairs",
        ));
    }
    Ok(())
}

/// What a page says of how to make it again.
fn options(args: &SimulateArgs) -> String {
    let mut options = String::new();
    if let Some(overheads) = &args.overheads {
        options.push_str(&format!(" --overheads {overheads}"));
    }
    if args.reserve_server {
        options.push_str(" --reserve-server");
    }
    if !args.repairs.is_empty() {
        options.push_str(&format!(" --repairs {}", args.repairs.join(",")));
    }
    if let Some(lagging) = &args.lagging {
        options.push_str(&format!(" --lagging {lagging}"));
    }
    options
}

/// One run that is to be made.
struct Job {
    entry: &'static Entry,
    policy: Box<dyn Policy>,
    overheads: Option<Overheads>,
    outputs: Outputs,
}

/// Everything that can be refused is refused here. Of several policies those that do not take the task set are
/// left out, unless none is left.
fn jobs(
    args: &SimulateArgs,
    recording: &Recording<'_>,
) -> Result<(Vec<Job>, Vec<PolicyError>), Failure> {
    let Recording { input, set, .. } = *recording;
    let entries = chosen::policies(&args.policies, input, set)?;
    let overheads = overheads::path(args.overheads.as_deref(), input, set);
    recording.check_files(&entries, overheads.as_deref())?;
    let file = overheads::file(args.overheads.as_deref(), input, set)?;
    let several = entries.len() > 1;
    let (mut prepared, mut left_out) = (Vec::new(), Vec::new());
    for entry in entries {
        // Of several reasons the first is printed: whether the policy takes the task set at all.
        let free = match entry.build(set) {
            Ok(policy) => policy,
            Err(error) => {
                left_out.push(error);
                continue;
            }
        };
        let overheads = file.as_ref().map(|(path, file)| {
            let found = prepare::overheads(file, purpose(args), entry);
            found.map_err(|error| Failure::in_file(path, error))
        });
        let overheads = overheads.transpose()?;
        let policy = match &overheads {
            Some(_) => prepare::policy(set, entry, overheads.as_ref())
                .map_err(|error| Failure::in_file(&input.path, error))?,
            None => free,
        };
        prepared.push((entry, policy, overheads));
    }
    if prepared.is_empty() {
        return Err(Failure::in_file_each(&input.path, &left_out));
    }
    // Files are written only if something comes into them.
    let with_outputs = |(entry, policy, overheads)| {
        Ok(Job {
            entry,
            policy,
            overheads,
            outputs: Outputs::create(recording, entry, several)?,
        })
    };
    let jobs: Result<Vec<Job>, Failure> = prepared.into_iter().map(with_outputs).collect();
    Ok((jobs?, left_out))
}

/// Why policies were left out, beside the results; on stderr if results are JSON.
fn show_left_out(console: &mut Console, left_out: &[PolicyError]) -> Result<(), Failure> {
    for why in left_out {
        let text = format!("left out: {why}");
        match console.json {
            true => console.note(text),
            false => console.line(text)?,
        }
    }
    Ok(())
}

const fn purpose(args: &SimulateArgs) -> Use {
    match args.overheads_use {
        OverheadsUse::Worst => Use::Worst,
        OverheadsUse::Average => Use::Average,
    }
}

fn simulate(args: &SimulateArgs, set: &TaskSet, job: Job, watch: &mut Watch) -> Finished {
    let options = Options {
        seed: args.recording.seed,
        horizon: Instant::ZERO + args.recording.horizon,
        overheads: job.overheads,
        reserve_server: args.reserve_server || set.scheduler.reserve_server,
    };
    let packing = job.policy.packing();
    let mut outputs = job.outputs;
    watch.start(job.entry.name);
    let simulation = Simulation::new(set, job.policy, &job.entry.traits, options);
    let (outcome, reached) = simulation.run_while(&mut outputs, |now| watch.goes_on(now));
    outputs.finish(job.entry, packing, outcome.events, reached)
}

fn show(
    console: &mut Console,
    recording: &Recording<'_>,
    finished: &[Finished],
) -> Result<(), Failure> {
    if console.json {
        for run in finished {
            console.json_line(&shown::json(recording, run))?;
        }
        return Ok(());
    }
    for run in finished {
        shown::packing(console, recording.set, run)?;
    }
    if let [run] = finished {
        shown::table(console, recording, run)?;
        shown::shifts(console, finished)?;
        return shown::explanations(console, recording, finished);
    }
    let runs: Vec<_> = finished
        .iter()
        .map(|run| (run.entry.name, &run.summary))
        .collect();
    let look = console.look();
    console.text(&comparison(recording.set, &runs, look))?;
    shown::chains(console, finished)?;
    shown::shifts(console, finished)?;
    shown::explanations(console, recording, finished)
}
