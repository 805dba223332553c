//! The threads and processes of a run, from their creation to their end.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::thread::Pid;
use shiftwork_model::{CpuSet, Instant, Task, TaskId, TaskSet};

use super::jobs::Jobs;
use super::program::Program;
use super::thread::{RUNNING, RunState, STACK_BYTES, STOPPED, TaskThread};
use super::{JobBarrier, Target};
use crate::sys::clock::{monotonic_ns, sleep_until};
use crate::{LiveError, Options, Plan};

/// How long a new thread may take to report that it is prepared; a slower machine is stuck.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// How long threads and programs may take to end after they were asked, and again after SIGKILL.
const STOP_NS_MAX: u64 = 1_000_000_000;

/// How often `stop` checks whether they have ended.
const POLL_NS: u64 = 1_000_000;

/// The thread or process that does the work of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Worker {
    /// The task.
    pub(crate) task: TaskId,
    /// The number of its thread, or of the first thread of its program.
    pub(crate) thread: Pid,
    /// When its first job is released, from the start of the run; `None` if a trigger releases it.
    pub(crate) first: Option<Instant>,
    /// Whether it is a program, with jobs that are not known, and not a thread that calls
    /// [`JobBarrier`].
    pub(crate) is_program: bool,
}

/// How a thread or program ended without having been stopped.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The thread did all jobs to the horizon.
    Done,
    /// The thread panicked, which is a bug.
    Panicked,
    /// The program ended.
    Exited(ExitStatus),
    /// The program could not be started.
    NotStarted(io::Error),
}

/// The threads and programs of a run. Dropping it stops them.
#[derive(Debug)]
pub(crate) struct Workers {
    run_state: Arc<RunState>,
    workers: Vec<Worker>,
    threads: Vec<(TaskId, JoinHandle<()>)>,
    programs: Vec<(TaskId, Program)>,
}

impl Workers {
    /// Creates a thread or a process for every task that releases a job before the horizon, bound to the CPUs of
    /// the plan. All wait for [`start`](Self::start).
    ///
    /// # Errors
    /// If a program cannot be found, or the kernel refuses a thread, a process or its CPUs.
    pub(crate) fn spawn(
        plan: &Plan<'_>,
        options: &Options,
        job_barrier: &Arc<dyn JobBarrier>,
    ) -> Result<Self, LiveError> {
        let mut workers = Self {
            run_state: Arc::new(RunState::new()),
            workers: Vec::new(),
            threads: Vec::new(),
            programs: Vec::new(),
        };
        let (sender, ready) = channel();
        let horizon = Instant::ZERO + options.horizon;
        for (id, task) in plan.set.iter() {
            let mut jobs = Jobs::new(plan.set, id, options.seed, horizon);
            let Some(first) = jobs.next(Instant::ZERO) else {
                continue;
            };
            let cpus = machine_cpus(plan, id);
            if task.command.is_empty() {
                let thread = TaskThread {
                    id,
                    cpus,
                    jobs,
                    first,
                    enters_later: plan.set.enters_later(id),
                    at_completion: targets(plan.set, id, plan.set.triggered_at_completion(id)),
                    within: targets(plan.set, id, task.triggers()),
                    job_barrier: Arc::clone(job_barrier),
                    run_state: Arc::clone(&workers.run_state),
                };
                workers.add_thread(task, thread, first.release, &sender, &ready)?;
            } else {
                workers.add_program(id, task, &cpus, first.release, options.pin.is_none())?;
            }
        }
        Ok(workers)
    }

    /// The workers, in the order of the tasks. A task that releases no job has none.
    pub(crate) fn as_slice(&self) -> &[Worker] {
        &self.workers
    }

    /// Starts the run at this instant of the monotonic clock. Threads go to their first job: the
    /// machine knows its release already. Programs start at their first release.
    pub(crate) fn start(&mut self, origin_ns: u64) {
        self.run_state.origin_ns.store(origin_ns, Ordering::Relaxed);
        self.run_state.phase.set(RUNNING);
        for (id, program) in &mut self.programs {
            let worker = self.workers.iter().find(|worker| worker.task == *id);
            let first = worker.and_then(|worker| worker.first);
            let first = first.unwrap_or(Instant::ZERO);
            program.start(origin_ns.saturating_add(first.as_ns()));
        }
    }

