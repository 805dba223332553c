//! `shiftwork release`: gives reservations back.

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_client::{Error, Failure as Unanswered, Task};
use shiftwork_trace::SCHEMA_VERSION;

use super::apply::{set_name, task_name};
use super::{daemon_client, reservations};
use crate::args::ReleaseArgs;
use crate::failure::{Answer, Failure};
use crate::input::{self, Input};
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
    let meant: Vec<Task> = match (&args.which, &args.file) {
        (Some(which), _) => {
            let found = reservations::find(which, &status.tasks)?;
            found.into_iter().cloned().collect()
        }
        (None, Some(file)) => of_file(file, status.tasks, console)?,
        (None, None) => status.tasks,
    };
    let mut released = Vec::new();
    for task in meant {
        match client.dismiss(task.task) {
            Ok(()) => released.push(task),
            // Its thread has ended meanwhile.
            Err(Unanswered::Agent(Error::Missing { .. })) => {}
            Err(failure) => return Err(daemon_client::of(&failure)),
        }
    }
    show(&released, console)?;
    Ok(Answer::Yes)
}

/// The reservations that `apply` made of the file, in the order of their numbers.
fn of_file(file: &str, tasks: Vec<Task>, console: &Console) -> Result<Vec<Task>, Failure> {
    let input = Input::read(file)?;
    let set = input::task_set(&input, console)?;
    let name = set_name(&input, &set)?;
    let is_own = |it: &Task| task_name(&name, &it.name).is_some();
    Ok(tasks.into_iter().filter(is_own).collect())
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
