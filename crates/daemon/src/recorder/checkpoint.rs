//! What is still so of what is too old to be kept: without it, a record would begin with nobody awake and every CPU
//! there.

use std::collections::BTreeMap;

use shiftwork_live::standing::{Absence, FactKind};
use shiftwork_model::CpuId;

use super::Noted;

/// Of what there is one truth at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Matter {
    /// Of a CPU: whether it is away, for this reason.
    Away(CpuId, Absence),
    /// Of a life: whether it takes part, and its CPUs then.
    Part(u32),
    Affinity(u32),
    Narrowed(u32),
    Priority(u32),
    /// When its job began.
    Job(u32),
    /// That its job may run, or that its budget is spent.
    Ready(u32),
    /// Where it runs.
    Running(u32),
}

/// The facts that are still so.
#[derive(Clone, Debug, Default)]
pub(super) struct Remains(BTreeMap<Matter, Noted>);

impl Remains {
    /// Forgets this fact, but for what is so by it.
    pub fn take(&mut self, noted: &Noted) {
        match (noted.life, noted.fact.cpu) {
            (Some(life), _) => self.take_of(life, noted),
            (None, Some(cpu)) => match noted.fact.what {
                FactKind::CpuLost { why } => self.set(Matter::Away(cpu, why), noted),
                FactKind::CpuBack { why } => self.end(&[Matter::Away(cpu, why)]),
                _ => {}
            },
            (None, None) => {}
        }
    }

    fn take_of(&mut self, life: u32, noted: &Noted) {
        let job = [Matter::Job(life), Matter::Ready(life)];
        match noted.fact.what {
            FactKind::Entered { .. } => {
                self.end(&job);
                self.end(&[Matter::Affinity(life), Matter::Narrowed(life)]);
                self.set(Matter::Part(life), noted);
            }
            FactKind::Left | FactKind::Demoted { .. } => {
                self.end(&job);
                self.end(&[Matter::Affinity(life), Matter::Narrowed(life)]);
                self.end(&[Matter::Part(life), Matter::Running(life)]);
            }
            FactKind::Affinity { .. } => self.set(Matter::Affinity(life), noted),
            FactKind::Narrowed { cpus: Some(_) } => self.set(Matter::Narrowed(life), noted),
            FactKind::Narrowed { cpus: None } => self.end(&[Matter::Narrowed(life)]),
            FactKind::Prioritized { .. } => self.set(Matter::Priority(life), noted),
            FactKind::Woken => {
                self.0.entry(Matter::Job(life)).or_insert(*noted);
            }
            // A job may begin with its period instead of a wake-up.
            FactKind::Ready { .. } => {
                self.0.entry(Matter::Job(life)).or_insert(*noted);
                self.set(Matter::Ready(life), noted);
            }
            FactKind::Spent => self.set(Matter::Ready(life), noted),
            FactKind::Blocked | FactKind::Yielded => self.end(&job),
            FactKind::Running => {
                // Whoever had taken the CPU has let go; that is told after the next switch.
                if let Some(cpu) = noted.fact.cpu {
                    self.end(&[Matter::Away(cpu, Absence::Taken)]);
                }
                self.set(Matter::Running(life), noted);
            }
            FactKind::Stopped { .. } => self.end(&[Matter::Running(life)]),
            _ => {}
        }
    }

    fn set(&mut self, matter: Matter, noted: &Noted) {
        self.0.insert(matter, *noted);
    }

    fn end(&mut self, matters: &[Matter]) {
        for matter in matters {
            self.0.remove(matter);
        }
    }

    /// The facts, by their instants; of one instant in an order in which they may have been told.
    pub fn facts(&self) -> Vec<Noted> {
        let mut facts: Vec<Noted> = self.0.values().copied().collect();
        facts.sort_by_key(|noted| noted.fact.at_ns);
        // A job that begins by being ready is told once.
        facts.dedup();
        facts
    }
}
