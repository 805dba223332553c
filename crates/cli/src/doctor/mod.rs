//! What this machine can do for real-time scheduling, and the one command that mends what it
//! cannot.
//!
//! Each check is one function that looks at a [`System`] and returns a [`Finding`]; [`CHECKS`] is
//! the list. The verb in `verb/doctor.rs` prints them.

mod ability;
mod cpus;
mod kernel;
mod privileges;
mod sched_deadline;
#[cfg(test)]
mod tests;
mod virtualization;

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_live::host::{Obstacle, System};

pub use ability::Ability;
pub use sched_deadline::{SchedDeadline, SchedDeadlineOutput};

/// How good something is for real-time scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Works, but guarantees or measurements suffer.
    Poor,
    /// No task set can be run live: `run` refuses with the same words.
    Missing,
    /// The machine does not say.
    Unknown,
}

impl Verdict {
    /// The word that people and programs read.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Poor => "poor",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
        }
    }
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// What was looked at.
    pub name: &'static str,
    /// How good it is.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What mends it: one command, or one sentence where no command can; null if nothing need be
    /// mended.
    pub remedy: Option<String>,
}

impl Finding {
    fn good(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            verdict: Verdict::Good,
            found: found.into(),
            remedy: None,
        }
    }

    fn unknown(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Unknown,
            ..Self::good(name, found)
        }
    }

    fn poor(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Poor,
            remedy: Some(remedy.into()),
            ..Self::good(name, found)
        }
    }

    /// What keeps this machine from running anything live.
    fn blocked(name: &'static str, obstacle: Obstacle) -> Self {
        Self {
            verdict: Verdict::Missing,
            ..Self::poor(name, obstacle.what, obstacle.remedy)
        }
    }
}

type Check = fn(&System) -> Finding;

/// All checks, in the order in which they are shown.
const CHECKS: &[Check] = &[
    kernel::release,
    kernel::sched_ext,
    kernel::btf,
    kernel::preemption,
    kernel::rt_throttling,
    kernel::servers,
    kernel::clock,
    cpus::online,
    cpus::caches,
    cpus::smt,
    cpus::isolated,
    cpus::governor,
    cpus::idle_states,
    virtualization::hypervisor,
    privileges::capabilities,
    privileges::locked_memory,
    privileges::rtprio,
];

/// Looks at everything; what there is to know of SCHED_DEADLINE was looked for already.
pub fn examine(system: &System, deadline: &SchedDeadline) -> Vec<Finding> {
    let checked = CHECKS.iter().map(|check| check(system));
    let all = checked.chain(deadline.findings());
    let for_caller = |finding: Finding| Finding {
        remedy: finding.remedy.map(|remedy| system.for_caller(remedy)),
        ..finding
    };
    all.map(for_caller).collect()
}
