//! One question about one policy, by the cheapest way to its answer: for studies, which ask millions.
//!
//! The answer is that of [`analyse_under`](super::analyse_under); what differs is that nothing is asked that
//! the answer does not need. In this order:
//!
//! 1. Demand that does not fit, which no test can show: sums of integers.
//! 2. Overheads are charged. If what the tasks need then does not fit, nothing is shown.
//! 3. The tests, each of the parts that none before it shows, until all are shown.
//! 4. Where nothing was shown: the exact tests, of the tasks as they are, which may prove that nothing can be.

use shiftwork_model::{Affinity, Overheads, Span, TaskSet};

use super::case::Case;
use super::catalogue::{Asked, Criterion, Shown, TESTS, Test};
use super::conclude::{improve, in_time};
use super::divide::Divided;
use super::ground::{Ground, overload};
use super::under::rule_under;
use super::{Answer, Best, Rule};
use crate::overheads::{Members, Structure, inflate_part, is_accounted};
use crate::response::demand_fits;
use crate::{Sporadic, Steps};

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
    let divided = Divided::new(set, question.rule);
    let grounds = divided.grounds(question.bound, question.steps);
    let placed: usize = grounds.iter().map(|ground| ground.case.ids.len()).sum();
    let mut free = Trial::new(question, question.rule, grounds);
    if placed < set.tasks.len() || free.hope() == Hope::None {
        return NOTHING.with(Answer::Unschedulable, Some("feasibility"));
    }
    let known = match free.charged(set) {
        Charged::Nothing => return free.decide(&divided, set),
        Charged::TooMuch => NOTHING,
        Charged::StandIns(mut trial) => trial.decide(&divided, set),
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

impl Question<'_> {
    fn admits(&self, test: &Test) -> bool {
        self.only.is_none_or(|only| only.contains(&test.name))
    }

    /// Whether tests for this criterion may tell anything of the part that is not known yet and matters.
    fn needs(&self, phase: Criterion, ground: &Ground) -> bool {
        let is_answered = match self.criterion {
            Criterion::Soft => ground.is_shown(Criterion::Soft),
            Criterion::Hard => ground.refuted.is_some(),
        };
        let is_refuted = phase == Criterion::Hard && ground.refuted.is_some();
        let is_wanted = self.tardiness || !is_answered;
        is_wanted && !is_refuted && !ground.is_shown(Criterion::Hard)
    }
}

/// What may still be shown of tasks, as far as sums tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Hope {
    /// Nothing: the demand does not fit, or something is no task.
    None,
    /// That tardiness is bounded; some task alone cannot meet its deadline.
    Soft,
    /// Anything.
    All,
}

impl Hope {
    fn of(ground: &Ground) -> Self {
        let case = &ground.case;
        let fits = match case.is_global() {
            true => demand_fits(&case.tasks, case.cpus.len()),
            false => overload(std::slice::from_ref(ground)).is_none(),
        };
        if !fits || !case.tasks.iter().all(Sporadic::is_possible) {
            return Self::None;
        }
        match case.tasks.iter().any(|task| task.cost > task.deadline) {
            true => Self::Soft,
            false => Self::All,
        }
    }

    const fn reaches(self, criterion: Criterion) -> bool {
        match criterion {
            Criterion::Hard => matches!(self, Self::All),
            Criterion::Soft => !matches!(self, Self::None),
        }
    }
}

/// What becomes of the tasks under overheads.
enum Charged<'a> {
    /// Scheduling is free, or no accounting is known.
    Nothing,
    /// No tasks can stand for them, or these need more than there is.
    TooMuch,
    /// These stand for them.
    StandIns(Trial<'a>),
}

/// Tests being asked about the parts of a task set.
struct Trial<'a> {
    question: &'a Question<'a>,
    rule: Rule,
    grounds: Vec<Ground>,
    /// By part: how much later than the real tasks these are released; nothing if they are the real ones.
    delays: Vec<Vec<Span>>,
    /// By task: the best that is known; nothing until something is.
    best: Vec<Option<Best>>,
}

