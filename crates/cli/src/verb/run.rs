//! `shiftwork run`: admit a task set and make it happen on this machine.
//!
//! `admission.rs` decides whether it may begin, `choice.rs` on which machine, `live.rs` runs it, `view.rs`
//! is what people see meanwhile, `measured.rs` what they see afterwards, beside a simulation of the same.

mod admission;
mod choice;
mod guarantee;
mod live;
mod measured;
mod view;

use shiftwork_model::{Affinity, TaskSet};
use shiftwork_policy::Policy;
use shiftwork_policy::registry::Entry;
use shiftwork_sim::{Options, Simulation};
use shiftwork_verbs::admission::Admission;
use shiftwork_verbs::policies::models_speed;

use crate::args::{Attention, MachineName, RunArgs};
use crate::failure::{Answer, Failure};
use crate::input::{self, Input};
use crate::output::Console;
use crate::verb::chosen;
use crate::verb::outputs::{Finished, Outputs, Recording};
use crate::verb::shown;
use crate::verb::watch::Watch;
use choice::Chosen;
use guarantee::Kept;
use measured::Measured;

/// A run that may begin.
struct Start<'a> {
    args: &'a RunArgs,
    recording: Recording<'a>,
    entry: &'static Entry,
    policy: Box<dyn Policy>,
    chosen: Chosen,
    /// What people should know of that choice.
    why: Option<String>,
    admission: Admission,
}

impl Start<'_> {
    /// For each task the CPUs that the policy binds it to.
    fn bound(&self) -> Vec<Affinity> {
        bound(self.recording.set, self.policy.as_ref())
    }
}

fn bound(set: &TaskSet, policy: &dyn Policy) -> Vec<Affinity> {
    let own = || set.tasks.iter().map(|task| task.affinity).collect();
    policy.packing().unwrap_or_else(own)
}

/// Admits the task set, runs it, and shows what came of it.
pub fn run(args: &RunArgs, console: &mut Console) -> Result<Answer, Failure> {
    let input = Input::read(&args.file)?;
    let mut set = input::task_set(&input, console)?;
    input.locate_programs(&mut set);
    let names: Vec<String> = args.policy.iter().cloned().collect();
    // One name, one entry.
    let entry = chosen::policies(&names, &input, &set)?[0];
    choice::check(args.machine, entry)?;
    let policy = entry
        .build(&set)
        .map_err(|error| Failure::in_file(&input.path, error))?;
    let admission = Admission::of(entry, &set, Ok(&bound(&set, policy.as_ref())));
    if !admission.is_admitted() && !args.best_effort {
        admission::refuse(&admission, console, entry)?;
        return Ok(Answer::No);
    }
    let (chosen, why) = choice::choose(args.machine, entry, &set)?;
    let machine = format!("the {} machine", chosen.name());
    let ignoring: &[&str] = match (chosen, models_speed(entry)) {
        (Chosen::Sim, true) => &[],
        (_, true) => &[&machine],
        (_, false) => &[entry.name],
    };
    chosen::note_what_is_ignored(&input, &set, ignoring, console);
    if !matches!(chosen, Chosen::Sim) {
        chosen::note_finer_decisions(&input, &set, &machine, console);
    }
    let start = Start {
        args,
        recording: Recording {
            args: &args.recording,
            input: &input,
            set: &set,
            machine: chosen.name(),
            verb: "run",
            options: options(args),
            has_overheads: false,
            takes_reserve: true,
            inversions: false,
        },
        entry,
        policy,
        chosen,
        why,
        admission,
    };
    start.recording.check_files(&[entry], None)?;
    match chosen {
        Chosen::Sim => simulated(start, console),
        Chosen::Kernel | Chosen::Agent | Chosen::Fifo => live::run(start, console),
    }
}

/// What a page says of how to make it again.
fn options(args: &RunArgs) -> String {
    let mut options = match args.machine {
        MachineName::Auto => String::new(),
        MachineName::Kernel => String::from(" --machine kernel"),
        MachineName::Agent => String::from(" --machine agent"),
        MachineName::Fifo => String::from(" --machine fifo"),
        MachineName::Sim => String::from(" --machine sim"),
    };
    if args.agent == Attention::Shared {
        options.push_str(" --agent shared");
    }
    if args.best_effort {
        options.push_str(" --best-effort");
    }
    if let Some(cpus) = &args.on_cpus {
        options.push_str(&format!(" --on-cpus {cpus}"));
    }
    options
}

/// The same with the simulation in place of the machine.
fn simulated(start: Start<'_>, console: &mut Console) -> Result<Answer, Failure> {
    admission::announce(&start.admission, console)?;
    let recording = &start.recording;
    let mut outputs = Outputs::create(recording, start.entry, false)?;
    let packing = start.policy.packing();
    let mut watch = Watch::new(console, recording.wanted());
    watch.start(start.entry.name);
    let simulation = simulation(recording, start.entry, start.policy);
    let (outcome, reached) = simulation.run_while(&mut outputs, |now| watch.goes_on(now));
    watch.finish();
    let finished = outputs.finish(start.entry, packing, outcome.events, reached);
    let ending = Ending {
        args: start.args,
        recording,
        admission: &start.admission,
    };
    ending.conclude(finished, &Measured::default(), console)
}

/// A simulation of what is run.
fn simulation<'a>(
    recording: &Recording<'a>,
    entry: &Entry,
    policy: Box<dyn Policy>,
) -> Simulation<'a> {
    let options = Options {
        seed: recording.args.seed,
        horizon: recording.wanted(),
        overheads: None,
        reserve_server: recording.set.scheduler.reserve_server,
    };
    Simulation::new(recording.set, policy, &entry.traits, options)
}

/// What is known of a run when it is over, beside what came of it.
struct Ending<'a> {
    args: &'a RunArgs,
    recording: &'a Recording<'a>,
    admission: &'a Admission,
}

impl Ending<'_> {
    /// Shows what came of a run, writes what is still to be written, and says the answer.
    fn conclude(
        &self,
        finished: Finished,
        measured: &Measured,
        console: &mut Console,
    ) -> Result<Answer, Failure> {
        let recording = self.recording;
        let kept = Kept::of(
            self.admission,
            recording.set,
            &finished,
            measured,
            self.args.window,
        );
        let headline = kept.headline();
        let objection = headline.as_deref().filter(|_| kept.is_broken());
        let mut finished = [finished];
        shown::refusals(console, &finished);
        measured.note(console);
        let [run] = &finished;
        // Results first: a full disk must not lose them.
        if console.json {
            if let Some(headline) = &headline {
                console.note(headline);
            }
            let mut value = shown::json(recording, run);
            value["machine"] = recording.machine.into();
            value["admission"] = admission::to_json(self.admission);
            value["guarantee"] = kept.to_json();
            measured.add_to(&mut value, run.entry, objection);
            console.json_line(&value)?;
        } else {
            if let Some(headline) = &headline {
                console.line(shown::loud(headline, kept.is_broken(), console))?;
                console.line("")?;
            }
            shown::packing(console, recording.set, run)?;
            shown::table(console, recording, run)?;
            measured.show(console, recording, run, objection)?;
            shown::explanations(console, recording, &finished)?;
        }
        console.flush()?;
        recording.write_report(&finished, &[])?;
        if let Some(failure) = finished[0].failure.take() {
            return Err(failure);
        }
        if let Some(failure) = measured.failure() {
            return Err(failure);
        }
        let is_no =
            shown::has_failed(&finished[0]) || recording.args.strict && measured.disagrees();
        Ok(shown::answer(console, recording, &finished, is_no))
    }
}
