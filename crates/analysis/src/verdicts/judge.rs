//! Asks every test about every part, and draws the conclusions.

use std::collections::BTreeMap;

use shiftwork_model::{Affinity, CpuSet, Priority, Span, TaskId, TaskSet};

use super::ask::Shown;
use super::case::Case;
use super::catalogue::{Asked, Criterion, TESTS};
use super::conclude::{conclude, judgement, keep, nothing_applies, nothing_known, refute};
use super::divide::Divided;
use super::ground::{Ground, overload};
use super::{Analysis, Answer, Candidate, Found, PolicyAnalysis};
use super::{jitter, waiting};
use crate::affinity::{Feasibility, Feasible, feasibility};
use crate::exact::Rate;
use crate::stand_ins::{StandIns, under_any, waits};
use crate::{Demand, Witness};

/// As [`analyse`](super::analyse), of tasks that all arrive by time, with periods.
pub(super) fn analyse_by_period(set: &TaskSet, candidates: &[Candidate], steps: u64) -> Analysis {
    let mut analysis = analyse_at_once((set, &[]), candidates, steps);
    if !waits(set) {
        return analysis;
    }
    analysis.feasibility = match set.first_locking() {
        Some(_) => waiting::not_shown(set, analysis.feasibility),
        None => waiting::feasible(set, analysis.feasibility, feasibility(&under_any(set))),
    };
    let too_long = waiting::too_long(set);
    if let Some(witness) = &too_long
        && analysis.feasibility.verdict != Feasible::No
    {
        analysis.feasibility = Feasibility {
            verdict: Feasible::No,
            by: "task",
            witness: Some(witness.clone()),
        };
    }
    let stand_ins: Vec<StandIns> = candidates
        .iter()
        .map(|candidate| {
            let bound = candidate.bound.as_deref().ok();
            StandIns::of_bound(set, &candidate.traits, bound)
        })
        .collect();
    for (place, own) in stand_ins.iter().enumerate() {
        // Policies with the same stand-ins are asked about together, at the first of them.
        if stand_ins[..place].contains(own) {
            continue;
        }
        let same = (place..candidates.len()).filter(|&other| stand_ins[other] == *own);
        let same: Vec<usize> = same.collect();
        let StandIns::Other(others) = own else {
            for at in same {
                waiting::settle(set, &mut analysis.policies[at], &candidates[at], None);
            }
            continue;
        };
        let asked: Vec<Candidate> = same.iter().map(|&at| candidates[at].clone()).collect();
        let known = analyse_at_once((&others.set, &others.suspensions), &asked, steps);
        for (at, mut known) in same.into_iter().zip(known.policies) {
            waiting::count_from_arrivals(&mut known, &others.delays);
            let found = &mut analysis.policies[at];
            waiting::settle(set, found, &candidates[at], Some(known));
        }
    }
    for (found, candidate) in analysis.policies.iter_mut().zip(candidates) {
        if let (Ok(bound), Answer::Unknown) = (&candidate.bound, found.hard.answer)
            && let Some(by) = jitter::in_time(set, &candidate.traits, (bound, steps), |_| true)
        {
            jitter::note(set, found, &by);
        }
        if let Some(witness) = &too_long {
            refute(&mut found.hard, "feasibility", Some(witness.clone()));
        }
    }
    analysis
}

/// As [`analyse_by_period`], as if each job might run from its arrival on; where a test counts suspensions, it may be suspended
/// for so much of its cost, by task (empty: none).
fn analyse_at_once(
    (set, suspensions): (&TaskSet, &[Span]),
    candidates: &[Candidate],
    steps: u64,
) -> Analysis {
    let mut feasibility = feasibility(set);
    if !suspensions.is_empty() && feasibility.verdict == Feasible::No {
        // Nor does it decide anything that the tasks would not fit if they computed meanwhile.
        feasibility.verdict = Feasible::Unknown;
        feasibility.witness = None;
    }
    let mut inquiry = Inquiry::new((set, suspensions), steps);
    let policies = candidates
        .iter()
        .map(|candidate| inquiry.policy(candidate, &feasibility))
        .collect();
    Analysis {
        utilization: utilization(set),
        feasibility,
        policies,
    }
}

/// The sum of all C/T, in the long run.
pub(super) fn utilization(set: &TaskSet) -> Demand {
    let mut sum = Demand::default();
    let tasks = set.tasks.iter();
    tasks.filter_map(Rate::of).for_each(|rate| sum.add(rate));
    sum
}

/// What a question is remembered by: the test, its steps, and about what it was asked.
type Question = (usize, u64, CpuSet, Vec<Subject>);

/// One task in a question: with its times, its priority and its CPUs.
type Subject = (TaskId, [Span; 4], Priority, CpuSet);

/// A task set under examination.
struct Inquiry<'a> {
    set: &'a TaskSet,
    suspensions: &'a [Span],
    steps: u64,
    known: BTreeMap<Question, Shown>,
}

