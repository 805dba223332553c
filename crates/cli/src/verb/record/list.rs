//! `shiftwork record --list`: the saved recordings.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_daemon::recorder::{Head, list, utc};

use crate::failure::{Answer, Failure};
use crate::json::SCHEMA_VERSION;
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

/// Shows one line for each, the oldest first; `record` is a recording from the daemon, whose first line names the folder.
pub fn show(record: &str, console: &mut Console) -> Result<Answer, Failure> {
    let head = record.lines().next().and_then(Head::read);
    let folder = head.and_then(|head| head.folder).ok_or_else(|| {
        Failure::Machine("the daemon does not name the folder of its recordings".to_owned())
    })?;
    let paths = list(Path::new(&folder))
        .map_err(|error| Failure::Machine(format!("{folder} cannot be read: {error}")))?;
    let heads: Vec<(String, Option<Head>)> = paths
        .iter()
        .map(|path| (path.display().to_string(), first_line(path)))
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

impl From<(String, Option<Head>)> for FileOutput {
    fn from((path, head): (String, Option<Head>)) -> Self {
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

/// The header; `None` if the file is not a recording or cannot be read.
fn first_line(path: &Path) -> Option<Head> {
    let mut line = String::new();
    let file = File::open(path).ok()?;
    BufReader::new(file).read_line(&mut line).ok()?;
    Head::read(&line)
}
