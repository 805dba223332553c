//! Whether a task set may begin.

use serde_json::{Value, json};
use shiftwork_analysis::admission::{Admitted, Terms, claims};
use shiftwork_analysis::stand_ins::StandIns;
use shiftwork_model::{Affinity, TaskSet};
use shiftwork_policy::registry::Entry;
use shiftwork_trace::SCHEMA_VERSION;
use shiftwork_verbs::admission::Admission;

use crate::failure::Failure;
use crate::output::Console;

/// Decides on requests of the tasks while they run; `None` if they were not admitted, so that there is nothing to keep.
pub fn online(
    admission: &Admission,
    entry: &Entry,
    set: &TaskSet,
    bound: &[Affinity],
) -> Option<Admitted> {
    if !admission.is_admitted() {
        return None;
    }
    let terms = Terms::of(&entry.traits, set)?;
    let cpus = entry.traits.serving(set.platform.all());
    // The same tasks stand for these as when they were admitted.
    let claims = match StandIns::where_bound(set, &entry.traits, bound) {
        StandIns::Other(others) => claims(&others.set, bound),
        StandIns::Same | StandIns::Unknown => claims(set, bound),
    };
    let begun = Admitted::begin(cpus, terms, claims).ok();
    begun.map(|(admitted, _)| admitted)
}

/// The value of the key `admission` of a run that took place.
pub fn to_json(admission: &Admission) -> Value {
    json!(admission.output(!admission.is_admitted()))
}

/// Says why the task set does not begin, and what would be accepted.
pub fn refuse(admission: &Admission, console: &mut Console, entry: &Entry) -> Result<(), Failure> {
    if console.json {
        return console.json_line(&json!({
            "schema_version": SCHEMA_VERSION,
            "policy": entry.name,
            "admission": admission.output(false),
        }));
    }
    console.line(admission.to_string())?;
    console.line("nothing was run; --best-effort runs it without any guarantee")
}

/// Says before the run what is guaranteed, if anything.
pub fn announce(admission: &Admission, console: &mut Console) -> Result<(), Failure> {
    if console.json {
        return Ok(());
    }
    console.line(admission.to_string())?;
    if !admission.is_admitted() {
        console.line("run all the same, as --best-effort asks")?;
    }
    console.line("")?;
    console.flush()
}
