//! What every policy is to a machine.

use alloc::vec::Vec;

use shiftwork_model::{Affinity, CpuId, CpuSet, Instant, Job, Priority, Span, Task, TaskId};

use crate::error::PolicyError;

/// Something that happened and may change what should run.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A job became ready: released, or no longer suspended or throttled. No job of its task is
    /// ready now.
    Wake(Job),
    /// The task's job is not finished and not ready any more: it suspended itself.
    Block(TaskId),
    /// The task's job is finished.
    Complete(TaskId),
    /// The task's job has used up its budget and is not ready until it wakes again.
    BudgetSpent(TaskId),
    /// The quantum of this number begins on the CPU; see [`Policy::quanta`]. A machine that was late may
    /// leave numbers out.
    Tick {
        /// The CPU.
        cpu: CpuId,
        /// Number of quanta that have begun there before, with or without an event.
        quantum: u64,
    },
    /// A job was released while the one before it is not finished. It becomes ready, with a
    /// [`Wake`](Self::Wake), when that job is. For policies that have to know before.
    Released(Job),
    /// The task may use other CPUs from now on. One event: the scheduled set of the new affinity,
    /// placed with the fewest shifts from what is assigned now.
    SetAffinity(TaskId, &'a Affinity),
    /// What time it is, and of each task with a ready job the latest start of that job: its deadline less what is
    /// left of its cost, nothing if it has executed for longer. Not before the start of time. Machines send it
    /// before they end an instant if [`Policy::next_decision`] asks for it.
    LatestStarts(Instant, &'a [(TaskId, Instant)]),
    /// The task has another fixed priority from now on; its ready job too.
    SetPriority(TaskId, Priority),
    /// The jobs of the task that are released from now on have the cost, the period and the deadline of
    /// this one.
    SetAttributes(TaskId, &'a Task),
    /// The task's ready job is to be scheduled by another deadline.
    SetDeadline(TaskId, Instant),
    /// A task takes part from now on. One that the policy was built with may enter too.
    Enter(TaskId, &'a Task),
    /// A task takes no part any more; its ready job is gone.
    Leave(TaskId),
    /// The clusters (cpusets) are these from now on, disjoint. Affinities change by events of their
    /// own.
    SetClusters(&'a [CpuSet]),
    /// The CPU is gone. The job that ran there is still ready. A job without any CPU left waits.
    CpuOffline(CpuId),
    /// The CPU is back.
    CpuOnline(CpuId),
}

/// A CPU should run another job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The CPU.
    pub cpu: CpuId,
    /// What it should have run before.
    pub from: Option<TaskId>,
    /// What it should run now.
    pub to: Option<TaskId>,
}

/// Where a policy puts its decisions: at most one switch per CPU and event.
pub type Switches = Vec<Switch>;

/// When the quanta of a policy begin that decides at their boundaries: number `n` begins on a CPU at
/// `n` lengths and the CPU's phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quanta {
    /// How long each is; never zero.
    pub length: Span,
    /// For each CPU how late its quanta begin, less than a length. All zero: they are aligned.
    pub phases: Vec<Span>,
}

/// Decides which job each CPU should run. It uses no clock, thread or kernel; these belong to
/// machines.
///
/// Events that contradict what the policy knows (waking a ready task, blocking one that is not
/// ready) change nothing.
pub trait Policy: Send {
    /// Applies `event`, then appends one switch per CPU whose job changed to `out`.
    ///
    /// An event that [`Policy::accepts`] refuses must not be applied. Machines clear `out` and give
    /// it capacity for one switch per CPU, so that nothing is allocated here.
    fn on_event(&mut self, event: Event<'_>, out: &mut Switches);

    /// The task's job is finished, and `next`, its next one, was released before and is ready at once.
    ///
    /// Returns whether the policy handles both together, as Linux does, where such a task has not
    /// slept. If not, nothing has changed, and the machine sends [`Event::Complete`] and
    /// [`Event::Wake`]. Appends one switch, from the task to itself if the task continues to run.
    fn succeed(&mut self, _next: Job, _out: &mut Switches) -> bool {
        false
    }

    /// The instant is over: every event of it has been given. Appends one switch per CPU whose job changed.
    ///
    /// Machines call it once after the last event of each instant, and carry out no decision of the
    /// instant before. A policy makes irrevocable decisions only here: a non-preemptive one assigns
    /// free CPUs, one in quanta begins the quanta, one with a run queue per CPU lets the CPUs
    /// decide one by one. So the result is independent of the order of the events of one instant.
    ///
    /// Required, without a default: a policy that wraps another has to pass this on.
    fn end_instant(&mut self, out: &mut Switches);

    /// The job `cpu` should run now; a live machine may still be on its way there.
    fn assigned(&self, cpu: CpuId) -> Option<TaskId>;

    /// Whether the event can be applied. Only changes of affinity, entering and the like can be
    /// refused; the error says why and what would be accepted.
    fn accepts(&self, event: &Event<'_>) -> Result<(), PolicyError>;

    /// The CPU in whose run queue the task's job waits or runs, or will when it becomes ready; `None` if
    /// the policy has no queue for each CPU, or does not know the task.
    fn queue_of(&self, _task: TaskId) -> Option<CpuId> {
        None
    }

    /// When machines have to send [`Event::Tick`]; then they send [`Event::Released`] as well.
    /// `None`: the policy decides at other events alone.
    fn quanta(&self) -> Option<Quanta> {
        None
    }

    /// Of a policy that ranks jobs by laxity: the next instant at which it has to decide even if nothing happens
    /// until then, [`Instant::NEVER`] if there is none. Machines end an instant there, and send
    /// [`Event::LatestStarts`] before they end any. `None`: the policy decides at other events alone.
    fn next_decision(&self) -> Option<Instant> {
        None
    }

    /// For each task (by index) where the policy has bound it, `None` if this policy binds none:
    /// the packing of partitioned and clustered policies, to be shown to people.
    fn packing(&self) -> Option<Vec<Affinity>> {
        None
    }
}
