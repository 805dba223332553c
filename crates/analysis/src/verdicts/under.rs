//! Verdicts where scheduling is not free: tests are asked about task sets to which overheads are charged.
//!
//! What is shown of such a set holds for the real one. What is not shown of it proves nothing, since every
//! job is charged for the worst; a "no" is that of the set without overheads, which it remains with them.

use shiftwork_model::{Affinity, Invariant, Overheads, PolicyTraits, Preemption, TaskSet};

use super::analyse::analyse;
use super::catalogue::TESTS;
use super::conclude::ask_nothing_aside;
use super::waiting::{count_from_arrivals, settle};
use super::{Analysis, Answer, Candidate, Criterion, Found, Judgement, PolicyAnalysis};
use crate::curves::at_shortest_distance;
use crate::overheads::{Inflated, Structure, inflate};
use crate::stand_ins::waits;

/// What scheduling costs under one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    /// How the scheduler is built.
    pub structure: Structure,
    /// The worst that was measured, for hard verdicts.
    pub worst: Option<Overheads>,
    /// The average, for soft verdicts; if there is none, the worst does.
    pub average: Option<Overheads>,
}

/// Which overheads a verdict takes into account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// The worst that was measured.
    Worst,
    /// The average.
    Average,
}

impl Table {
    /// The name in JSON and overhead files: `worst` or `average`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Worst => "worst",
            Self::Average => "average",
        }
    }
}

/// What was charged for one verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charged {
    /// From which overheads.
    pub table: Table,
    /// What each task is then.
    pub inflated: Vec<Inflated>,
}

/// What was charged under one policy; `None` where a verdict is one without overheads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// For the hard verdict, and for the response times that hard tests show.
    pub hard: Option<Charged>,
    /// For the soft verdict, and for the response times that soft tests show.
    pub soft: Option<Charged>,
    /// For the best that is known of each task: the worst overheads if there are any, as the average
    /// bounds nothing.
    pub best: Option<Table>,
}

impl Account {
    /// What was charged for this verdict.
    pub const fn of(&self, criterion: Criterion) -> Option<&Charged> {
        match criterion {
            Criterion::Hard => self.hard.as_ref(),
            Criterion::Soft => self.soft.as_ref(),
        }
    }

    /// What was charged for the bounds that this test shows.
    pub fn of_bounds(&self, test: &str) -> Option<&Charged> {
        let criteria = [Criterion::Hard, Criterion::Soft];
        let criterion = criteria.into_iter().find(|&one| is_for(test, one))?;
        self.of(criterion)
    }
}

/// As [`analyse`], with overheads for those policies that have a price, and what was charged, policy by
/// policy. Hard verdicts take the worst overheads into account and soft ones the average; feasibility
/// speaks of schedulers that cost nothing.
///
/// Bounds are those of the task set as it is: from the real release on. Heuristics that would pack tasks
/// in other ways are not asked under overheads, since what is charged depends on the packing.
///
/// # Assumes
/// As [`analyse`] and [`inflate`]. What a job costs that had to wait is not accounted for, so that nothing is shown of
/// tasks with jitter, or that suspend themselves, where scheduling costs something.
///
/// # Cost
/// At most three times that of [`analyse`].
pub fn analyse_under(
    set: &TaskSet,
    candidates: &[(Candidate, Option<Price>)],
    steps: u64,
) -> (Analysis, Vec<Account>) {
    let free: Vec<Candidate> = candidates.iter().map(|(free, _)| free.clone()).collect();
    let mut analysis = analyse(set, &free, steps);
    let mut accounts = Vec::new();
    // What sporadic tasks cost, those with arrival curves do at most.
    let set = &*at_shortest_distance(set);
    let waits = waits(set);
    for (found, (candidate, price)) in analysis.policies.iter_mut().zip(candidates) {
        let priced = price.as_ref().zip(candidate.bound.as_ref().ok());
        let account = priced.map(|(price, bound)| {
            let charge = |table| charge(set, candidate, bound, price, table);
            let policy = PricedPolicy {
                set,
                candidate,
                steps,
            };
            policy.settle(found, [Table::Worst, Table::Average].map(charge))
        });
        let account = account.unwrap_or_default();
        if waits && account.best.is_some() {
            settle(set, found, candidate, None);
        }
        accounts.push(account);
    }
    (analysis, accounts)
}

/// The tasks with these overheads charged to them; `None` if there are none or no accounting is known.
fn charge(
    set: &TaskSet,
    candidate: &Candidate,
    bound: &[Affinity],
    price: &Price,
    table: Table,
) -> Option<Charged> {
    let overheads = match table {
        Table::Worst => price.worst.as_ref(),
        Table::Average => price.average.as_ref(),
    };
    let all = set.platform.all();
    let bound: Vec<_> = bound
        .iter()
        .map(|affinity| *affinity.cpus() & all)
        .collect();
    let inflated = inflate(
        set,
        (&candidate.traits, &price.structure),
        &bound,
        overheads?,
    )?;
    Some(Charged { table, inflated })
}

/// A policy whose scheduling costs something, and the tasks.
struct PricedPolicy<'a> {
    set: &'a TaskSet,
    candidate: &'a Candidate,
    steps: u64,
}

