//! Reservations, their owners and threads, and errors.

use std::fmt;

use shiftwork_model::{CpuSet, OnOverrun, Priority, Span};

/// CPU time reserved for a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Budget in each period.
    pub cost: Span,
    /// Minimum time between two releases.
    pub period: Span,
    /// Relative deadline.
    pub deadline: Span,
    /// Affinity, in the machine's numbers.
    pub cpus: CpuSet,
    /// Used under fixed priorities only.
    pub priority: Priority,
    /// Reaction to an exhausted budget.
    pub on_overrun: OnOverrun,
}

/// What a task is called to users that it does not belong to.
pub(crate) const OTHER: &str = "(other user)";

/// The user and group of a thread; `None` if real, effective and saved ID differ, as in a set-user-ID program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// User ID.
    pub user: Option<u32>,
    /// Group ID.
    pub group: Option<u32>,
}

/// The credentials under which a reservation was admitted, and the user and control group that it counts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// User ID; 0, root, may change all tasks.
    pub user: u32,
    /// Group ID of the thread at its admission; `None` if its group IDs differed.
    pub group: Option<u32>,
    /// The user that quotas charge: `user`, unless that is an ID of a user namespace, whose owner is charged.
    pub account: u32,
    /// The path of the control group, from its root.
    pub cgroup: String,
}

impl Owner {
    /// Whether a thread with these credentials keeps the reservation. One of root keeps it when the program gives up
    /// privileges: only root can control it then as before. Any other thread would stay controllable by its former user,
    /// whatever program it executes.
    pub fn allows(&self, credentials: Credentials) -> bool {
        self.user == 0
            || credentials
                == Credentials {
                    user: Some(self.user),
                    group: self.group,
                }
    }
}

/// Identifies a thread uniquely until the next boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Process ID.
    pub process: u32,
    /// Thread ID.
    pub thread: u32,
    /// Start time in clock ticks since boot: IDs are reused.
    pub started: u64,
}

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// Not admitted: the condition that fails, and what would be admitted.
    Refused(String),
    /// The caller lacks permission.
    Forbidden(String),
    /// A value is invalid.
    Invalid {
        /// The parameter.
        parameter: &'static str,
        /// Why, and which values are valid.
        reason: String,
    },
    /// The named thread or task does not exist.
    Missing(String),
    /// A quota or limit is reached.
    Exhausted(String),
    /// The scheduler or the kernel failed.
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
