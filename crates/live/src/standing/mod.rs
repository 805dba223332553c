//! The machine that stands: the core in the kernel without an end, for threads that others made and that come
//! and go.
//!
//! This module owns what a long-lived daemon asks of the kernel ([`Standing`]), what it asks it for
//! ([`Reservation`]), and the records of what happened. It must never decide which task runs, which the core does, nor
//! which reservations fit, which is to be decided before. Start reading at [`Standing`].

mod reservation;

pub use crate::translate::{Activity, Observed};
pub use reservation::Reservation;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::thread::Pid;
use shiftwork_model::{CpuSet, Instant, Order, Platform, Priority, Record, Share, Span, TaskId};

use crate::event::Event;
use crate::host::System;
use crate::kernel::{KernelMachine, Scheduler, SchedulerConfig};
use crate::machine::Machine as _;
use crate::sys::bpf::DecisionSite;
use crate::sys::clock::monotonic_ns;
use crate::sys::thread::{pass_run_queue, set_affinity};
use crate::translate::EventTranslator;
use crate::{LiveError, preflight};

/// What must be known when the machine is loaded.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The CPUs that tasks may have, in the machine's numbers. They need not all be online.
    pub cpus: CpuSet,
    /// By what jobs are ranked.
    pub order: Order,
    /// The share of each CPU that pinned background work gets after it has waited for a second.
    pub reserve: Share,
    /// How many bytes of events may wait to be taken; rounded up to a power of two of pages. An event takes 32. Events
    /// that find no room are lost, and counted.
    pub trace_bytes: u32,
}

/// The in-kernel scheduler without an end: threads have their reservations for as long as this exists, or as
/// their holder dies, whichever is first. Then all threads of the machine are the kernel's own again.
///
/// The kernel has one such scheduler at a time. CPUs are in the machine's numbers, instants are of the monotonic
/// clock. A task is one reservation; its number can be any below 1,024 and can be used again once it is
/// [dismissed](Self::dismiss) or has [left](shiftwork_model::RecordKind::Left). To be used by one thread.
pub struct Standing {
    machine: KernelMachine,
    cpus: CpuSet,
    /// The thread that was observed last by each number.
    observed: BTreeMap<TaskId, Pid>,
    translator: EventTranslator,
    /// What was done, and the instant since which it counts, in ns: events before it are translated without.
    done: VecDeque<(u64, TaskId, Done)>,
    /// Whether the last reading has left events.
    has_more: bool,
    /// Instant of the last event that was translated, in ns.
    latest_ns: u64,
    records: Vec<Record>,
    reaction_max: Span,
}

/// What the translator learns beside events.
enum Done {
    /// The task has these attributes and this priority from when it next enters.
    Admitted([Span; 3], Priority),
    /// These are the task's attributes.
    Changed([Span; 3]),
    /// Whether a thread is observed by this number.
    Observed(bool),
}

/// How many tasks there may be: numbers are below.
const TASKS_MAX: usize = 1_024;