impl PricedPolicy<'_> {
    /// Puts what is known under overheads, worst and average, in the place of what is known without.
    fn settle(&self, found: &mut PolicyAnalysis, charged: [Option<Charged>; 2]) -> Account {
        let [worst, average] = charged.map(|charged| {
            let known = charged.as_ref().map(|charged| self.ask(found, charged));
            charged.zip(known)
        });
        // A tardiness bound under the worst overheads holds under smaller ones.
        let (hard, soft) = (worst.clone(), average.clone().or(worst.clone()));
        let best = worst.or(average);
        if hard.is_some() || soft.is_some() {
            let keeps = |table: &Option<(Charged, PolicyAnalysis)>, criterion| {
                let known = match table {
                    Some((_, known)) => known,
                    None => &*found,
                };
                let bounds = known.bounds.iter();
                bounds
                    .filter(|bounds| is_for(bounds.test, criterion))
                    .cloned()
                    .collect::<Vec<_>>()
            };
            let mut bounds = keeps(&hard, Criterion::Hard);
            bounds.extend(keeps(&soft, Criterion::Soft));
            bounds.sort_by_key(|bounds| TESTS.iter().position(|test| test.name == bounds.test));
            found.bounds = bounds;
        }
        if let Some((_, known)) = &hard {
            replace(&mut found.hard, &known.hard);
        }
        if let Some((_, known)) = &soft {
            replace(&mut found.soft, &known.soft);
        }
        if let Some((_, known)) = &best {
            found.best.clone_from(&known.best);
        }
        Account {
            best: best.map(|(charged, _)| charged.table),
            hard: hard.map(|(charged, _)| charged),
            soft: soft.map(|(charged, _)| charged),
        }
    }

    /// What is known of the tasks with this charged to them, their bounds counted from real releases.
    fn ask(&self, free: &PolicyAnalysis, charged: &Charged) -> PolicyAnalysis {
        let mut known = match stand_in(self.set, &charged.inflated) {
            Some((set, bound)) => {
                let candidate = Candidate {
                    bound: Ok(bound),
                    traits: under_overheads(&self.candidate.traits),
                    policy: self.candidate.policy.clone(),
                };
                let analysis = analyse(&set, &[candidate], self.steps);
                analysis.policies.into_iter().next()
            }
            None => None,
        }
        .unwrap_or_else(|| failed(free));
        ask_nothing_aside(&mut known);
        let delays = charged.inflated.iter().map(|inflated| inflated.delay);
        count_from_arrivals(&mut known, &delays.collect::<Vec<_>>());
        known
    }
}

/// The task set that stands for the real one on a machine that schedules for free, and where its tasks are
/// bound; `None` if there is none.
fn stand_in(set: &TaskSet, inflated: &[Inflated]) -> Option<(TaskSet, Vec<Affinity>)> {
    let mut stand_in = set.clone();
    let mut bound = Vec::new();
    // Tasks without an explicit priority have one by deadline; it must not change.
    let priorities = set.priorities();
    for ((task, priority), inflated) in stand_in.tasks.iter_mut().zip(priorities).zip(inflated) {
        let parameters = inflated.task?;
        task.cost = parameters.cost;
        task.period = parameters.period;
        task.deadline = parameters.deadline;
        task.priority = Some(priority);
        bound.push(Affinity::new(inflated.cpus)?);
    }
    Some((stand_in, bound))
}

/// The policy under which the stand-ins are scheduled, and of which tests speak. Where jobs get whole quanta, the
/// stand-ins need whole quanta and come where these begin: that nothing is decided in between changes nothing.
pub const fn under_overheads(policy: &PolicyTraits) -> PolicyTraits {
    match policy.preemption {
        Preemption::AtQuanta(_) => PolicyTraits {
            preemption: Preemption::AtEvents,
            invariant: Invariant::Strong,
            ..*policy
        },
        _ => *policy,
    }
}

/// Every test that is asked fails where nothing can stand for the tasks.
fn failed(free: &PolicyAnalysis) -> PolicyAnalysis {
    let mut failed = free.clone();
    for judgement in [&mut failed.hard, &mut failed.soft] {
        judgement.answer = Answer::Unknown;
        judgement.by.clear();
        judgement.witness = None;
        for (_, found) in &mut judgement.tests {
            if *found != Found::NotApplicable {
                *found = Found::Fail;
            }
        }
    }
    failed.bounds.clear();
    failed.best.fill(None);
    failed
}

/// What is shown under overheads counts; a "no" is only one if it is one without them.
fn replace(free: &mut Judgement, known: &Judgement) {
    free.tests.clone_from(&known.tests);
    if free.answer == Answer::Unschedulable {
        return;
    }
    free.witness = None;
    match known.answer {
        Answer::Schedulable => {
            free.answer = Answer::Schedulable;
            free.by.clone_from(&known.by);
        }
        Answer::Unschedulable | Answer::Unknown => {
            free.answer = Answer::Unknown;
            free.by.clear();
        }
    }
}

/// Of tests by one name for both criteria the soft one has the bounds.
fn is_for(test: &str, criterion: Criterion) -> bool {
    let has = |criterion| {
        TESTS
            .iter()
            .any(|one| one.name == test && one.criterion == criterion)
    };
    match criterion {
        Criterion::Hard => !has(Criterion::Soft),
        Criterion::Soft => has(Criterion::Soft),
    }
}
