//! Processes: holding them before they begin, signals, and dying together.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{
    Pid, Signal, getppid, kill_process, kill_process_group, set_parent_process_death_signal,
};
use shiftwork_model::CpuSet;

use super::clock::sleep_until;
use super::thread::{Class, set_affinity, set_class};

/// How a process waits between its birth and its program.
pub(crate) struct Hold {
    /// Its number goes here, as four bytes, once it waits.
    pub(crate) born: PipeWriter,
    /// The instant of the monotonic clock at which the program begins comes from here, as eight bytes.
    pub(crate) start: PipeReader,
    /// Where it may run from its birth on.
    pub(crate) cpus: CpuSet,
    /// Whether it dies with the thread that made it even once the program runs.
    pub(crate) dies_with_parent: bool,
}

/// The process of this command waits before its program begins. It does not outlive the thread that
/// spawns it while it waits.
#[expect(unsafe_code, reason = "the child runs this between fork and exec")]
pub(crate) fn hold(command: &mut Command, mut hold: Hold) {
    let parent = rustix::process::getpid();
    let wait = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(parent) {
            // It died before it could be asked to take us along.
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
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
    // SAFETY: between fork and exec only what a signal handler may do is allowed. The closure makes
    // system calls (prctl, getppid, sched_*, write, read, clock_nanosleep) on values that it owns; it
    // allocates nothing, takes no lock, and its errors carry only a number or a static text.
    let _ = unsafe { command.pre_exec(wait) };
}

/// Tells a process that it has used up its processor time, as `SCHED_FLAG_DL_OVERRUN` does. Unless it
/// takes the signal, that ends it.
///
/// # Errors
/// If there is no such process any more.
pub(crate) fn warn(process: Pid) -> io::Result<()> {
    Ok(kill_process(process, Signal::XCPU)?)
}

/// Asks the process group that this process leads to end, or makes it.
///
/// # Errors
/// If there is no such group any more.
pub(crate) fn end_group(leader: Pid, kindly: bool) -> io::Result<()> {
    let signal = if kindly { Signal::TERM } else { Signal::KILL };
    Ok(kill_process_group(leader, signal)?)
}
