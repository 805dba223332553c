//! Carries out an agent's decisions through the programs in the kernel.

use std::path::Path;
use std::sync::Arc;

use shiftwork_model::{CpuId, CpuSet, Share, Span, TaskId};

use super::members::{Admission, Members};
use super::scheduler::{Scheduler, bits, halves, number, tell};
use crate::LiveError;
use crate::agent::{Body, Enactor, Level, Slot};
use crate::event::Event;
use crate::machine::Parameters;
use crate::sys::bpf::{Commands, Hearing, Reports};
use crate::work::JobGate;

/// Slots in one call: `SW_SLOTS` of `bpf/shared.h`.
const SLOTS: usize = 4;

/// What an agent's thread needs to make its hands in the kernel.
pub(crate) struct Commanding {
    commands: Commands,
    reports: Reports,
}

impl Commanding {
    /// For the programs of this scheduler.
    pub(crate) fn new(scheduler: &Scheduler) -> Result<Self, LiveError> {
        Ok(Self {
            commands: scheduler.commands.clone(),
            reports: scheduler.reports()?,
        })
    }

    /// What makes the agent's thread look for something to do.
    pub(crate) fn bell(&self) -> Reports {
        self.reports.clone()
    }

    /// The hands; to be called by the agent's thread.
    pub(crate) fn begin(self) -> Result<SchedExt, LiveError> {
        let hearing = self.reports.hear();
        Ok(SchedExt {
            hearing: hearing.map_err(LiveError::system("map the ring of reports"))?,
            commands: self.commands,
            members: Members::default(),
            lost: 0,
        })
    }
}

/// The programs in the kernel, as the user of a machine sees them that carry out what an agent decides.
pub(crate) struct Obeying {
    scheduler: Scheduler,
    bell: Reports,
}

impl Obeying {
    /// Those of this scheduler; the bell wakes the agent.
    pub(crate) fn new(scheduler: Scheduler, bell: Reports) -> Self {
        Self { scheduler, bell }
    }
}

impl Body for Obeying {
    fn gate(&self) -> Arc<dyn JobGate> {
        self.scheduler.gate()
    }

    fn ring(&self) {
        self.bell.ring();
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

    fn hears_of_affinities(&self) -> bool {
        true
    }

    fn pin(&mut self, folder: &Path) -> Result<(), LiveError> {
        self.scheduler.pin(folder)
    }

    fn open_gate(&self) {
        self.scheduler.open_gate();
    }

    fn unload(&mut self) {
        self.scheduler.unload();
    }
}

/// The hands of an agent in the kernel.
pub(crate) struct SchedExt {
    commands: Commands,
    members: Members,
    hearing: Hearing,
    lost: u64,
}

impl SchedExt {
    /// Tells the programs that the agent is alive, or that it ends.
    fn say(&mut self, ends: bool) -> Result<(), LiveError> {
        let mut words = [u64::from(ends)];
        tell(&self.commands.heartbeat, &mut words, "say alive to")?;
        self.lost = words[0];
        Ok(())
    }
}

impl Drop for SchedExt {
    fn drop(&mut self) {
        // An agent that fails is missed at once, one that ends as it should is not.
        if !std::thread::panicking() {
            // It fails only where the programs are gone.
            let _ = self.say(true);
        }
    }
}

impl Enactor for SchedExt {
    fn take_reports(&mut self, reports: &mut Vec<Event>) -> Result<(), LiveError> {
        self.hearing
            .take(|bytes| reports.extend(Event::all(bytes)))
            .map_err(LiveError::system("read the ring of reports"))
    }

    fn cost_of_a_report(&mut self) -> Result<Span, LiveError> {
        /// `SW_PROBES` of `bpf/agent.h`.
        const PROBES: u64 = 64;
        let mut words = [0];
        let commands = &self.commands;
        tell(&commands.probe_records, &mut words, "probe")?;
        Ok(Span::from_ns(words[0].div_ceil(PROBES)))
    }

    fn reports_lost(&self) -> u64 {
        self.lost
    }

    fn level(&mut self, task: TaskId) -> Result<Level, LiveError> {
        let mut words = [0, 0, 0, 0, number(task)?, 0];
        tell(&self.commands.task_snapshot, &mut words, "ask about a task")?;
        let [at_ns, release_ns, ran_ns, affinity, _, _] = words;
        let byte = |at: u32| (words[5] >> (32 + 8 * at)) & 0xff;
        Ok(Level {
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

    fn why_gone(&mut self, cpu: CpuId) -> Result<Option<(u64, u64)>, LiveError> {
        let mut words = [0, 0, 0, 0, 0, halves(0, (cpu.index() as u64) << 16)];
        tell(&self.commands.task_snapshot, &mut words, "ask about a CPU")?;
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
            tell(&self.commands.assign, &mut words, "assign CPUs through")?;
            self.lost = words[0];
        }
        Ok(())
    }

    fn admit(&mut self, task: TaskId, of: &Parameters) -> Result<Option<bool>, LiveError> {
        // Budgets are the agent's.
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
        tell(&self.commands.approve, &mut words, "approve an affinity to")
    }

    fn beat(&mut self) -> Result<(), LiveError> {
        self.say(false)
    }

    fn wait_until(&mut self, at_ns: u64) {
        let sleeping = |sleeps: u64| {
            // It fails only where the programs are gone, which the next command says.
            let _ = self.commands.set_sleeping.call(&mut [sleeps]);
        };
        sleeping(1);
        // What was told before that woke nobody.
        if self.hearing.is_empty() {
            self.hearing.wait_until(at_ns);
        }
        sleeping(0);
    }
}
