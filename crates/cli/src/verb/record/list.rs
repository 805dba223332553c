//! `shiftwork record --list`: the saved recordings.

use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_daemon::recorder::{RecordingHead, list, utc};
use shiftwork_trace::SCHEMA_VERSION;

use crate::failure::{Answer, Failure};
use crate::output::{Console, columns};

/// What `record --list --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KeptOutput {
    /// Always the same for one release of the format.
    schema_version: u64,
    /// The folder of the recordings.
    folder: String,
    /// The oldest first.
    files: Vec<FileOutput>,
}

/// A saved recording. Fields that could not be read are null.
#[derive(Debug, Serialize, JsonSchema)]
struct FileOutput {
    path: String,
    /// Its end on the real-time clock, in ns since 1970.
    unix_ns: Option<u64>,
    /// Length of the time that it covers.
    span_ns: Option<u64>,
    /// The task that missed its deadline.
    task: Option<String>,
    /// The cause.
    cause: Option<String>,
}

/// Shows one line for each recording in the folder, the oldest first.
pub fn show(folder: Option<String>, console: &mut Console) -> Result<Answer, Failure> {
    let folder = folder.ok_or_else(|| {
        Failure::Machine("the daemon does not name the folder of its recordings".to_owned())
    })?;
    let paths = list(Path::new(&folder))
        .map_err(|error| Failure::Machine(format!("{folder} cannot be read: {error}")))?;
    let heads: Vec<(String, Option<RecordingHead>)> = paths
        .iter()
        .map(|path| (path.display().to_string(), head(path)))
        .collect();
    if console.json {
        console.json_line(&KeptOutput {
            schema_version: SCHEMA_VERSION,
            folder,
            files: heads.into_iter().map(FileOutput::from).collect(),
        })?;
        return Ok(Answer::Yes);
    }
    if heads.is_empty() {
        console.line(format!("no recordings in {folder}"))?;
        return Ok(Answer::Yes);
    }
    let mut rows = vec![
        ["when", "task", "cause", "file"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (path, head) in heads {
        let when = head
            .as_ref()
            .map_or(String::new(), |head| utc(head.unix_ns));
        let (task, cause) = head
            .and_then(|head| head.missed)
            .unwrap_or_else(|| ("?".to_owned(), "?".to_owned()));
        rows.push(vec![when, task, cause, path]);
    }
    console.text(&columns(&rows))?;
    Ok(Answer::Yes)
}

impl From<(String, Option<RecordingHead>)> for FileOutput {
    fn from((path, head): (String, Option<RecordingHead>)) -> Self {
        let (unix_ns, span_ns) = match &head {
            Some(head) => (Some(head.unix_ns), Some(head.span_ns)),
            None => (None, None),
        };
        let (task, cause) = head.and_then(|head| head.missed).unzip();
        Self {
            path,
            unix_ns,
            span_ns,
            task,
            cause,
        }
    }
}

/// What it says of itself; `None` if the file is not a recording or cannot be read.
fn head(path: &Path) -> Option<RecordingHead> {
    RecordingHead::read(&fs::read(path).ok()?)
}
