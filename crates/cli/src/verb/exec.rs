//! `shiftwork exec`: runs a program with a reservation, or reserves for running threads.

mod measure;
mod strict;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_analysis::admission::{Guarantee, Verdict};
use shiftwork_client::{Admitted, Client, OnOverrun, Reservation};
use shiftwork_trace::SCHEMA_VERSION;

use super::daemon_client;
use crate::args::{ExecArgs, OnOverrunName, ReservationArgs};
use crate::failure::{Answer, Failure};
use crate::output::{Console, tell};
use measure::{MeasuredOutput, measure};

/// The file exists and cannot be executed.
const CANNOT_BE_RUN: u8 = 126;
/// The program is not found.
const NOT_FOUND: u8 = 127;

/// A line that `exec --json` prints; a program that was run prints its own.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ExecOutput {
    /// For a running thread.
    Asked(AskedOutput),
    /// With `--measure`.
    Measured(MeasuredOutput),
}

/// Result of the request for a running thread.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AskedOutput {
    schema_version: u64,
    thread: u32,
    /// The number of the task; null if it was refused.
    task: Option<u32>,
    /// `admitted` or `refused`; null if the daemon is configured to guarantee nothing.
    verdict: Option<&'static str>,
    /// The guarantee; null if it was refused.
    guarantee: Option<String>,
    /// Why it was refused; null if it was not.
    refused: Option<String>,
}

/// Requests the reservation, and executes the program.
pub fn run(args: &ExecArgs, console: &mut Console) -> Result<Answer, Failure> {
    if args.measure {
        return measure(args, console);
    }
    let mut client = daemon_client::connect()?;
    if args.strict {
        return strict::run(&mut client);
    }
    let wanted = reservation(&args.reservation);
    if let Some((program, rest)) = args.command.split_first() {
        return exec_program(args, &mut client, &wanted, (program, rest));
    }
    let threads = threads(args)?;
    let mut answer = Answer::Yes;
    for thread in threads {
        let name = args.name.clone().unwrap_or_else(|| name_of(thread));
        let asked = ask(&mut client, &name, Some(thread), &wanted)?;
        if asked.is_err() {
            answer = Answer::No;
        }
        show(console, thread, asked)?;
    }
    Ok(answer)
}

/// The reservation of the command line, as a type of the interface.
pub fn reservation(args: &ReservationArgs) -> Reservation {
    Reservation {
        deadline: args.deadline,
        cpus: args.cpus.map(|cpus| cpus.to_string()),
        priority: args.priority,
        on_overrun: Some(on_overrun(args.on_overrun)),
        // The command line requires both.
        ..Reservation::new(
            args.cost.unwrap_or_default(),
            args.period.unwrap_or_default(),
        )
    }
}

/// The reaction that the command line names.
pub const fn on_overrun(name: OnOverrunName) -> OnOverrun {
    match name {
        OnOverrunName::Throttle => OnOverrun::Throttle,
        OnOverrunName::Signal => OnOverrun::Signal,
        OnOverrunName::Continue => OnOverrun::Continue,
    }
}

/// Requests a reservation; the inner error is the reason of a refusal.
fn ask(
    client: &mut Client,
    name: &str,
    thread: Option<u32>,
    wanted: &Reservation,
) -> Result<Result<Admitted, String>, Failure> {
    match client.admit(name, thread, wanted) {
        Ok(admitted) => Ok(Ok(admitted)),
        Err(failure) => match daemon_client::refusal(&failure) {
            Some(reason) => Ok(Err(reason)),
            None => Err(daemon_client::of(&failure)),
        },
    }
}

