//! What is to be run, and how.

use std::path::PathBuf;

use shiftwork_model::{Affinity, CpuId, Share, Span, TaskSet};
use shiftwork_policy::Policy;
use shiftwork_policy::registry::OrderName;

/// What is to be run: who takes part, and what the core is told about them.
///
/// Partitioned, clustered, global and laminar scheduling are strong scheduling with special
/// affinities, so a policy amounts to an order and the CPUs that it binds each task to.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The tasks, the platform and the timed changes.
    pub set: &'a TaskSet,
    /// By what jobs are ranked.
    pub order: OrderName,
    /// For each task the CPUs of the file that the policy binds it to: its affinity, or where it was
    /// packed.
    pub bound: Vec<Affinity>,
    /// The machine's CPU for each CPU of the file; as many as the platform has, each once.
    pub cpus: Vec<CpuId>,
}

/// How to run it.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long, from the first release.
    pub horizon: Span,
    /// Of all random numbers: sporadic gaps and random execution times.
    pub seed: u64,
    /// The share of each CPU that pinned background work gets after it has waited for a second.
    pub reserve: Share,
    /// How much of the trace may wait to be read, in bytes; rounded up to a power of two of pages. What
    /// finds no room is lost, and counted.
    pub trace_bytes: u32,
    /// A folder of a BPF file system in which the scheduler is pinned, so that it outlives this
    /// program; `None`: it ends with it.
    pub pin: Option<PathBuf>,
}

impl Options {
    /// Room for about a hundred thousand jobs between two looks at the trace.
    pub const TRACE_BYTES: u32 = 16 << 20;
}

/// Who decides who runs, and what carries it out.
pub enum Backend {
    /// The core, inside the kernel.
    Kernel,
    /// This policy, in an agent; the kernel carries out.
    Agent(Box<dyn Policy>, Attention),
    /// This policy, in an agent; fixed priorities carry out, on any kernel.
    Fifo(Box<dyn Policy>, Attention),
}

impl Backend {
    /// How long the quanta are in which the policy decides, if it does.
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
    /// It looks all the time: a CPU for itself, as published.
    #[default]
    Dedicated,
    /// It sleeps until there is something to do, and leaves its CPU to others meanwhile.
    Shared,
}
