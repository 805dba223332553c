//! Which thread is which task, as the programs in the kernel have it.
//!
//! This module owns the protocol by which a thread becomes a task and ceases to be one. Both take two calls. The
//! kernel may be queueing the thread while the first one changes what the thread is, and then puts it into the queue of what
//! it was. Once the thread's run queue has been passed that is over, and the second call moves the thread to the queue
//! where it belongs. No CPU would look for it elsewhere.

use std::collections::BTreeMap;
use std::io;

use rustix::thread::Pid;
use shiftwork_model::{Span, TaskId};

use super::scheduler::{number, run_command, words};
use crate::LiveError;
use crate::machine::Parameters;
use crate::sys::bpf::{Command, Commands};
use crate::sys::clock::{monotonic_ns, sleep_until};
use crate::sys::thread::pass_run_queue;

/// How often an admission is tried for which the kernel finds no memory, and after how long it is tried again.
const ATTEMPTS: u32 = 20;
const BETWEEN_NS: u64 = 100_000;

/// What came of an admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// The thread is the task now.
    Done {
        /// Whether it wants to run.
        is_awake: bool,
    },
    /// The thread is the task already, with what it was admitted with.
    HasIt,
    /// There is no such thread, another thread is the task, or it asks for other CPUs by now.
    NotWanted,
}

/// The threads that are tasks, or were at the last event.
#[derive(Debug, Default)]
pub(super) struct Members {
    threads: BTreeMap<TaskId, Pid>,
}

impl Members {
    /// The thread is this task from now on, with this budget enforced by the kernel.
    pub(super) fn admit(
        &mut self,
        commands: &Commands,
        task: TaskId,
        of: &Parameters,
        budget: Span,
    ) -> Result<Admission, LiveError> {
        let mut words = words(task, of, budget)?;
        let answer = admit(commands, &mut words);
        let has_it = |error: &io::Error| error.raw_os_error() == Some(libc::EALREADY);
        if answer.as_ref().is_err_and(has_it) {
            return Ok(Admission::HasIt);
        }
        if !is_there(of.thread, answer)? {
            return Ok(Admission::NotWanted);
        }
        let is_awake = words[5] >> 56 != 0;
        self.threads.insert(task, of.thread);
        pass_run_queue(of.thread);
        match is_there(of.thread, commands.call(Command::Settle, &mut words))? {
            true => Ok(Admission::Done { is_awake }),
            false => Ok(Admission::NotWanted),
        }
    }

    /// The task's thread is ordinary work from now on. Nothing happens to a task that takes no part.
    pub(super) fn dismiss(&mut self, commands: &Commands, task: TaskId) -> Result<(), LiveError> {
        let dismiss = || {
            let mut words = [0, number(task)?];
            run_command(
                commands,
                Command::Dismiss,
                &mut words,
                "dismiss a task from",
            )
        };
        dismiss()?;
        if let Some(thread) = self.threads.remove(&task) {
            pass_run_queue(thread);
            dismiss()?;
        }
        Ok(())
    }
}

/// Programs in the kernel may not wait for memory, and where they find none for the number of a thread there may be some a moment later.
fn admit(commands: &Commands, words: &mut [u64; 6]) -> io::Result<()> {
    for _ in 1..ATTEMPTS {
        let answer = commands.call(Command::Admit, words);
        let has_none = |error: &io::Error| error.raw_os_error() == Some(libc::ENOMEM);
        if !answer.as_ref().is_err_and(has_none) {
            return answer;
        }
        sleep_until(monotonic_ns() + BETWEEN_NS)?;
    }
    commands.call(Command::Admit, words)
}

/// Whether the thread is there, by the kernel's answer to a call that concerns it.
///
/// # Errors
/// If the thread has another number, or the kernel refuses for another reason.
pub(super) fn is_there(thread: Pid, answer: io::Result<()>) -> Result<bool, LiveError> {
    let Err(error) = answer else { return Ok(true) };
    match error.raw_os_error() {
        Some(libc::ESRCH) => Ok(false),
        Some(libc::EBUSY) => Err(LiveError::Reservation(format!(
            "thread {thread} has another number already; that has to be given up first"
        ))),
        _ => Err(LiveError::system("admit a task")(error)),
    }
}