impl<'a> Inquiry<'a> {
    const fn new((set, suspensions): (&'a TaskSet, &'a [Span]), steps: u64) -> Self {
        Self {
            set,
            suspensions,
            steps,
            known: BTreeMap::new(),
        }
    }

    /// All tests that speak of the policy.
    fn policy(&mut self, candidate: &Candidate, feasibility: &Feasibility) -> PolicyAnalysis {
        let tasks = self.set.tasks.len();
        let mut found = match &candidate.bound {
            Ok(bound) => {
                let mut found = nothing_known(candidate, tasks);
                self.bound(bound, feasibility, &mut found);
                found
            }
            Err(_) => nothing_applies(candidate, tasks),
        };
        self.hopeless(&mut found, feasibility);
        found
    }

    /// The same where the policy takes the tasks and binds them to these CPUs.
    fn bound(&mut self, bound: &[Affinity], feasibility: &Feasibility, found: &mut PolicyAnalysis) {
        let divided = Divided::new(self.set, &found.traits).with_suspensions(self.suspensions);
        let mut grounds = divided.grounds(bound, self.steps);
        let mut whole = divided.whole(self.steps);
        let overload = overload(&grounds);
        for (place, test) in TESTS.iter().enumerate() {
            if !test.speaks_of(&found.traits) {
                continue;
            }
            let infeasible = feasibility.verdict == Feasible::No;
            let lost = overload.is_some() || (infeasible && test.criterion == Criterion::Hard);
            let verdict = match test.asked {
                Asked::Parts(_) | Asked::Times(_) => {
                    self.ask_parts((place, lost), &mut grounds, found)
                }
                Asked::Whole(_) => {
                    let verdict = self.ask((place, lost), &mut whole, found);
                    if verdict == Found::Pass {
                        grounds.iter_mut().for_each(|ground| ground.note(test));
                    }
                    verdict
                }
                Asked::Aside(_) => self.ask((place, lost), &mut whole, found),
            };
            let tests = &mut judgement(found, test.criterion).tests;
            tests.push((test.name, verdict));
        }
        conclude(found, &mut grounds);
        if let Some(witness) = overload {
            refute(&mut found.hard, "feasibility", Some(witness.clone()));
            refute(&mut found.soft, "feasibility", Some(witness));
        }
    }

    /// What no scheduler can do, no policy can.
    fn hopeless(&self, found: &mut PolicyAnalysis, feasibility: &Feasibility) {
        if feasibility.verdict != Feasible::No {
            return;
        }
        refute(&mut found.hard, "feasibility", feasibility.witness.clone());
        let by_load = match &feasibility.witness {
            // By its density a task may be too much for its deadline, and yet only late.
            Some(Witness::Alone { task, .. }) => {
                let task = &self.set.tasks[task.index()];
                task.cost > task.period
            }
            Some(_) => true,
            None => false,
        };
        if by_load {
            refute(&mut found.soft, "feasibility", feasibility.witness.clone());
        }
    }

    /// Asks the test at this place about every part; if all is lost, it fails where it applies.
    fn ask_parts(
        &mut self,
        (place, lost): (usize, bool),
        grounds: &mut [Ground],
        found: &mut PolicyAnalysis,
    ) -> Found {
        let all: Vec<Found> = grounds
            .iter_mut()
            .map(|ground| self.ask((place, lost), ground, found))
            .collect();
        let any = |wanted| all.contains(&wanted);
        let worst = [Found::NotApplicable, Found::Fail, Found::StepLimit];
        worst
            .into_iter()
            .find(|&one| any(one))
            .unwrap_or(Found::Pass)
    }

    /// Asks a test about one part, and notes what follows.
    fn ask(
        &mut self,
        (place, lost): (usize, bool),
        ground: &mut Ground,
        found: &mut PolicyAnalysis,
    ) -> Found {
        let test = &TESTS[place];
        if !test.takes(&found.traits, &ground.case) {
            return Found::NotApplicable;
        }
        if lost {
            return Found::Fail;
        }
        let case = &ground.case;
        let question = (place, ground.steps, case.cpus, subjects(case));
        let shown = self
            .known
            .entry(question)
            .or_insert_with(|| ground.ask(test));
        ground.learn(test, shown, |case, bounds| {
            keep(found, test.name, case, bounds);
        })
    }
}

fn subjects(case: &Case) -> Vec<Subject> {
    let subject = |place: usize| {
        let task = &case.tasks[place];
        let suspension = case.suspensions.get(place);
        let suspension = suspension.map_or(Span::ZERO, |of| of.suspended);
        let times = [task.cost, task.period, task.deadline, suspension];
        (
            case.ids[place],
            times,
            case.priorities[place],
            *case.cpus_of(place),
        )
    };
    (0..case.ids.len()).map(subject).collect()
}