    /// The workers that have ended since the last call, and how.
    pub(crate) fn ended(&mut self) -> Vec<(TaskId, Ending)> {
        let over = self
            .threads
            .extract_if(.., |(_, thread)| thread.is_finished());
        let threads = over.map(|(id, thread)| match thread.join() {
            Ok(()) => (id, Ending::Done),
            Err(_) => (id, Ending::Panicked),
        });
        let mut ended: Vec<_> = threads.collect();
        let over = self
            .programs
            .extract_if(.., |(_, program)| program.is_over());
        ended.extend(over.map(|(id, program)| match program.status() {
            Ok(status) => (id, Ending::Exited(status)),
            Err(error) => (id, Ending::NotStarted(error)),
        }));
        ended
    }

    /// Stops all workers: threads by the phase of the run, programs by SIGTERM, and those that ignore it by
    /// SIGKILL. Takes two seconds at most; the tasks of workers that have not ended by then.
    ///
    /// The machine has to open its job barrier before, or threads that wait there do not end.
    pub(crate) fn stop(&mut self) -> Vec<TaskId> {
        self.run_state.phase.set(STOPPED);
        for kindly in [true, false] {
            for (_, program) in &self.programs {
                program.end(kindly);
            }
            let late_ns = monotonic_ns().saturating_add(STOP_NS_MAX);
            while monotonic_ns() < late_ns && !self.is_empty() {
                drop(self.ended());
                // It fails only for instants that the kernel cannot represent.
                let _ = sleep_until(monotonic_ns() + POLL_NS);
            }
        }
        let threads = self.threads.drain(..).map(|(id, _)| id);
        let programs = self.programs.drain(..).map(|(id, _)| id);
        threads.chain(programs).collect()
    }

    fn is_empty(&self) -> bool {
        self.threads.is_empty() && self.programs.is_empty()
    }

    fn add_thread(
        &mut self,
        task: &Task,
        task_thread: TaskThread,
        first: Option<Instant>,
        sender: &Sender<(TaskId, io::Result<Pid>)>,
        ready: &Receiver<(TaskId, io::Result<Pid>)>,
    ) -> Result<(), LiveError> {
        let (id, cpus) = (task_thread.id, task_thread.cpus);
        let sender = sender.clone();
        let thread = std::thread::Builder::new()
            .name(thread_name(&task.name))
            .stack_size(STACK_BYTES)
            .spawn(move || task_thread.run(&sender))
            .map_err(LiveError::system(format!(
                "make a thread for task {}",
                task.name
            )))?;
        self.threads.push((id, thread));
        let doing = || format!("prepare the thread of task {} on CPUs {cpus}", task.name);
        let (_, number) = ready
            .recv_timeout(START_TIMEOUT)
            .map_err(io::Error::other)
            .map_err(LiveError::system(doing()))?;
        self.workers.push(Worker {
            task: id,
            thread: number.map_err(LiveError::system(doing()))?,
            first,
            is_program: false,
        });
        Ok(())
    }

    fn add_program(
        &mut self,
        id: TaskId,
        task: &Task,
        cpus: &CpuSet,
        first: Option<Instant>,
        dies_with_us: bool,
    ) -> Result<(), LiveError> {
        let program = Program::hold(task, cpus, dies_with_us)?;
        self.workers.push(Worker {
            task: id,
            thread: program.pid(),
            first,
            is_program: true,
        });
        self.programs.push((id, program));
        Ok(())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        if !self.is_empty() {
            self.stop();
        }
    }
}

/// These tasks as those that the source triggers.
fn targets(set: &TaskSet, source: TaskId, tasks: impl Iterator<Item = TaskId>) -> Vec<Target> {
    let target = |task: TaskId| {
        let trigger = set.tasks[task.index()].trigger();
        let place = trigger.map_or(0, |trigger| trigger.place(source));
        Target {
            task,
            place: u8::try_from(place).unwrap_or(0),
        }
    };
    tasks.map(target).collect()
}

/// The machine's CPUs that the plan binds the task to.
fn machine_cpus(plan: &Plan<'_>, id: TaskId) -> CpuSet {
    let bound = plan.bound[id.index()].cpus();
    bound.iter().map(|cpu| plan.cpus[cpu.index()]).collect()
}

/// The kernel shows 15 bytes of a name; a zero byte would end it.
fn thread_name(task: &str) -> String {
    task.chars().filter(|&char| char != '\0').collect()
}

#[cfg(test)]
mod tests;
