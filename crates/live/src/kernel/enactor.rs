//! The enactor that uses the programs in the kernel.

use std::path::Path;
use std::sync::Arc;

use shiftwork_model::{CpuId, CpuSet, Share, Span, TaskId};

use super::members::{Admission, Members};
use super::mutex_requests::MutexRequests;
use super::scheduler::{Scheduler, bits, halves, number, run_command};
use super::wakeups::Wakeups;
use crate::LiveError;
use crate::agent::channel::Receiver;
use crate::agent::{Enactor, EnactorOwner, Slot, TaskSnapshot, sort_by_time};
use crate::event::Event;
use crate::machine::Parameters;
use crate::sys::bpf::{Command, Commands, EventReader, EventRing};
use crate::work::JobBarrier;

/// Slots in one call: `SW_SLOTS` of `bpf/shared.h`.
const SLOTS: usize = 4;

/// What the agent's thread needs to build its enactor.
pub(crate) struct EnactorBuilder {
    commands: Commands,
    ring: EventRing,
    wakeups: Arc<[Wakeups]>,
    requests: Option<(Arc<MutexRequests>, Vec<Receiver>)>,
}

impl EnactorBuilder {
    /// For the programs of this scheduler, and so many tasks if one of them locks mutexes.
    pub(crate) fn new(scheduler: &Scheduler, locking: Option<usize>) -> Result<Self, LiveError> {
        let ring = scheduler.event_ring()?;
        Ok(Self {
            commands: scheduler.commands.clone(),
            requests: locking.map(|tasks| scheduler.let_agent_lock(tasks, ring.clone())),
            ring,
            wakeups: scheduler.wakeups(),
        })
    }

    /// The ring that the agent reads: another thread can wake it there.
    pub(crate) fn event_ring(&self) -> EventRing {
        self.ring.clone()
    }

    /// Builds the enactor; to be called by the agent's thread.
    pub(crate) fn build(self) -> Result<SchedExtEnactor, LiveError> {
        let reader = self.ring.reader();
        Ok(SchedExtEnactor {
            reader: reader.map_err(LiveError::system("map the ring of reports"))?,
            commands: self.commands,
            wakeups: self.wakeups,
            requests: self.requests,
            members: Members::default(),
            lost: 0,
        })
    }
}

/// The programs in the kernel, as the thread that started the agent uses them.
pub(crate) struct SchedExtOwner {
    scheduler: Scheduler,
    ring: EventRing,
}

impl SchedExtOwner {
    /// For the programs of this scheduler; the ring wakes the agent.
    pub(crate) fn new(scheduler: Scheduler, ring: EventRing) -> Self {
        Self { scheduler, ring }
    }
}

impl EnactorOwner for SchedExtOwner {
    fn job_barrier(&self) -> Arc<dyn JobBarrier> {
        self.scheduler.job_barrier()
    }

    fn wake_agent(&self) {
        self.ring.wake_reader();
    }

    fn failed(&self) -> Option<String> {
        self.scheduler.unloaded()
    }

    fn fault(&self) -> Option<&'static str> {
        self.scheduler.fault()
    }

    fn set_reserve(&mut self, reserve: Share) {
        self.scheduler.set_reserve(reserve);
    }

    fn reports_affinities(&self) -> bool {
        true
    }

    fn pin(&mut self, folder: &Path) -> Result<(), LiveError> {
        self.scheduler.pin(folder)
    }

    fn open_job_barrier(&self) {
        self.scheduler.open_job_barrier();
    }

    fn unload(&mut self) {
        self.scheduler.unload();
    }
}

/// The enactor that uses the programs in the kernel.
pub(crate) struct SchedExtEnactor {
    commands: Commands,
    members: Members,
    reader: EventReader,
    wakeups: Arc<[Wakeups]>,
    requests: Option<(Arc<MutexRequests>, Vec<Receiver>)>,
    lost: u64,
}

impl SchedExtEnactor {
    /// Sends a heartbeat to the programs, or reports that the agent ends.
    fn send_heartbeat(&mut self, ends: bool) -> Result<(), LiveError> {
        let mut words = [u64::from(ends)];
        run_command(
            &self.commands,
            Command::Heartbeat,
            &mut words,
            "send a heartbeat to",
        )?;
        self.lost = words[0];
        Ok(())
    }
}

impl Drop for SchedExtEnactor {
    fn drop(&mut self) {
        // The programs notice a failed agent at once; an agent that ends in order signs off.
        if !std::thread::panicking() {
            // It fails only if the programs are unloaded.
            let _ = self.send_heartbeat(true);
        }
    }
}

