//! The loaded scheduler and its commands.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use shiftwork_kernel_core::{Core, CoreMutexes, MutexNumber, SOURCES_MAX, TASKS_MAX, UNLOCKS_MAX};
use shiftwork_model::{
    CpuId, CpuSet, Order, Priority, Protocol, ResourceId, Share, Span, TaskId, Trigger,
};

use super::mutex_requests::MutexRequests;
use super::wakeups::Wakeups;
use crate::LiveError;
use crate::agent::channel::Receiver;
use crate::event::Event;
use crate::machine::Parameters;
use crate::sys::bpf::{Command, Commands, DecisionSite, EventRing, Loaded, MutexHolders, Settings};
use crate::sys::clock::{monotonic_ns, pause, pause_at};
use crate::sys::thread::yield_now;
use crate::sys::word::Word;
use crate::ticker::Ticker;
use crate::work::{Effects, JobBarrier, ON_TRIGGER_NS};

/// Timeout of the sched_ext watchdog: the kernel unloads a scheduler that lets a runnable thread wait for
/// longer. This is the greatest value that the kernel accepts.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(30);

/// `struct sw_admit` of `bpf/shared.h`; `budget` is what the kernel is to enforce, or to warn of.
pub(super) fn words(task: TaskId, of: &Parameters, budget: Span) -> Result<[u64; 6], LiveError> {
    let start = of.start.map_or(0, |cpu| cpu.index() as u64 + 1);
    let thread = of.thread.as_raw_nonzero().get() as u64;
    let bytes = u64::from(of.follows) | u64::from(of.excess as u8) << 8 | start << 16;
    Ok([
        bits(&of.cpus),
        budget.as_ns(),
        of.period.as_ns(),
        of.deadline.as_ns(),
        halves(thread, number(task)?),
        halves(u64::from(of.priority.number()), bytes),
    ])
}

/// Parameters of the loading.
#[derive(Clone, Debug)]
pub(crate) struct SchedulerConfig {
    pub(crate) decision_site: DecisionSite,
    /// For the core; unused where an agent decides.
    pub(crate) order: Order,
    /// CPUs of the machine. Those that are offline are gone at first.
    pub(crate) cpus: CpuSet,
    pub(crate) has_timers: bool,
    pub(crate) reserve: Share,
    pub(crate) trace_bytes: u32,
}

/// The programs in the kernel and their commands. Dropping this unloads them.
pub(crate) struct Scheduler {
    loaded: Loaded,
    pub(super) commands: Commands,
    job_barrier: Arc<SchedExtJobBarrier>,
    /// For kernels where BPF has no timers.
    _ticker: Option<Ticker>,
}

impl Scheduler {
    /// Loads the programs.
    pub(crate) fn load(config: &SchedulerConfig) -> Result<Self, LiveError> {
        let refused = |what: String| LiveError::Machine {
            what,
            remedy: String::from(
                "boot another build of the kernel, unless `shiftwork doctor` says what this machine lacks",
            ),
        };
        let settings = Settings {
            cpu_count: possible_cpus()?,
            has_timers: config.has_timers,
            timeout: WATCHDOG,
            trace_bytes: config.trace_bytes,
            decision_site: config.decision_site,
        };
        let mut loaded = Loaded::load(settings).map_err(refused)?;
        let commands = loaded
            .commands()
            .map_err(LiveError::system("open the programs in the kernel"))?;
        loaded.set_reserve(config.reserve.of(Span::from_s(1)).as_ns());
        let order = Core::number_of(config.order).into();
        let mut words = [bits(&config.cpus), order];
        run_command(&commands, Command::Configure, &mut words, "configure")?;
        let job_barrier = SchedExtJobBarrier {
            commands: commands.clone(),
            holders: loaded
                .mutex_holders()
                .map_err(LiveError::system("map the mutexes"))?,
            open: Word::new(CLOSED),
            requests: OnceLock::new(),
            wakeups: (0..TASKS_MAX).map(|_| Wakeups::default()).collect(),
        };
        let ticker = (!config.has_timers).then(|| Ticker::start(&loaded, &config.cpus));
        Ok(Self {
            _ticker: ticker.transpose()?,
            loaded,
            commands,
            job_barrier: Arc::new(job_barrier),
        })
    }

    /// These CPUs share a cache with `cpu`.
    pub(crate) fn set_cache_mates(&self, cpu: CpuId, mates: &CpuSet) -> Result<(), LiveError> {
        let mut words = [bits(mates), cpu.index() as u64];
        run_command(
            &self.commands,
            Command::SetCache,
            &mut words,
            "set the caches of",
        )
    }

