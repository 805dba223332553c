//! The one error of this crate.

use core::fmt;

use shiftwork_taskset::TasksetError;

/// Why a study cannot begin or go on.
#[derive(Debug)]
#[non_exhaustive]
#[allow(
    missing_docs,
    reason = "the fields are what the messages below call them"
)]
pub enum StudyError {
    /// A file cannot be read.
    Read { path: String, problem: String },
    /// A study or overhead file says something wrong.
    File { path: String, error: TasksetError },
    /// A contender names a policy that does not exist, or of which no test speaks.
    Policy {
        path: String,
        contender: String,
        problem: String,
    },
    /// The overhead file says nothing of a contender.
    NoOverheads {
        path: String,
        contender: String,
        policy: String,
        known: Vec<String>,
    },
    /// A contender names a test that does not exist, or does not speak of its policy.
    Test {
        path: String,
        contender: String,
        test: String,
        known: Vec<String>,
    },
    /// No task set of a cell can be drawn.
    Draw { cell: String, error: TasksetError },
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, problem } => write!(f, "{path}: {problem}"),
            Self::File { path, error } => write!(f, "{path}: {error}"),
            Self::Policy {
                path,
                contender,
                problem,
            } => write!(f, "{path}: policy `{contender}`: {problem}"),
            Self::NoOverheads {
                path,
                contender,
                policy,
                known,
            } => write!(
                f,
                "{path}: has no overheads for {policy}, which `{contender}` needs; write \
                 [worst.{policy}] or [average.{policy}] there, or `overheads = \"none\"` or `as = \"…\"` in the \
                 study (there are: {})",
                list(known)
            ),
            Self::Test {
                path,
                contender,
                test,
                known,
            } => write!(
                f,
                "{path}: policy `{contender}`: no test `{test}` speaks of it; there are {}",
                list(known)
            ),
            Self::Draw { cell, error } => write!(f, "{cell}: {error}"),
        }
    }
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(" "),
    }
}

impl core::error::Error for StudyError {}