impl Enactor for SchedExtEnactor {
    fn take_reports(&mut self, reports: &mut Vec<Event>) -> Result<(), LiveError> {
        self.reader
            .take(|bytes| reports.extend(Event::all(bytes)))
            .map_err(LiveError::system("read the ring of reports"))?;
        // After the ring: what a thread did before has been read.
        if let Some((requests, receivers)) = &self.requests
            && requests.take(receivers, reports)
        {
            sort_by_time(reports);
        }
        Ok(())
    }

    fn report_cost(&mut self) -> Result<Span, LiveError> {
        /// `SW_PROBES` of `bpf/agent.h`.
        const PROBES: u64 = 64;
        let mut words = [0];
        let commands = &self.commands;
        run_command(commands, Command::ProbeRecords, &mut words, "probe")?;
        Ok(Span::from_ns(words[0].div_ceil(PROBES)))
    }

    fn reports_lost(&self) -> u64 {
        self.lost
    }

    fn snapshot(&mut self, task: TaskId) -> Result<TaskSnapshot, LiveError> {
        let mut words = [0, 0, 0, 0, number(task)?, 0];
        run_command(
            &self.commands,
            Command::TaskSnapshot,
            &mut words,
            "read a task from",
        )?;
        let [at_ns, release_ns, ran_ns, affinity, _, _] = words;
        let byte = |at: u32| (words[5] >> (32 + 8 * at)) & 0xff;
        Ok(TaskSnapshot {
            at_ns,
            cpus: (affinity != 0).then(|| CpuSet::from_bits(affinity)),
            stops: (words[4] >> 32) as u32,
            finished: words[5] as u32,
            awake: byte(0) != 0,
            present: byte(1) != 0,
            release_ns,
            ran_ns,
            cpu: (byte(2) as usize).checked_sub(1).map(CpuId::from_index),
        })
    }

    fn gone_reasons(&mut self, cpu: CpuId) -> Result<Option<(u64, u64)>, LiveError> {
        let mut words = [0, 0, 0, 0, 0, halves(0, (cpu.index() as u64) << 16)];
        run_command(
            &self.commands,
            Command::TaskSnapshot,
            &mut words,
            "read a CPU from",
        )?;
        Ok(Some((words[0], words[3])))
    }

    fn assign(&mut self, slots: &[Slot]) -> Result<(), LiveError> {
        for some in slots.chunks(SLOTS) {
            let mut words = [0_u64; SLOTS + 2];
            for (word, slot) in words[1..].iter_mut().zip(some) {
                let task = slot.task.map(number).transpose()?.unwrap_or(0);
                let cpu = slot.cpu.index() as u64;
                *word = halves(task | cpu << 16, u64::from(slot.stops));
            }
            words[SLOTS + 1] = some.len() as u64;
            run_command(
                &self.commands,
                Command::Assign,
                &mut words,
                "assign CPUs through",
            )?;
            self.lost = words[0];
        }
        Ok(())
    }

    fn admit(&mut self, task: TaskId, of: &Parameters) -> Result<Option<bool>, LiveError> {
        // The agent enforces budgets.
        let admission = self.members.admit(&self.commands, task, of, Span::ZERO)?;
        Ok(match admission {
            Admission::Done { is_awake } => Some(is_awake),
            Admission::HasIt | Admission::NotWanted => None,
        })
    }

    fn dismiss(&mut self, task: TaskId) -> Result<(), LiveError> {
        self.members.dismiss(&self.commands, task)
    }

    fn approve(&mut self, task: TaskId, cpus: &CpuSet) -> Result<(), LiveError> {
        let mut words = [bits(cpus), number(task)?];
        run_command(
            &self.commands,
            Command::Approve,
            &mut words,
            "approve an affinity to",
        )
    }

    fn wake(&mut self, task: TaskId) {
        if let Some(wakeups) = self.wakeups.get(task.index()) {
            wakeups.wake();
        }
    }

    fn answer(&mut self, task: TaskId) {
        if let Some((requests, _)) = &self.requests {
            requests.answer(task);
        }
    }

    fn heartbeat(&mut self) -> Result<(), LiveError> {
        self.send_heartbeat(false)
    }

    fn wait_until(&mut self, at_ns: u64) {
        let sleeping = |sleeps: u64| {
            // It fails only if the programs are unloaded, which the next command reports.
            let _ = self.commands.call(Command::SetSleeping, &mut [sleeps]);
        };
        sleeping(1);
        let requests = self.requests.as_ref().map(|(requests, _)| requests);
        let may_sleep = requests.is_none_or(|requests| requests.begin_sleep());
        // Reports before that woke no thread.
        if may_sleep && self.reader.is_empty() {
            self.reader.wait_until(at_ns);
        }
        requests.iter().for_each(|requests| requests.end_sleep());
        sleeping(0);
    }
}
