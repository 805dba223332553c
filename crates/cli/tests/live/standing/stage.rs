//! The machine, held by this process, and what it tells.

use rustix::process::Pid;
use shiftwork_live::standing::{Fact, FactKind, Reservation, Settings, Standing};
use shiftwork_model::{CpuId, CpuSet, OnOverrun, Priority, Share, Span, TaskId};
use shiftwork_policy::registry::OrderName;

use super::worker::Worker;
use crate::faults::{all_is_well, wait_for};

/// The CPUs of tasks, as bits: 1, 2 and 3.
pub const ALL: u64 = 0b1110;

/// What the worker is to have of these CPUs: 2 ms in each 20.
pub fn wish(worker: &Worker, cpus: u64) -> Reservation {
    wish_of(worker.id, cpus)
}

pub fn wish_of(thread: Pid, cpus: u64) -> Reservation {
    Reservation {
        thread,
        cpus: CpuSet::from_bits(cpus),
        cost: Span::from_ms(2),
        period: Span::from_ms(20),
        deadline: Span::from_ms(20),
        on_overrun: OnOverrun::Throttle,
        priority: Priority::MOST_URGENT,
    }
}

pub const fn task(index: usize) -> TaskId {
    TaskId::from_index(index)
}

/// The machine, and all that it told.
pub struct Stage {
    pub standing: Standing,
    pub facts: Vec<Fact>,
}

impl Stage {
    pub fn load() -> Result<Self, String> {
        Self::load_ordered(OrderName::Edf)
    }

    pub fn load_ordered(order: OrderName) -> Result<Self, String> {
        let settings = Settings {
            cpus: CpuSet::from_bits(ALL),
            order,
            reserve: Share::from_billionths(50_000_000).unwrap(),
            trace_bytes: 4 << 20,
        };
        let standing = Standing::load(&settings).map_err(|error| error.to_string())?;
        Ok(Self {
            standing,
            facts: Vec::new(),
        })
    }

    /// Binds the worker and admits it.
    pub fn admit(&mut self, index: usize, of: &Reservation) -> Result<bool, String> {
        let bound = self.standing.bind(of.thread, &of.cpus);
        let admitted = bound.and_then(|()| self.standing.admit(task(index), of));
        admitted.map_err(|error| error.to_string())
    }

    pub fn must_admit(&mut self, index: usize, of: &Reservation) -> Result<(), String> {
        match self.admit(index, of)? {
            true => Ok(()),
            false => Err(format!("{of:?} is not admitted")),
        }
    }

    pub fn dismiss(&mut self, index: usize) -> Result<(), String> {
        let dismissed = self.standing.dismiss(task(index));
        dismissed.map_err(|error| error.to_string())
    }

    pub fn take(&mut self) -> Result<&[Fact], String> {
        let begin = self.facts.len();
        let more = self.standing.take_facts();
        self.facts.extend(more.map_err(|error| error.to_string())?);
        match self.standing.unloaded() {
            None => Ok(&self.facts[begin..]),
            Some(reason) => {
                let last = self.facts.len().saturating_sub(40);
                let told = &self.facts[last..];
                Err(format!(
                    "the scheduler was unloaded: {reason}; told were {told:#?}"
                ))
            }
        }
    }

    /// How many facts are told so far.
    pub fn mark(&mut self) -> Result<usize, String> {
        self.take()?;
        Ok(self.facts.len())
    }

    /// All facts after so many.
    pub fn facts_since(&mut self, mark: usize) -> Result<&[Fact], String> {
        self.take()?;
        Ok(&self.facts[mark..])
    }

    /// Waits until such a fact is told from now on.
    pub fn wait_for(&mut self, what: &str, is: impl Fn(&Fact) -> bool) -> Result<(), String> {
        wait_for(what, || match self.take() {
            Ok(facts) => facts.iter().any(&is).then_some(Ok(())),
            Err(why) => Some(Err(why)),
        })?
    }

    /// Waits until such a fact is told of the task, after so many of all.
    pub fn hear(
        &mut self,
        after: usize,
        index: usize,
        is: impl Fn(&FactKind) -> bool,
    ) -> Result<Fact, String> {
        let asked = std::any::type_name_of_val(&is);
        let heard = wait_for(asked, || {
            if let Err(why) = self.take() {
                return Some(Err(why));
            }
            let mut facts = self.facts.iter().skip(after);
            let found = facts.find(|fact| fact.task == Some(task(index)) && is(&fact.what));
            found.copied().map(Ok)
        });
        let last = self.facts.len().saturating_sub(20).max(after);
        heard.map_err(|why| format!("{why}; told were {:#?}", &self.facts[last..]))?
    }

    /// How many such facts were told of the task after so many of all.
    pub fn count(&self, after: usize, index: usize, is: impl Fn(&FactKind) -> bool) -> usize {
        let facts = self.facts.iter().skip(after);
        facts
            .filter(|fact| fact.task == Some(task(index)) && is(&fact.what))
            .count()
    }

    /// That nothing is wrong, and that nothing was lost.
    pub fn is_sound(&mut self) -> Result<(), String> {
        self.take()?;
        let ordered = self.facts.is_sorted_by_key(|fact| fact.at_ns);
        match (self.standing.state().1, self.standing.facts_lost(), ordered) {
            (None, 0, true) => Ok(()),
            found => Err(format!("fault, lost facts, in order: {found:?}")),
        }
    }

    /// The scheduler goes, and all is as before.
    pub fn end(mut self) -> Result<(), String> {
        self.is_sound()?;
        stretches_are_whole(&self.facts)?;
        drop(self.standing);
        all_is_well()
    }
}

/// Whoever runs stops where it ran, for as long as it is told.
fn stretches_are_whole(facts: &[Fact]) -> Result<(), String> {
    let mut runs: [Option<(Option<TaskId>, u64)>; 4] = [None; 4];
    for fact in facts {
        let Some(cpu) = fact.cpu.map(CpuId::index) else {
            continue;
        };
        match fact.what {
            FactKind::Running => runs[cpu] = Some((fact.task, fact.at_ns)),
            FactKind::Stopped { ran } => {
                let Some((task, since)) = runs[cpu].take() else {
                    return Err(format!("nobody ran before {fact:?}"));
                };
                // A stretch whose beginning is told late seems shorter than it is.
                if task != fact.task || ran.as_ns() < fact.at_ns - since {
                    return Err(format!("{task:?} ran since {since}, and then {fact:?}"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