    /// How the task is triggered.
    pub(crate) fn set_triggers(&self, task: TaskId, trigger: &Trigger) -> Result<(), LiveError> {
        let places = trigger.places() as u64;
        let limit = trigger.queue.unwrap_or(u32::MAX);
        let mut words = [halves(number(task)?, places), u64::from(limit)];
        let doing = "set the triggers of a task in";
        run_command(&self.commands, Command::SetTriggers, &mut words, doing)
    }

    /// The protocol of a mutex, and the most urgent priority and the shortest relative deadline of the tasks that use it.
    pub(crate) fn set_mutex(
        &self,
        mutex: ResourceId,
        protocol: Protocol,
        (priority, floor): (Priority, Span),
    ) -> Result<(), LiveError> {
        let (Some(number), Some(protocol)) =
            (MutexNumber::of(mutex), CoreMutexes::number_of(protocol))
        else {
            return Err(LiveError::TaskSet(String::from(
                "has a mutex that the scheduler in the kernel cannot have",
            )));
        };
        let mut words = [
            floor.as_ns(),
            halves(priority.number().into(), protocol.into()),
            number.get().into(),
        ];
        let doing = "set the protocol of a mutex in";
        run_command(&self.commands, Command::SetMutex, &mut words, doing)
    }

    /// Where the threads of triggered tasks sleep, by task.
    pub(super) fn wakeups(&self) -> Arc<[Wakeups]> {
        Arc::clone(&self.job_barrier.wakeups)
    }

    /// An agent, which sleeps at this ring, decides about mutexes of so many tasks: the requests of their threads.
    pub(super) fn let_agent_lock(
        &self,
        tasks: usize,
        ring: EventRing,
    ) -> (Arc<MutexRequests>, Vec<Receiver>) {
        let (requests, receivers) = MutexRequests::new(tasks, ring);
        let requests = self.job_barrier.requests.get_or_init(|| Arc::new(requests));
        (Arc::clone(requests), receivers)
    }

    /// Where threads wait between jobs.
    pub(crate) fn job_barrier(&self) -> Arc<dyn JobBarrier> {
        Arc::clone(&self.job_barrier) as Arc<dyn JobBarrier>
    }

    /// Sets the share of each CPU that waiting background work gets.
    pub(crate) fn set_reserve(&mut self, reserve: Share) {
        self.loaded.set_reserve(reserve.of(Span::from_s(1)).as_ns());
    }

    /// The ring of events, for an agent's thread.
    pub(crate) fn event_ring(&self) -> Result<EventRing, LiveError> {
        let ring = self.loaded.event_ring();
        ring.map_err(LiveError::system("open the ring of reports"))
    }

    /// The next of the events since the last call, at most so many.
    pub(crate) fn take_events(&mut self, count: usize) -> Result<Vec<Event>, LiveError> {
        let bytes = self
            .loaded
            .take_events(count)
            .map_err(LiveError::system("read the trace"))?;
        let events = Event::all(&bytes).enumerate();
        Ok(events
            .inspect(|(step, _)| pause_at(*step))
            .map(|(_, event)| event)
            .collect())
    }

    /// Returns at this instant of the monotonic clock, or when a task waits for an answer.
    pub(crate) fn wait_until(&self, at_ns: u64) {
        self.loaded.wait_until(at_ns);
    }

    /// From now on [`wait_until`](Self::wait_until) also returns for the events that would wake an agent: a task
    /// leaves or overruns its budget, a CPU goes offline or comes back.
    pub(crate) fn wake_for_events(&self) -> Result<(), LiveError> {
        run_command(
            &self.commands,
            Command::SetSleeping,
            &mut [1],
            "set the wake-ups of",
        )
    }

    /// Readable when [`wait_until`](Self::wait_until) would return early.
    pub(crate) fn poll_fd(&self) -> BorrowedFd<'_> {
        self.loaded.poll_fd()
    }

    /// Number of events that found no room in the ring.
    pub(crate) fn events_lost(&self) -> u64 {
        self.loaded.events_lost()
    }

    /// How often a thread that waited for a lock lent its reservation.
    pub(crate) fn loans_made(&self) -> u64 {
        self.loaded.loans_made()
    }

    /// What is wrong with how decisions were enacted; `None` if nothing is.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        (self.loaded.assignments_neglected() > 0)
            .then_some("a CPU did not run its assignment for 100 ms although that waited")
    }

    /// Shifts so far, and what is wrong with the core (not known where decisions go on all the time) or with how it was enacted.
    pub(crate) fn state(&self) -> (u64, Option<&'static str>) {
        let core = self.loaded.snapshot();
        let fault = core.and_then(|mut core| core.fault());
        (self.loaded.shifts(), fault.or(self.fault()))
    }

    /// Why the scheduler is not loaded any more; `None` as long as it is.
    pub(crate) fn unloaded(&self) -> Option<String> {
        self.loaded
            .unloaded()
            .map(|unloaded| explained(unloaded.reason))
    }

    /// Pins the scheduler, so that it outlives this program.
    pub(crate) fn pin(&mut self, folder: &std::path::Path) -> Result<(), LiveError> {
        self.loaded.pin(folder).map_err(|what| LiveError::Machine {
            what,
            remedy: String::from(
                "name a new folder of a BPF file system, as in /sys/fs/bpf/shiftwork",
            ),
        })
    }

    /// Lets all threads that wait for jobs continue.
    pub(crate) fn open_job_barrier(&self) {
        self.job_barrier.open.set(OPEN);
        self.job_barrier.wakeups.iter().for_each(Wakeups::announce);
    }

    /// Returns all threads to the kernel's own scheduler.
    pub(crate) fn unload(&mut self) {
        self.loaded.unload();
    }
}

