//! What the thread controller knows of an admitted task.

use rustix::thread::Pid;
use shiftwork_model::{CpuId, CpuSet};

use crate::agent::TaskSnapshot;
use crate::event::{Event, Kind};
use crate::machine::Parameters;

/// Later than any instant.
pub(super) const NEVER: u64 = u64::MAX;

/// An instant, and the CPU time that a thread had consumed by then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    pub(super) at_ns: u64,
    pub(super) ran_ns: u64,
}

/// An admitted task and its thread.
#[derive(Clone, Debug)]
pub(super) struct ManagedThread {
    pub(super) thread: Pid,
    /// The CPUs that the task may use.
    pub(super) cpus: CpuSet,
    /// The one CPU that the thread is bound to.
    pub(super) cpu: CpuId,
    /// Admission epoch: events of the thread with another number belong to an earlier admission.
    pub(super) epoch: u32,
    /// Whether the thread has the level of assigned jobs. A waiting thread may have it.
    pub(super) is_raised: bool,
    /// Whether the thread is in a job, or is about to start one.
    pub(super) in_job: bool,
    /// Whether the thread has had its last job.
    pub(super) has_ended: bool,
    /// Whether the thread has reported that it runs, since its job was started. Until then it will report
    /// that; afterwards it does not notice that it is preempted or resumed.
    pub(super) seen_running: bool,
    /// CPU time of the thread when its present run began; `None` if it is not known to run.
    pub(super) run_start_ns: Option<u64>,
    /// When the thread got its present CPU and level.
    pub(super) placed: Moment,
    /// When the thread was first moved or held after its job was started, and its CPU until then; `None` if it was
    /// not, or has reported that it runs.
    pub(super) displaced: Option<(Moment, CpuId)>,
    /// When the thread wakes up; [`NEVER`] while it is awake.
    pub(super) wakeup_ns: u64,
    pub(super) stops: u32,
    pub(super) finished: u32,
    pub(super) release_ns: u64,
    /// Execution time that was reported.
    pub(super) reported_ns: u64,
}

impl ManagedThread {
    /// Whether the thread is in an unassigned job, and would run on an idle CPU.
    pub(super) fn is_held(&self) -> bool {
        self.in_job && !self.is_raised
    }

    /// A task that was just bound to its first CPU and is not assigned yet. `epoch` is its admission epoch, `in_job`
    /// whether its thread is in a job.
    pub(super) fn new(of: &Parameters, cpu: CpuId, (epoch, in_job): (u32, bool)) -> Self {
        Self {
            thread: of.thread,
            cpus: of.cpus,
            cpu,
            epoch,
            is_raised: false,
            in_job,
            has_ended: false,
            seen_running: in_job,
            run_start_ns: None,
            placed: Moment::default(),
            displaced: None,
            wakeup_ns: NEVER,
            stops: 0,
            finished: 0,
            release_ns: 0,
            reported_ns: 0,
        }
    }

    /// Applies the report of the thread that it waits again.
    pub(super) fn stop(&mut self, event: Event) {
        self.in_job = false;
        self.seen_running = false;
        self.displaced = None;
        match event.kind {
            Kind::NextJob => {
                self.stops = self.stops.wrapping_add(1);
                self.finished = self.finished.wrapping_add(1);
                self.release_ns = event.value;
            }
            Kind::Blocked => {
                self.stops = self.stops.wrapping_add(1);
                self.wakeup_ns = event.value;
            }
            _ => {
                self.has_ended = true;
                self.finished = self.finished.wrapping_add(1);
            }
        }
    }

    /// The state of the task for the agent.
    pub(super) fn snapshot(&self, at_ns: u64) -> TaskSnapshot {
        TaskSnapshot {
            at_ns,
            stops: self.stops,
            finished: self.finished,
            awake: self.wakeup_ns == NEVER,
            present: true,
            release_ns: self.release_ns,
            ran_ns: self.reported_ns,
            cpu: self.run_start_ns.map(|_| self.cpu),
            cpus: None,
        }
    }
}

/// The number of a task in events.
pub(super) fn number(task: usize) -> u32 {
    u32::try_from(task + 1).unwrap_or(u32::MAX)
}