impl<'a> Trial<'a> {
    const fn new(question: &'a Question<'a>, rule: Rule, grounds: Vec<Ground>) -> Self {
        Self {
            question,
            rule,
            grounds,
            delays: Vec::new(),
            best: Vec::new(),
        }
    }

    fn hope(&self) -> Hope {
        let hopes = self.grounds.iter().map(Hope::of);
        hopes.min().unwrap_or(Hope::All)
    }

    /// The same tasks with the overheads of the question charged to them.
    fn charged(&self, set: &TaskSet) -> Charged<'a> {
        let Some((structure, overheads)) = self.question.price else {
            return Charged::Nothing;
        };
        let is_uniform = |ground: &Ground| ground.case.is_global();
        if !is_accounted(self.rule) || !self.grounds.iter().all(is_uniform) {
            return Charged::Nothing;
        }
        let mut charged = Trial::new(self.question, rule_under(self.rule), Vec::new());
        for ground in &self.grounds {
            let members = Members {
                cpus: &ground.case.cpus,
                tasks: &ground.case.tasks,
            };
            let inflated = inflate_part(set, (self.rule, structure), &members, overheads);
            let tasks: Option<Vec<Sporadic>> = inflated.iter().map(|one| one.task).collect();
            let Some(tasks) = tasks else {
                return Charged::TooMuch;
            };
            let ground = Ground::new(ground.case.with(tasks), ground.steps);
            if Hope::of(&ground) == Hope::None {
                return Charged::TooMuch;
            }
            charged.grounds.push(ground);
            if self.question.tardiness {
                let delays = inflated.iter().map(|one| one.delay);
                charged.delays.push(delays.collect());
            }
        }
        Charged::StandIns(charged)
    }

    /// Asks the tests until the answer is known.
    fn decide(&mut self, divided: &Divided<'_>, real: &TaskSet) -> Decision {
        let criterion = self.question.criterion;
        let hope = self.hope();
        // Who meets all deadlines is never tardy, and bounds may be within deadlines.
        let phases = match criterion {
            Criterion::Hard => [Criterion::Hard, Criterion::Soft],
            Criterion::Soft => [Criterion::Soft, Criterion::Hard],
        };
        for phase in phases.into_iter().filter(|&phase| hope.reaches(phase)) {
            self.ask_for(phase, divided);
        }
        for ground in &mut self.grounds {
            let by = in_time(ground, &self.best);
            ground.note_in_time(by);
        }
        let (answer, by) = match criterion {
            _ if !hope.reaches(criterion) => (Answer::Unschedulable, Some("feasibility")),
            Criterion::Hard if self.refuted().is_some() => (Answer::Unschedulable, self.refuted()),
            _ if self.is_shown(criterion) => (Answer::Schedulable, self.costliest()),
            _ => (Answer::Unknown, None),
        };
        Decision {
            answer,
            by,
            tardiness: match self.question.tardiness {
                true => self.tardiness(real),
                false => None,
            },
        }
    }

    fn is_shown(&self, criterion: Criterion) -> bool {
        self.grounds.iter().all(|ground| ground.is_shown(criterion))
    }

    /// The exact test that has failed for some part, if any has.
    fn refuted(&self) -> Option<&'static str> {
        let mut refuted = self
            .grounds
            .iter()
            .filter_map(|ground| ground.refuted.as_ref());
        refuted.next().map(|&(test, _)| test)
    }

    /// The last of the tests, in their order, that show the parts.
    fn costliest(&self) -> Option<&'static str> {
        let criterion = self.question.criterion;
        let by = self
            .grounds
            .iter()
            .filter_map(|ground| ground.by(criterion));
        by.max_by_key(|by| TESTS.iter().position(|test| test.name == *by))
    }

    /// Asks all tests for this criterion, each about those parts of which it may tell something new.
    fn ask_for(&mut self, phase: Criterion, divided: &Divided<'_>) {
        for test in TESTS.iter().filter(|test| test.criterion == phase) {
            if !test.speaks_of(self.rule) || !self.question.admits(test) {
                continue;
            }
            match test.asked {
                Asked::Parts(run) => self.ask_parts(phase, test, run),
                Asked::Whole(run) => self.ask_whole(phase, (test, run), divided),
                Asked::Aside(_) => {}
            }
        }
    }

    fn ask_parts(&mut self, phase: Criterion, test: &Test, run: Ask) {
        for ground in &mut self.grounds {
            if !self.question.needs(phase, ground) || !test.takes(self.rule, &ground.case) {
                continue;
            }
            match run(&ground.case, &mut Steps::at_most(ground.steps)) {
                Shown::Pass(bounds) => {
                    ground.note(test);
                    if let Some(bounds) = bounds {
                        keep(&mut self.best, test.name, &ground.case, &bounds);
                    }
                }
                Shown::Fail(Some(witness)) => ground.refuted = Some((test.name, witness)),
                Shown::Fail(None) | Shown::StepLimit => {}
            }
        }
    }

    fn ask_whole(&mut self, phase: Criterion, (test, run): (&Test, Ask), divided: &Divided<'_>) {
        let needs = |ground| self.question.needs(phase, ground);
        if !self.grounds.iter().any(needs) {
            return;
        }
        let whole = divided.whole(self.question.steps);
        let passes = || {
            let shown = run(&whole.case, &mut Steps::at_most(whole.steps));
            matches!(shown, Shown::Pass(_))
        };
        if test.takes(self.rule, &whole.case) && passes() {
            self.grounds.iter_mut().for_each(|ground| ground.note(test));
        }
    }

    /// What proves that deadlines are missed, if anything does: one before the cost, or an exact test that fails.
    fn disproof(&self) -> Option<&'static str> {
        if self.question.criterion == Criterion::Soft {
            return None;
        }
        if self.hope() == Hope::Soft {
            return Some("feasibility");
        }
        let exact = TESTS.iter().filter(|test| test.exact.is_some());
        let mut asked =
            exact.filter(|test| test.speaks_of(self.rule) && self.question.admits(test));
        let fails = |test: &Test| {
            let Asked::Parts(run) = test.asked else {
                return false;
            };
            self.grounds.iter().any(|ground| {
                let shown = || run(&ground.case, &mut Steps::at_most(ground.steps));
                test.takes(self.rule, &ground.case) && matches!(shown(), Shown::Fail(Some(_)))
            })
        };
        asked.find(|test| fails(test)).map(|test| test.name)
    }

    /// The largest of all bounds on tardiness, if every task has one.
    fn tardiness(&self, real: &TaskSet) -> Option<Span> {
        let mut largest = Span::ZERO;
        for (part, ground) in self.grounds.iter().enumerate() {
            if ground.is_shown(Criterion::Hard) {
                continue;
            }
            for (place, id) in ground.case.ids.iter().enumerate() {
                let delay = self
                    .delays
                    .get(part)
                    .map_or(Span::ZERO, |delays| delays[place]);
                let response = self.best.get(id.index())?.as_ref()?.response + delay;
                let deadline = real.tasks[id.index()].deadline;
                largest = largest.max(response.min(Span::MAX).saturating_sub(deadline));
            }
        }
        Some(largest)
    }
}

/// How a test is asked about a case.
type Ask = fn(&Case, &mut Steps) -> Shown;

/// Keeps bounds on the response times of a part.
fn keep(best: &mut Vec<Option<Best>>, test: &'static str, case: &Case, bounds: &[Span]) {
    let last = case.ids.iter().map(|id| id.index()).max();
    let needed = last.map_or(0, |last| last + 1);
    if best.len() < needed {
        best.resize(needed, None);
    }
    for (id, &response) in case.ids.iter().zip(bounds) {
        improve(&mut best[id.index()], response, test);
    }
}
