use core::cmp::Reverse;

use shiftwork_model::TaskId;

use super::Ranking;

/// What PD2 compares of two subtasks: the earlier deadline; a window that overlaps the next one before one
/// that does not; among those that do, the later group deadline, behind which more heavy windows would
/// have to give way. What is equal then may be in any order; it is by release and by task.
///
/// Slots are counted from the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Subtask {
    /// The slot before which it is due.
    pub deadline: u64,
    /// That the b-bit is 0: the next window begins after this one.
    pub ends_apart: bool,
    /// The slot in which the cascade of windows ends; 0 for light tasks and where the b-bit is 0.
    pub group_deadline: Reverse<u64>,
    /// The slot in which the window begins.
    pub release: u64,
    /// The task of the subtask.
    pub task: TaskId,
}

/// PD2's order of subtasks.
///
/// # Source
/// J. Anderson, A. Srinivasan, "Mixed Pfair/ERfair Scheduling of Asynchronous Periodic Tasks", Journal of
/// Computer and System Sciences 68(1), 2004.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubtaskOrder;

impl Ranking for SubtaskOrder {
    type Key = Subtask;

    const FIRST: Subtask = Subtask {
        deadline: 0,
        ends_apart: false,
        group_deadline: Reverse(u64::MAX),
        release: 0,
        task: TaskId::from_index(0),
    };
    const LAST: Subtask = Subtask {
        deadline: u64::MAX,
        ends_apart: true,
        group_deadline: Reverse(0),
        release: u64::MAX,
        task: TaskId::LAST,
    };

    fn task(key: &Subtask) -> TaskId {
        key.task
    }
}

/// Orders tasks by the slot from which they are eligible, then by task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eligibility;

impl Ranking for Eligibility {
    type Key = (u64, TaskId);

    const FIRST: (u64, TaskId) = (0, TaskId::from_index(0));
    const LAST: (u64, TaskId) = (u64::MAX, TaskId::LAST);

    fn task(key: &(u64, TaskId)) -> TaskId {
        key.1
    }
}
