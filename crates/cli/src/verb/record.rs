//! `shiftwork record`: the recording of the daemon, and explanations of missed deadlines.

mod file;
mod list;

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_trace::SCHEMA_VERSION;

use super::daemon_client;
use crate::args::RecordArgs;
use crate::failure::{Answer, Failure};
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

/// Where a recording goes if standard output is a terminal.
const DEFAULT_OUTPUT: &str = "record.pftrace";

/// Writes a recording of the last seconds, or prints the explanations of the last misses, or shows a saved recording.
pub fn run(args: &RecordArgs, console: &mut Console) -> Result<Answer, Failure> {
    if let Some(path) = &args.file {
        return file::show(path, console);
    }
    let mut client = daemon_client::connect()?;
    if args.list {
        // The answer names their folder.
        let answer = client.record(Some(0.0));
        let folder = answer
            .map_err(|failure| daemon_client::of(&failure))?
            .folder;
        return list::show(folder, console);
    }
    let Some(count) = args.explain else {
        let seconds = args.last.map(|span| span.as_ns() as f64 / 1e9);
        let answer = client.record(seconds);
        let trace = answer
            .map_err(|failure| daemon_client::of(&failure))?
            .record;
        let default = io::stdout()
            .is_terminal()
            .then(|| Path::new(DEFAULT_OUTPUT));
        let Some(path) = args.output.as_deref().or(default) else {
            let written = io::stdout().lock().write_all(&trace);
            written.map_err(|error| Failure::writing("standard output", &error))?;
            return Ok(Answer::Yes);
        };
        let shown = path.display().to_string();
        fs::write(path, trace).map_err(|error| Failure::writing(&shown, &error))?;
        console.note(format!(
            "wrote {shown}; `shiftwork record {shown}` explains it"
        ));
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
