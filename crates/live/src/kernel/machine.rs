//! The loaded scheduler, and what it can be told.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::thread::Pid;
use shiftwork_kernel_core::{Core, TASKS_MAX};
use shiftwork_model::{CpuId, CpuSet, OnOverrun, Priority, Share, Span, TaskId};
use shiftwork_policy::registry::OrderName;

use super::event::Event;
use crate::sys::bpf::{Alarm, Command, Commands, Loaded, Settings, Unloaded};
use crate::sys::clock::pause;
use crate::sys::thread::yield_now;
use crate::sys::word::Word;
use crate::work::JobGate;
use crate::{LiveError, Options};

/// The kernel unloads a scheduler that lets somebody who is runnable wait for longer; more it does not
/// allow.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(30);

/// A job that is exactly as long as its budget also has to be switched to and to say that it is
/// finished. So much more than the cost is granted before a budget counts as used up.
const fn grace(cost: Span) -> Span {
    const LEAST: Span = Span::from_us(20);
    let hundredth = Span::from_ns(cost.as_ns() / 100);
    if hundredth.as_ns() > LEAST.as_ns() {
        hundredth
    } else {
        LEAST
    }
}

/// What the core is told of a task.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    pub(crate) thread: Pid,
    /// In the machine's numbers.
    pub(crate) cpus: CpuSet,
    pub(crate) cost: Span,
    pub(crate) period: Span,
    pub(crate) deadline: Span,
    pub(crate) on_overrun: OnOverrun,
    pub(crate) priority: Priority,
    /// Whether its releases are told; otherwise its jobs end where it blocks or yields.
    pub(crate) follows: bool,
    /// Where it is.
    pub(crate) start: Option<CpuId>,
}

impl Parameters {
    /// What may be used in each period: 0 where nothing is enforced.
    fn budget(&self) -> Span {
        let granted = self.cost + grace(self.cost);
        match self.on_overrun {
            OnOverrun::Continue => Span::ZERO,
            OnOverrun::Throttle => granted.min(self.deadline),
            OnOverrun::Signal => granted,
        }
    }

    /// `struct sw_admit` of `bpf/shared.h`.
    fn words(&self, task: TaskId) -> Result<[u64; 6], LiveError> {
        let warned = u64::from(self.on_overrun == OnOverrun::Signal);
        let start = self.start.map_or(0, |cpu| cpu.index() as u64 + 1);
        let thread = self.thread.as_raw_nonzero().get() as u64;
        let bytes = u64::from(self.follows) | warned << 8 | start << 16;
        Ok([
            bits(&self.cpus),
            self.budget().as_ns(),
            self.period.as_ns(),
            self.deadline.as_ns(),
            halves(thread, number(task)?),
            halves(u64::from(self.priority.number()), bytes),
        ])
    }
}

/// The scheduler in the kernel, loaded while this exists.
pub(crate) struct Machine {
    loaded: Loaded,
    commands: Commands,
    gate: Arc<Gate>,
}

impl Machine {
    /// Loads the scheduler, for these CPUs of the machine.
    pub(crate) fn load(
        order: OrderName,
        cpus: &CpuSet,
        has_timers: bool,
        options: &Options,
    ) -> Result<Self, LiveError> {
        let refused = |what: String| LiveError::Machine {
            what,
            remedy: String::from(
                "boot another build of the kernel, unless `shiftwork doctor` says what this machine lacks",
            ),
        };
        let settings = Settings {
            cpu_count: possible_cpus()?,
            has_timers,
            timeout: WATCHDOG,
            trace_bytes: options.trace_bytes,
        };
        let mut loaded = Loaded::load(settings).map_err(refused)?;
        let commands = loaded
            .commands()
            .map_err(LiveError::system("hold on to the programs in the kernel"))?;
        loaded.set_reserve(options.reserve.of(Span::from_s(1)).as_ns());
        let order = match order {
            OrderName::Edf => 0,
            OrderName::FixedPriority => 1,
        };
        tell(&commands.configure, &mut [bits(cpus), order], "configure")?;
        let gate = Gate {
            next_job: commands.next_job.clone(),
            open: Word::new(CLOSED),
        };
        Ok(Self {
            loaded,
            commands,
            gate: Arc::new(gate),
        })
    }

    /// These CPUs share a cache with `cpu`.
    pub(crate) fn set_cache_mates(&self, cpu: CpuId, mates: &CpuSet) -> Result<(), LiveError> {
        let mut words = [bits(mates), cpu.index() as u64];
        tell(&self.commands.set_cache, &mut words, "name caches to")
    }

    /// Where threads wait between jobs.
    pub(crate) fn gate(&self) -> Arc<dyn JobGate> {
        Arc::clone(&self.gate) as Arc<dyn JobGate>
    }

    /// The task takes part from now on. `false` if its thread is not there any more.
    pub(crate) fn admit(&self, task: TaskId, of: &Parameters) -> Result<bool, LiveError> {
        let mut words = of.words(task)?;
        match self.commands.admit.call(&mut words) {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
            Err(error) => Err(LiveError::system("admit a task")(error)),
        }
    }

    /// The task's first job is released then, on the monotonic clock.
    pub(crate) fn first_job(&self, task: TaskId, release_ns: u64) -> Result<(), LiveError> {
        let mut words = [release_ns, number(task)?, 0];
        tell(&self.commands.first_job, &mut words, "release a job to")
    }

