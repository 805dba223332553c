//! `shiftwork record`: the recording of the daemon, and explanations of missed deadlines.

mod file;
mod list;

use schemars::JsonSchema;
use serde::Serialize;

use super::daemon_client;
use crate::args::RecordArgs;
use crate::failure::{Answer, Failure};
use crate::json::SCHEMA_VERSION;
use crate::output::Console;
pub use list::KeptOutput;

/// What `record --explain --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExplainedOutput {
    /// Always the same for one release of the format.
    schema_version: u64,
    /// Explanation of each of the last misses, as text; the newest last.
    explanations: Vec<String>,
}

/// Prints the scheduling events of the last seconds, one per line, or the explanations of the last misses, or shows a saved
/// recording.
pub fn run(args: &RecordArgs, console: &mut Console) -> Result<Answer, Failure> {
    if let Some(path) = &args.file {
        return file::show(path, args.trace.as_deref(), console);
    }
    let mut client = daemon_client::connect()?;
    if args.list {
        // The first line names their folder.
        let record = client.record(Some(0.0));
        return list::show(
            &record.map_err(|failure| daemon_client::of(&failure))?,
            console,
        );
    }
    let Some(count) = args.explain else {
        let seconds = args.last.map(|span| span.as_ns() as f64 / 1e9);
        let record = client.record(seconds);
        console.text(&record.map_err(|failure| daemon_client::of(&failure))?)?;
        return Ok(Answer::Yes);
    };
    let explained = client.explain(Some(count));
    let explained = explained.map_err(|failure| daemon_client::of(&failure))?;
    if console.json {
        console.json_line(&ExplainedOutput {
            schema_version: SCHEMA_VERSION,
            explanations: explained,
        })?;
        return Ok(Answer::Yes);
    }
    if explained.is_empty() {
        console.line("no missed deadline is recorded")?;
    }
    for text in explained {
        console.line(text)?;
    }
    Ok(Answer::Yes)
}
