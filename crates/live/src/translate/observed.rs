//! Activity of observed threads, which have no reservation.

use shiftwork_model::{Instant, Span, TaskId};

/// Something that an observed thread did as ordinary work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The instant, on the monotonic clock.
    pub at: Instant,
    /// The number that it is observed by.
    pub task: TaskId,
    /// What the thread did.
    pub activity: Activity,
}

/// What an observed thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It woke up.
    Woken,
    /// It left its CPU, which it had for this time.
    Ran(Span),
    /// It went to sleep.
    Blocked,
    /// It ended.
    Ended,
}
