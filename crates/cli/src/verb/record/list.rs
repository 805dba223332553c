//! The records that the agent has kept.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use serde_json::{Value, json};
use shiftwork_service::recorder::{Head, list, utc};

use crate::failure::{Answer, Failure};
use crate::json::SCHEMA_VERSION;
use crate::output::{Console, columns};

/// A line for each, the oldest first; `record` is one of the agent's, which says where they are.
pub fn show(record: &str, console: &mut Console) -> Result<Answer, Failure> {
    let head = record.lines().next().and_then(Head::read);
    let folder = head.and_then(|head| head.folder).ok_or_else(|| {
        Failure::Machine("the agent does not say where it keeps records".to_owned())
    })?;
    let paths = list(Path::new(&folder))
        .map_err(|error| Failure::Machine(format!("{folder} cannot be read: {error}")))?;
    let heads: Vec<(String, Option<Head>)> = paths
        .iter()
        .map(|path| (path.display().to_string(), first_line(path)))
        .collect();
    if console.json {
        let files: Vec<Value> = heads.iter().map(|(path, head)| value(path, head)).collect();
        console.json_line(&json!({
            "schema_version": SCHEMA_VERSION,
            "folder": folder,
            "files": files,
        }))?;
        return Ok(Answer::Yes);
    }
    if heads.is_empty() {
        console.line(format!("no record is kept in {folder}"))?;
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

fn value(path: &str, head: &Option<Head>) -> Value {
    let missed = head.as_ref().and_then(|head| head.missed.as_ref());
    json!({
        "path": path,
        "unix_ns": head.as_ref().map(|head| head.unix_ns),
        "span_ns": head.as_ref().map(|head| head.span_ns),
        "task": missed.map(|(task, _)| task),
        "cause": missed.map(|(_, cause)| cause),
    })
}

/// `None` if it is no record; that it cannot be read is seen when it is asked for.
fn first_line(path: &Path) -> Option<Head> {
    let mut line = String::new();
    let file = File::open(path).ok()?;
    BufReader::new(file).read_line(&mut line).ok()?;
    Head::read(&line)
}