const CLOSED: u32 = 0;
const OPEN: u32 = 1;

/// Threads wait runnable, in a queue that no CPU takes them from before their job may run.
struct SchedExtJobBarrier {
    commands: Commands,
    holders: MutexHolders,
    /// Where an agent decides about mutexes.
    requests: OnceLock<Arc<MutexRequests>>,
    open: Word,
    /// Where the threads of triggered tasks sleep, by task.
    wakeups: Arc<[Wakeups]>,
}

impl SchedExtJobBarrier {
    /// Reports to an agent what the calling thread's job unlocks at its end; the other effects. Elsewhere all of them.
    fn end_locks<'a>(&self, task: TaskId, effects: Effects<'a>) -> Effects<'a> {
        let Some(requests) = self.requests.get() else {
            return effects;
        };
        requests.unlock(task, effects.unlocks, true);
        effects.without_unlocks()
    }

    /// Calls a command by which the calling thread's job has these effects, after the threads of the tasks that it triggers
    /// have been woken: before its release a thread that is awake waits in its queue. `None` if the job of a task that is not
    /// managed ends.
    fn call(
        &self,
        command: Command,
        (task, release): (TaskId, u64),
        effects: Effects<'_>,
    ) -> Option<Answer> {
        // Before its release a thread sleeps by a timer of its own, on its last CPU. A thread that
        // has used up its budget is throttled too; only the scheduler knows for how long.
        const SLEEPS: u64 = 1;
        let mut words = [release, halves(number(task).ok()?, SLEEPS), 0, 0, 0, 0, 0];
        let mut place = |at: usize, bits: usize, value: u64| {
            words[at * bits / 64] |= value << (at * bits % 64);
        };
        for (at, mutex) in effects.unlocks.iter().enumerate() {
            place(
                UNLOCKS_AT / 2 + at,
                16,
                MutexNumber::of(*mutex)?.get().into(),
            );
        }
        for (at, target) in effects.triggers.iter().enumerate() {
            place(TARGETS_AT / 2 + at, 16, number(target.task).ok()?);
            place(PLACES_AT + at, 8, target.place.into());
            self.wakeups[target.task.index()].announce();
        }
        let done = self.commands.call(command, &mut words).is_ok();
        done.then_some(Answer {
            sleeps: words[1] >> 32 != 0,
            is_held: words[2] & 1 != 0,
            triggers: (words[2] >> 32) as u32,
        })
    }
}

/// What a thread has to do whose job has ended.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// It has no job, and sleeps until a trigger.
    sleeps: bool,
    /// It has to give up its CPU.
    is_held: bool,
    /// How often its task was triggered so far.
    triggers: u32,
}

/// Offsets in `struct sw_job` of `bpf/shared.h`, in bytes.
const TARGETS_AT: usize = 24;
const PLACES_AT: usize = TARGETS_AT + 2 * SOURCES_MAX;

const UNLOCKS_AT: usize = PLACES_AT + SOURCES_MAX;

const _: () = assert!(UNLOCKS_AT + 2 * UNLOCKS_MAX == 56, "seven words");

/// Of `enum sw_request` of `bpf/shared.h` those after which the thread does not request the mutex again.
mod request {
    pub(super) const HOLDS: u32 = 1;
    pub(super) const SPINS: u32 = 3;
}

impl JobBarrier for SchedExtJobBarrier {
    fn first_job(&self, task: TaskId, release_ns: u64) {
        if release_ns == ON_TRIGGER_NS {
            self.wakeups[task.index()].wait_for_first();
        }
    }

