//! Who is meant by a number: numbers are used again, and reservations change.

use std::collections::BTreeMap;

use shiftwork_live::standing::{Fact, FactKind};
use shiftwork_model::{CpuSet, Priority, Span, TaskId};

use crate::reservation::Reservation;

/// One task from its admission on until it is gone. No other has its number among lives, ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// The number of the task, as its owner knows it; somebody else's, once this one is gone.
    pub task: TaskId,
    /// What it is called.
    pub name: String,
    /// What it reserved, and since when; never empty, the oldest first.
    pub terms: Vec<Terms>,
    /// Since when it is gone, of the monotonic clock in ns; `None`: it is there.
    pub gone_ns: Option<u64>,
}

/// What a task reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Since when, of the monotonic clock in ns.
    pub since_ns: u64,
    /// Processor time of a job.
    pub cost: Span,
    /// The least separation of jobs.
    pub period: Span,
    /// By when a job is due, from its beginning.
    pub deadline: Span,
    /// Ranks it where priorities do.
    pub priority: Priority,
    /// The CPUs that it was reserved on.
    pub cpus: CpuSet,
}

impl Terms {
    /// Those of this reservation.
    pub fn of(it: &Reservation, since_ns: u64) -> Self {
        Self {
            since_ns,
            cost: it.cost,
            period: it.period,
            deadline: it.deadline,
            priority: it.priority,
            cpus: it.cpus,
        }
    }

    fn is_as(&self, other: &Self) -> bool {
        Self {
            since_ns: self.since_ns,
            ..*other
        } == *self
    }
}

/// All lives that are remembered.
#[derive(Debug, Default)]
pub(super) struct Lives {
    all: BTreeMap<u32, Life>,
    next: u32,
    /// Whose facts come by a number.
    present: BTreeMap<TaskId, u32>,
    /// Who has the number already, while facts of the one before may still come.
    coming: BTreeMap<TaskId, u32>,
    /// Whether the last that was heard of it is that it left, by life.
    out: BTreeMap<u32, bool>,
}

impl Lives {
    /// The task is there, or has other terms than before.
    pub fn know(&mut self, task: TaskId, name: &str, terms: Terms) {
        let known = self.of(task).and_then(|life| self.all.get_mut(&life));
        match known.filter(|life| life.gone_ns.is_none()) {
            Some(life) => {
                if life.terms.last().is_none_or(|last| !last.is_as(&terms)) {
                    life.terms.push(terms);
                }
            }
            None => {
                let life = Life {
                    task,
                    name: name.to_owned(),
                    terms: vec![terms],
                    gone_ns: None,
                };
                self.all.insert(self.next, life);
                self.coming.insert(task, self.next);
                self.next += 1;
            }
        }
    }

    /// The task is gone.
    pub fn forget(&mut self, task: TaskId, now_ns: u64) {
        let Some(life) = self.of(task) else { return };
        if let Some(life) = self.all.get_mut(&life) {
            life.gone_ns.get_or_insert(now_ns);
        }
        self.coming.remove(&task);
        if self.out.get(&life) == Some(&true) {
            self.present.remove(&task);
        }
    }

    /// Who has the number now.
    pub fn of(&self, task: TaskId) -> Option<u32> {
        let coming = self.coming.get(&task);
        coming.or_else(|| self.present.get(&task)).copied()
    }

    /// Whom the fact is about; `None`: a CPU, or nobody who has a reservation.
    pub fn meant_by(&mut self, fact: &Fact) -> Option<u32> {
        let task = fact.task?;
        let enters = matches!(fact.what, FactKind::Entered { .. });
        if (enters || !self.present.contains_key(&task))
            && let Some(life) = self.coming.remove(&task)
        {
            self.present.insert(task, life);
        }
        let life = *self.present.get(&task)?;
        let leaves = fact.what == FactKind::Left;
        if enters || leaves {
            self.out.insert(life, leaves);
        }
        let is_gone = self.all.get(&life).is_none_or(|it| it.gone_ns.is_some());
        if leaves && is_gone {
            self.present.remove(&task);
        }
        Some(life)
    }

    /// Who was gone before then is forgotten.
    pub fn expire(&mut self, oldest_ns: u64) {
        self.all
            .retain(|_, life| life.gone_ns.is_none_or(|gone| gone >= oldest_ns));
        self.out.retain(|life, _| self.all.contains_key(life));
    }

    /// All of them, by their numbers.
    pub const fn all(&self) -> &BTreeMap<u32, Life> {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: TaskId = TaskId::from_index(3);

    fn terms(since_ns: u64, cost_us: u64) -> Terms {
        Terms {
            since_ns,
            cost: Span::from_us(cost_us),
            period: Span::from_ms(10),
            deadline: Span::from_ms(10),
            priority: Priority::MOST_URGENT,
            cpus: CpuSet::first(2),
        }
    }

    fn hear(lives: &mut Lives, what: FactKind) -> Option<u32> {
        lives.meant_by(&Fact {
            at_ns: 0,
            task: Some(TASK),
            cpu: None,
            what,
        })
    }

    fn enters(lives: &mut Lives) -> Option<u32> {
        let cpus = CpuSet::first(2);
        hear(lives, FactKind::Entered { cpus })
    }

    #[test]
    fn late_facts_of_the_one_before_are_not_the_next_ones() {
        let mut lives = Lives::default();
        lives.know(TASK, "a", terms(0, 1));
        assert_eq!(enters(&mut lives), Some(0));
        lives.forget(TASK, 5);
        lives.know(TASK, "b", terms(6, 1));
        assert_eq!(lives.of(TASK), Some(1));
        assert_eq!(hear(&mut lives, FactKind::Blocked), Some(0));
        assert_eq!(hear(&mut lives, FactKind::Left), Some(0));
        assert_eq!(enters(&mut lives), Some(1));
        assert_eq!(hear(&mut lives, FactKind::Woken), Some(1));
        assert_eq!(lives.all()[&1].name, "b");
    }

    #[test]
    fn who_leaves_and_enters_again_is_the_same() {
        let mut lives = Lives::default();
        lives.know(TASK, "a", terms(0, 1));
        enters(&mut lives);
        assert_eq!(hear(&mut lives, FactKind::Left), Some(0));
        assert_eq!(enters(&mut lives), Some(0));
        lives.know(TASK, "a", terms(7, 1));
        assert_eq!(lives.all()[&0].terms.len(), 1, "nothing has changed");
        lives.know(TASK, "a", terms(8, 2));
        assert_eq!(lives.all()[&0].terms.len(), 2);
    }

    #[test]
    fn what_is_lent_to_somebody_without_a_reservation_is_nobodys() {
        let mut lives = Lives::default();
        assert_eq!(hear(&mut lives, FactKind::Woken), None);
        lives.know(TASK, "a", terms(0, 1));
        enters(&mut lives);
        hear(&mut lives, FactKind::Left);
        lives.forget(TASK, 5);
        assert_eq!(hear(&mut lives, FactKind::Woken), None);
        lives.expire(5);
        assert_eq!(lives.all().len(), 1);
        lives.expire(6);
        assert_eq!(lives.all().len(), 0);
    }
}
