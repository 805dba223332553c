//! What a run asks of its machine, whoever decides there: the core in the kernel, or an agent.

use std::path::Path;
use std::sync::Arc;

use rustix::thread::Pid;
use shiftwork_model::{CpuId, CpuSet, OnOverrun, Priority, Share, Span, TaskId};

use crate::LiveError;
use crate::event::Event;
use crate::overheads::Overheads;
use crate::work::JobBarrier;

/// A machine that runs the threads of a crew as a policy says, and tells what happens.
///
/// All CPUs are in the machine's numbers; instants are of the monotonic clock.
pub(crate) trait Machine {
    /// Where threads wait between jobs.
    fn job_barrier(&self) -> Arc<dyn JobBarrier>;

    /// The task takes part from now on. `false` if its thread is not there any more, or does not ask for
    /// that any more.
    fn admit(&mut self, task: TaskId, of: &Parameters) -> Result<bool, LiveError>;

    /// The task's first job is released then.
    fn first_job(&mut self, task: TaskId, release_ns: u64) -> Result<(), LiveError>;

    /// The task goes on in the background.
    fn dismiss(&mut self, task: TaskId) -> Result<(), LiveError>;

    /// The task may ask for these CPUs.
    fn approve(&mut self, task: TaskId, cpus: &CpuSet) -> Result<(), LiveError>;

    /// The task's thread may use these CPUs from now on, which were approved before.
    ///
    /// # Errors
    /// What the kernel said: a reason to refuse the change, not to end the run.
    fn bind(&mut self, task: TaskId, thread: Pid, cpus: &CpuSet) -> Result<(), String>;

    /// The task has another fixed priority.
    fn set_priority(&mut self, task: TaskId, priority: Priority) -> Result<(), LiveError>;

    /// The jobs to come have other parameters.
    fn set_server(&mut self, task: TaskId, of: &Parameters) -> Result<(), LiveError>;

    /// What waiting background work gets of each CPU.
    fn set_reserve(&mut self, reserve: Share);

    /// The events since the last call.
    fn take_events(&mut self) -> Result<Vec<Event>, LiveError>;

    /// Returns at this instant, or when a task waits for an answer.
    fn wait_until(&self, at_ns: u64);

    /// How many events found no room.
    fn events_lost(&self) -> u64;

    /// Why the scheduler is not the machine's any more; `None` as long as it is.
    fn unloaded(&mut self) -> Option<String>;

    /// How many running jobs were moved to make room, and what is wrong with the scheduler's state;
    /// `None` is as it should be.
    fn state(&mut self) -> (u64, Option<&'static str>);

    /// What scheduling itself took; `None` where nobody measures that.
    fn overheads(&mut self) -> Option<Overheads>;

    /// Pins the scheduler, so that it outlives this program.
    fn pin(&mut self, folder: &Path) -> Result<(), LiveError>;

    /// All is prepared, and jobs will be released.
    fn begin(&self);

    /// Nobody waits for jobs any more: threads that do go on at once.
    fn open_job_barrier(&self);

    /// Makes everybody the kernel's own again.
    fn unload(&mut self);
}

/// What a machine is told of a task.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    pub(crate) thread: Pid,
    /// In the machine's numbers.
    pub(crate) cpus: CpuSet,
    pub(crate) cost: Span,
    pub(crate) period: Span,
    pub(crate) deadline: Span,
    pub(crate) on_overrun: OnOverrun,
    pub(crate) priority: Priority,
    /// Whether its releases are told; otherwise its jobs end where it blocks or yields.
    pub(crate) follows: bool,
    /// Where it is.
    pub(crate) start: Option<CpuId>,
}

impl Parameters {
    /// What may be used in each period before anything is done about it; zero where nothing is.
    pub(crate) fn budget(&self) -> Span {
        let granted = self.cost + grace(self.cost);
        match self.on_overrun {
            OnOverrun::Continue => Span::ZERO,
            OnOverrun::Throttle => granted.min(self.deadline),
            OnOverrun::Signal => granted,
        }
    }
}

/// A job that is exactly as long as its budget also has to be switched to and to say that it is
/// finished. So much more than the cost is granted before a budget counts as used up.
pub(crate) const fn grace(cost: Span) -> Span {
    const LEAST: Span = Span::from_us(20);
    let hundredth = Span::from_ns(cost.as_ns() / 100);
    if hundredth.as_ns() > LEAST.as_ns() {
        hundredth
    } else {
        LEAST
    }
}