    fn next_job(&self, task: TaskId, release_ns: u64, effects: Effects<'_>) {
        let wakeups = &self.wakeups[task.index()];
        // In this order: the end of the run announces itself, too.
        let before = wakeups.announced();
        if self.open.get() == OPEN {
            return;
        }
        let effects = self.end_locks(task, effects);
        let answer = self.call(Command::NextJob, (task, release_ns), effects);
        match release_ns {
            ON_TRIGGER_NS => match answer {
                // A trigger that does not release its job yet wakes it up, too: then it waits in its queue from now on.
                Some(answer) if answer.sleeps => wakeups.wait_after(answer.triggers, before),
                Some(_) => {}
                // It takes no part any more, and does a job for each trigger.
                None => wakeups.wait_for_next(before),
            },
            _ => self.open.wait_until(CLOSED, release_ns),
        }
        if answer.is_some_and(|it| it.is_held) {
            yield_now();
        }
    }

    fn last_job(&self, task: TaskId, effects: Effects<'_>) {
        let effects = self.end_locks(task, effects);
        // A task that is not admitted any more need not report that.
        let _ = self.call(Command::NextJob, (task, u64::MAX), effects);
    }

    fn affect(&self, task: TaskId, effects: Effects<'_>) {
        if let Some(requests) = self.requests.get() {
            requests.unlock(task, effects.unlocks, false);
            if !effects.triggers.is_empty() {
                self.call(Command::Affect, (task, 0), effects.without_unlocks());
            }
            requests.wait(task, || self.open.get() == OPEN);
            return;
        }
        // Also where the task is not admitted any more.
        let answer = self.call(Command::Affect, (task, 0), effects);
        if answer.is_some_and(|it| it.is_held) {
            yield_now();
        }
    }

    fn lock(&self, task: TaskId, mutex: ResourceId) {
        if let Some(requests) = self.requests.get() {
            requests.lock(task, mutex, || self.open.get() == OPEN);
            return;
        }
        let (Ok(task), Some(mutex)) = (number(task), MutexNumber::of(mutex)) else {
            return;
        };
        // A thread that waits, or is about to lose its CPU, has none until it can go on; but one that is not managed any more has.
        const TRIES: u32 = 100;
        const PAUSE_NS: u64 = 1_000_000;
        for attempt in 0_u32.. {
            if self.open.get() == OPEN {
                return;
            }
            if attempt > TRIES {
                self.open
                    .wait_until(CLOSED, monotonic_ns().saturating_add(PAUSE_NS));
            }
            let mut words = [halves(task, mutex.get().into()), 0];
            if self.commands.call(Command::Lock, &mut words).is_err() {
                return;
            }
            match words[1] as u32 {
                request::HOLDS => return,
                request::SPINS => {
                    while u64::from(self.holders.holder(mutex)) != task && self.open.get() != OPEN {
                        pause();
                    }
                    return;
                }
                _ => yield_now(),
            }
        }
    }
}

pub(super) fn run_command<const N: usize>(
    commands: &Commands,
    command: Command,
    words: &mut [u64; N],
    doing: &str,
) -> Result<(), LiveError> {
    // The text is built only on failure: an agent does this for every decision.
    let failed = |error| LiveError::system(format!("{doing} the scheduler in the kernel"))(error);
    commands.call(command, words).map_err(failed)
}

/// The core's number of a task.
pub(super) fn number(task: TaskId) -> Result<u64, LiveError> {
    if task.index() >= TASKS_MAX {
        return Err(LiveError::TaskSet(format!(
            "has more than {TASKS_MAX} tasks, which is all that the scheduler in the kernel can take"
        )));
    }
    Ok(task.index() as u64 + 1)
}

/// Two 32-bit numbers as one word of the commands' structs in `bpf/shared.h`.
pub(super) const fn halves(first: u64, second: u64) -> u64 {
    first | second << 32
}

const _: () = assert!(
    cfg!(target_endian = "little"),
    "the words of commands are assembled for little-endian machines"
);

/// The CPUs as bits. CPUs beyond 64 have been refused before.
pub(super) fn bits(cpus: &CpuSet) -> u64 {
    cpus.words()[0]
}

fn possible_cpus() -> Result<u32, LiveError> {
    let count = libbpf_rs::num_possible_cpus()
        .map_err(io::Error::other)
        .map_err(LiveError::system("count the CPUs"))?;
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The kernel's message, with an explanation where it has none.
fn explained(mut reason: String) -> String {
    // EBUSY: the kernel's own server of sched_ext was not admitted beside the threads of SCHED_DEADLINE.
    if reason.ends_with("enable() failed (-16)") {
        reason.push_str(
            " (threads of SCHED_DEADLINE have been admitted to so much of the CPUs that nothing is left for \
             the kernel's own server of sched_ext; end some, or allow all by `sysctl \
             kernel.sched_rt_runtime_us=-1`)",
        );
    }
    reason
}
