//! What is known of a task that takes part.

use rustix::thread::Pid;
use shiftwork_model::{CpuId, CpuSet};

use crate::agent::TaskSnapshot;
use crate::event::{Event, Kind};
use crate::machine::Parameters;

/// An instant that does not come.
pub(super) const NEVER: u64 = u64::MAX;

/// An instant, and how long a thread had run then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    pub(super) at_ns: u64,
    pub(super) ran_ns: u64,
}

/// A task that takes part.
#[derive(Clone, Debug)]
pub(super) struct ManagedThread {
    pub(super) thread: Pid,
    /// Where it may run.
    pub(super) cpus: CpuSet,
    /// Where it is bound: one CPU at a time.
    pub(super) cpu: CpuId,
    /// What its thread tells under another number is of an earlier stay.
    pub(super) epoch: u32,
    /// Whether it is on the level of jobs that are told to run. Who waits may be.
    pub(super) is_raised: bool,
    /// Whether its seat is open: it is in a job, or about to be.
    pub(super) in_job: bool,
    /// Whether it went on since it was let out, as far as it has told. Until then it will tell that
    /// it runs, afterwards it does not know.
    pub(super) seen_running: bool,
    /// Its CPU time when it began to run where it is; `None`: as far as is known, it does not run.
    pub(super) run_start_ns: Option<u64>,
    /// Since when it is where it is, on the level that it has.
    pub(super) placed: Moment,
    /// When it was first moved or held since it was let out, and where it was until then; `None` if it
    /// was not, or has begun.
    pub(super) displaced: Option<(Moment, CpuId)>,
    /// When it wakes up; [`NEVER`] while it is awake.
    pub(super) wakeup_ns: u64,
    pub(super) stops: u32,
    pub(super) finished: u32,
    pub(super) release_ns: u64,
    /// For how long it ran, by what was reported of it.
    pub(super) reported_ns: u64,
}

impl ManagedThread {
    /// Whether it is in the middle of a job that is not told to run, and would run on an idle CPU.
    pub(super) fn is_held(&self) -> bool {
        self.in_job && !self.is_raised
    }

    /// A task that was just put on its first CPU, where it may not run yet. `stay` is the number of its
    /// stay, `is_out` whether its thread is in a job.
    pub(super) fn new(of: &Parameters, cpu: CpuId, (epoch, in_job): (u32, bool)) -> Self {
        Self {
            thread: of.thread,
            cpus: of.cpus,
            cpu,
            epoch,
            is_raised: false,
            in_job,
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

    /// Its thread says that it waits again.
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
            _ => self.finished = self.finished.wrapping_add(1),
        }
    }

    /// How things stand with it.
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
