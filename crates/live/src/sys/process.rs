//! Processes: holding them between fork and exec, signals, and parent-death signals.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{
    Pid, Signal, getppid, kill_process, kill_process_group, set_parent_process_death_signal,
};
use shiftwork_model::CpuSet;

use super::clock::sleep_until;
use super::memory::allow_huge_pages;
use super::thread::{Class, set_affinity, set_class};

/// How a process waits between fork and exec.
pub(crate) struct Hold {
    /// The process writes its number here, as four bytes, once it waits.
    pub(crate) born: PipeWriter,
    /// The process reads the start instant of its program here, of the monotonic clock, as eight bytes.
    pub(crate) start: PipeReader,
    /// Its affinity from the beginning.
    pub(crate) cpus: CpuSet,
    /// Whether it is killed with the thread that spawned it, also after the program has started.
    pub(crate) dies_with_parent: bool,
}

/// Makes the process of this command wait before its program starts. While it waits, it does not outlive the thread
/// that spawned it.
#[expect(unsafe_code, reason = "the child calls this between fork and exec")]
pub(crate) fn hold(command: &mut Command, mut hold: Hold) {
    let parent = rustix::process::getpid();
    let wait = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(parent) {
            // The parent ended before the death signal was requested.
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        // The program inherits what the run has set for its own threads. It fails where there are none.
        let _ = allow_huge_pages(true);
        set_class(None, Class::Ordinary)?;
        set_affinity(None, &hold.cpus)?;
        let own = rustix::process::getpid().as_raw_nonzero().get();
        hold.born.write_all(&own.to_ne_bytes())?;
        let mut at_ns = [0; 8];
        hold.start.read_exact(&mut at_ns)?;
        sleep_until(u64::from_ne_bytes(at_ns))?;
        if !hold.dies_with_parent {
            set_parent_process_death_signal(None)?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe operations are allowed. The closure makes
    // system calls (prctl, getppid, sched_*, write, read, clock_nanosleep) on values that it owns; it
    // allocates nothing, takes no lock, and its errors carry only a number or a static text.
    let _ = unsafe { command.pre_exec(wait) };
}

/// Sends SIGXCPU: the process has used up its budget, as with `SCHED_FLAG_DL_OVERRUN`. Without a handler, that ends
/// the process.
///
/// # Errors
/// If the process has ended.
pub(crate) fn warn(process: Pid) -> io::Result<()> {
    Ok(kill_process(process, Signal::XCPU)?)
}

/// Sends SIGTERM to the process group of this leader if `kindly`, otherwise SIGKILL.
///
/// # Errors
/// If the group has ended.
pub(crate) fn end_group(leader: Pid, kindly: bool) -> io::Result<()> {
    let signal = if kindly { Signal::TERM } else { Signal::KILL };
    Ok(kill_process_group(leader, signal)?)
}
