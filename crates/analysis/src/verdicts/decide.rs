//! One question about one policy, by the cheapest way to its answer: for studies, which ask millions.
//!
//! The answer is that of [`analyse_under`](super::analyse_under); what differs is that nothing is asked that
//! the answer does not need. In this order:
//!
//! 1. Demand that does not fit, which no test can show: sums of integers.
//! 2. Overheads are charged. If what the tasks need then does not fit, nothing is shown.
//! 3. The tests, each of the parts that none before it shows, until all are shown.
//! 4. Where nothing was shown: the exact tests, of the tasks as they are, which may prove that nothing can be.

use shiftwork_model::{Affinity, CpuSet, Overheads, Span, Task, TaskSet};

use super::catalogue::{Asked, Criterion, Shown, TESTS, Test};
use super::conclude::{in_time, keep, nothing_known};
use super::divide::Divided;
use super::ground::{Ground, overload};
use super::under::{rule_under, stand_in};
use super::{Answer, PolicyAnalysis, Rule};
use crate::Steps;
use crate::overheads::{Inflated, Structure, inflate};

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// How the policy schedules.
    pub rule: Rule,
    /// The CPUs to which it binds each task, in the order of the tasks and within their affinities.
    pub bound: &'a [Affinity],
    /// How the scheduler is built and what it costs; `None`: nothing. The caller chooses between the worst
    /// that was measured and the average.
    pub price: Option<(&'a Structure, &'a Overheads)>,
    /// What is to be shown.
    pub criterion: Criterion,
    /// How much each test may do, shared evenly among the parts.
    pub steps: u64,
    /// Names of the tests to which to keep; `None`: all. That demand does not fit is found all the same.
    pub only: Option<&'a [&'a str]>,
    /// Whether to look for bounds on tardiness, too, which takes longer.
    pub tardiness: bool,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the criterion is met.
    pub answer: Answer,
    /// What decides: `feasibility` where the demand does not fit, else the last test that was needed; `None` if
    /// nothing decides, or there is no task.
    pub by: Option<&'static str>,
    /// If asked for: no job is tardier, from its real release and deadline on. The largest of all tasks' bounds, each
    /// the least over the tests; `None` if some task has none.
    pub tardiness: Option<Span>,
}

/// Nothing is known.
const NOTHING: Decision = Decision {
    answer: Answer::Unknown,
    by: None,
    tardiness: None,
};

impl Decision {
    const fn with(self, answer: Answer, by: Option<&'static str>) -> Self {
        Self { answer, by, ..self }
    }
}

/// Answers the question.
///
/// # Assumes
/// As [`analyse_under`](super::analyse_under), and affinities that the policy takes.
///
/// # Cost
/// That of the tests until one passes; linear in the number of tasks where the demand does not fit.
pub fn decide(set: &TaskSet, question: &Question<'_>) -> Decision {
    let mut free = Trial::new(set, question.rule, question.bound, question);
    if free.hope == Hope::None {
        return NOTHING.with(Answer::Unschedulable, Some("feasibility"));
    }
    let Some(charged) = charge(set, question) else {
        return free.decide(set, &[]);
    };
    let known = match stand_in(set, &charged) {
        Some((stand_ins, bound)) => {
            let delays: Vec<Span> = charged.iter().map(|inflated| inflated.delay).collect();
            let mut trial = Trial::new(&stand_ins, rule_under(question.rule), &bound, question);
            trial.decide(set, &delays)
        }
        None => NOTHING,
    };
    if known.answer == Answer::Schedulable {
        return known;
    }
    // That nothing is shown under overheads proves nothing.
    match free.disproof() {
        Some(test) => known.with(Answer::Unschedulable, Some(test)),
        None => known.with(Answer::Unknown, None),
    }
}

