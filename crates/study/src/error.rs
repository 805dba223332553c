//! The one error of this crate.

use core::fmt;
use std::io;

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
    /// A contender names a policy that does not exist, or a test that does not speak of it.
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
    /// A contender does not take the task sets of a family.
    Unsuitable {
        path: String,
        contender: String,
        family: String,
        problem: String,
    },
    /// No task set of a cell can be drawn.
    Draw { cell: String, error: TasksetError },
    /// A part in the folder is of another study.
    Foreign { path: String },
    /// A part in the folder has task sets beyond those that are asked for.
    Fewer {
        path: String,
        found: u64,
        asked: u64,
    },
    /// Two parts do not agree.
    Differs { parts: [String; 2], range: String },
    /// A part that was handed over cannot be used.
    Refused { part: String, problem: String },
    /// A file or folder cannot be written.
    Write {
        path: String,
        error: io::Error,
        kept: u64,
        parts: usize,
    },
    /// A file with results is none.
    Results { path: String, problem: String },
    /// The threads cannot be started.
    Threads { problem: String },
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
            Self::Unsuitable {
                path,
                contender,
                family,
                problem,
            } => write!(
                f,
                "{path}: policy `{contender}` cannot be asked about all task sets of family `{family}`: {problem}; or \
                 leave the family out of its `families`, or give it all CPUs with `affinities = \"ignored\"` where \
                 affinities are in the way"
            ),
            Self::Draw { cell, error } => write!(f, "{cell}: {error}"),
            Self::Foreign { path } => write!(
                f,
                "{path}: is a part of another study, or the study or its overheads have changed since; write to \
                 another folder, or move the parts of the other study away"
            ),
            Self::Fewer { path, found, asked } => write!(
                f,
                "{path}: has task sets up to number {found} of a cell, but only {asked} are asked for; ask for \
                 {found} or more, or write to another folder"
            ),
            Self::Differs {
                parts: [one, other],
                range,
            } => write!(
                f,
                "{one}: disagrees with {other} about the same task sets ({range}); the parts were made by different \
                 versions or on a machine with a fault: remove one of them, what it had alone is run again"
            ),
            Self::Refused { part, problem } => {
                write!(
                    f,
                    "{part}: was not kept: {problem}; what it had is run again"
                )
            }
            Self::Write {
                path,
                error,
                parts: 0,
                ..
            } => write!(f, "{path}: cannot be written: {error}"),
            Self::Write {
                path,
                error,
                kept,
                parts,
            } => write!(
                f,
                "{path}: cannot be written: {error}; {kept} task sets are kept in {parts} parts, and the same \
                 command goes on from there"
            ),
            Self::Results { path, problem } => write!(
                f,
                "{path}: is not a table of results, as `shiftwork study run` writes them: {problem}"
            ),
            Self::Threads { problem } => write!(f, "the threads cannot be started: {problem}"),
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
