//! The programs of tasks that have a `command`.
//!
//! Each has a thread that starts it, and then waits for it. The program is killed with that thread, and
//! so with this process, unless the run is to outlive it.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

use rustix::process::Pid;
use shiftwork_model::{CpuSet, Task};

use crate::LiveError;
use crate::sys::process::{Hold, end_group, hold};

/// The thread only waits.
const STACK_BYTES: usize = 128 << 10;

/// A process that waits for its program to begin, or runs it.
#[derive(Debug)]
pub(super) struct Program {
    pid: Pid,
    /// The program starts at the instant that is written here.
    start: Option<PipeWriter>,
    /// Returns how the program ended, or why it could not be started.
    waiter: JoinHandle<io::Result<ExitStatus>>,
}

impl Program {
    /// A process for the task's program; the program does not begin before [`start`](Self::start).
    ///
    /// # Errors
    /// If there is no such program, or no process can be made.
    pub(super) fn hold(task: &Task, cpus: &CpuSet, dies_with_us: bool) -> Result<Self, LiveError> {
        let failed = |error| LiveError::Program {
            task: task.name.clone(),
            program: task.command[0].clone(),
            error,
        };
        find(&task.command[0]).map_err(failed)?;
        spawn(task, cpus, dies_with_us).map_err(failed)
    }

    /// The number of the process and of its first thread.
    pub(super) const fn pid(&self) -> Pid {
        self.pid
    }

    /// Starts the program at this instant of the monotonic clock, at once if it is past.
    pub(super) fn start(&mut self, at_ns: u64) {
        if let Some(mut start) = self.start.take() {
            // It fails only if the process has ended, which `waiter` reports.
            let _ = start.write_all(&at_ns.to_ne_bytes());
        }
    }

    /// Asks the program and all its descendants to end, or kills them.
    pub(super) fn end(&self, kindly: bool) {
        // It fails only if all of them have ended.
        let _ = end_group(self.pid, kindly);
    }

    /// Whether the program has ended.
    pub(super) fn is_over(&self) -> bool {
        self.waiter.is_finished()
    }

    /// How it ended. Waits until it does.
    pub(super) fn status(self) -> io::Result<ExitStatus> {
        self.waiter
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that waits for it panicked")))
    }
}

/// A thread of its own creates the process, since that call returns only when the program starts.
fn spawn(task: &Task, cpus: &CpuSet, dies_with_us: bool) -> io::Result<Program> {
    let (mut births, born) = io::pipe()?;
    let (start, starter) = io::pipe()?;
    let mut stillborn = born.try_clone()?;
    let mut command = command(task)?;
    hold(
        &mut command,
        Hold {
            born,
            start,
            cpus: *cpus,
            dies_with_parent: dies_with_us,
        },
    );
    let waiter = std::thread::Builder::new()
        .name("program".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || match command.spawn() {
            Ok(mut child) => {
                drop(stillborn);
                child.wait()
            }
            Err(error) => {
                // The end of the pipe alone would not show this: other waiting processes have it open, too.
                let _ = stillborn.write_all(&[0; 4]);
                Err(error)
            }
        })?;
    match birth(&mut births)? {
        Some(pid) => Ok(Program {
            pid,
            start: Some(starter),
            waiter,
        }),
        None => Err(match waiter.join() {
            Ok(Err(error)) => error,
            _ => io::Error::other("the process ended before its program started"),
        }),
    }
}

/// The number of the process; `None` if there is none.
fn birth(births: &mut PipeReader) -> io::Result<Option<Pid>> {
    let mut number = [0; 4];
    births.read_exact(&mut number)?;
    Ok(Pid::from_raw(i32::from_ne_bytes(number)))
}

/// The program reads no input, and its output goes to stderr: stdout is for results. With a process group of its
/// own it can be ended together with its descendants, and gets no Ctrl-C that is meant for the run.
fn command(task: &Task) -> io::Result<Command> {
    let stderr = io::stderr();
    let mut command = Command::new(&task.command[0]);
    command
        .args(&task.command[1..])
        .stdin(Stdio::null())
        .stdout(std::os::fd::AsFd::as_fd(&stderr).try_clone_to_owned()?)
        .process_group(0);
    Ok(command)
}

/// Fails if there is no such program, before the run starts.
fn find(program: &str) -> io::Result<()> {
    if program.contains('/') {
        return is_executable(Path::new(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|dir| is_executable(&dir.join(program)).is_ok());
    match found {
        true => Ok(()),
        false => Err(io::Error::from(io::ErrorKind::NotFound)),
    }
}

fn is_executable(path: &Path) -> io::Result<()> {
    let metadata = std::fs::metadata(path)?;
    match metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 {
        true => Ok(()),
        false => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
    }
}
