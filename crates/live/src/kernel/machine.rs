//! The in-kernel machine: the core decides, inside the kernel.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::thread::Pid;
use shiftwork_model::{CpuSet, Priority, Share, TaskId};

use super::members::{Admission, Members, is_there};
use super::scheduler::{Scheduler, bits, halves, number, run_command, words};
use crate::LiveError;
use crate::event::Event;
use crate::machine::{Machine, Parameters};
use crate::overheads::Overheads;
use crate::sys::bpf::Command;
use crate::sys::thread::set_affinity;
use crate::work::JobBarrier;

/// The loaded scheduler. Its core decides.
pub(crate) struct KernelMachine {
    scheduler: Scheduler,
    members: Members,
}

impl KernelMachine {
    /// Wraps a scheduler that was loaded for decisions by its core.
    pub(crate) fn new(scheduler: Scheduler) -> Self {
        Self {
            scheduler,
            members: Members::default(),
        }
    }

    /// How often a thread that waited for a lock lent its reservation.
    pub(crate) fn loans_made(&self) -> u64 {
        self.scheduler.loans_made()
    }

    /// Observes the thread under this number. `false` as for [`admit`](Machine::admit).
    pub(crate) fn observe(&mut self, task: TaskId, thread: Pid) -> Result<bool, LiveError> {
        let raw = thread.as_raw_nonzero().get() as u64;
        let mut words = [0, 0, 0, 0, halves(raw, number(task)?), 0];
        is_there(
            thread,
            self.scheduler.commands.call(Command::Observe, &mut words),
        )
    }

    /// Ends the observation.
    pub(crate) fn stop_observing(&mut self, task: TaskId) -> Result<(), LiveError> {
        let mut words = [0, number(task)?];
        let commands = &self.scheduler.commands;
        run_command(
            commands,
            Command::StopObserving,
            &mut words,
            "end an observation in",
        )
    }

    /// The next of the events since the last call, at most so many.
    pub(crate) fn take_events_up_to(&mut self, count: usize) -> Result<Vec<Event>, LiveError> {
        self.scheduler.take_events(count)
    }

    /// Readable when [`wait_until`](Machine::wait_until) would return early.
    pub(crate) fn poll_fd(&self) -> BorrowedFd<'_> {
        self.scheduler.poll_fd()
    }
}

impl Machine for KernelMachine {
    fn job_barrier(&self) -> Arc<dyn JobBarrier> {
        self.scheduler.job_barrier()
    }

    fn admit(&mut self, task: TaskId, of: &Parameters) -> Result<bool, LiveError> {
        let commands = &self.scheduler.commands;
        let admission = self.members.admit(commands, task, of, of.budget())?;
        Ok(admission != Admission::NotWanted)
    }

    fn first_job(&mut self, task: TaskId, release_ns: u64) -> Result<(), LiveError> {
        let mut words = [release_ns, number(task)?, 0];
        let commands = &self.scheduler.commands;
        run_command(
            commands,
            Command::FirstJob,
            &mut words,
            "report a release to",
        )
    }

    fn dismiss(&mut self, task: TaskId) -> Result<(), LiveError> {
        self.members.dismiss(&self.scheduler.commands, task)
    }

    fn approve(&mut self, task: TaskId, cpus: &CpuSet) -> Result<(), LiveError> {
        let mut words = [bits(cpus), number(task)?];
        let commands = &self.scheduler.commands;
        run_command(
            commands,
            Command::Approve,
            &mut words,
            "approve an affinity to",
        )
    }

    fn bind(&mut self, _: TaskId, thread: Pid, cpus: &CpuSet) -> Result<(), String> {
        set_affinity(Some(thread), cpus).map_err(|error| error.to_string())
    }

    fn set_priority(&mut self, task: TaskId, priority: Priority) -> Result<(), LiveError> {
        let mut words = [u64::from(priority.number()), number(task)?];
        let commands = &self.scheduler.commands;
        run_command(
            commands,
            Command::SetPriority,
            &mut words,
            "set a priority in",
        )
    }

    fn set_server(&mut self, task: TaskId, of: &Parameters) -> Result<(), LiveError> {
        let mut words = words(task, of, of.budget())?;
        let commands = &self.scheduler.commands;
        run_command(commands, Command::SetServer, &mut words, "set a budget in")
    }

    fn set_reserve(&mut self, reserve: Share) {
        self.scheduler.set_reserve(reserve);
    }

    fn take_events(&mut self) -> Result<Vec<Event>, LiveError> {
        self.take_events_up_to(usize::MAX)
    }

    fn wait_until(&self, at_ns: u64) {
        self.scheduler.wait_until(at_ns);
    }

    fn events_lost(&self) -> u64 {
        self.scheduler.events_lost()
    }

    fn unloaded(&mut self) -> Option<String> {
        self.scheduler.unloaded()
    }

    fn state(&mut self) -> (u64, Option<&'static str>) {
        self.scheduler.state()
    }

    fn overheads(&mut self) -> Option<Overheads> {
        None
    }

    fn pin(&mut self, folder: &Path) -> Result<(), LiveError> {
        self.scheduler.pin(folder)
    }

    fn begin(&self) {}

    fn open_job_barrier(&self) {
        self.scheduler.open_job_barrier();
    }

    fn unload(&mut self) {
        self.scheduler.unload();
    }
}
