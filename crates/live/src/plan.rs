//! What to run, and how.

use std::path::PathBuf;

use shiftwork_model::{Affinity, CpuId, CpuSet, PolicyTraits, Share, Span, TaskId, TaskSet};
use shiftwork_policy::Policy;

/// What to run: the tasks, and what the core has to know of them.
///
/// Partitioned, clustered, global and laminar scheduling are strong scheduling with special
/// affinities, so a policy amounts to an order and the CPUs that it binds each task to.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The tasks, the platform and the timed changes.
    pub set: &'a TaskSet,
    /// The properties of the policy.
    pub traits: PolicyTraits,
    /// For each task the CPUs of the file that the policy binds it to: its affinity, or those of its packing.
    pub bound: Vec<Affinity>,
    /// The machine's CPU for each CPU of the file; as many as the platform has, all different.
    pub cpus: Vec<CpuId>,
}

impl Plan<'_> {
    /// The machine's CPUs for these CPUs of the file.
    pub(crate) fn on_machine(&self, cpus: &CpuSet) -> CpuSet {
        cpus.iter()
            .filter_map(|cpu| self.cpus.get(cpu.index()).copied())
            .collect()
    }

    /// The machine's CPUs to which the policy binds the task.
    pub(crate) fn cpus_of(&self, task: TaskId) -> CpuSet {
        self.on_machine(self.bound[task.index()].cpus())
    }
}

/// How to run it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Length of the run, from the first release.
    pub horizon: Span,
    /// Seed of all random numbers: sporadic gaps and random execution times.
    pub seed: u64,
    /// The share of each CPU that pinned background work gets after it has waited for a second.
    pub reserve: Share,
    /// Size of the trace buffer in bytes; rounded up to a power of two of pages. Events that find no room are
    /// lost, and counted.
    pub trace_bytes: u32,
    /// A folder of a BPF file system in which the scheduler is pinned, so that it outlives this
    /// program; `None`: it ends with this program.
    pub pin: Option<PathBuf>,
}

impl Options {
    /// Room for about a hundred thousand jobs between two reads of the trace.
    pub const TRACE_BYTES: u32 = 16 << 20;
}

/// Where decisions are made, and what enacts them.
pub enum Backend {
    /// The core decides, inside the kernel.
    Kernel,
    /// An agent decides by this policy; sched_ext enacts.
    Agent(Box<dyn Policy>, Attention),
    /// An agent decides by this policy; `SCHED_FIFO` priorities enact, on any kernel.
    Fifo(Box<dyn Policy>, Attention),
}

impl Backend {
    /// Length of the policy's quanta; `None` if it is event-driven.
    pub(crate) fn quantum(&self) -> Option<Span> {
        match self {
            Self::Kernel => None,
            Self::Agent(policy, _) | Self::Fifo(policy, _) => {
                policy.quanta().map(|quanta| quanta.length)
            }
        }
    }
}

/// How an agent waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attention {
    /// It polls: it has a CPU for itself, as published.
    #[default]
    Dedicated,
    /// It sleeps until there is something to do, and leaves its CPU to other threads meanwhile.
    Shared,
}
