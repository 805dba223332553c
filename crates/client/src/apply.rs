//! Several reservations at once.

use serde::{Deserialize, Serialize};

use crate::reservation::Reservation;

/// A part of [`Apply`]. Without a task it admits the thread; with a task it replaces its reservation, or ends it if there is no
/// reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The name of the task, where a thread is admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The thread to admit; by default the main thread of the caller's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// The task to change or to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<u32>,
    /// The new reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
}

impl Step {
    /// Admits a thread under this name.
    pub fn admit(name: &str, thread: u32, reservation: Reservation) -> Self {
        Self {
            name: Some(name.into()),
            thread: Some(thread),
            task: None,
            reservation: Some(reservation),
        }
    }

    /// Replaces the reservation of a task.
    pub fn change(task: u32, reservation: Reservation) -> Self {
        Self {
            task: Some(task),
            reservation: Some(reservation),
            ..Self::default()
        }
    }

    /// Ends the reservation of a task.
    pub fn dismiss(task: u32) -> Self {
        Self {
            task: Some(task),
            ..Self::default()
        }
    }
}

/// Why a step is not carried out: as the errors of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Not admitted.
    Refused,
    /// A quota is reached.
    Exhausted,
    /// A parameter has an invalid value.
    Invalid,
    /// The caller lacks permission.
    Forbidden,
    /// The thread or task does not exist.
    Missing,
    /// The daemon failed.
    Broken,
}

/// What becomes of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The task; absent if a thread was not admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<u32>,
    /// The guarantee; absent if the task has none now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<String>,
    /// False if the task had exactly this reservation before.
    pub changed: bool,
    /// Why it is not carried out; absent if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The same in words, with what would be accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Carries out all steps in their order, or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Apply {
    /// At most [`STEPS_MAX`](Self::STEPS_MAX).
    pub steps: Vec<Step>,
    /// Carry out nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
}

impl Apply {
    /// Maximum number of steps.
    pub const STEPS_MAX: usize = 64;
}

/// Result of [`Apply`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// Whether the steps are carried out, or with `dry_run`, whether they would be.
    pub applied: bool,
    /// One for each step, up to the first that is not carried out.
    pub outcomes: Vec<Outcome>,
    /// They are not carried out only for what has ended or changed and still counts, which is over in a moment.
    pub later: bool,
}
