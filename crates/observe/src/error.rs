//! Why a process cannot be observed.

use std::fmt;
use std::io;

/// Why a process cannot be observed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ObserveError {
    /// There is no such process.
    NoProcess {
        /// Its number.
        process: u32,
    },
    /// The number is that of a thread which is not the main thread of its process.
    NotMainThread {
        /// The thread.
        thread: u32,
        /// Its process.
        process: u32,
    },
    /// The process has no thread of this name.
    NoThread {
        /// The name.
        name: String,
        /// The names that there are.
        names: Vec<String>,
    },
    /// The kernel's trace may not be used.
    NotPermitted {
        /// What was refused.
        path: String,
    },
    /// The kernel's trace is not there.
    NoTracefs,
    /// This process is in a container: the trace has other numbers of threads.
    OtherNumbers,
    /// The kernel reports no counters of threads.
    NoCounters {
        /// The file that is missing.
        path: String,
    },
    /// A file of the kernel's trace failed.
    File {
        /// The file.
        path: String,
        /// Why.
        error: io::Error,
    },
}

impl ObserveError {
    /// Whether the counters of the threads can be read all the same.
    pub const fn leaves_counters(&self) -> bool {
        matches!(
            self,
            Self::NotPermitted { .. } | Self::NoTracefs | Self::OtherNumbers
        )
    }

    /// Whether another command line helps, rather than another machine or user.
    pub const fn is_input(&self) -> bool {
        matches!(
            self,
            Self::NoProcess { .. } | Self::NotMainThread { .. } | Self::NoThread { .. }
        )
    }
}

impl fmt::Display for ObserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProcess { process } => {
                write!(
                    f,
                    "there is no process {process}; `pgrep NAME` finds one by its name"
                )
            }
            Self::NotMainThread { thread, process } => write!(
                f,
                "{thread} is a thread of process {process}; name the process"
            ),
            Self::NoThread { name, names } => write!(
                f,
                "the process has no thread named `{name}`; it has {}",
                names.join(", ")
            ),
            Self::NotPermitted { path } => write!(
                f,
                "{path}: permission denied; reading the kernel's trace takes root (`sudo`), outside of containers"
            ),
            Self::NoTracefs => write!(
                f,
                "the kernel's trace is not mounted; `sudo mount -t tracefs tracefs /sys/kernel/tracing`"
            ),
            Self::OtherNumbers => write!(
                f,
                "this process is in a container, and the kernel's trace has the machine's own thread numbers; run it outside, \
                 with the number that the process has there"
            ),
            Self::NoCounters { path } => write!(
                f,
                "{path} cannot be read; a kernel with CONFIG_SCHED_INFO is needed"
            ),
            Self::File { path, error } => write!(f, "{path}: {error}"),
        }
    }
}

impl std::error::Error for ObserveError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_is_wrong_and_what_helps() {
        let path = || "/sys/kernel/tracing/instances".to_owned();
        for (error, is_input, leaves_counters, expected) in [
            (
                ObserveError::NoProcess { process: 7 },
                true,
                false,
                "there is no process 7; `pgrep NAME` finds one by its name".to_owned(),
            ),
            (
                ObserveError::NotMainThread {
                    thread: 8,
                    process: 7,
                },
                true,
                false,
                "8 is a thread of process 7; name the process".to_owned(),
            ),
            (
                ObserveError::NoThread {
                    name: "x".to_owned(),
                    names: vec!["a".to_owned(), "b".to_owned()],
                },
                true,
                false,
                "the process has no thread named `x`; it has a, b".to_owned(),
            ),
            (
                ObserveError::NotPermitted { path: path() },
                false,
                true,
                "/sys/kernel/tracing/instances: permission denied; reading the kernel's trace takes root (`sudo`), outside of \
                     containers".to_owned(),
            ),
            (
                ObserveError::NoTracefs,
                false,
                true,
                "the kernel's trace is not mounted; `sudo mount -t tracefs tracefs /sys/kernel/tracing`".to_owned(),
            ),
            (
                ObserveError::OtherNumbers,
                false,
                true,
                "this process is in a container, and the kernel's trace has the machine's own thread numbers; run it \
                     outside, with the number that the process has there".to_owned(),
            ),
            (
                ObserveError::NoCounters {
                    path: "/proc/7/schedstat".to_owned(),
                },
                false,
                false,
                "/proc/7/schedstat cannot be read; a kernel with CONFIG_SCHED_INFO is needed"
                    .to_owned(),
            ),
            (
                ObserveError::File {
                    path: path(),
                    error: io::ErrorKind::StorageFull.into(),
                },
                false,
                false,
                "/sys/kernel/tracing/instances: no storage space".to_owned(),
            ),
        ] {
            assert_eq!(error.to_string(), expected);
            assert_eq!(error.is_input(), is_input, "{error}");
            assert_eq!(error.leaves_counters(), leaves_counters, "{error}");
        }
    }
}
