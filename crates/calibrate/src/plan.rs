//! What to measure, where, and for how long.

use shiftwork_live::Attention;
use shiftwork_model::{CpuSet, Span};
use shiftwork_policy::registry::Entry;

/// Which machine the overheads are to describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// A scheduler inside the kernel that decides on the CPU that switches: put together from what the
    /// kernel's interrupts and switches take here, and from what policies take to decide.
    InKernel,
    /// Live runs where an agent decides and SCHED_FIFO carries out.
    Fifo(Attention),
    /// Live runs where an agent decides and sched_ext carries out.
    Agent(Attention),
}

/// What can be measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What running jobs lose to the timer of a release.
    Release,
    /// What they lose to ticks.
    Tick,
    /// Switches between threads and between processes.
    Switch,
    /// Waking a thread on another CPU.
    Ipi,
    /// What policies take to decide.
    Decide,
    /// Ready queues.
    Queues,
    /// Preemption and migration delays.
    Caches,
    /// Live runs.
    Live,
}

impl Part {
    /// All parts with their names.
    pub const ALL: [(Self, &str); 8] = [
        (Self::Release, "release"),
        (Self::Tick, "tick"),
        (Self::Switch, "switch"),
        (Self::Ipi, "ipi"),
        (Self::Decide, "decide"),
        (Self::Queues, "queues"),
        (Self::Caches, "caches"),
        (Self::Live, "live"),
    ];
}

/// What to measure.
#[derive(Clone)]
pub struct Plan {
    /// On which CPUs; at least one, all online.
    pub cpus: CpuSet,
    /// Which machine the overheads are to describe.
    pub aim: Aim,
    /// What is measured; there are overheads only of policies that have their decisions measured.
    pub parts: Vec<Part>,
    /// The policies that have their decisions measured; live runs are made under the first.
    pub policies: Vec<&'static Entry>,
    /// In so many rounds.
    pub rounds: usize,
    /// For about so long in all.
    pub budget: Span,
    /// The largest working set, in bytes; `None`: twice the last-level cache.
    pub largest_set: Option<u64>,
}

impl Plan {
    /// The largest working set that is ever measured: it has to find room in memory a few times.
    pub const SET_MAX: u64 = 64 << 20;

    /// The rounds and the time of a calibration, or of a quick one. Rounds are what intervals are made of, so
    /// few of them make the intervals wide.
    pub const fn size(is_quick: bool) -> (usize, Span) {
        match is_quick {
            true => (6, Span::from_s(15)),
            false => (12, Span::from_s(100)),
        }
    }
}