fn charge(set: &TaskSet, question: &Question<'_>) -> Option<Vec<Inflated>> {
    let (structure, overheads) = question.price?;
    let all = set.platform.all();
    let cpus = |affinity: &Affinity| *affinity.cpus() & all;
    let bound: Vec<CpuSet> = question.bound.iter().map(cpus).collect();
    inflate(set, (question.rule, structure), &bound, overheads)
}

/// What may still be shown of tasks, as far as sums tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hope {
    /// Anything.
    All,
    /// That tardiness is bounded; some task alone cannot meet its deadline.
    Soft,
    /// Nothing: the demand does not fit, or something is no task.
    None,
}

fn hope(set: &TaskSet, grounds: &[Ground]) -> Hope {
    let all = set.platform.all();
    let is_none = |task: &Task| {
        let times = [task.cost, task.period, task.deadline];
        times.iter().any(|span| span.is_zero()) || !task.affinity.cpus().intersects(&all)
    };
    if set.tasks.iter().any(is_none) || overload(grounds).is_some() {
        return Hope::None;
    }
    match set.tasks.iter().any(|task| task.cost > task.deadline) {
        true => Hope::Soft,
        false => Hope::All,
    }
}

impl Question<'_> {
    fn admits(&self, test: &Test) -> bool {
        self.only.is_none_or(|only| only.contains(&test.name))
    }
}

/// Tests being asked about the parts of a task set.
struct Trial<'a> {
    question: &'a Question<'a>,
    rule: Rule,
    grounds: Vec<Ground>,
    whole: Ground,
    hope: Hope,
    found: PolicyAnalysis,
}

impl<'a> Trial<'a> {
    fn new(set: &TaskSet, rule: Rule, bound: &[Affinity], question: &'a Question<'a>) -> Self {
        let divided = Divided::new(set, rule);
        let grounds = divided.grounds(bound, question.steps);
        Self {
            question,
            rule,
            hope: hope(set, &grounds),
            grounds,
            whole: divided.whole(question.steps),
            found: nothing_known("", rule, set.tasks.len()),
        }
    }

    /// Asks the tests until the answer is known. The tasks of `real` are released this much before those about whom
    /// the tests are asked.
    fn decide(&mut self, real: &TaskSet, delays: &[Span]) -> Decision {
        let criterion = self.question.criterion;
        // Who meets all deadlines is never tardy, and bounds may be within deadlines.
        let phases = match criterion {
            Criterion::Hard => [Criterion::Hard, Criterion::Soft],
            Criterion::Soft => [Criterion::Soft, Criterion::Hard],
        };
        for phase in phases {
            let is_vain = match phase {
                Criterion::Hard => self.hope != Hope::All,
                Criterion::Soft => self.hope == Hope::None,
            };
            if !is_vain {
                self.ask_for(phase);
            }
        }
        for ground in &mut self.grounds {
            let by = in_time(ground, &self.found.best);
            ground.note_in_time(by);
        }
        let refuted = self
            .grounds
            .iter()
            .find_map(|ground| ground.refuted.as_ref());
        let refuted = refuted.filter(|_| criterion == Criterion::Hard);
        let is_shown = |ground: &Ground| ground.is_shown(criterion);
        let is_hopeless =
            self.hope == Hope::None || (criterion == Criterion::Hard && self.hope == Hope::Soft);
        let (answer, by) = match refuted {
            _ if is_hopeless => (Answer::Unschedulable, Some("feasibility")),
            Some((test, _)) => (Answer::Unschedulable, Some(*test)),
            None if self.grounds.iter().all(is_shown) => (Answer::Schedulable, self.costliest()),
            None => (Answer::Unknown, None),
        };
        Decision {
            answer,
            by,
            tardiness: match self.question.tardiness {
                true => self.tardiness(real, delays),
                false => None,
            },
        }
    }

