//! `shiftwork record`: what the agent remembers, and what led to a miss.

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
    /// What led to each of the last misses, for people; the newest last.
    explanations: Vec<String>,
}

/// Asks for the facts of the last seconds, one a line, or for the explanations of the last misses; or tells what a
/// record says.
pub fn run(args: &RecordArgs, console: &mut Console) -> Result<Answer, Failure> {
    if let Some(path) = &args.file {
        return file::show(path, args.trace.as_deref(), console);
    }
    let mut client = daemon_client::connect()?;
    if args.list {
        // The first line says where they are.
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
        console.line("no deadline was missed that is remembered")?;
    }
    for text in explained {
        console.line(text)?;
    }
    Ok(Answer::Yes)
}
