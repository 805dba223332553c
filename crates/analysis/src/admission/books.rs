//! Sums that are kept from request to request, for where they decide everything: EDF under the strong
//! invariant, with deadlines at the end of the period. A request then costs as much as there are different
//! affinities, however many tasks there are.

use std::collections::BTreeMap;

use shiftwork_model::{CpuSet, Share, TaskId};

use super::lingering::Stay;
use super::{Claim, Guarantee, Terms};
use crate::affinity::Groups;
use crate::exact::Rate;

/// What the claims of one server are to the sums.
#[derive(Clone, Debug, Default)]
pub(super) enum Line {
    /// Nothing counts.
    #[default]
    Nothing,
    /// These rates on these CPUs that are online, and CPUs that are linked.
    Rates(Vec<(CpuSet, Rate)>, Vec<CpuSet>),
    /// More than sums decides.
    Odd,
}

impl Line {
    pub(super) fn of(stay: Stay<'_>, terms: Terms, online: &CpuSet) -> Self {
        let sums_decide = terms.is_edf() && terms.policy.placement.shifts();
        // Whether other tasks have shorter deadlines does not matter: the sums are not used then.
        let (counted, links) = stay.counted(terms, true, online);
        if counted.is_empty() {
            return Self::Nothing;
        }
        if !sums_decide || !stay.all().all(is_plain) {
            return Self::Odd;
        }
        let rate = |claim: &Claim| Some((claim.cpus & *online, claim.utilization()?));
        let rates: Option<Vec<(CpuSet, Rate)>> = counted.into_iter().map(rate).collect();
        match rates {
            Some(rates) if rates.iter().all(|(cpus, _)| !cpus.is_empty()) => {
                let links = links.into_iter().map(|link| link & *online);
                Self::Rates(rates, links.filter(|link| link.len() > 1).collect())
            }
            _ => Self::Odd,
        }
    }
}

fn is_plain(claim: &Claim) -> bool {
    let possible = claim.utilization().is_some_and(|rate| !rate.exceeds_one());
    possible && !claim.cost.is_zero() && claim.deadline == claim.period
}

/// The sum of the lines of all tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Books {
    groups: Groups,
    /// How often each link is there.
    links: BTreeMap<CpuSet, usize>,
    /// How many lines are odd.
    odd: usize,
}

impl Books {
    pub(super) fn add(&mut self, task: TaskId, line: &Line) {
        match line {
            Line::Nothing => {}
            Line::Odd => self.odd += 1,
            Line::Rates(rates, links) => {
                for &(cpus, rate) in rates {
                    self.groups.add(task, cpus, rate);
                }
                for link in links {
                    *self.links.entry(*link).or_default() += 1;
                }
            }
        }
    }

    pub(super) fn remove(&mut self, task: TaskId, line: &Line) {
        match line {
            Line::Nothing => {}
            Line::Odd => self.odd = self.odd.saturating_sub(1),
            Line::Rates(rates, links) => {
                for (cpus, rate) in rates {
                    self.groups.remove(task, cpus, *rate);
                }
                for link in links {
                    if let Some(count) = self.links.get_mut(link) {
                        *count -= 1;
                        if *count == 0 {
                            self.links.remove(link);
                        }
                    }
                }
            }
        }
    }

    /// The guarantee of the task with `new` in place of `old`. `None` if a task does not fit, if
    /// another task would lose its guarantee, or if sums do not decide.
    ///
    /// # Cost
    /// That of [`Groups::shortage`], beside the sizes of the groups that the task is in.
    pub(super) fn promise(
        &mut self,
        task: TaskId,
        old: &Line,
        new: &Line,
        supply: Share,
        is_hard: impl Fn(TaskId) -> bool,
    ) -> Option<Guarantee> {
        let Line::Rates(rates, links) = new else {
            return None;
        };
        if self.odd > usize::from(matches!(old, Line::Odd)) {
            return None;
        }
        self.remove(task, old);
        self.add(task, new);
        let fits = self.groups.shortage(supply).0.is_none();
        let own = rates.iter().map(|(cpus, _)| cpus).chain(links);
        let promise = match fits && own.clone().all(|cpus| self.keeps_hard(cpus, &is_hard)) {
            true if own.clone().all(|cpus| self.is_alone(cpus)) => Some(Guarantee::Hard),
            true => Some(Guarantee::BoundedTardiness),
            false => None,
        };
        self.remove(task, new);
        self.add(task, old);
        promise
    }

    /// Whether this is one CPU that no task can use together with other CPUs.
    fn is_alone(&self, cpus: &CpuSet) -> bool {
        let used = self.groups.iter().map(|(mask, _)| mask);
        let mut together = used.chain(self.links.keys());
        cpus.len() == 1 && together.all(|mask| mask == cpus || !mask.intersects(cpus))
    }

    /// Whether using these CPUs together breaks no task's hard guarantee.
    fn keeps_hard(&self, cpus: &CpuSet, is_hard: &impl Fn(TaskId) -> bool) -> bool {
        let mut inside = self
            .groups
            .iter()
            .filter(|(mask, _)| mask.len() == 1 && mask.is_subset(cpus));
        cpus.len() == 1
            || inside.all(|(_, group)| !group.members().iter().any(|&member| is_hard(member)))
    }
}
