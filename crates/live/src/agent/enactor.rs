//! What carries out an agent's decisions, and tells it what happens.

use shiftwork_model::{CpuId, CpuSet, Span, TaskId};

use crate::LiveError;
use crate::event::Event;
use crate::machine::Parameters;

/// What a CPU of the machine is to run from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// In the machine's numbers.
    pub(crate) cpu: CpuId,
    /// `None`: whatever is not managed.
    pub(crate) task: Option<TaskId>,
    /// How often the task had stopped when this was decided. A task that has stopped since is not run: its
    /// stopping was not known, and is being reported.
    pub(crate) stops: u32,
}

/// How things stand with a task, whatever was reported: what an agent looks at after reports were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskSnapshot {
    /// When that was so, on the monotonic clock: reports until then are no news.
    pub(crate) at_ns: u64,
    /// How often it has stopped: finished a job, or gone to sleep within one.
    pub(crate) stops: u32,
    /// How many jobs it has finished, of those that are told.
    pub(crate) finished: u32,
    /// Whether it wants to run.
    pub(crate) awake: bool,
    /// Whether it still takes part.
    pub(crate) present: bool,
    /// When its next job is released, if it has finished one; of the monotonic clock.
    pub(crate) release_ns: u64,
    /// For how long it has run since it takes part, by all that was ever reported of it: of a run that goes
    /// on only what was told of that already.
    pub(crate) ran_ns: u64,
    /// Where it runs now.
    pub(crate) cpu: Option<CpuId>,
    /// The CPUs of the machine that it may use; if it takes no part, those that it asks for. `None` where
    /// nothing of that is reported, or if it asks for nothing.
    pub(crate) cpus: Option<CpuSet>,
}

/// The hands and the ears of an agent. It decides nothing; only the agent's thread, which makes it, calls it.
///
/// What the reports are stands in [`crate::event::Kind`]; an enactor tells `NextJob`, `LastJob`, `Yielded`,
/// `Blocked` and `Woken` of tasks, `Running` and `Stopped` of CPUs that do what they were told, `Told` for
/// each slot when it takes effect, and what happens to tasks and CPUs from outside. `NextJob`, `Yielded`
/// and `Blocked` are stops: by them the CPU's slot becomes empty, and nobody but the agent fills it again.
pub(crate) trait Enactor {
    /// Appends the reports since the last call, in their order.
    fn take_reports(&mut self, reports: &mut Vec<Event>) -> Result<(), LiveError>;

    /// What it takes to report something, on this machine.
    fn report_cost(&mut self) -> Result<Span, LiveError>;

    /// How many reports found no room so far.
    fn reports_lost(&self) -> u64;

    /// How things stand with the task.
    fn snapshot(&mut self, task: TaskId) -> Result<TaskSnapshot, LiveError>;

    /// Why the CPU is gone now, a bit for each reason, and when that was so. `None` where that is not
    /// reported either.
    fn gone_reasons(&mut self, _cpu: CpuId) -> Result<Option<(u64, u64)>, LiveError> {
        Ok(None)
    }

    /// These CPUs run these tasks from now on. A task that moves is in two slots.
    fn assign(&mut self, slots: &[Slot]) -> Result<(), LiveError>;

    /// The task takes part from now on, not running. `None` if its thread is not there any more or does not
    /// ask for that any more, otherwise whether it wants to run.
    fn admit(&mut self, task: TaskId, of: &Parameters) -> Result<Option<bool>, LiveError>;

    /// The task is ordinary work from now on.
    fn dismiss(&mut self, task: TaskId) -> Result<(), LiveError>;

    /// The task may ask for these CPUs.
    fn approve(&mut self, task: TaskId, cpus: &CpuSet) -> Result<(), LiveError>;

    /// The agent is alive; called at least every [`HEARTBEAT_NS`].
    fn heartbeat(&mut self) -> Result<(), LiveError>;

    /// Returns at this instant of the monotonic clock, or when there is something to do. May return
    /// earlier.
    fn wait_until(&mut self, at_ns: u64);
}

/// How often an agent says that it is alive.
pub(crate) const HEARTBEAT_NS: u64 = 40_000_000;