/// Checks that [`Settings::cpus`] can be these on this machine, without loading anything.
///
/// # Errors
/// The first CPU that tasks cannot have, and those that they can.
pub fn check_cpus(cpus: &CpuSet) -> Result<(), LiveError> {
    preflight::check_standing_cpus(cpus, &System::this())
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
            translator: EventTranslator::standing(&settings.cpus, TASKS_MAX),
            done: VecDeque::new(),
            has_more: false,
            latest_ns: 0,
            records: Vec::new(),
            reaction_max: Span::ZERO,
        })
    }

    /// The CPUs that tasks may have, online or not.
    pub const fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// Admits the thread as this task, with this reservation. The thread has to be
    /// [bound](Self::bind) to the reservation's CPUs before. A thread that is bound to other CPUs
    /// is [demoted](shiftwork_model::RecordKind::Demoted) for those, unless they are more.
    ///
    /// A task that was demoted gets its reservation back if these are the CPUs that it asked
    /// for last. Its server goes on where it was.
    ///
    /// A thread that is this task already keeps what it has.
    ///
    /// `false`: there is no such thread, or another one is the task, or it asks for other CPUs by now.
    ///
    /// # Errors
    /// If the reservation is invalid, or the thread is another task already, which has to be
    /// dismissed first.
    pub fn admit(&mut self, task: TaskId, of: &Reservation) -> Result<bool, LiveError> {
        let parameters = of.parameters(&self.cpus)?;
        let asked_ns = monotonic_ns();
        let admitted = self.machine.admit(task, &parameters)?;
        if admitted {
            let done = Done::Admitted(of.attributes(), of.priority);
            self.done.push_back((asked_ns, task, done));
        }
        Ok(admitted)
    }

    /// The task's jobs to come have this budget, period, deadline and priority; what is left of its budget and
    /// its thread stay. For other CPUs see [`approve`](Self::approve).
    ///
    /// # Errors
    /// If the reservation is invalid.
    pub fn change(&mut self, task: TaskId, of: &Reservation) -> Result<(), LiveError> {
        self.machine.set_server(task, &of.parameters(&self.cpus)?)?;
        let done = Done::Changed(of.attributes());
        self.done.push_back((monotonic_ns(), task, done));
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

    /// From now on [`take_observed`](Self::take_observed) reports, under this number, what the
    /// thread does while it is ordinary work. Nothing is reserved for it, and it takes part in no
    /// decision. It may be admitted meanwhile, under another number.
    ///
    /// `false`: there is no such thread, or the number is in use.
    ///
    /// # Errors
    /// If the thread is observed already.
    pub fn observe(&mut self, task: TaskId, thread: Pid) -> Result<bool, LiveError> {
        let asked_ns = monotonic_ns();
        let observed = self.machine.observe(task, thread)?;
        if observed {
            self.observed.insert(task, thread);
            let done = Done::Observed(true);
            self.done.push_back((asked_ns, task, done));
        }
        Ok(observed)
    }

    /// Stops observing the thread with this number, and frees the number. Does nothing if no thread
    /// has it.
    ///
    /// # Errors
    /// If the scheduler is gone.
    pub fn stop_observing(&mut self, task: TaskId) -> Result<(), LiveError> {
        self.machine.stop_observing(task)?;
        if let Some(&thread) = self.observed.get(&task) {
            // Events that were about to be written have been written after this.
            pass_run_queue(thread);
        }
        let done = Done::Observed(false);
        self.done.push_back((monotonic_ns(), task, done));
        Ok(())
    }

    /// What waiting background work gets of each CPU from now on.
    pub fn set_reserve(&mut self, reserve: Share) {
        self.machine.set_reserve(reserve);
    }

    /// The next records, of at most so many `events`, in the order of their instants. CPUs are in the machine's numbers,
    /// instants of the monotonic clock. Takes no longer if there are more events, or while others are written.
    ///
    /// # Errors
    /// If the ring cannot be read.
    pub fn take_records(&mut self, events: usize) -> Result<Vec<Record>, LiveError> {
        let mut next = self.machine.take_events_up_to(events)?;
        self.has_more = next.len() == events;
        // Events that have been taken need not wake a waiting thread any more.
        self.machine.wait_until(0);
        // All but those of CPUs that run tasks, and of observed threads, come in order.
        next.sort_by_key(|event| event.at);
        for event in next {
            self.translate_done(event.at);
            self.translate(event);
        }
        if !self.has_more {
            self.translate_done(u64::MAX);
        }
        let longest = self.translator.reactions.drain(..).max();
        self.reaction_max = self.reaction_max.max(longest.unwrap_or_default());
        // Nothing acts upon these: the records say the same.
        self.translator.asking.clear();
        self.translator.overran.clear();
        Ok(std::mem::take(&mut self.records))
    }

    /// Whether [`take_records`](Self::take_records) may have left some: a thread that waits is not woken for these.
    pub const fn has_more_records(&self) -> bool {
        self.has_more
    }

    /// What observed threads did since the last call; to be called after [`take_records`](Self::take_records).
    pub fn take_observed(&mut self) -> Vec<Observed> {
        std::mem::take(&mut self.translator.observed)
    }

    /// The longest time that a CPU took to run what was decided for it, since the last call.
    pub const fn take_reaction_max(&mut self) -> Span {
        std::mem::replace(&mut self.reaction_max, Span::ZERO)
    }

    /// An event that comes so late that later ones have been translated has their instant.
    fn translate(&mut self, mut event: Event) {
        event.at = event.at.max(self.latest_ns);
        self.latest_ns = event.at;
        self.translator.take(event, &mut self.records);
    }

    /// Translates what was done until this instant.
    fn translate_done(&mut self, until_ns: u64) {
        while self.done.front().is_some_and(|&(at, ..)| at <= until_ns)
            && let Some((at_ns, task, done)) = self.done.pop_front()
        {
            match done {
                Done::Admitted(attributes, priority) => {
                    self.translator.admit(task, attributes, priority);
                }
                Done::Changed(attributes) => {
                    // Never before the records that there are.
                    let at = Instant::from_ns(at_ns.max(self.latest_ns));
                    self.translator
                        .set_attributes(at, task, attributes, &mut self.records);
                }
                Done::Observed(is_observed) => self.translator.set_observed(task, is_observed),
            }
        }
    }

    /// How many events found no room so far.
    pub fn events_lost(&self) -> u64 {
        self.machine.events_lost()
    }

    /// How often a thread that waited for a lock lent its reservation to the holder so far.
    pub fn loans_made(&self) -> u64 {
        self.machine.loans_made()
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

    /// Returns at this instant of the monotonic clock, or when there is an event to act upon:
    /// a task has left, uses or asks for other CPUs, or has overrun; a CPU went offline or came back. All other
    /// events wait until they are taken.
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
