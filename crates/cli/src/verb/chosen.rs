//! What the command line and the task-set file together say about a run.

use shiftwork_model::{Arrival, Frequency, Pace, Share, Span, TaskSet, Work};
use shiftwork_policy::PolicyError;
use shiftwork_policy::registry::Entry;

use crate::catalogue;
use crate::failure::Failure;
use crate::input::Input;
use crate::output::Console;

/// Policies to choose from where neither the command line nor the file names one.
const EXAMPLES: &str = "`hpa-edf` takes nested affinities, `strong-edf` any, `g-edf` none";

/// The policies of these names, each once.
///
/// # Errors
/// If there is no such policy.
pub fn named(names: &[String]) -> Result<Vec<&'static Entry>, Failure> {
    let mut entries: Vec<&'static Entry> = Vec::new();
    for name in names {
        let entry = catalogue::find(name).map_err(Failure::input)?;
        if !entries.iter().any(|other| other.name == entry.name) {
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// The policies of the command line, each once, otherwise that of the file.
///
/// # Errors
/// If there is no such policy, or none is named.
pub fn policies(
    names: &[String],
    input: &Input,
    set: &TaskSet,
) -> Result<Vec<&'static Entry>, Failure> {
    let entries = named(names)?;
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

/// Whether anything about the task set depends on the seed.
pub fn is_random(set: &TaskSet) -> bool {
    set.tasks.iter().any(|task| {
        let is_drawn = matches!(
            task.arrival,
            Arrival::Sporadic | Arrival::Curve(_, Pace::Random)
        ) || matches!(task.work, Work::Uniform(..));
        is_drawn || !task.jitter.is_zero()
    })
}

/// Says that a real machine decides between whole units of time, too, if the file counts in longer ones.
pub fn note_finer_decisions(input: &Input, set: &TaskSet, machine: &str, console: &Console) {
    let unit = set.platform.tick_unit;
    if unit > Span::from_ns(1) {
        console.note(format!(
            "note: {}: {machine} decides at any nanosecond, not only at whole multiples of `tick-unit` ({unit}); \
             verdicts of `analyze` in whole units need not hold there",
            input.path
        ));
    }
}

/// The file format says more than most policies model: names what these, policies or machines, ignore.
pub fn note_what_is_ignored(input: &Input, set: &TaskSet, by: &[&str], console: &Console) {
    if by.is_empty() {
        return;
    }
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
                "note: {}: `{key}` is not modelled by {}; every CPU is taken to be at full speed there",
                input.path,
                by.join(", ")
            ));
        }
    }
}
