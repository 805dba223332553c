//! The machine that stands: the core in the kernel without an end, for threads that others made and that come
//! and go.
//!
//! This module owns what a long-lived agent asks of the kernel ([`Standing`]), what it asks it for
//! ([`Reservation`]), and what it is told ([`Fact`]). It must never decide who runs, which the core does, nor who
//! fits, which is to be decided before. Start reading at [`Standing`].

mod fact;
mod reservation;

pub use fact::{Absence, Fact, FactKind};
pub use reservation::Reservation;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::thread::Pid;
use shiftwork_model::{CpuSet, Platform, Share, TaskId};
use shiftwork_policy::registry::OrderName;

use crate::host::System;
use crate::kernel::{KernelMachine, Scheduler, SchedulerConfig};
use crate::machine::Machine as _;
use crate::sys::bpf::DecisionSite;
use crate::sys::thread::{pass_run_queue, set_affinity};
use crate::{LiveError, preflight};
use fact::Arranged;

/// What must be known when the machine is loaded.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The CPUs that tasks may have, in the machine's numbers. They need not all be online.
    pub cpus: CpuSet,
    /// By what jobs are ranked.
    pub order: OrderName,
    /// The share of each CPU that pinned background work gets after it has waited for a second.
    pub reserve: Share,
    /// How much of what is told may wait to be taken, in bytes; rounded up to a power of two of pages. A fact
    /// takes 32. What finds no room is lost, and counted.
    pub trace_bytes: u32,
}

/// The in-kernel scheduler without an end: threads have their reservations for as long as this exists, or as
/// their holder dies, whichever is first. Then all threads of the machine are the kernel's own again.
///
/// The kernel has one such scheduler at a time. CPUs are in the machine's numbers, instants are of the monotonic
/// clock. A task is one reservation; its number can be any below 1,024 and can be used again once it is
/// [dismissed](Self::dismiss) or was told to have [left](FactKind::Left). To be used by one thread.
pub struct Standing {
    machine: KernelMachine,
    cpus: CpuSet,
    /// The thread that was observed last by each number.
    observed: BTreeMap<TaskId, Pid>,
    told: Arranged,
}

impl Standing {
    /// Loads the scheduler, at first without tasks: everything is ordinary work.
    ///
    /// # Errors
    /// The first thing that is in the way on this machine, with what mends it; or what the kernel says.
    pub fn load(settings: &Settings) -> Result<Self, LiveError> {
        let system = System::this();
        let has_timers = preflight::check_standing(&settings.cpus, &system)?;
        let scheduler = Scheduler::load(&SchedulerConfig {
            decision_site: DecisionSite::Core,
            order: settings.order,
            cpus: settings.cpus,
            has_timers,
            reserve: settings.reserve,
            trace_bytes: settings.trace_bytes,
        })?;
        let platform = platform(&system);
        for cpu in settings.cpus.iter() {
            let mates = platform.cache_mates(cpu) & settings.cpus;
            scheduler.set_cache_mates(cpu, &mates)?;
        }
        scheduler.wake_for_events()?;
        Ok(Self {
            machine: KernelMachine::new(scheduler),
            cpus: settings.cpus,
            observed: BTreeMap::new(),
            told: Arranged::default(),
        })
    }

    /// The CPUs that tasks may have, online or not.
    pub const fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// The thread has the reservation from now on, as this task. It has to be [bound](Self::bind) to the
    /// reservation's CPUs before; one that is not is told to have [asked](FactKind::Demoted) for those that it
    /// is bound to, unless they are more.
    ///
    /// A task that was [demoted](FactKind::Demoted) gets its reservation back if these are the CPUs that it asked
    /// for last. Its server goes on where it was.
    ///
    /// A thread that is this task already keeps what it has.
    ///
    /// `false`: there is no such thread, or another one is the task, or it asks for other CPUs by now.
    ///
    /// # Errors
    /// If the reservation can be nobody's, or the thread is another task already, which has to be dismissed first.
    pub fn admit(&mut self, task: TaskId, of: &Reservation) -> Result<bool, LiveError> {
        let parameters = of.parameters(&self.cpus)?;
        self.machine.admit(task, &parameters)
    }

    /// The task's jobs to come have this budget, period, deadline and priority; what is left of its budget and
    /// its thread stay. For other CPUs see [`approve`](Self::approve).
    ///
    /// # Errors
    /// If the reservation can be nobody's.
    pub fn change(&mut self, task: TaskId, of: &Reservation) -> Result<(), LiveError> {
        self.machine.set_server(task, &of.parameters(&self.cpus)?)?;
        self.machine.set_priority(task, of.priority)
    }

