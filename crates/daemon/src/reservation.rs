//! What is asked for, and by whom.

use std::fmt;

use shiftwork_model::{CpuSet, OnOverrun, Priority, Span};

/// How much of which CPUs a thread is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// What it may use in each period, and is charged for.
    pub cost: Span,
    /// Between two releases at least.
    pub period: Span,
    /// From a release.
    pub deadline: Span,
    /// In the machine's numbers.
    pub cpus: CpuSet,
    /// Counts under fixed priorities only.
    pub priority: Priority,
    /// What happens when the cost is used up.
    pub on_overrun: OnOverrun,
}

/// Under whose name time is reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The number of the user; 0 may touch everybody's.
    pub user: u32,
    /// The path of the control group, from its root.
    pub cgroup: String,
}

/// A thread that is told from any other that the machine ever runs until it is booted again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The number of its process.
    pub process: u32,
    /// Its own number.
    pub thread: u32,
    /// When it was started, in the kernel's ticks since the machine was: numbers are used again.
    pub started: u64,
}

/// Why something is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// There is no room: with the sum that does not fit, and what would.
    Refused(String),
    /// The caller may not.
    Forbidden(String),
    /// A value is impossible.
    Invalid {
        /// Of which parameter.
        parameter: &'static str,
        /// Why, and what would be accepted.
        reason: String,
    },
    /// There is no such thread, or task: which.
    Missing(String),
    /// A user or a control group has as much as it may.
    Exhausted(String),
    /// The machine cannot.
    Broken(String),
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(text)
            | Self::Forbidden(text)
            | Self::Exhausted(text)
            | Self::Broken(text) => f.write_str(text),
            Self::Missing(what) => write!(f, "there is no {what}"),
            Self::Invalid { parameter, reason } => write!(f, "{parameter}: {reason}"),
        }
    }
}

impl std::error::Error for Denial {}
