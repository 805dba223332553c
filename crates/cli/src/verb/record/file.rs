//! What a recording says: tasks, misses, and what led to them.

use shiftwork_daemon::recorder::{MissReport, Recording, RecordingAnalysis, utc};
use shiftwork_model::{JobId, Recorder as _};
use shiftwork_report::{Heading, table};
use shiftwork_trace::explain::{readable, readable_at};
use shiftwork_trace::{Counters, RunSummary};

use crate::failure::{Answer, Failure};
use crate::input::read_bytes;
use crate::output::Console;

/// So many misses are explained whole, the first that it was kept for; of the others the cause is named.
const EXPLAINED_MAX: usize = 3;

/// So many causes are named.
const NAMED_MAX: usize = 50;

/// Shows what the recording at this path says.
pub fn show(path: &str, console: &mut Console) -> Result<Answer, Failure> {
    let (path, bytes) = read_bytes(path)?;
    let recording = Recording::read(&bytes).map_err(|error| Failure::in_file(&path, error))?;
    let (reports, more) = explain(&recording);
    if console.json {
        let mut value = summary(&recording).to_json(&recording.policy, 0);
        if let Some(keys) = value.as_object_mut() {
            // A recording holds what happened, not the events that the policy received.
            keys.remove("events");
        }
        value["unix_ns"] = recording.metadata.unix_ns.into();
        value["explanations"] = reports.iter().map(MissReport::to_json).collect();
        console.json_line(&value)?;
        return Ok(Answer::Yes);
    }
    console.line(format!(
        "{path}: {} until {}, {} records; instants count from {} before",
        readable(recording.until.late_since(recording.since())),
        utc(recording.metadata.unix_ns),
        recording.records.len(),
        readable_at(recording.until),
    ))?;
    let heading = Heading {
        policy: &recording.policy,
        seed: None,
    };
    console.text(&table(
        &recording.set,
        heading,
        &summary(&recording),
        console.look(),
    ))?;
    if reports.is_empty() {
        console.line("\nNo deadline was missed: nothing to explain.")?;
    }
    for report in reports.iter().take(EXPLAINED_MAX) {
        console.text(&format!("\n{}", report.text()))?;
    }
    if reports.len() > EXPLAINED_MAX {
        console.line("\nOther deadlines that were missed:")?;
    }
    for report in reports.iter().skip(EXPLAINED_MAX) {
        let due = readable_at(report.explanation.deadline);
        let (job, cause) = (report.job_name(), report.cause());
        console.line(format!("  {job}, due at {due}: {cause}"))?;
    }
    if more > 0 {
        console.line(format!("  and {more} more"))?;
    }
    Ok(Answer::Yes)
}

/// Explains misses, and returns how many more there are. The miss that the recording was kept for
/// comes first, the others by their deadlines.
fn explain(recording: &Recording) -> (Vec<MissReport>, usize) {
    let analysis = RecordingAnalysis::new(recording);
    let first = recording.metadata.missed_job();
    let others = analysis.late().into_iter();
    let others = others.filter(|job| Some(*job) != first);
    let mut jobs: Vec<JobId> = first.into_iter().chain(others).collect();
    // Each takes a walk through all records.
    let more = jobs.len().saturating_sub(EXPLAINED_MAX + NAMED_MAX);
    jobs.truncate(EXPLAINED_MAX + NAMED_MAX);
    let reports = jobs.into_iter().filter_map(|job| analysis.explain(job));
    (reports.collect(), more)
}

fn summary(recording: &Recording) -> RunSummary {
    let mut counters = Counters::new(&recording.set, recording.set.platform.cpus);
    for record in &recording.records {
        counters.record(record.at, &record.kind);
    }
    counters.finish(recording.until)
}
