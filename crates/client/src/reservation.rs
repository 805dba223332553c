//! What a thread asks for.

use serde::{Deserialize, Serialize};
use shiftwork_model::Span;

use crate::nanoseconds;

/// What happens when a budget is used up before its period ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnOverrun {
    /// The thread waits for the next period.
    Throttle,
    /// Its process gets `SIGXCPU`.
    Signal,
    /// Nothing.
    Continue,
}

/// Processor time that a thread is to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Processor time in each period.
    #[serde(with = "nanoseconds::span")]
    pub cost: Span,
    /// How often.
    #[serde(with = "nanoseconds::span")]
    pub period: Span,
    /// By when after the thread woke up; absent is the period.
    #[serde(
        default,
        with = "nanoseconds::maybe_span",
        skip_serializing_if = "Option::is_none"
    )]
    pub deadline: Option<Span>,
    /// The CPUs it may use, a list as of `taskset -c` ("0-3,7"); absent are all that the agent has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// 1 is the most urgent. Counts only where the agent's policy has fixed priorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Absent is what the agent is configured to do, by default throttling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_overrun: Option<OnOverrun>,
}

impl Reservation {
    /// `cost` in every `period`, on any CPU, due when the period ends.
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
}
