//! `shiftwork release`: gives reservations back.

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_client::{Error, Failure as Unanswered, Task};
use shiftwork_trace::SCHEMA_VERSION;

use super::daemon_client;
use crate::args::ReleaseArgs;
use crate::failure::{Answer, Failure};
use crate::output::{Console, plural};

/// What `release --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReleaseOutput {
    schema_version: u64,
    /// The tasks whose reservations ended. Their threads continue as ordinary work.
    released: Vec<ReleasedOutput>,
}

/// A task that was released.
#[derive(Debug, Serialize, JsonSchema)]
struct ReleasedOutput {
    task: u32,
    name: String,
    process: u32,
    thread: u32,
}

/// Releases what the arguments name.
pub fn run(args: &ReleaseArgs, console: &mut Console) -> Result<Answer, Failure> {
    let mut client = daemon_client::connect()?;
    let status = client.status();
    let status = status.map_err(|failure| daemon_client::of(&failure))?;
    let is_meant = |task: &Task| match args.process {
        Some(process) => task.process == process || task.thread == process,
        None => true,
    };
    let mut released = Vec::new();
    for task in status.tasks.into_iter().filter(is_meant) {
        match client.dismiss(task.task) {
            Ok(()) => released.push(task),
            // Its thread has ended meanwhile.
            Err(Unanswered::Agent(Error::Missing { .. })) => {}
            Err(failure) => return Err(daemon_client::of(&failure)),
        }
    }
    if let (Some(process), []) = (args.process, released.as_slice()) {
        return Err(Failure::input(format_args!(
            "no thread of process {process} has a reservation that you may release; `shiftwork status` lists them"
        )));
    }
    show(&released, console)?;
    Ok(Answer::Yes)
}

fn show(released: &[Task], console: &mut Console) -> Result<(), Failure> {
    if !console.json {
        let names: Vec<&str> = released.iter().map(|task| task.name.as_str()).collect();
        let count = plural(released.len(), "reservation");
        return console.text(&match names.is_empty() {
            true => format!("{count} released\n"),
            false => format!("{count} released: {}\n", names.join(", ")),
        });
    }
    let released = released.iter().map(|task| ReleasedOutput {
        task: task.task,
        name: task.name.clone(),
        process: task.process,
        thread: task.thread,
    });
    console.json_line(&ReleaseOutput {
        schema_version: SCHEMA_VERSION,
        released: released.collect(),
    })
}