    /// The task's thread goes on in the background, and may be admitted again. Nothing happens to a task that
    /// takes no part.
    ///
    /// # Errors
    /// If the scheduler is gone.
    pub fn dismiss(&mut self, task: TaskId) -> Result<(), LiveError> {
        self.machine.dismiss(task)
    }

    /// The task may ask for these CPUs, beside more than it has: it keeps its reservation when it does.
    ///
    /// # Errors
    /// If the scheduler is gone.
    pub fn approve(&mut self, task: TaskId, cpus: &CpuSet) -> Result<(), LiveError> {
        self.machine.approve(task, cpus)
    }

    /// The thread may use these CPUs of the machine: what `sched_setaffinity` does, of a task too.
    ///
    /// # Errors
    /// If there is no such thread, or the kernel does not let it have one of these CPUs.
    pub fn bind(&self, thread: Pid, cpus: &CpuSet) -> Result<(), LiveError> {
        set_affinity(Some(thread), cpus).map_err(LiveError::system(format!(
            "bind thread {thread} to CPUs {cpus}"
        )))
    }

    /// The thread is told to have [woken](FactKind::Woken), [blocked](FactKind::Blocked) and
    /// [stopped](FactKind::Stopped) under this number while it is ordinary work, from when it next does; and to have
    /// [left](FactKind::Left) when it ends. Nothing is reserved for it, and nobody decides by it. It may be admitted
    /// meanwhile, by another number.
    ///
    /// `false`: there is no such thread, or the number is somebody's.
    ///
    /// # Errors
    /// If the thread is observed already.
    pub fn observe(&mut self, task: TaskId, thread: Pid) -> Result<bool, LiveError> {
        let observed = self.machine.observe(task, thread)?;
        if observed {
            self.observed.insert(task, thread);
        }
        Ok(observed)
    }

    /// The thread that is observed by this number is so no more, and the number is nobody's. Nothing happens where
    /// there is none.
    ///
    /// # Errors
    /// If the scheduler is gone.
    pub fn stop_observing(&mut self, task: TaskId) -> Result<(), LiveError> {
        self.machine.stop_observing(task)?;
        if let Some(&thread) = self.observed.get(&task) {
            // What it was just about to tell is told.
            pass_run_queue(thread);
        }
        Ok(())
    }

    /// What waiting background work gets of each CPU from now on.
    pub fn set_reserve(&mut self, reserve: Share) {
        self.machine.set_reserve(reserve);
    }

    /// What happened since the last call, in the order of its instants.
    ///
    /// # Errors
    /// If the ring cannot be read.
    pub fn take_facts(&mut self) -> Result<Vec<Fact>, LiveError> {
        let events = self.machine.take_events()?;
        // What is taken is no reason to wake anybody any more.
        self.machine.wait_until(0);
        Ok(self.told.arrange(&events))
    }

    /// How many facts found no room so far.
    pub fn facts_lost(&self) -> u64 {
        self.machine.events_lost()
    }

    /// Why the scheduler is not the machine's any more, in the kernel's words; `None` as long as it is.
    pub fn unloaded(&mut self) -> Option<String> {
        self.machine.unloaded()
    }

    /// How many running jobs were moved to make room so far, and what is wrong with the core's state; `None` is as
    /// it should be. Takes milliseconds.
    pub fn state(&mut self) -> (u64, Option<&'static str>) {
        self.machine.state()
    }

    /// Returns at this instant of the monotonic clock, or when there is a fact that somebody ought to act upon:
    /// a task has left, uses or asks for other CPUs, or has overrun; a CPU went offline or came back. All other
    /// facts wait until they are taken.
    pub fn wait_until(&self, at_ns: u64) {
        self.machine.wait_until(at_ns);
    }
}

/// The descriptor can be read from, as `poll(2)` sees it, when [`Standing::wait_until`] would return early.
impl AsFd for Standing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.machine.poll_fd()
    }
}

/// What is known of how the machine's CPUs hang together.
fn platform(system: &System) -> Platform {
    let caches = system.caches().into_iter().map(|(_, cpus)| cpus);
    Platform {
        caches: caches.collect(),
        ..Platform::uniform(shiftwork_kernel_core::CPUS_MAX)
    }
}