    /// The last of the tests, in their order, that show the parts.
    fn costliest(&self) -> Option<&'static str> {
        let by = self
            .grounds
            .iter()
            .filter_map(|ground| ground.by(self.question.criterion));
        by.max_by_key(|by| TESTS.iter().position(|test| test.name == *by))
    }

    /// Asks all tests for this criterion.
    fn ask_for(&mut self, phase: Criterion) {
        for test in TESTS.iter().filter(|test| test.criterion == phase) {
            if !test.speaks_of(self.rule) || !self.question.admits(test) {
                continue;
            }
            match test.asked {
                Asked::Parts(run) => {
                    for ground in &mut self.grounds {
                        if self.question.needs(phase, ground) && test.takes(self.rule, &ground.case)
                        {
                            let shown = run(&ground.case, &mut Steps::at_most(ground.steps));
                            note(test, shown, ground, &mut self.found);
                        }
                    }
                }
                Asked::Whole(run) => {
                    let needed = |ground| self.question.needs(phase, ground);
                    if self.grounds.iter().any(needed) && test.takes(self.rule, &self.whole.case) {
                        let whole = &self.whole;
                        let shown = run(&whole.case, &mut Steps::at_most(whole.steps));
                        if matches!(shown, Shown::Pass(_)) {
                            self.grounds.iter_mut().for_each(|ground| ground.note(test));
                        }
                    }
                }
                Asked::Aside(_) => {}
            }
        }
    }

    /// What proves that the answer is no, if anything does: sums, or an exact test that fails for some part.
    fn disproof(&self) -> Option<&'static str> {
        if self.question.criterion == Criterion::Soft {
            return None;
        }
        if self.hope == Hope::Soft {
            return Some("feasibility");
        }
        let exact = |test: &&Test| test.exact.is_some() && test.speaks_of(self.rule);
        for test in TESTS
            .iter()
            .filter(exact)
            .filter(|test| self.question.admits(test))
        {
            let Asked::Parts(run) = test.asked else {
                continue;
            };
            for ground in &self.grounds {
                let fails = || {
                    matches!(
                        run(&ground.case, &mut Steps::at_most(ground.steps)),
                        Shown::Fail(Some(_))
                    )
                };
                if test.takes(self.rule, &ground.case) && fails() {
                    return Some(test.name);
                }
            }
        }
        None
    }

    /// The largest of all bounds on tardiness, if every task has one.
    fn tardiness(&self, real: &TaskSet, delays: &[Span]) -> Option<Span> {
        let mut largest = Span::ZERO;
        for ground in &self.grounds {
            if ground.is_shown(Criterion::Hard) {
                continue;
            }
            for id in &ground.case.ids {
                let place = id.index();
                let delay = delays.get(place).copied().unwrap_or(Span::ZERO);
                let response = (self.found.best[place]?.response + delay).min(Span::MAX);
                largest = largest.max(response.saturating_sub(real.tasks[place].deadline));
            }
        }
        Some(largest)
    }
}

impl Question<'_> {
    /// Whether tests for this criterion may tell anything of the part that is not known yet and matters.
    fn needs(&self, phase: Criterion, ground: &Ground) -> bool {
        let is_answered = match (self.criterion, phase) {
            (Criterion::Soft, _) => ground.is_shown(Criterion::Soft) && !self.tardiness,
            (Criterion::Hard, _) => ground.refuted.is_some() && !self.tardiness,
        };
        let is_refuted = phase == Criterion::Hard && ground.refuted.is_some();
        !ground.is_shown(Criterion::Hard) && !is_answered && !is_refuted
    }
}

/// Notes what a test has shown of a part.
fn note(test: &Test, shown: Shown, ground: &mut Ground, found: &mut PolicyAnalysis) {
    match shown {
        Shown::Pass(bounds) => {
            ground.note(test);
            if let Some(bounds) = bounds {
                keep(found, test.name, &ground.case, &bounds);
            }
        }
        Shown::Fail(Some(witness)) => ground.refuted = Some((test.name, witness)),
        Shown::Fail(None) | Shown::StepLimit => {}
    }
}
