//! Why a task set could not be run on this machine.

use std::{fmt, io};

/// Why a task set could not be run on this machine.
#[derive(Debug)]
#[non_exhaustive]
pub enum LiveError {
    /// The machine cannot run anything live as it is.
    Machine {
        /// What is in the way.
        what: String,
        /// What mends it: one command, or one sentence where no command can.
        remedy: String,
    },
    /// The task set, as it is, cannot be run live: which part, and what would be accepted.
    TaskSet(String),
    /// Nobody can have this reservation: why, and what would be accepted.
    Reservation(String),
    /// A task's program could not be started.
    Program {
        /// The task.
        task: String,
        /// The program.
        program: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// Something that ought to work failed.
    System {
        /// What was being done, as in "could not ...".
        doing: String,
        /// What the kernel said.
        error: io::Error,
    },
}

impl LiveError {
    /// For `map_err`: the kernel refused while doing this.
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
