//! Why a boot brings no exit status.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::Unavailable;

/// Why a program has no exit status.
#[derive(Debug)]
#[non_exhaustive]
pub enum BootError {
    /// The emulator or the kernel is not to be had here.
    Unavailable(Unavailable),
    /// A file that the guest needs cannot be read, or one from it not be written.
    Files(io::Error),
    /// QEMU cannot be started.
    Start(io::Error),
    /// The first process of the guest could not do its work.
    Refused(String),
    /// The guest ended without an exit status: its kernel panicked, or QEMU gave up.
    Died {
        /// The end of the guest's console.
        console: String,
        /// What QEMU said.
        qemu: String,
    },
    /// The guest did not start within this time of the host.
    NotStarted {
        /// The limit.
        after: Duration,
        /// The end of the guest's console.
        console: String,
    },
    /// The program took longer than its limit, in the guest's time, and was ended.
    TimedOut {
        /// The limit.
        after: Duration,
        /// The end of the guest's console.
        console: String,
    },
    /// The guest hangs: it gave no sign of life for this time of the host.
    Silent {
        /// The limit.
        after: Duration,
        /// The end of the guest's console.
        console: String,
    },
}

impl fmt::Display for BootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(unavailable) => unavailable.fmt(f),
            Self::Files(error) => error.fmt(f),
            Self::Start(error) => write!(f, "QEMU cannot be started: {error}"),
            Self::Refused(why) => write!(f, "the guest could not run the program: {why}"),
            Self::Died { console, qemu } => {
                write!(f, "the guest died without an exit status")?;
                if !qemu.is_empty() {
                    write!(f, "; QEMU said: {qemu}")?;
                }
                end_of_console(f, console)
            }
            Self::NotStarted { after, console } => {
                write!(f, "the guest did not start within {} s", after.as_secs())?;
                end_of_console(f, console)
            }
            Self::TimedOut { after, console } => {
                let after = after.as_secs_f64();
                write!(
                    f,
                    "the program took longer than {after} s of the guest's time; allow more by a longer timeout"
                )?;
                end_of_console(f, console)
            }
            Self::Silent { after, console } => {
                write!(
                    f,
                    "the guest hangs: no sign of life for {} s",
                    after.as_secs()
                )?;
                end_of_console(f, console)
            }
        }
    }
}

fn end_of_console(f: &mut fmt::Formatter<'_>, console: &str) -> fmt::Result {
    match console {
        "" => write!(f, "\nits console is empty"),
        text => write!(f, "\nthe end of its console:\n{text}"),
    }
}

impl std::error::Error for BootError {}

impl From<Unavailable> for BootError {
    fn from(unavailable: Unavailable) -> Self {
        Self::Unavailable(unavailable)
    }
}
