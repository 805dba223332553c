//! A task set as tests are asked about it: in parts.

use crate::policy::{is_by_priority, is_edf, is_fp, pfair};
use shiftwork_model::{Affinity, CpuSet, PolicyTraits, Priority, Span, TaskId, TaskSet};

use super::case::{Case, CaseTerms, Suspended};
use super::ground::Ground;
use crate::Sporadic;
use crate::affinity::parts::parts_within;
use crate::pfair::Quanta;

/// Task sets under one policy; what the tests that speak of it do not ask for is left out.
pub(super) struct Divided<'a> {
    set: &'a TaskSet,
    all: CpuSet,
    terms: CaseTerms,
    /// Of all tasks; `None` if they do not matter.
    priorities: Option<Vec<Priority>>,
    /// Of all tasks: how much of the cost a job may be suspended; empty if that does not matter.
    suspensions: &'a [Span],
    counts_suspensions: bool,
}

impl<'a> Divided<'a> {
    pub fn new(set: &'a TaskSet, policy: &PolicyTraits) -> Self {
        // Pfair counts in quanta, whatever these are counted in.
        let (quanta, tick) = match pfair(policy) {
            Some(_) => (Quanta::of(set, false), Span::from_ns(1)),
            None => {
                let quanta = Quanta {
                    quantum: set.scheduler.quantum_or_default(),
                    staggered: false,
                    aligned: false,
                };
                (quanta, set.platform.tick_unit)
            }
        };
        Self {
            set,
            all: set.platform.all(),
            terms: CaseTerms {
                quantum: quanta.quantum,
                aligned: quanta.aligned,
                reserve: set.scheduler.reserve,
                tick,
            },
            priorities: is_by_priority(policy).then(|| set.priorities()),
            suspensions: &[],
            counts_suspensions: is_fp(policy) || is_edf(policy),
        }
    }

    /// The same, of tasks whose jobs are suspended for up to so much of their costs, by task; empty: none.
    pub fn with_suspensions(self, suspensions: &'a [Span]) -> Self {
        Self {
            suspensions,
            ..self
        }
    }

    /// The parts of the tasks where the policy binds them; the steps are shared evenly among them. Tasks that have no
    /// CPU there are in none.
    pub fn grounds(&self, bound: &[Affinity], steps: u64) -> Vec<Ground> {
        let cpus_of = |place: usize| {
            let affinity = bound.get(place).unwrap_or(&self.set.tasks[place].affinity);
            affinity.cpus()
        };
        let parts = parts_within((0..self.set.tasks.len()).map(cpus_of), Some(&self.all));
        let steps = steps / (parts.len().max(1) as u64);
        let grounds = parts.into_iter().map(|part| {
            let own = |&place: &usize| *cpus_of(place) & self.all;
            let own = (!part.is_uniform).then(|| part.members.iter().map(own).collect());
            let case = self.case(part.members.into_iter(), (part.cpus, own));
            Ground::new(case, steps)
        });
        grounds.collect()
    }

    /// All tasks with the CPUs that they ask for.
    pub fn whole(&self, steps: u64) -> Ground {
        let own = self
            .set
            .tasks
            .iter()
            .map(|task| *task.affinity.cpus() & self.all);
        let own = Some(own.collect());
        Ground::new(self.case(0..self.set.tasks.len(), (self.all, own)), steps)
    }

    fn case(
        &self,
        places: impl ExactSizeIterator<Item = usize> + Clone,
        cpus: (CpuSet, Option<Vec<CpuSet>>),
    ) -> Case {
        let tasks = places
            .clone()
            .map(|place| Sporadic::from(&self.set.tasks[place]));
        let priority = |place: usize| match &self.priorities {
            Some(priorities) => priorities[place],
            None => Priority::LEAST_URGENT,
        };
        let columns = (tasks.collect(), places.clone().map(priority).collect());
        let suspensions = self.suspensions(places.clone());
        let mut case = Case::new(
            places.map(TaskId::from_index).collect(),
            columns,
            cpus,
            self.terms,
        );
        case.suspensions = suspensions;
        case
    }

    /// Those of these tasks, if there is a test that counts them; empty if not.
    fn suspensions(&self, places: impl Iterator<Item = usize>) -> Vec<Suspended> {
        let of = |place: usize| {
            let suspended = self.suspensions.get(place).copied()?;
            let cost = self.set.tasks[place].cost;
            // The sum of both may have been cut off there.
            let is_whole = self.counts_suspensions && cost < Span::MAX;
            is_whole.then(|| Suspended {
                executes: cost.saturating_sub(suspended),
                suspended,
            })
        };
        let known: Option<Vec<Suspended>> = places.map(of).collect();
        let known = known.filter(|known| known.iter().any(|of| !of.suspended.is_zero()));
        known.unwrap_or_default()
    }
}
