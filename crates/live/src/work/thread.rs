//! The loop of a thread that does the jobs of a task.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use rustix::thread::Pid;
use shiftwork_model::{CpuSet, Instant, Span, TaskId};

use super::JobBarrier;
use super::burn::{Burner, Burnt};
use super::jobs::{Jobs, PlannedJob};
use crate::sys::clock::monotonic_ns;
use crate::sys::memory::touch_stack;
use crate::sys::thread::{Class, own_id, set_affinity, set_class, set_exact_timers};
use crate::sys::word::Word;

/// Enough for the loop, the kernel's signal frames and a panic message.
pub(super) const STACK_BYTES: usize = 128 << 10;

/// State of the run that all its threads read.
#[derive(Debug)]
pub(super) struct RunState {
    /// One of the constants below.
    pub(super) phase: Word,
    /// The first instant of the run, of the monotonic clock; written before the phase becomes `RUNNING`.
    pub(super) origin_ns: AtomicU64,
}

/// The run has not begun.
pub(super) const WAITING: u32 = 0;
/// Jobs are released.
pub(super) const RUNNING: u32 = 1;
/// All threads are to stop.
pub(super) const STOPPED: u32 = 2;

impl RunState {
    pub(super) const fn new() -> Self {
        Self {
            phase: Word::new(WAITING),
            origin_ns: AtomicU64::new(0),
        }
    }

    fn is_running(&self) -> bool {
        self.phase.get() == RUNNING
    }
}

/// A thread that does a task's jobs.
pub(super) struct TaskThread {
    pub(super) id: TaskId,
    /// Its affinity, in the machine's numbers.
    pub(super) cpus: CpuSet,
    /// From the second job on.
    pub(super) jobs: Jobs,
    pub(super) first: PlannedJob,
    /// Whether the task enters after the beginning.
    pub(super) enters_later: bool,
    pub(super) job_barrier: Arc<dyn JobBarrier>,
    pub(super) run_state: Arc<RunState>,
}

impl TaskThread {
    /// The whole loop of the thread. `ready` receives the thread's number, or the error of its preparation.
    pub(super) fn run(mut self, ready: &Sender<(TaskId, io::Result<Pid>)>) {
        let prepared = prepare(&self.cpus);
        let failed = prepared.is_err();
        // If the receiver is gone, the run is cancelled and the phase says so.
        let _ = ready.send((self.id, prepared));
        if failed {
            return;
        }
        let mut burner = Burner::new();
        self.run_state.phase.wait_while(WAITING);
        let origin_ns = self.run_state.origin_ns.load(Ordering::Relaxed);
        let mut job = self.first;
        let first_ns = origin_ns.saturating_add(job.release.as_ns());
        if self.enters_later {
            // Until then the thread is ordinary, and no machine holds it back.
            self.run_state.phase.wait_until(RUNNING, first_ns);
        }
        self.job_barrier.first_job(self.id, first_ns);
        while self.run_state.is_running() {
            self.do_job(job, origin_ns, &mut burner);
            if !self.run_state.is_running() {
                return;
            }
            let now = Instant::from_ns(monotonic_ns().saturating_sub(origin_ns));
            let Some(next) = self.jobs.next(now) else {
                self.job_barrier.last_job(self.id);
                return;
            };
            job = next;
            let release_ns = origin_ns.saturating_add(job.release.as_ns());
            self.job_barrier.next_job(self.id, release_ns);
        }
    }

    /// Executes and sleeps as the job asks for; returns early if the run is over or the task leaves.
    fn do_job(&self, job: PlannedJob, origin_ns: u64, burner: &mut Burner) {
        let until_ns = origin_ns.saturating_add(job.until.as_ns());
        let phase = &self.run_state.phase;
        if monotonic_ns() >= until_ns {
            return;
        }
        let mut burnt = burner.burn(job.run.as_ns(), phase, RUNNING, until_ns);
        for (sleep, run) in self.jobs.rests() {
            if burnt == Burnt::Stopped {
                return;
            }
            self.sleep(sleep, until_ns);
            burnt = burner.burn(run.as_ns(), phase, RUNNING, until_ns);
        }
    }

    fn sleep(&self, span: Span, until_ns: u64) {
        let end_ns = monotonic_ns().saturating_add(span.as_ns());
        let phase = &self.run_state.phase;
        self.job_barrier
            .suspend(self.id, end_ns.min(until_ns), phase, RUNNING);
    }
}

/// Prepares the calling thread for jobs; its number.
fn prepare(cpus: &CpuSet) -> io::Result<Pid> {
    // The creating thread may have a real-time class.
    set_class(None, Class::Ordinary)?;
    set_exact_timers()?;
    set_affinity(None, cpus)?;
    touch_stack();
    Ok(own_id())
}
