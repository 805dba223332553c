//! Requested reservations.

use serde::{Deserialize, Serialize};
use shiftwork_model::{Priority, Span};

use crate::nanoseconds;

/// Reaction to a budget that is exhausted before the end of the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnOverrun {
    /// The thread waits for the next period.
    Throttle,
    /// It is ordinary work until the next period, and its process gets `SIGXCPU`.
    Signal,
    /// It is ordinary work until the next period.
    Continue,
}

/// CPU time requested for a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// CPU time in each period.
    #[serde(with = "nanoseconds::span")]
    pub cost: Span,
    /// The period.
    #[serde(with = "nanoseconds::span")]
    pub period: Span,
    /// Relative deadline, from waking up; by default the period.
    #[serde(
        default,
        with = "nanoseconds::maybe_span",
        skip_serializing_if = "Option::is_none"
    )]
    pub deadline: Option<Span>,
    /// Affinity, a list in the format of `taskset -c` ("0-3,7"); by default the thread's affinity, as far as the daemon
    /// schedules those CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// 1 is the most urgent. Used only under policies with fixed priorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// By default throttling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_overrun: Option<OnOverrun>,
}

impl Reservation {
    /// `cost` in each `period`, with the defaults of all other fields.
    pub const fn new(cost: Span, period: Span) -> Self {
        Self {
            cost,
            period,
            deadline: None,
            cpus: None,
            priority: None,
            on_overrun: None,
        }
    }

    /// The priority of a reservation that names none: deadline-monotonic among all of these.
    pub fn default_priority(deadline: Span) -> u32 {
        let microseconds = deadline.as_ns() / 1_000;
        u32::try_from(microseconds)
            .unwrap_or(u32::MAX)
            .clamp(1, Priority::LEAST_URGENT.number())
    }
}
