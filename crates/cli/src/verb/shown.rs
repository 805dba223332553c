//! How what came of runs is shown, and what the answer is.

use serde_json::Value;
use shiftwork_model::{Invariant, TaskSet};
use shiftwork_report::Heading;

use crate::failure::{Answer, Failure};
use crate::output::Console;
use crate::verb::explained::Explained;
use crate::verb::outputs::{Finished, Recording};

/// The run as one JSON object.
pub fn json(recording: &Recording<'_>, run: &Finished) -> Value {
    let mut value = run.summary.to_json(run.entry.name, run.events);
    if run.summary.horizon < recording.wanted() {
        value["interrupted"] = true.into();
    }
    if let Some(explained) = Explained::of_run(recording, run) {
        explained.add_to(&mut value);
    }
    value
}

/// What led to the first misses of each run, if that is asked for.
pub fn explanations(
    console: &mut Console,
    recording: &Recording<'_>,
    finished: &[Finished],
) -> Result<(), Failure> {
    for run in finished {
        let Some(explained) = Explained::of_run(recording, run) else {
            return Ok(());
        };
        if finished.len() > 1 {
            console.line(format!("\n{}:", run.entry.name))?;
        }
        explained.show(console)?;
    }
    Ok(())
}

/// Where the policy has bound the tasks, if it binds any.
pub fn packing(console: &mut Console, set: &TaskSet, run: &Finished) -> Result<(), Failure> {
    let Some(bound) = &run.packing else {
        return Ok(());
    };
    console.line(format!("{} packs the tasks like this:", run.entry.name))?;
    let table = shiftwork_report::packing(set, bound, console.look());
    console.line(table)
}

/// The counters of one run.
pub fn table(
    console: &mut Console,
    recording: &Recording<'_>,
    run: &Finished,
) -> Result<(), Failure> {
    let heading = Heading {
        policy: run.entry.name,
        seed: recording.seed(),
    };
    let look = console.look();
    let table = shiftwork_report::table(recording.set, heading, &run.summary, look);
    console.text(&table)?;
    chains(console, std::slice::from_ref(run))
}

/// The cause-effect chains of the runs, if the task set has any.
pub fn chains(console: &mut Console, finished: &[Finished]) -> Result<(), Failure> {
    let runs = finished.iter().map(|run| (run.entry.name, &run.summary));
    let table = shiftwork_report::chains(&runs.collect::<Vec<_>>(), console.look());
    if !table.is_empty() {
        console.line("")?;
        console.text(&table)?;
    }
    Ok(())
}

/// Whether a deadline was missed, or a requirement on a chain was not met.
pub fn has_failed(run: &Finished) -> bool {
    run.summary.deadline_misses > 0 || !run.summary.meets_chains()
}

/// What the shifts of a policy are that moves no job to make room for a less urgent one.
pub fn shifts(console: &mut Console, finished: &[Finished]) -> Result<(), Failure> {
    for run in finished {
        if run.entry.traits.invariant != Invariant::Strong && run.summary.shifts > 0 {
            let name = run.entry.name;
            console.line(format!(
                "shifts under {name} are jobs dispatched anew: they lost their CPU and went on elsewhere at the same \
                 instant; {name} moves no job to make room for a less urgent one"
            ))?;
        }
    }
    Ok(())
}

/// Timed changes that were refused are printed to stderr.
pub fn refusals(console: &Console, finished: &[Finished]) {
    for run in finished {
        for (at, action, reason) in &run.refused {
            let name = run.entry.name;
            console.note(format!(
                "note: {name} at {at}: action {} was refused: {reason}",
                action + 1
            ));
        }
    }
}

/// A line that must not be overlooked, if it `is_bad`.
pub fn loud(text: &str, is_bad: bool, console: &Console) -> String {
    match is_bad && console.color {
        true => format!("\x1b[1;31m{text}\x1b[0m"),
        false => text.to_owned(),
    }
}

/// The answer about runs that `is_no` known to be bad, as under `--strict` after a miss: that is a no however early
/// the run ended. Otherwise a run that was cut short has no answer.
pub fn answer(
    console: &Console,
    recording: &Recording<'_>,
    finished: &[Finished],
    is_no: bool,
) -> Answer {
    let wanted = recording.wanted();
    let cut = finished.iter().find(|run| run.summary.horizon < wanted);
    if let Some(run) = cut {
        let did = match recording.machine {
            "sim" => "was simulated",
            _ => "ran",
        };
        console.note(format!(
            "interrupted: {} {did} for {:.3} s of {wanted}",
            run.entry.name,
            run.summary.horizon.as_ns() as f64 / 1e9
        ));
    }
    match (is_no, cut.is_some()) {
        (true, _) => Answer::No,
        (false, true) => Answer::Interrupted,
        (false, false) => Answer::Yes,
    }
}
