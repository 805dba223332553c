//! What observed threads do, which are no tasks.

use shiftwork_model::{Instant, Span, TaskId};

/// Something that an observed thread did as ordinary work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// When, on the monotonic clock.
    pub at: Instant,
    /// The number that it is observed by.
    pub task: TaskId,
    /// What.
    pub what: Activity,
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