fn exec_program(
    args: &ExecArgs,
    client: &mut Client,
    wanted: &Reservation,
    (program, rest): (&OsStr, &[std::ffi::OsString]),
) -> Result<Answer, Failure> {
    let name = match &args.name {
        Some(name) => name.clone(),
        None => short(program),
    };
    // The reservation is for this thread, which becomes the program's main thread.
    match ask(client, &name, Some(std::process::id()), wanted)? {
        Ok(admitted) if is_best_effort(&admitted) => tell(BEST_EFFORT),
        Ok(_) => {}
        Err(reason) => {
            tell(&reason);
            return Ok(Answer::No);
        }
    }
    // Returns only on an error; then the reservation ends with this process.
    let error = Command::new(program).args(rest).exec();
    let status = match error.kind() {
        std::io::ErrorKind::NotFound => NOT_FOUND,
        _ => CANNOT_BE_RUN,
    };
    tell(&format!("{}: {error}", Path::new(program).display()));
    Ok(Answer::Status(status))
}

fn threads(args: &ExecArgs) -> Result<Vec<u32>, Failure> {
    if let Some(thread) = args.tid {
        return Ok(vec![thread]);
    }
    let process = args.pid.unwrap_or(0);
    if !args.all_threads {
        return Ok(vec![process]);
    }
    let folder = format!("/proc/{process}/task");
    let entries = fs::read_dir(&folder)
        .map_err(|_| Failure::input(format_args!("there is no process {process}")))?;
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn show(
    console: &mut Console,
    thread: u32,
    asked: Result<Admitted, String>,
) -> Result<(), Failure> {
    if console.json {
        let (admitted, refused) = (asked.as_ref().ok(), asked.as_ref().err());
        return console.json_line(&ExecOutput::Asked(AskedOutput {
            schema_version: SCHEMA_VERSION,
            thread,
            task: admitted.map(|it| it.task),
            verdict: match &asked {
                Ok(admitted) if is_best_effort(admitted) => None,
                Ok(_) => Some(Verdict::Admitted(Guarantee::Share).name()),
                Err(_) => Some(Verdict::Refused.name()),
            },
            guarantee: admitted.map(|it| it.guarantee.clone()),
            refused: refused.cloned(),
        }));
    }
    match asked {
        Ok(admitted) => console.line(format!(
            "thread {thread} is task {}: {}",
            admitted.task,
            promise(&admitted.guarantee)
        )),
        Err(reason) => {
            tell(&format!("thread {thread}: {reason}"));
            Ok(())
        }
    }
}

/// As `run --best-effort` prints for a refused set; here the daemon's configuration requests it.
const BEST_EFFORT: &str =
    "best effort: the daemon guarantees nothing (`guarantee = \"none\"` in its configuration)";

/// Whether the task was accepted without a guarantee.
fn is_best_effort(admitted: &Admitted) -> bool {
    admitted.guarantee == Guarantee::None.name()
}

/// The verdict on an accepted request with this guarantee.
pub fn promise(guarantee: &str) -> String {
    match Guarantee::named(guarantee) {
        Some(Guarantee::None) => BEST_EFFORT.to_owned(),
        Some(guarantee) => Verdict::of(guarantee).to_string(),
        // The daemon is newer than this command.
        None => format!("guarantee {guarantee}"),
    }
}

/// The last part of the path, shortened to 16 characters.
fn short(program: &OsStr) -> String {
    let name = Path::new(program).file_name().unwrap_or(program);
    let printable = name.to_string_lossy();
    let name: String = printable
        .chars()
        .filter(|it| !it.is_control())
        .take(16)
        .collect();
    match name.is_empty() {
        true => "program".to_owned(),
        false => name,
    }
}

/// The thread's name (`comm`).
fn name_of(thread: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{thread}/comm")).unwrap_or_default();
    match name.trim() {
        "" => format!("thread {thread}"),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_shortened_and_on_one_line() {
        assert_eq!(short(OsStr::new("/usr/bin/control")), "control");
        assert_eq!(short(OsStr::new("a\nb")), "ab");
        assert_eq!(short(OsStr::new("/")), "/");
        assert_eq!(short(OsStr::new("\n")), "program");
        assert_eq!(short(OsStr::new(&"x".repeat(99))).len(), 16);
    }

    #[test]
    fn current_thread_has_name() {
        assert!(!name_of(std::process::id()).is_empty());
        assert_eq!(name_of(4_194_304), "thread 4194304");
    }
}
