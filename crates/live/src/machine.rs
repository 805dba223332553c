//! What a run needs of its machine, where the core in the kernel decides and where an agent does.

use std::path::Path;
use std::sync::Arc;

use rustix::thread::Pid;
use shiftwork_machine::may_be_throttled;
use shiftwork_model::{CpuId, CpuSet, OnOverrun, Priority, Share, Span, TaskId};

use crate::event::Event;
use crate::overheads::Overheads;
use crate::work::{JobBarrier, Worker};
use crate::{LiveError, Plan};

/// A machine that schedules the threads of the workers by a policy, and reports events.
///
/// All CPUs are in the machine's numbers; instants are of the monotonic clock.
pub(crate) trait Machine {
    /// Where threads wait between jobs.
    fn job_barrier(&self) -> Arc<dyn JobBarrier>;

    /// Admits the task. `false` if its thread has ended, or asks for other CPUs by now.
    fn admit(&mut self, task: TaskId, of: &Parameters) -> Result<bool, LiveError>;

    /// Releases the task's first job at this instant.
    fn first_job(&mut self, task: TaskId, release_ns: u64) -> Result<(), LiveError>;

    /// Dismisses the task: its thread becomes background work.
    fn dismiss(&mut self, task: TaskId) -> Result<(), LiveError>;

    /// The task may ask for these CPUs.
    fn approve(&mut self, task: TaskId, cpus: &CpuSet) -> Result<(), LiveError>;

    /// Binds the task's thread to these CPUs, which were approved before.
    ///
    /// # Errors
    /// The error of the kernel: a reason to refuse the change, not to end the run.
    fn bind(&mut self, task: TaskId, thread: Pid, cpus: &CpuSet) -> Result<(), String>;

    /// Changes the task's fixed priority.
    fn set_priority(&mut self, task: TaskId, priority: Priority) -> Result<(), LiveError>;

    /// Changes the parameters of future jobs.
    fn set_server(&mut self, task: TaskId, of: &Parameters) -> Result<(), LiveError>;

    /// Sets the share of each CPU that waiting background work gets.
    fn set_reserve(&mut self, reserve: Share);

    /// The events since the last call.
    fn take_events(&mut self) -> Result<Vec<Event>, LiveError>;

    /// Returns at this instant, or when a task waits for a decision.
    fn wait_until(&self, at_ns: u64);

    /// Number of events that found no room.
    fn events_lost(&self) -> u64;

    /// Why the scheduler is not loaded any more; `None` as long as it is.
    fn unloaded(&mut self) -> Option<String>;

    /// Number of running jobs that were migrated to make room, and what is wrong with the scheduler's state;
    /// `None` if nothing is.
    fn state(&mut self) -> (u64, Option<&'static str>);

    /// The cost of scheduling; `None` if it is not measured.
    fn overheads(&mut self) -> Option<Overheads>;

    /// Pins the scheduler, so that it outlives this program.
    fn pin(&mut self, folder: &Path) -> Result<(), LiveError>;

    /// Starts the run: everything is prepared, and jobs will be released.
    fn begin(&self);

    /// Lets all threads that wait for jobs continue.
    fn open_job_barrier(&self);

    /// Returns all threads to the kernel's own scheduler.
    fn unload(&mut self);
}

/// What becomes of a job that has used up its budget. The numbers are those of `enum sw_budgeting` in `bpf/shared.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Excess {
    /// It waits for the next period, wherever it is: a thread that holds nothing inside the kernel.
    Waits = 0,
    /// It goes on as before; where its task is to be signalled, an event says so.
    GoesOn = 1,
    /// It is ordinary work until it has left the kernel, and waits from then on.
    WaitsOutside = 2,
    /// It is ordinary work until the next period.
    Demoted = 3,
    /// The same, and an event wakes user space.
    DemotedAndSignalled = 4,
}

impl Excess {
    /// In a run of a task-set file, whose tasks are one owner's, and are simulated so.
    pub(crate) const fn in_run(on_overrun: OnOverrun, is_program: bool) -> Self {
        match on_overrun {
            OnOverrun::Throttle if is_program => Self::WaitsOutside,
            OnOverrun::Throttle => Self::Waits,
            OnOverrun::Continue | OnOverrun::Signal => Self::GoesOn,
        }
    }

    /// Of a reservation beside those of others: none goes on at their expense.
    pub(crate) const fn of_reservation(on_overrun: OnOverrun) -> Self {
        match on_overrun {
            OnOverrun::Throttle => Self::WaitsOutside,
            OnOverrun::Continue => Self::Demoted,
            OnOverrun::Signal => Self::DemotedAndSignalled,
        }
    }
}

/// The parameters of a task for its admission.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    pub(crate) thread: Pid,
    /// In the machine's numbers.
    pub(crate) cpus: CpuSet,
    pub(crate) cost: Span,
    pub(crate) period: Span,
    pub(crate) deadline: Span,
    pub(crate) on_overrun: OnOverrun,
    pub(crate) excess: Excess,
    pub(crate) priority: Priority,
    /// Whether its releases are reported; otherwise its jobs end when it blocks or yields.
    pub(crate) follows: bool,
    /// Its present CPU.
    pub(crate) start: Option<CpuId>,
}

impl Parameters {
    /// The parameters of a worker's task for its admission.
    pub(crate) fn of(plan: &Plan<'_>, worker: &Worker, start: Option<CpuId>) -> Self {
        let task = &plan.set.tasks[worker.task.index()];
        let on_overrun = match task.on_overrun {
            // A thread of this process executes as the file says: if that never exceeds the cost, it needs no budget.
            OnOverrun::Throttle
                if !worker.is_program && !may_be_throttled(plan.set, worker.task) =>
            {
                OnOverrun::Continue
            }
            other => other,
        };
        Self {
            thread: worker.thread,
            cpus: plan.cpus_of(worker.task),
            cost: task.cost,
            period: task.period,
            deadline: task.deadline,
            on_overrun,
            excess: Excess::in_run(on_overrun, worker.is_program),
            priority: plan.set.priorities()[worker.task.index()],
            follows: !worker.is_program,
            start: start.and_then(|cpu| plan.cpus.get(cpu.index()).copied()),
        }
    }

    /// The budget in each period; zero if there is none.
    pub(crate) fn budget(&self) -> Span {
        let granted = self.cost + grace(self.cost);
        match (self.excess, self.on_overrun) {
            (Excess::GoesOn, OnOverrun::Signal) => granted,
            (Excess::GoesOn, _) => Span::ZERO,
            _ => granted.min(self.deadline),
        }
    }
}

/// What is granted beyond the cost before a budget counts as used up: a job that is exactly as long as its
/// budget also has to be switched to and to report its completion.
pub(crate) const fn grace(cost: Span) -> Span {
    const LEAST: Span = Span::from_us(20);
    let hundredth = Span::from_ns(cost.as_ns() / 100);
    if hundredth.as_ns() > LEAST.as_ns() {
        hundredth
    } else {
        LEAST
    }
}
