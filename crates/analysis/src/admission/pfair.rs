//! Admission under Pfair: exact in whole quanta, which is all that PD2 needs.

use shiftwork_model::{Span, TaskId, WindowSource};

use super::decide::{Counted, Judgement, Members, crowd, refusal};
use super::words::Note;
use super::{Claim, Guarantee, Terms};
use crate::affinity::Groups;
use crate::exact::{Rate, beside};
use crate::pfair::{Quanta, slots};

impl Quanta {
    /// The claim in whole quanta, with the end of its windows as its period. A task without a single slot needs
    /// two CPUs, which no CPU has.
    fn in_quanta(&self, claim: &Claim, cpus: usize, source: WindowSource) -> Claim {
        let times = [claim.cost, claim.period, claim.deadline];
        if times.iter().any(|time| time.is_zero()) || self.quantum.is_zero() {
            return claim.clone();
        }
        let weight = slots(self, cpus).weight(times, source);
        let (quanta, slots) = match weight.slots {
            0 => (2, 1),
            slots => (weight.quanta, slots),
        };
        let span = |count: u64| Span::from_ns(self.quantum.as_ns().saturating_mul(count));
        Claim {
            cost: span(quanta),
            period: span(slots),
            ..claim.clone()
        }
    }

    /// Refuses what does not fit in whole quanta by its periods; promises the rest bounded tardiness, or all
    /// deadlines where windows that end by these fit as well.
    pub(super) fn judge(
        &self,
        counted: &Counted<'_>,
        online: &shiftwork_model::CpuSet,
        terms: Terms,
        graded: impl FnOnce(&Counted<'_>) -> Judgement,
    ) -> Judgement {
        let by_period = |claim: &&Claim| self.in_quanta(claim, 1, WindowSource::Period);
        let claims: Vec<Claim> = counted.claims.iter().map(by_period).collect();
        let claims: Vec<&Claim> = claims.iter().collect();
        match refusal(&claims, online, terms) {
            Some(witness) => Judgement::refused(witness),
            None => graded(counted),
        }
    }

    /// What is promised to the tasks of one group of CPUs, and why it is not more.
    pub(super) fn promise(&self, members: &Members<'_>, terms: Terms) -> (Guarantee, Option<Note>) {
        let mut groups = Groups::default();
        for claim in &members.claims {
            let windows = self.in_quanta(claim, members.cpus.len(), WindowSource::Deadline);
            match Rate::new(windows.cost, windows.period) {
                Some(rate) if !rate.exceeds_one() => groups.add(claim.task, members.cpus, rate),
                _ => return (Guarantee::BoundedTardiness, Some(late([claim.task].into()))),
            }
        }
        match crowd(&groups, beside(terms.reserve)) {
            None => (Guarantee::Hard, None),
            Some(_) => (Guarantee::BoundedTardiness, Some(late(Vec::new()))),
        }
    }
}

const fn late(tasks: Vec<TaskId>) -> Note {
    Note::Quanta(tasks)
}
