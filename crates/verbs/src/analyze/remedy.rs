//! What would make the answer yes: another policy, other affinities, other priorities, or smaller costs.
//!
//! Everything that is named was checked by the tests that give the verdicts themselves. The search has steps of its own,
//! so that it is cheap beside them, and always the same. It does not find everything: what is not named may exist.

use shiftwork_analysis::admission::Verdict;
use shiftwork_analysis::verdicts::{
    Account, Answer as Known, Criterion, Factor, PolicyAnalysis, analyse_under, largest_factor,
    priority_order, with_priorities,
};
use shiftwork_model::{Affinity, TaskId, TaskSet};
use shiftwork_policy::registry::Entry;
use shiftwork_taskset::overheads::OverheadFile;

use super::candidate::{self, candidate};
use super::price::price;
use super::proposal::{Proposal, proposal};
use crate::admission::Admission;

/// How many steps each test may take, if those of the verdicts are not fewer.
const STEPS: u64 = 500_000;
/// With more tasks no costs are tried, which would ask all tests some thirty times, and no priorities.
const TASKS_MAX: usize = 500;

/// What would make the answer yes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remedies {
    /// Other policies that meet the criterion with this very set; those that `run` would admit come first.
    pub policies: Vec<Substitute>,
    /// For each policy that is asked about and does not meet the criterion, in their order.
    pub changes: Vec<Change>,
}

/// A policy that meets the criterion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Substitute {
    /// The policy.
    pub policy: String,
    /// What admission, which keeps the reserve free, says of the set under it.
    pub admission: Verdict,
}

/// What in the task set would have to change for one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The policy.
    pub policy: String,
    /// Affinities with which it meets the criterion; `None` if none were found.
    pub proposal: Option<Proposal>,
    /// Under fixed priorities: the tasks in an order of priorities with which it meets all deadlines, the most urgent
    /// first; `None` if none was found, or tardiness is asked about.
    pub priorities: Option<Vec<TaskId>>,
    /// The largest factor on all costs with which it does; `None` if none of a tenth or more was found.
    pub factor: Option<Factor>,
}

impl Remedies {
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        let is_useless = |change: &Change| {
            change.proposal.is_none() && change.priorities.is_none() && change.factor.is_none()
        };
        self.policies.is_empty() && self.changes.iter().all(is_useless)
    }
}

/// A search for remedies.
pub(super) struct Search<'a> {
    pub(super) set: &'a TaskSet,
    pub(super) criterion: Criterion,
    pub(super) overheads: Option<&'a OverheadFile>,
    pub(super) steps: u64,
}

impl Search<'_> {
    /// `known`: what is known already; `missing`: the policies that are asked about and do not meet the criterion.
    ///
    /// # Cost
    /// One analysis of the policies that are not known, and for each that is missing one assignment, one order of
    /// priorities and, without overheads, about 25 analyses.
    pub(super) fn run(
        mut self,
        known: &[PolicyAnalysis],
        accounts: &[Account],
        missing: &[&'static Entry],
    ) -> Remedies {
        self.steps = self.steps.min(STEPS);
        let change = |named: &&'static Entry| {
            let is = |found: &&PolicyAnalysis| found.policy == named.name;
            let account = known.iter().position(|found| is(&found));
            let account = account.and_then(|place| accounts.get(place));
            let priced = account.is_some_and(|account| account.of(self.criterion).is_some());
            Change {
                policy: named.name.to_owned(),
                proposal: self.proposal(named),
                priorities: self.priorities(named),
                // The search for factors knows no overheads.
                factor: (!priced).then(|| self.factor(named)).flatten(),
            }
        };
        let changes = missing.iter().map(change).collect();
        Remedies {
            policies: self.substitutes(known),
            changes,
        }
    }

    fn substitutes(&self, known: &[PolicyAnalysis]) -> Vec<Substitute> {
        let is_known = |named: &Entry| known.iter().any(|found| found.policy == named.name);
        let mut others = candidate::all();
        others.retain(|named| !is_known(named));
        let others = self.analysed(self.set, &others);
        let all = known.iter().chain(&others);
        let meet = all.filter(|found| found.refusal.is_none() && self.is_met(found));
        let mut substitutes: Vec<Substitute> = meet
            .filter_map(|found| {
                let named = candidate::named(&found.policy).ok()?;
                let bound = candidate(named, self.set).bound.ok()?;
                Some(Substitute {
                    policy: named.name.to_owned(),
                    admission: Admission::of(named, self.set, Ok(&bound)).verdict(),
                })
            })
            .collect();
        substitutes.sort_by_key(|one| one.admission == Verdict::Refused);
        substitutes
    }

    /// Affinities with which the policy meets the criterion, under its overheads, too.
    fn proposal(&self, named: &'static Entry) -> Option<Proposal> {
        let found = proposal(named, self.set, self.criterion, self.steps).ok()?;
        let cpus = &found.assignment.as_ref()?.cpus;
        let mut set = self.set.clone();
        for (task, &cpus) in set.tasks.iter_mut().zip(cpus) {
            task.affinity = Affinity::new(cpus)?;
        }
        let is_met = |found: &PolicyAnalysis| self.is_met(found);
        let analysed = self.analysed(&set, &[named]);
        analysed.first().is_some_and(is_met).then_some(found)
    }

    /// Priorities with which the policy meets all deadlines, under its overheads, too.
    fn priorities(&self, named: &'static Entry) -> Option<Vec<TaskId>> {
        if self.criterion == Criterion::Soft || self.set.tasks.len() > TASKS_MAX {
            return None;
        }
        let mut of = |set: &TaskSet| candidate(named, set);
        let found = priority_order(self.set, &mut of, self.steps)?;
        let set = with_priorities(self.set, &found);
        let is_met = |found: &PolicyAnalysis| self.is_met(found);
        let analysed = self.analysed(&set, &[named]);
        analysed.first().is_some_and(is_met).then_some(found)
    }

    fn factor(&self, named: &'static Entry) -> Option<Factor> {
        if self.set.tasks.len() > TASKS_MAX {
            return None;
        }
        let mut of = |set: &TaskSet| candidate(named, set);
        let found = largest_factor(self.set, &mut of, self.criterion, self.steps)?;
        // No program that exists does its work in less than a tenth of its cost: that is no remedy.
        found.is_at_least(1, 10).then_some(found)
    }

    fn analysed(&self, set: &TaskSet, policies: &[&'static Entry]) -> Vec<PolicyAnalysis> {
        let candidates: Vec<_> = policies
            .iter()
            .map(|named| (candidate(named, set), price(named, set, self.overheads)))
            .collect();
        analyse_under(set, &candidates, self.steps).0.policies
    }

    fn is_met(&self, found: &PolicyAnalysis) -> bool {
        found.judgement(self.criterion).answer == Known::Schedulable
    }
}
