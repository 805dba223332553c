//! The interface between an agent and what enacts its decisions.

use shiftwork_model::{CpuId, CpuSet, Span, TaskId};

use crate::LiveError;
use crate::event::Event;
use crate::machine::Parameters;

/// The assignment of a CPU of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// In the machine's numbers.
    pub(crate) cpu: CpuId,
    /// `None`: threads that are not managed.
    pub(crate) task: Option<TaskId>,
    /// The task's number of stops when this was decided. A task that has stopped since is not run: the agent did
    /// not know of that stop, and its report is on the way.
    pub(crate) stops: u32,
}

/// State of a task, independent of reports: an agent reads it after reports were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskSnapshot {
    /// When the state was read, on the monotonic clock. Reports of earlier instants are contained in it.
    pub(crate) at_ns: u64,
    /// Number of stops: of finished jobs, and of suspensions within a job.
    pub(crate) stops: u32,
    /// Number of finished jobs, for tasks that report these.
    pub(crate) finished: u32,
    /// Whether its thread is runnable.
    pub(crate) awake: bool,
    /// Whether the task is still admitted.
    pub(crate) present: bool,
    /// Release of its next job if it has finished one, of the monotonic clock.
    pub(crate) release_ns: u64,
    /// Execution time since its admission, as far as it was reported: a run in progress counts only with what was
    /// reported of it.
    pub(crate) ran_ns: u64,
    /// The CPU that it runs on now.
    pub(crate) cpu: Option<CpuId>,
    /// The CPUs of the machine that it may use; if it is not admitted, those that it asks for. `None` if it asks
    /// for none, or the enactor does not know affinities.
    pub(crate) cpus: Option<CpuSet>,
}

/// Reports to an agent and enacts its decisions. It decides nothing. Only the agent's thread creates and calls it.
///
/// [`crate::event::Kind`] lists the reports. An enactor reports `NextJob`, `LastJob`, `Yielded`,
/// `Blocked` and `Woken` of tasks, `LockRequested` and `UnlockRequested` of tasks whose threads wait for an answer, `Running` and `Stopped` of CPUs that switch to and from assigned
/// tasks, `SlotFilled` of each slot when it is filled, and changes of tasks and CPUs from outside.
/// `NextJob`, `Yielded` and `Blocked` are stops: they empty the slot of the CPU, which only the
/// agent fills again.
pub(crate) trait Enactor {
    /// Appends the reports since the last call, in their order.
    fn take_reports(&mut self, reports: &mut Vec<Event>) -> Result<(), LiveError>;

    /// The cost of a report on this machine.
    fn report_cost(&mut self) -> Result<Span, LiveError>;

    /// Number of reports that found no room so far.
    fn reports_lost(&self) -> u64;

    /// The state of the task.
    fn snapshot(&mut self, task: TaskId) -> Result<TaskSnapshot, LiveError>;

    /// The reasons for which the CPU is gone now, one bit each, and the instant of that. `None` if the enactor does
    /// not know.
    fn gone_reasons(&mut self, _cpu: CpuId) -> Result<Option<(u64, u64)>, LiveError> {
        Ok(None)
    }

    /// Fills the slots. A task that moves is in two of them.
    fn assign(&mut self, slots: &[Slot]) -> Result<(), LiveError>;

    /// Admits the task, not running. `None` if its thread has ended or asks for other CPUs by now, otherwise whether
    /// the thread is runnable.
    fn admit(&mut self, task: TaskId, of: &Parameters) -> Result<Option<bool>, LiveError>;

    /// Makes the task's thread ordinary again.
    fn dismiss(&mut self, task: TaskId) -> Result<(), LiveError>;

    /// The task may ask for these CPUs.
    fn approve(&mut self, task: TaskId, cpus: &CpuSet) -> Result<(), LiveError>;

    /// Wakes the thread of a triggered task that has a job by an earlier trigger, and may sleep until the next one. Does nothing
    /// where threads wait for their slots alone.
    fn wake(&mut self, _task: TaskId) {}

    /// Answers the thread of the task that has requested a mutex, which it holds by now, or unlocked one.
    fn answer(&mut self, task: TaskId);

    /// Sends a heartbeat; called at least every [`HEARTBEAT_NS`].
    fn heartbeat(&mut self) -> Result<(), LiveError>;

    /// Returns at this instant of the monotonic clock, or when there is something to do; possibly earlier.
    fn wait_until(&mut self, at_ns: u64);
}

/// Interval of the agent's heartbeats.
pub(crate) const HEARTBEAT_NS: u64 = 40_000_000;

/// Sorts by time; events of one instant keep their order. The reports are few and nearly sorted, since those of each
/// thread are. Allocates nothing, which a stable sort of `std` may.
pub(crate) fn sort_by_time(reports: &mut [Event]) {
    for end in 1..reports.len() {
        let mut at = end;
        while at > 0 && reports[at - 1].at > reports[at].at {
            reports.swap(at - 1, at);
            at -= 1;
        }
    }
}
