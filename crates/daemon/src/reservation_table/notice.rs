//! Changes of tasks that their owners did not request.

use shiftwork_model::TaskId;

use super::ReservedTask;

/// A change of a task that its owner did not request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskNotice {
    /// The task.
    pub task: TaskId,
    /// What kind of change it is.
    pub kind: NoticeKind,
    /// The change, as text for the log.
    pub what: String,
    /// The task's reservation, which it may have no more.
    pub of: Box<ReservedTask>,
}

impl TaskNotice {
    /// Whether a guarantee has ended that the task's owner relies on.
    pub const fn is_alert(&self) -> bool {
        matches!(self.kind, NoticeKind::Lost | NoticeKind::Weakened)
    }
}

/// A kind of change of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// Its reservation is not in effect any more.
    Lost,
    /// Its reservation is in effect with a weaker guarantee.
    Weakened,
    /// Its reservation is in effect again.
    Regained,
    /// Its thread has ended.
    Ended,
}

impl NoticeKind {
    /// Its name in the audit log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Weakened => "weakened",
            Self::Regained => "regained",
            Self::Ended => "ended",
        }
    }
}
