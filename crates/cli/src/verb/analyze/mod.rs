//! `shiftwork analyze`: what is guaranteed of a task set, under every policy, and which test shows it.
//!
//! `shiftwork_verbs` finds it out; `text.rs`, `remarks.rs` and `conclusion.rs` show it to people.

mod conclusion;
mod remarks;
mod text;

use shiftwork_analysis::suspensions::suspension;
use shiftwork_analysis::verdicts::{
    Answer as Known, Criterion, analyse, bounds_beside_reserve, left_out,
};
use shiftwork_model::TaskSet;
use shiftwork_report::Bound;
use shiftwork_verbs::analyze::{Findings, Question, Releases, Stage, candidate, named, output};

use crate::args::{AnalyzeArgs, CriterionName, ReleasesName};
use crate::failure::{Answer, Failure};
use crate::input::{self, Input};
use crate::output::Console;
use crate::verb::overheads;
use crate::verb::watch::Spinner;

/// How many steps each test may take for a page: it is to be there at once.
pub const STEPS: u64 = 2_000_000;

/// Says what is guaranteed.
pub fn run(args: &AnalyzeArgs, console: &mut Console) -> Result<Answer, Failure> {
    let input = Input::read(&args.file)?;
    let set = input::task_set(&input, console)?;
    let overheads = overheads::file(args.overheads.as_deref(), &input, &set)?;
    let mut spinner = Spinner::new(console, "asking the tests");
    let findings = Findings::of(&question(args), &set, overheads, &mut |stage| {
        spinner.show(&in_words(stage));
    });
    spinner.finish();
    let findings = findings.map_err(Failure::input)?;
    for left_out in left_out(&set) {
        console.note(format!(
            "note: {}: not taken into account: {left_out}",
            input.path
        ));
    }
    if let Some(task) = set.first_triggered() {
        console.note(format!(
            "note: {}: task `{}` is triggered by others; how late it arrives follows from bounds on their responses \
             (docs/theory/triggers.md)",
            input.path, task.name
        ));
    }
    if let Some(task) = set.first_locking() {
        console.note(format!(
            "note: {}: task `{}` locks mutexes; the time that they block others counts as computing where a bound on it is \
             known (docs/theory/blocking.md)",
            input.path, task.name
        ));
    }
    for task in set.tasks.iter().filter(|task| !suspension(task).is_zero()) {
        console.note(format!(
            "note: {}: task `{}` suspends itself for up to {} within a job, which counts as computing where the policy \
             allows it, unless `fp-rta`, `qpa`, `edf-rta`, `bc`, `rta` or `waiting-levels` shows more (docs/theory/suspensions.md)",
            input.path,
            task.name,
            suspension(task)
        ));
    }
    for task in set.tasks.iter().filter(|task| task.curve().is_some()) {
        console.note(format!(
            "note: {}: task `{}` has `distances`, which count where a test for one CPU takes them; elsewhere its jobs count as \
             arriving {} apart, the shortest of them",
            input.path, task.name, task.period
        ));
    }
    for task in set.tasks.iter().filter(|task| !task.jitter.is_zero()) {
        console.note(format!(
            "note: {}: task `{}` has jitter of up to {}, which is counted where something is known of it under the policy",
            input.path, task.name, task.jitter
        ));
    }
    match console.json {
        true => console.json_line(&output(&set, &findings))?,
        false => text::show(&set, &findings, console)?,
    }
    Ok(match findings.known() {
        Known::Schedulable => Answer::Yes,
        Known::Unschedulable => Answer::No,
        Known::Unknown => Answer::Undecided,
    })
}

/// What is being worked on.
fn in_words(stage: Stage) -> String {
    match stage {
        Stage::Tests => "asking the tests".to_owned(),
        Stage::Simulations => "simulating".to_owned(),
        Stage::Factors(policy) => format!("scaling costs under {policy}"),
        Stage::Affinities => "proposing affinities".to_owned(),
        Stage::Remedies => "looking for what would help".to_owned(),
    }
}

/// What the command line asks.
fn question(args: &AnalyzeArgs) -> Question {
    Question {
        policies: args.policies.clone(),
        criterion: match args.criterion {
            CriterionName::Hard => Criterion::Hard,
            CriterionName::Soft => Criterion::Soft,
        },
        releases: match args.releases {
            ReleasesName::Sporadic => Releases::Sporadic,
            ReleasesName::AsWritten => Releases::AsWritten,
        },
        max_steps: args.max_steps,
        scale: args.scale,
        assign: args.assign,
        remedies: true,
    }
}

/// Bounds on the response times of all tasks under the policy with this name, for a page about a run of
/// them; none if nothing is known, or if the task set says more than tests take into account. With
/// `beside_reserve` background work takes the reserve as the simulator has it.
pub fn bounds(set: &TaskSet, policy: &str, steps: u64, beside_reserve: bool) -> Vec<Option<Bound>> {
    let Ok(named) = named(policy) else {
        return Vec::new();
    };
    let mut otherwise = set.clone();
    otherwise.scheduler.reserve_server = false;
    if !left_out(&otherwise).is_empty() {
        return Vec::new();
    }
    let candidate = candidate(named, set);
    let best = match beside_reserve {
        true => bounds_beside_reserve(set, &candidate, steps),
        false => {
            let analysis = analyse(&otherwise, &[candidate], steps);
            let best = analysis.policies.into_iter().flat_map(|found| found.best);
            best.collect()
        }
    };
    let best = best.into_iter();
    best.map(|best| {
        best.map(|best| Bound {
            response: best.response,
            by: best.by,
        })
    })
    .collect()
}
