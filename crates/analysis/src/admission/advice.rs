//! Admissible alternatives to a refused claim.

use std::collections::BTreeSet;

use shiftwork_model::{Affinities, CpuSet, Placement, Platform, Span, TaskId};

use super::decide::{Counted, Judgement, judge};
use super::{Claim, Guarantee, Terms, words};
use crate::affinity::Groups;
use crate::affinity::laminar::Tree;
use crate::exact::Rate;
use crate::{Steps, Witness};

/// Step limit of all trials for one advice. It is far below that of a decision, so that a refusal
/// is not delayed by its advice.
pub(super) const STEPS: Steps = Steps::at_most(50_000);

/// The largest cost below that of the claim which is accepted; `None` if none is known.
///
/// `accepts` says whether a claim like it is, `None` if that took too long: then it is the largest that was
/// accepted until then. It is asked up to 64 times, and taken to accept all that is less than what it accepts.
pub(super) fn largest_cost(
    claim: &Claim,
    mut accepts: impl FnMut(&Claim) -> Option<bool>,
) -> Option<Span> {
    let mut trial = claim.clone();
    let (mut fits, mut too_much) = (0, claim.cost.as_ns());
    while too_much - fits > 1 {
        let middle = fits + (too_much - fits) / 2;
        trial.cost = Span::from_ns(middle);
        match accepts(&trial) {
            Some(true) => fits = middle,
            Some(false) => too_much = middle,
            None => break,
        }
    }
    (fits > 0).then(|| Span::from_ns(fits))
}

/// The first of these CPUs on which the claim is accepted.
pub(super) fn first_accepted(
    claim: &Claim,
    candidates: &[CpuSet],
    mut accepts: impl FnMut(&Claim) -> Option<bool>,
) -> Option<CpuSet> {
    let mut trial = claim.clone();
    let accepted = candidates.iter().find(|cpus| {
        trial.cpus = **cpus;
        accepts(&trial) == Some(true)
    });
    accepted.copied()
}

/// Alternative affinities of a claim, the narrowest first: sets of CPUs that contain its own, or
/// other sets of the same kind under policies that bind tasks. `known` are the sets of CPUs already
/// in use by name or by another task.
///
/// Under hierarchical policies, only sets that keep the affinities nested.
pub(super) fn candidates(
    claim: &Claim,
    others: &[&Claim],
    known: &[CpuSet],
    all: &CpuSet,
    terms: Terms,
) -> Vec<CpuSet> {
    /// Each costs a decision.
    const MOST: usize = 16;
    let own = claim.cpus & *all;
    let placement = terms.policy.placement;
    let fits = |cpus: &CpuSet| match placement {
        Placement::Partitioned => cpus.len() == 1 && *cpus != own,
        Placement::Clustered => *cpus != own,
        _ => own.is_subset(cpus) && *cpus != own,
    };
    let mut wider: BTreeSet<(usize, CpuSet)> = BTreeSet::new();
    let mut add = |cpus: CpuSet| {
        if !cpus.is_empty() && fits(&cpus) {
            wider.insert((cpus.len(), cpus));
        }
    };
    match placement {
        _ if terms.quanta.is_some() => {}
        Placement::Partitioned => all.iter().for_each(|cpu| add(CpuSet::single(cpu))),
        Placement::Clustered => known.iter().for_each(|cpus| add(*cpus & *all)),
        Placement::PushPull => add(*all),
        Placement::Weak | Placement::Strong | Placement::Hierarchical => {
            known.iter().for_each(|cpus| add(*cpus & *all));
            let used = others.iter().map(|other| other.cpus & *all);
            used.for_each(&mut add);
            add(*all);
        }
        _ => {}
    }
    let nests =
        |cpus: &CpuSet| terms.policy.affinities != Affinities::Laminar || nests(*cpus, others, all);
    let wider = wider.into_iter().map(|(_, cpus)| cpus).filter(nests);
    wider.take(MOST).collect()
}

/// Whether these CPUs nest with the affinities of all other claims.
fn nests(cpus: CpuSet, others: &[&Claim], all: &CpuSet) -> bool {
    let mut groups = Groups::default();
    let Some(any) = Rate::new(Span::ZERO, Span::from_ns(1)) else {
        return false;
    };
    let used = others.iter().map(|other| other.cpus & *all);
    for mask in used.chain([cpus]).filter(|mask| !mask.is_empty()) {
        groups.add(TaskId::from_index(0), mask, any);
    }
    Tree::new(&groups).is_some()
}

/// What would be let in instead of a set that is refused, or of which nothing is guaranteed; as the end of
/// a sentence.
pub(super) fn on_set(
    claims: &[Claim],
    platform: &Platform,
    terms: Terms,
    judgement: &Judgement,
) -> Option<String> {
    let wanted = |judgement: &Judgement| judgement.guarantee() != Guarantee::None;
    if wanted(judgement) {
        return None;
    }
    let all = platform.all();
    let task = judgement.last_of_the_crowd(claims, &all)?;
    let place = claims.iter().position(|claim| claim.task == task)?;
    let others: Vec<&Claim> = claims.iter().filter(|claim| claim.task != task).collect();
    let mut steps = STEPS;
    let mut accepts = |trial: &Claim| {
        let mut counted = Counted::all(claims);
        counted.claims[place] = trial;
        let judged = judge(&counted, &all, terms, &mut steps);
        (steps != Steps::at_most(0)).then(|| wanted(&judged))
    };
    let claim = &claims[place];
    let cost = largest_cost(claim, &mut accepts);
    let sets = platform.sets.values().chain(&platform.clusters);
    let known: Vec<CpuSet> = sets.chain(&platform.caches).copied().collect();
    let candidates = candidates(claim, &others, &known, &all, terms);
    let wider = first_accepted(claim, &candidates, &mut accepts);
    (cost.is_some() || wider.is_some()).then(|| words::advice(claim, cost, wider.as_ref()))
}

impl Judgement {
    /// The task that has to change its claim: the last task that the witness or a note names.
    fn last_of_the_crowd(&self, claims: &[Claim], all: &CpuSet) -> Option<TaskId> {
        match &self.witness {
            Some(Witness::Crowd { tasks, .. }) => tasks.last().copied(),
            Some(
                Witness::Alone { task, .. }
                | Witness::TooLong { task, .. }
                | Witness::Nowhere { task }
                | Witness::Blocked { task, .. }
                | Witness::Late { task, .. },
            ) => Some(*task),
            Some(Witness::Interval { cpu, .. }) => {
                let there = |claim: &&Claim| (claim.cpus & *all).contains(*cpu);
                let last = claims.iter().rfind(there);
                last.map(|claim| claim.task)
            }
            Some(Witness::NoTask { .. }) => None,
            None => self.unshown(),
        }
    }
}
