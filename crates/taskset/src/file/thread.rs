//! The thread of a running program that a task stands for: the key `thread`.

use shiftwork_model::ThreadName;

use crate::error::TasksetError;
use crate::keys::{Key, Takes, may, must};
use crate::tree::{Table, Value};

pub(super) static KEYS: [Key; 3] = [
    must(
        "process",
        Takes::Name,
        "The name of the process, which is that of its main thread (`ps -o comm`).",
    ),
    may(
        "name",
        Takes::Name,
        "The name of the thread in the process (`ps -L -o comm`); default the main thread.",
    ),
    may(
        "number",
        Takes::Whole(1, u32::MAX),
        "Which of several threads with this name in the process: 1 is the oldest.",
    ),
];

const ACCEPTED: &str =
    "a table like { process = \"rover\" } or { process = \"rover\", name = \"camera\" }";

/// Reads `thread` of a task; `None` if it has none.
pub(super) fn read(table: &Table<'_>) -> Result<Option<ThreadName>, TasksetError> {
    if table.get("thread").is_some() && table.get("command").is_some() {
        drop(table.exactly_one(&["thread", "command"]));
    }
    table.map("thread", |value| {
        let thread = value.table(&KEYS, ACCEPTED)?;
        let process = thread.need_map("process", "process = \"rover\"", read_name);
        let name = thread.map("name", read_name);
        let number = thread.map("number", |value| value.integer(1, u32::MAX));
        if let (Some(number), None) = (thread.get("number"), thread.get("name")) {
            thread.source().note(Err(number.out_of_range(
                "given without `name`".to_string(),
                "`name` beside it, or leave it out: a process has one main thread".to_string(),
            )))?;
        }
        Ok(ThreadName {
            process: process?,
            name: name?,
            number: number?,
        })
    })
}

/// A name as the kernel keeps it: a longer one would never be found.
fn read_name(value: &Value<'_>) -> Result<String, TasksetError> {
    const MAX: usize = ThreadName::BYTES_MAX;
    let name = value.name("the name of a process or thread")?;
    if name.len() <= MAX {
        return Ok(name.to_string());
    }
    let kept = (0..=MAX).rev().find(|&at| name.is_char_boundary(at));
    Err(value.out_of_range(
        format!("`{name}`, {} bytes long", name.len()),
        format!(
            "`{}`: the kernel keeps {MAX} bytes of a name",
            &name[..kept.unwrap_or(0)]
        ),
    ))
}
