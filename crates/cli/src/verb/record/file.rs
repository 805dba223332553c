//! What a record says: who missed, who ran, who was shifted, and why.

use std::fs::File;
use std::path::Path;

use shiftwork_daemon::recorder::{Recording, Tale, Told, utc};
use shiftwork_model::{JobId, Recorder as _, Span};
use shiftwork_report::{Heading, table};
use shiftwork_trace::explain::{readable, readable_at};
use shiftwork_trace::{Counters, RunSummary, perfetto};

use crate::failure::{Answer, Failure};
use crate::input::Input;
use crate::output::Console;
use crate::verb::shown::colour;

/// So many misses are explained whole, the first that it was kept for; of the others the cause is named.
const EXPLAINED_MAX: usize = 3;

/// So many causes are named.
const NAMED_MAX: usize = 50;

/// Tells what the record at this path says, and writes it as a trace if that is asked for.
pub fn show(path: &str, trace: Option<&Path>, console: &mut Console) -> Result<Answer, Failure> {
    let input = Input::read(path)?;
    let recording =
        Recording::read(&input.text).map_err(|error| Failure::in_file(&input.path, error))?;
    let tale = Tale::of(&recording);
    if let Some(path) = trace {
        write_trace(path, &recording, &tale)?;
    }
    let (told, more) = tell(&recording, &tale);
    if console.json {
        let mut value = summary(&tale).to_json(&recording.policy, 0);
        if let Some(keys) = value.as_object_mut() {
            // A record holds what happened, not what the policy was told.
            keys.remove("events");
        }
        value["unix_ns"] = recording.unix_ns.into();
        value["explanations"] = told.iter().map(Told::to_json).collect();
        console.json_line(&value)?;
        return Ok(Answer::Yes);
    }
    let span = recording.until_ns.saturating_sub(recording.since_ns);
    console.line(format!(
        "{}: {} until {}, {} facts; instants count from {} before",
        input.path,
        readable(Span::from_ns(span)),
        utc(recording.unix_ns),
        recording.facts.len(),
        readable_at(tale.until),
    ))?;
    let heading = Heading {
        policy: &recording.policy,
        seed: None,
    };
    console.text(&table(&tale.set, heading, &summary(&tale), colour(console)))?;
    if told.is_empty() {
        console.line("\nNo deadline was missed: nothing to explain.")?;
    }
    for told in told.iter().take(EXPLAINED_MAX) {
        console.text(&format!("\n{}", told.text()))?;
    }
    if told.len() > EXPLAINED_MAX {
        console.line("\nOther deadlines that were missed:")?;
    }
    for told in told.iter().skip(EXPLAINED_MAX) {
        let due = readable_at(told.explanation.deadline);
        let (job, cause) = (told.job_name(), told.cause());
        console.line(format!("  {job}, due at {due}: {cause}"))?;
    }
    if more > 0 {
        console.line(format!("  and {more} more"))?;
    }
    Ok(Answer::Yes)
}

/// Misses, explained, and how many more there are. That which it was kept for comes first, the others by their deadlines.
fn tell(recording: &Recording, tale: &Tale) -> (Vec<Told>, usize) {
    let first: Option<JobId> = recording.missed.as_ref().and_then(|it| tale.job(it));
    let others = tale.late().into_iter().filter(|job| Some(*job) != first);
    let mut jobs: Vec<JobId> = first.into_iter().chain(others).collect();
    // Each takes a walk through all facts.
    let more = jobs.len().saturating_sub(EXPLAINED_MAX + NAMED_MAX);
    jobs.truncate(EXPLAINED_MAX + NAMED_MAX);
    let told = jobs.into_iter().filter_map(|job| tale.explain(job));
    (told.collect(), more)
}

fn summary(tale: &Tale) -> RunSummary {
    let mut counters = Counters::new(&tale.set, tale.set.platform.cpus);
    for record in &tale.records {
        counters.record(record.at, &record.what);
    }
    counters.finish(tale.until)
}

fn write_trace(path: &Path, recording: &Recording, tale: &Tale) -> Result<(), Failure> {
    let provenance = perfetto::Provenance {
        tool: format!("shiftwork {}", recording.agent),
        policy: recording.policy.clone(),
        seed: None,
        horizon: tale.until,
        task_set: shiftwork_taskset::write(&tale.set),
    };
    let failed = |error| Failure::writing(&path.display().to_string(), &error);
    let file = File::create(path).map_err(failed)?;
    let mut writer = perfetto::Writer::new(&tale.set, &provenance, file);
    for record in &tale.records {
        writer.record(record.at, &record.what);
    }
    writer.finish(tale.until).map_err(failed)?;
    Ok(())
}