    /// The task goes on in the background.
    pub(crate) fn dismiss(&self, task: TaskId) -> Result<(), LiveError> {
        let mut words = [0, number(task)?];
        tell(&self.commands.dismiss, &mut words, "dismiss a task from")
    }

    /// The task may ask for these CPUs of the machine.
    pub(crate) fn approve(&self, task: TaskId, cpus: &CpuSet) -> Result<(), LiveError> {
        let mut words = [bits(cpus), number(task)?];
        tell(&self.commands.approve, &mut words, "approve an affinity to")
    }

    /// The task has another fixed priority.
    pub(crate) fn set_priority(&self, task: TaskId, priority: Priority) -> Result<(), LiveError> {
        let mut words = [u64::from(priority.number()), number(task)?];
        tell(&self.commands.set_priority, &mut words, "set a priority in")
    }

    /// The jobs to come have other parameters.
    pub(crate) fn set_server(&self, task: TaskId, of: &Parameters) -> Result<(), LiveError> {
        let mut words = of.words(task)?;
        tell(&self.commands.set_server, &mut words, "set a budget in")
    }

    /// What waiting background work gets of each CPU.
    pub(crate) fn set_reserve(&mut self, reserve: Share) {
        self.loaded.set_reserve(reserve.of(Span::from_s(1)).as_ns());
    }

    /// For the thread that calls [`tick`](Self::tick): what wakes it.
    pub(crate) fn alarm(&self) -> io::Result<Alarm> {
        self.loaded.alarm()
    }

    /// For the same thread: the command.
    pub(crate) fn tick_command(&self) -> Command {
        self.commands.tick.clone()
    }

    /// Does all that is due, on kernels where BPF has no timers; the monotonic instant at which to
    /// call again.
    pub(crate) fn tick(commands: &Command) -> io::Result<u64> {
        let mut words = [0];
        commands.call(&mut words)?;
        Ok(words[0])
    }

    /// The events since the last call.
    pub(crate) fn take_events(&mut self) -> Result<Vec<Event>, LiveError> {
        let bytes = self
            .loaded
            .take_events()
            .map_err(LiveError::system("read the trace"))?;
        Ok(Event::all(&bytes).inspect(|_| pause()).collect())
    }

    /// Returns at this instant of the monotonic clock, or when a task waits for an answer.
    pub(crate) fn wait_until(&self, at_ns: u64) {
        self.loaded.wait_until(at_ns);
    }

    /// How many events found no room in the ring.
    pub(crate) fn events_lost(&self) -> u64 {
        self.loaded.events_lost()
    }

    /// Why the scheduler is not the machine's any more; `None` as long as it is.
    pub(crate) fn unloaded(&self) -> Option<Unloaded> {
        self.loaded.unloaded()
    }

    /// The core as it is; `None` if it would not hold still.
    pub(crate) fn snapshot(&self) -> Option<Core> {
        self.loaded.snapshot()
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

    /// Nobody waits for jobs any more: threads that do go on at once.
    pub(crate) fn open_gate(&self) {
        self.gate.open.set(OPEN);
    }

    /// Makes everybody the kernel's own again.
    pub(crate) fn unload(&mut self) {
        self.loaded.unload();
    }
}

const CLOSED: u32 = 0;
const OPEN: u32 = 1;

/// Where threads wait: runnable, in a queue that nobody takes them from before their job may run.
struct Gate {
    next_job: Command,
    open: Word,
}

impl JobGate for Gate {
    fn next_job(&self, task: TaskId, release_ns: u64) {
        if self.open.get() == OPEN {
            return;
        }
        let Ok(number) = number(task) else { return };
        // Before its release a thread sleeps by a timer of its own, on the CPU where it was. It is also
        // held back while its budget is used up: then nobody but the scheduler knows for how long.
        const SLEEPS: u64 = 1;
        let mut words = [release_ns, halves(number, SLEEPS), 0];
        let told = self.next_job.call(&mut words).is_ok();
        self.open.wait_until(CLOSED, release_ns);
        if told && words[2] != 0 {
            yield_now();
        }
    }

    fn last_job(&self, task: TaskId) {
        let Ok(number) = number(task) else { return };
        // A task that takes no part any more need not say so.
        let _ = self.next_job.call(&mut [u64::MAX, number, 0]);
    }
}

fn tell<const N: usize>(
    command: &Command,
    words: &mut [u64; N],
    doing: &str,
) -> Result<(), LiveError> {
    command.call(words).map_err(LiveError::system(format!(
        "{doing} the scheduler in the kernel"
    )))
}

/// The core's number of a task.
fn number(task: TaskId) -> Result<u64, LiveError> {
    if task.index() >= TASKS_MAX {
        return Err(LiveError::TaskSet(format!(
            "has more than {TASKS_MAX} tasks, which is all that the scheduler in the kernel can take"
        )));
    }
    Ok(task.index() as u64 + 1)
}

/// Two 32-bit numbers as one word of the commands' structs in `bpf/shared.h`.
const fn halves(first: u64, second: u64) -> u64 {
    first | second << 32
}

const _: () = assert!(
    cfg!(target_endian = "little"),
    "the words of commands are put together for little-endian machines"
);

/// The CPUs as the core knows them. Those beyond 64 have been refused before.
fn bits(cpus: &CpuSet) -> u64 {
    cpus.words()[0]
}

fn possible_cpus() -> Result<u32, LiveError> {
    let count = libbpf_rs::num_possible_cpus()
        .map_err(io::Error::other)
        .map_err(LiveError::system("count the CPUs"))?;
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}
