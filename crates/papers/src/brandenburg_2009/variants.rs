//! The nine implementations, as the registry of policies has them.

use shiftwork_model::{Alignment, CpuSet, Interrupts, ReadyQueue, Structure};
use shiftwork_policy::registry;

use super::CPUS;

/// Their names, in the order of the slides.
pub const NAMES: [&str; 9] = [
    "CEm", "CQm", "S-CQm", "HEm", "FEm", "CE1", "CQ1", "S-CQ1", "FE1",
];

/// When an implementation decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// Whenever something happens.
    Event,
    /// Where quanta begin: on all CPUs together, or staggered.
    Quantum {
        /// Whether they are.
        staggered: bool,
    },
}

/// An implementation of G-EDF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The name.
    pub name: &'static str,
    /// Its ready queue, and the CPUs that handle releases.
    pub structure: Structure,
    /// When it decides.
    pub invocation: Invocation,
}

impl Variant {
    /// The implementation of this name.
    ///
    /// # Errors
    /// In words, if the registry has none of this name, or it is not built as these are.
    pub fn find(name: &'static str) -> Result<Self, String> {
        let entry = registry::find(name).map_err(|error| error.to_string())?;
        let structure = entry.traits.structure;
        let structure = structure.ok_or_else(|| format!("{name} has no known structure"))?;
        let invocation = match entry.traits.preemption.alignment() {
            None => Invocation::Event,
            Some(alignment) => Invocation::Quantum {
                staggered: alignment == Alignment::Staggered,
            },
        };
        Ok(Self {
            name,
            structure,
            invocation,
        })
    }

    /// All nine.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn all() -> Result<Vec<Self>, String> {
        NAMES.into_iter().map(Self::find).collect()
    }

    /// Whether one CPU handles all releases and runs no jobs.
    pub const fn is_dedicated(&self) -> bool {
        matches!(self.structure.interrupts, Interrupts::Dedicated(_))
    }

    /// The CPUs that run jobs.
    pub fn serving(&self) -> CpuSet {
        let all = CpuSet::first(CPUS);
        match self.structure.interrupts {
            Interrupts::Dedicated(cpu) => all - CpuSet::single(cpu),
            Interrupts::Global => all,
        }
    }

    /// In a table: `coarse-grained`, `event-driven`, `global`.
    pub const fn words(&self) -> [&'static str; 3] {
        let queue = match self.structure.queue {
            ReadyQueue::Coarse => "coarse-grained",
            ReadyQueue::Hierarchical => "hierarchical",
            ReadyQueue::Fine => "fine-grained",
        };
        let scheduling = match self.invocation {
            Invocation::Event => "event-driven",
            Invocation::Quantum { staggered: false } => "quantum (aligned)",
            Invocation::Quantum { staggered: true } => "quantum (staggered)",
        };
        let interrupts = match self.is_dedicated() {
            true => "dedicated",
            false => "global",
        };
        [queue, scheduling, interrupts]
    }
}
