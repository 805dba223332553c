//! What was remembered at some instant, by itself: nothing else is needed to explain it.

use std::collections::BTreeMap;

use shiftwork_live::standing::Fact;
use shiftwork_model::{CpuId, CpuSet};

use super::Life;

/// A fact, and which life it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// What happened.
    pub fact: Fact,
    /// To whom; `None` where it is about a CPU, or about somebody without a reservation.
    pub life: Option<u32>,
}

/// A job that was late when it was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missed {
    /// Whose.
    pub life: u32,
    /// When it began, of the monotonic clock in ns.
    pub began_ns: u64,
    /// When it was due.
    pub due_ns: u64,
}

/// Something that the agent tells of itself, with instants of the monotonic clock in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// It did not look after anything in between: it was stopped, or others had its CPU.
    Away {
        /// Since when.
        since_ns: u64,
        /// Until when.
        until_ns: u64,
    },
    /// So many facts found no room, and are not in the record.
    Lost {
        /// When that was found out.
        at_ns: u64,
        /// How many.
        facts: u64,
    },
}

impl Own {
    /// When it was over.
    pub const fn at_ns(&self) -> u64 {
        match *self {
            Self::Away { until_ns, .. } => until_ns,
            Self::Lost { at_ns, .. } => at_ns,
        }
    }
}

/// Facts of some seconds, and all that is needed to understand them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The agent's version.
    pub agent: String,
    /// Its policy.
    pub policy: String,
    /// Its CPUs, online or not.
    pub cpus: CpuSet,
    /// From when on all facts are here, of the monotonic clock in ns. Older ones are here as far as they were still so then.
    pub since_ns: u64,
    /// Until when.
    pub until_ns: u64,
    /// The same instant of the world's clock: ns since 1970.
    pub unix_ns: u64,
    /// The miss that it was kept for; `None`: it was asked for.
    pub missed: Option<Missed>,
    /// Who there is, and was.
    pub lives: BTreeMap<u32, Life>,
    /// The facts, by their instants.
    pub facts: Vec<Noted>,
    /// All jobs that were found to be late meanwhile, the one that it was kept for among them.
    pub misses: Vec<Missed>,
    /// What the agent tells of itself.
    pub own: Vec<Own>,
}

impl Recording {
    /// What this life is called; one that shares its name with others here has its number behind it.
    pub fn name(&self, life: u32) -> String {
        let Some(it) = self.lives.get(&life) else {
            return format!("?#{life}");
        };
        let mut alike = self.lives.values().filter(|other| other.name == it.name);
        match alike.nth(1) {
            Some(_) => format!("{}#{life}", it.name),
            None => it.name.clone(),
        }
    }

    /// As many CPUs as their numbers need.
    pub(super) fn cpu_count(&self) -> usize {
        let told = self.facts.iter().filter_map(|noted| noted.fact.cpu);
        let last = self.cpus.iter().chain(told).max();
        last.map_or(1, |cpu: CpuId| cpu.index() + 1)
    }
}
