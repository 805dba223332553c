//! The loop of a thread that does the jobs of a task.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use rustix::thread::Pid;
use shiftwork_kernel_core::UNLOCKS_MAX;
use shiftwork_machine::Step;
use shiftwork_model::{CpuSet, Instant, ResourceId, TaskId};

use super::burn::{Burner, Burnt};
use super::jobs::{Jobs, PlannedJob};
use super::{Effects, JobBarrier, ON_TRIGGER_NS, TRIGGERS, Target};
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
    /// The tasks that it triggers: at the end of each job, and within jobs.
    pub(super) at_completion: Vec<Target>,
    pub(super) within: Vec<Target>,
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
        let release_ns = |job: &PlannedJob| {
            let release = job.release.map(|at| origin_ns.saturating_add(at.as_ns()));
            release.unwrap_or(ON_TRIGGER_NS)
        };
        let first_ns = release_ns(&job);
        let mut collected = Collected::new();
        if self.enters_later {
            // Until then the thread is ordinary, and no machine holds it back.
            self.run_state.phase.wait_until(RUNNING, first_ns);
        }
        if !self.run_state.is_running() {
            return;
        }
        self.job_barrier.first_job(self.id, first_ns);
        while self.run_state.is_running() {
            self.do_job(job, origin_ns, &mut burner, &mut collected);
            collected.triggers.extend_from_slice(&self.at_completion);
            if !self.run_state.is_running() {
                return;
            }
            let now = Instant::from_ns(monotonic_ns().saturating_sub(origin_ns));
            let Some(next) = self.jobs.next(now) else {
                self.job_barrier.last_job(self.id, collected.effects());
                return;
            };
            job = next;
            let release_ns = release_ns(&job);
            let effects = collected.effects();
            self.job_barrier.next_job(self.id, release_ns, effects);
            collected.clear();
        }
    }

    /// Executes, sleeps, locks and triggers as the job asks for; returns early if the run is over or the task leaves.
    ///
    /// What it does to others at one instant it does by one call: between two, what the first makes ready might take its CPU.
    /// What it does to them at its end is left in `collected`.
    fn do_job(
        &self,
        job: PlannedJob,
        origin_ns: u64,
        burner: &mut Burner,
        collected: &mut Collected,
    ) {
        let until_ns = origin_ns.saturating_add(job.until.as_ns());
        let phase = &self.run_state.phase;
        if monotonic_ns() >= until_ns {
            return;
        }
        let mut burnt = burner.burn(job.run.as_ns(), phase, RUNNING, until_ns);
        for (step, run) in self.jobs.rests() {
            if burnt == Burnt::Stopped {
                return;
            }
            match step {
                Step::Sleep(span) => {
                    let end_ns = monotonic_ns().saturating_add(span.as_ns());
                    self.affect(collected);
                    self.sleep(end_ns.min(until_ns));
                }
                Step::Trigger(task) => collected.triggers.extend(self.target(task)),
                Step::Unlock(mutex) => collected.unlocks.push(mutex),
                Step::Lock(mutex) => {
                    self.affect(collected);
                    self.job_barrier.lock(self.id, mutex);
                }
                Step::Complete => {}
            }
            if !run.is_zero() {
                self.affect(collected);
            }
            burnt = burner.burn(run.as_ns(), phase, RUNNING, until_ns);
        }
    }

    fn target(&self, task: TaskId) -> Option<Target> {
        let mut within = self.within.iter();
        within.find(|target| target.task == task).copied()
    }

    fn affect(&self, collected: &mut Collected) {
        if !collected.is_empty() {
            self.job_barrier.affect(self.id, collected.effects());
            collected.clear();
        }
    }

    fn sleep(&self, until_ns: u64) {
        let phase = &self.run_state.phase;
        self.job_barrier.suspend(self.id, until_ns, phase, RUNNING);
    }
}

/// The effects of a job that are due. Allocates nothing after [`new`](Self::new): more have been refused.
struct Collected {
    unlocks: Vec<ResourceId>,
    triggers: Vec<Target>,
}

impl Collected {
    fn new() -> Self {
        Self {
            unlocks: Vec::with_capacity(UNLOCKS_MAX),
            triggers: Vec::with_capacity(TRIGGERS),
        }
    }

    fn effects(&self) -> Effects<'_> {
        Effects {
            unlocks: &self.unlocks,
            triggers: &self.triggers,
        }
    }

    const fn is_empty(&self) -> bool {
        self.unlocks.is_empty() && self.triggers.is_empty()
    }

    fn clear(&mut self) {
        self.unlocks.clear();
        self.triggers.clear();
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
