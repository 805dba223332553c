//! What one run of the soak does: a function of its seed alone, see [`draw`](super::draw).
//!
//! A plan is a list of parts, each with a name that stays the same when others are left out: so a failure is made smaller.

use std::fmt;
use std::str::FromStr;

use shiftwork_model::{OnOverrun, Order};

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub seed: u64,
    pub machine: Machine,
    pub order: Order,
    /// Bytes for events that wait to be taken.
    pub trace_bytes: u32,
    /// Whether the thread that executes the plan keeps off the CPUs of the tasks.
    pub is_bound: bool,
    pub episodes: Vec<Episode>,
}

/// The guest. All CPUs but the first are the platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    pub cpus: u16,
    /// See `Boot::turn` and `Boot::second_turn` of the emulator.
    pub turn_us: u64,
    pub second_turn_us: Option<u64>,
    pub random_seed: u32,
}

/// A set of tasks, released together a few times, and what happens to it meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Episode {
    pub number: usize,
    /// Time between the releases of [`Work::Jobs`].
    pub period_us: u64,
    pub rounds: u64,
    pub tasks: Vec<Task>,
    pub ordinary: Vec<Ordinary>,
    pub steps: Vec<Step>,
}

/// A thread with a reservation. `cpus` are bits, in the machine's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub number: usize,
    pub reserved: Reserved,
    pub work: Work,
}

/// The parameters of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserved {
    pub cpus: u64,
    pub cost_us: u64,
    pub period_us: u64,
    pub deadline_us: u64,
    pub on_overrun: OnOverrun,
    pub priority: u32,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Jobs that are released by the clock, the first so long after the episode begins; `locked_us` of it with a mutex of the kernel.
    Jobs {
        first_ns: u64,
        run_us: u64,
        locked_us: u64,
    },
    Naps,
    Hogs,
    Yields,
    /// Those of a process of its own, which can be stopped and killed.
    Program {
        run_us: u64,
        sleep_us: u64,
    },
}

/// Ordinary work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ordinary {
    pub number: usize,
    /// 0: any.
    pub cpus: u64,
    pub sleeps: bool,
}

/// Something that happens at an instant of the episode, and that may be undone `for_us` later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub number: usize,
    pub at_us: u64,
    pub for_us: u64,
    pub action: Action,
}

/// Tasks are named by their number. An action that is not possible at that moment does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Other parameters, the same CPUs.
    Change(usize, Reserved),
    /// These CPUs from outside; whether the scheduler approved them before.
    Bind(usize, u64, bool),
    /// The thread asks for these CPUs by itself.
    BindsItself(usize, u64),
    Dismiss(usize),
    /// With what it had at first.
    Admit(usize),
    /// A thread ends, a process is killed.
    End(usize),
    /// SIGSTOP, then SIGCONT.
    Stop(usize),
    /// The thread is a SCHED_FIFO one for a while.
    Fifo(usize),
    /// A SCHED_FIFO thread waits for the mutex of the task.
    Boost(usize),
    Offline(u64),
    /// A SCHED_FIFO thread computes on the CPU.
    Hog(u64),
    /// An ordinary thread computes on one of these CPUs.
    Burst(u64),
}

/// A part of a plan that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Episode(usize),
    Step(usize, usize),
    Ordinary(usize, usize),
    Task(usize, usize),
}

impl Plan {
    /// All parts, the large ones first.
    pub fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        for episode in &self.episodes {
            let number = episode.number;
            parts.push(Part::Episode(number));
            let steps = episode.steps.iter().map(|it| Part::Step(number, it.number));
            parts.extend(steps);
            let ordinary = episode.ordinary.iter();
            parts.extend(ordinary.map(|it| Part::Ordinary(number, it.number)));
            let tasks = episode.tasks.iter().map(|it| Part::Task(number, it.number));
            parts.extend(tasks);
        }
        parts.sort_unstable();
        parts
    }

    /// The same without these parts.
    #[must_use]
    pub fn without(mut self, parts: &[Part]) -> Self {
        let kept = |part: Part| !parts.contains(&part);
        self.episodes.retain(|it| kept(Part::Episode(it.number)));
        for episode in &mut self.episodes {
            let number = episode.number;
            episode
                .steps
                .retain(|it| kept(Part::Step(number, it.number)));
            let is_kept = |it: &Ordinary| kept(Part::Ordinary(number, it.number));
            episode.ordinary.retain(is_kept);
            episode
                .tasks
                .retain(|it| kept(Part::Task(number, it.number)));
        }
        self
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Episode(episode) => write!(f, "e{episode}"),
            Self::Step(episode, step) => write!(f, "e{episode}.s{step}"),
            Self::Ordinary(episode, ordinary) => write!(f, "e{episode}.o{ordinary}"),
            Self::Task(episode, task) => write!(f, "e{episode}.t{task}"),
        }
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is no part of a plan; accepted are e1, e1.s2, e1.o3, e1.t4");
        let number = |digits: &str| digits.parse().map_err(|_| wrong());
        let (episode, rest) = match text.split_once('.') {
            Some((episode, rest)) => (episode, Some(rest)),
            None => (text, None),
        };
        let episode = number(episode.strip_prefix('e').ok_or_else(wrong)?)?;
        let Some(rest) = rest else {
            return Ok(Self::Episode(episode));
        };
        match rest.split_at_checked(1) {
            Some(("s", step)) => Ok(Self::Step(episode, number(step)?)),
            Some(("o", ordinary)) => Ok(Self::Ordinary(episode, number(ordinary)?)),
            Some(("t", task)) => Ok(Self::Task(episode, number(task)?)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = &self.machine;
        write!(
            f,
            "{:?}, {} CPUs, turns of {}",
            self.order, machine.cpus, machine.turn_us
        )?;
        if let Some(second) = machine.second_turn_us {
            write!(f, " and {second}")?;
        }
        write!(f, " us, {} bytes for events", self.trace_bytes)
    }
}

impl fmt::Display for Episode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (period, rounds) = (self.period_us, self.rounds);
        writeln!(f, "e{}: {rounds} rounds of {period} us", self.number)?;
        for task in &self.tasks {
            let Reserved {
                cpus,
                cost_us,
                period_us,
                deadline_us,
                on_overrun,
                priority,
            } = task.reserved;
            writeln!(
                f,
                "  t{}: CPUs {cpus:#b}, {cost_us} us in {period_us}, deadline {deadline_us}, {on_overrun:?}, priority {priority}: {:?}",
                task.number, task.work
            )?;
        }
        for Ordinary {
            number,
            cpus,
            sleeps,
        } in &self.ordinary
        {
            writeln!(f, "  o{number}: CPUs {cpus:#b}, sleeps: {sleeps}")?;
        }
        for step in &self.steps {
            let Step {
                number,
                at_us,
                for_us,
                action,
            } = step;
            writeln!(f, "  s{number}: at {at_us} us for {for_us}: {action:?}")?;
        }
        Ok(())
    }
}
