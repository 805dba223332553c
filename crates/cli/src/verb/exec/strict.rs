//! `shiftwork exec --strict`: waits for the program, and reports at its end whether it missed a deadline.

use std::env;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use shiftwork_client::Client;
use shiftwork_daemon::recorder::Recording;
use shiftwork_model::{Instant, Span};

use super::daemon_client;
use crate::failure::{Answer, Failure};
use crate::output::tell;
use crate::verb::watch::{catch_interrupts, is_terminated};

/// Interval between two requests of the status. Misses after the last one are taken from the recording.
const INTERVAL: Duration = Duration::from_millis(50);

/// The last known statistics of the program's main thread.
#[derive(Default)]
struct Seen {
    task: Option<u32>,
    misses: u64,
    until: Instant,
}

/// Runs this command without `--strict` as a child, which executes the program. The status is the program's own, unless that
/// is 0 and a deadline was missed: then it is 1.
///
/// # Errors
/// If the child cannot be started, or the daemon does not answer.
pub fn run(client: &mut Client) -> Result<Answer, Failure> {
    // Ctrl-C also reaches the program, which is in the same process group.
    catch_interrupts();
    let machine =
        |error: std::io::Error| Failure::Machine(format!("the program cannot be started: {error}"));
    let mut child = env::current_exe()
        .and_then(|own| {
            Command::new(own)
                .args(without_strict(env::args_os().skip(1)))
                .spawn()
        })
        .map_err(machine)?;
    let seen = watch(client, &mut child);
    let status = child.wait().map_err(machine)?;
    let seen = seen?;
    let misses = seen.misses + missed_since(client, &seen);
    if misses > 0 {
        let deadlines = if misses == 1 { "deadline" } else { "deadlines" };
        tell(&format!(
            "{misses} {deadlines} missed; `shiftwork record --explain` shows why"
        ));
    }
    Ok(answer(status, misses))
}

/// The arguments of the child: removes `--strict` before `--`; what follows belongs to the program.
fn without_strict(
    arguments: impl Iterator<Item = std::ffi::OsString>,
) -> impl Iterator<Item = std::ffi::OsString> {
    let mut is_ours = true;
    arguments.filter(move |argument| {
        is_ours &= argument != "--";
        !(is_ours && argument == "--strict")
    })
}

/// Polls the status until the program has ended. Forwards SIGTERM to it.
fn watch(client: &mut Client, child: &mut Child) -> Result<Seen, Failure> {
    let (mut seen, mut is_forwarded) = (Seen::default(), false);
    while child.try_wait().is_ok_and(|status| status.is_none()) {
        if is_terminated() && !std::mem::replace(&mut is_forwarded, true) {
            // Fails only if the program has ended meanwhile.
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
        }
        let status = client
            .status()
            .map_err(|failure| daemon_client::of(&failure))?;
        if let Some(task) = status.tasks.iter().find(|task| task.thread == child.id()) {
            seen = Seen {
                task: Some(task.task),
                misses: task.misses,
                until: status.now,
            };
        }
        std::thread::sleep(INTERVAL);
    }
    Ok(seen)
}

/// Misses after the last status, from the recording. Only root may read it; for other users they are not counted.
fn missed_since(client: &mut Client, seen: &Seen) -> u64 {
    let Some(task) = seen.task else {
        return 0;
    };
    const LAST: Span = Span::from_s(2);
    let record = client.record(Some(LAST.as_ns() as f64 / 1e9));
    let recording = record.ok().map(|it| Recording::read(&it.record));
    match recording {
        Some(Ok(recording)) => recording.misses_of(task, seen.until),
        Some(Err(_)) | None => 0,
    }
}

fn answer(status: ExitStatus, misses: u64) -> Answer {
    // The convention of shells for a program that a signal terminated.
    let of_signal = || 128 + status.signal().unwrap_or_default();
    let own = status.code().unwrap_or_else(of_signal);
    match (u8::try_from(own).unwrap_or(1), misses) {
        (0, misses) => Answer::from_truth(misses == 0),
        (own, _) => Answer::Status(own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_of_program_takes_precedence_unless_0() {
        let ended = |code: i32| ExitStatus::from_raw(code << 8);
        assert_eq!(answer(ended(0), 0).status(), 0);
        assert_eq!(answer(ended(0), 2).status(), 1);
        assert_eq!(answer(ended(42), 2).status(), 42);
        assert_eq!(answer(ExitStatus::from_raw(15), 2).status(), 143);
    }

    #[test]
    fn only_option_before_double_dash_is_removed() {
        let words = ["exec", "--strict", "--", "x", "--strict"];
        let left: Vec<_> = without_strict(words.map(Into::into).into_iter()).collect();
        assert_eq!(left, ["exec", "--", "x", "--strict"]);
    }
}
