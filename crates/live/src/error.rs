//! Why a task set could not be run on this machine.

use std::{fmt, io};

/// Why a task set could not be run on this machine.
#[derive(Debug)]
#[non_exhaustive]
pub enum LiveError {
    /// This machine cannot run anything live.
    Machine {
        /// The obstacle.
        what: String,
        /// The remedy: one command, or one sentence where no command helps.
        remedy: String,
    },
    /// This task set cannot be run live: which part, and what would be accepted.
    TaskSet(String),
    /// This reservation is impossible: why, and what would be accepted.
    Reservation(String),
    /// A task's program could not be started.
    Program {
        /// The task.
        task: String,
        /// The program.
        program: String,
        /// The error of the kernel.
        error: io::Error,
    },
    /// An operation failed that should succeed.
    System {
        /// The operation, as in "could not ...".
        doing: String,
        /// The error of the kernel.
        error: io::Error,
    },
}

impl LiveError {
    /// For `map_err`: the kernel refused this operation.
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |error| Self::System { doing, error }
    }
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine { what, remedy } => write!(f, "{what}; {remedy}"),
            Self::TaskSet(what) | Self::Reservation(what) => f.write_str(what),
            Self::Program {
                task,
                program,
                error,
            } => write!(f, "could not start `{program}` of task {task}: {error}"),
            Self::System { doing, error } => write!(f, "could not {doing}: {error}"),
        }
    }
}

impl std::error::Error for LiveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Program { error, .. } | Self::System { error, .. } => Some(error),
            Self::Machine { .. } | Self::TaskSet(_) | Self::Reservation(_) => None,
        }
    }
}
