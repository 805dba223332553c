//! One question about one policy, by the cheapest way to its answer: for studies, which ask millions.
//!
//! The answer is that of [`analyse_under`](super::analyse_under); what differs is that nothing is asked that
//! the answer does not need. In this order:
//!
//! 1. Demand that does not fit, which no test can show: sums of integers.
//! 2. Overheads are charged. If what the tasks need then does not fit, nothing is shown.
//! 3. The tests, each of the parts that none before it shows, until all are shown.
//! 4. Where nothing was shown: the exact tests, of the tasks as they are, which may prove that nothing can be.

use shiftwork_model::{Affinity, Overheads, PolicyTraits, Span, TaskSet};

use super::analyse::analyse_one;
use super::ask::Shown;
use super::case::Case;
use super::catalogue::{Asked, Criterion, TESTS, Test};
use super::conclude::{improve, in_time};
use super::divide::Divided;
use super::ground::Ground;
use super::hope::Hope;
use super::under::under_overheads;
use super::waiting::{still_refutes, too_long};
use super::{Answer, Best, Found, jitter};
use crate::Sporadic;
use crate::overheads::{Members, Structure, inflate_part, is_accounted};
use crate::stand_ins::{StandIns, waits};

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The properties of the policy.
    pub traits: PolicyTraits,
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

impl<'a> Question<'a> {
    /// By all tests, for a scheduler that costs nothing, and without bounds on tardiness.
    pub const fn new(
        traits: PolicyTraits,
        bound: &'a [Affinity],
        criterion: Criterion,
        steps: u64,
    ) -> Self {
        Self {
            traits,
            bound,
            price: None,
            criterion,
            steps,
            only: None,
            tardiness: false,
        }
    }
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
    pub(super) const fn with(self, answer: Answer, by: Option<&'static str>) -> Self {
        Self { answer, by, ..self }
    }
}

/// Answers the question about tasks without arrival curves, or of which some trigger others.
pub(super) fn decide_by_period(set: &TaskSet, question: &Question<'_>) -> Decision {
    match waits(set) {
        true if set.first_triggered().is_some() => decide_triggered(set, question),
        true => decide_waiting(set, question),
        false => decide_at_once((set, &[]), question),
    }
}

/// Answers the question about tasks of which some trigger others, where scheduling is free.
fn decide_triggered(set: &TaskSet, question: &Question<'_>) -> Decision {
    if question.price.is_some() {
        return NOTHING;
    }
    let asked = (&question.traits, question.bound);
    let Some(found) = analyse_one(set, asked, question.steps) else {
        return NOTHING;
    };
    let judgement = found.judgement(question.criterion);
    let is_asked = |by: &&str| question.only.is_none_or(|only| only.contains(by));
    if judgement.answer != Answer::Schedulable || !judgement.by.iter().all(is_asked) {
        return NOTHING;
    }
    Decision {
        answer: Answer::Schedulable,
        by: judgement.by.last().copied(),
        tardiness: found.tardiness(set).filter(|_| question.tardiness),
    }
}

/// Answers the question about tasks whose jobs may have to wait, by those that stand for them.
fn decide_waiting(set: &TaskSet, question: &Question<'_>) -> Decision {
    let known = decide_at_once((set, &[]), question);
    if known.answer == Answer::Unschedulable && still_refutes(set, known.by.as_slice()) {
        return Decision {
            tardiness: None,
            ..known
        };
    }
    if question.criterion == Criterion::Hard && too_long(set).is_some() {
        return NOTHING.with(Answer::Unschedulable, Some("feasibility"));
    }
    // What a job costs that had to wait is not accounted for.
    if is_charged(set, question) {
        return NOTHING;
    }
    let known = match StandIns::of_bound(set, &question.traits, Some(question.bound)) {
        // Tardiness is that of the real jobs: the deadlines of the stand-ins are earlier by their delays.
        StandIns::Other(others) => decide_at_once((&others.set, &others.suspensions), question),
        StandIns::Same | StandIns::Unknown => NOTHING,
    };
    if known.answer == Answer::Schedulable {
        return known;
    }
    let parts = (question.bound, question.steps);
    let by = jitter::in_time(set, &question.traits, parts, |test| {
        question.only.is_none_or(|only| only.contains(&test))
    });
    match by {
        Some(by) => Decision {
            answer: Answer::Schedulable,
            by: by.last().copied(),
            tardiness: question.tardiness.then_some(Span::ZERO),
        },
        None => known.with(Answer::Unknown, None),
    }
}

/// Whether overheads are charged to the tasks.
fn is_charged(set: &TaskSet, question: &Question<'_>) -> bool {
    let divided = Divided::new(set, &question.traits);
    let grounds = divided.grounds(question.bound, question.steps);
    let trial = Trial::new(question, question.traits, grounds);
    !matches!(trial.charged(set), Charged::Nothing)
}

/// Answers the question as if each job might run from its arrival on; where a test counts suspensions, it may be suspended for
/// so much of its cost, by task (empty: none).
fn decide_at_once((set, suspensions): (&TaskSet, &[Span]), question: &Question<'_>) -> Decision {
    let divided = Divided::new(set, &question.traits).with_suspensions(suspensions);
    let grounds = divided.grounds(question.bound, question.steps);
    let placed: usize = grounds.iter().map(|ground| ground.case.ids.len()).sum();
    let mut free = Trial::new(question, question.traits, grounds);
    if placed < set.tasks.len() || free.hope() == Hope::None {
        return NOTHING.with(Answer::Unschedulable, Some("feasibility"));
    }
    let known = match free.charged(set) {
        Charged::Nothing => free.decide(&divided, set),
        Charged::TooMuch => NOTHING,
        Charged::StandIns(mut trial) => trial.decide(&divided, set),
    };
    if known.answer == Answer::Schedulable {
        return known;
    }
    // What is not shown, or not under overheads, need not be wrong.
    match free.disproof() {
        Some(test) => known.with(Answer::Unschedulable, Some(test)),
        None => known.with(Answer::Unknown, None),
    }
}

impl Question<'_> {
    fn admits(&self, test: &Test) -> bool {
        self.only.is_none_or(|only| only.contains(&test.name))
    }

    /// Whether tests for this criterion may still show something of the part that matters.
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
    traits: PolicyTraits,
    grounds: Vec<Ground>,
    /// By part: how much later than the real tasks these are released; nothing if they are the real ones.
    delays: Vec<Vec<Span>>,
    /// By task: the best that is known; nothing until something is.
    best: Vec<Option<Best>>,
}

impl<'a> Trial<'a> {
    const fn new(question: &'a Question<'a>, traits: PolicyTraits, grounds: Vec<Ground>) -> Self {
        Self {
            question,
            traits,
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
        if !is_accounted(&self.traits) || !self.grounds.iter().all(is_uniform) {
            return Charged::Nothing;
        }
        let mut charged = Trial::new(self.question, under_overheads(&self.traits), Vec::new());
        for ground in &self.grounds {
            let members = Members {
                cpus: &ground.case.cpus,
                tasks: &ground.case.tasks,
            };
            let inflated = inflate_part(set, (&self.traits, structure), &members, overheads);
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
        // A task that meets all deadlines is never tardy, and bounds may be within deadlines.
        let phases = match criterion {
            Criterion::Hard => [Criterion::Hard, Criterion::Soft],
            Criterion::Soft => [Criterion::Soft, Criterion::Hard],
        };
        for phase in phases.into_iter().filter(|&phase| hope.reaches(phase)) {
            self.ask_about_whole(phase, divided);
        }
        let tests = phases.map(|phase| (phase, self.admitted(phase)));
        let (tests, times): (Vec<_>, Vec<_>) = tests
            .into_iter()
            .map(|(phase, tests)| {
                let (times, tests) = tests.into_iter().partition(|test| test.is_for_times());
                ((phase, tests), (phase, times))
            })
            .unzip();
        // Response times last: tasks that are shown to meet all deadlines need none.
        let tests: Vec<(Criterion, Vec<&Test>)> = tests.into_iter().chain(times).collect();
        for place in 0..self.grounds.len() {
            // Of a part that hopes for more than another one, deadlines that are met bound tardiness: where tasks suspend themselves
            // it may be that nothing else does.
            let ground = &self.grounds[place];
            let hope = match hope {
                Hope::Soft if self.wants_soft() && !ground.case.suspensions.is_empty() => {
                    Hope::of(ground)
                }
                hope => hope,
            };
            for (phase, tests) in tests.iter().filter(|(phase, _)| hope.reaches(*phase)) {
                self.ask_about(place, *phase, tests);
            }
            let ground = &mut self.grounds[place];
            let by = in_time(&ground.case.ids, &ground.case.tasks, &self.best);
            ground.note_in_time(by);
            if !ground.is_shown(criterion) && !self.question.tardiness {
                break;
            }
        }
        let (answer, by) = match self.is_shown(criterion) {
            true => (Answer::Schedulable, self.costliest()),
            false => (Answer::Unknown, None),
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

    fn wants_soft(&self) -> bool {
        self.question.tardiness || self.question.criterion == Criterion::Soft
    }

    fn is_shown(&self, criterion: Criterion) -> bool {
        self.grounds.iter().all(|ground| ground.is_shown(criterion))
    }

    /// The last of the tests that show the parts, in the order in which they are asked.
    fn costliest(&self) -> Option<&'static str> {
        let criterion = self.question.criterion;
        let by = self
            .grounds
            .iter()
            .flat_map(|ground| ground.all_by(criterion));
        by.max_by_key(|by| in_order(criterion).position(|test| test.name == *by))
    }

    /// The tests for this criterion that speak of the policy and are not excluded, the cheapest first.
    fn admitted(&self, phase: Criterion) -> Vec<&'static Test> {
        let admitted = |test: &&Test| test.speaks_of(&self.traits) && self.question.admits(test);
        in_order(phase).filter(admitted).collect()
    }

    /// Applies tests for this criterion to one part, until they can show nothing new.
    fn ask_about(&mut self, place: usize, phase: Criterion, tests: &[&Test]) {
        let ground = &mut self.grounds[place];
        let mut failed: Option<&str> = None;
        for test in tests {
            if !self.question.needs(phase, ground) {
                return;
            }
            // A test that is named is asked for its verdict; otherwise that of response times comes from other tests.
            let is_named = self.question.only.is_some();
            let is_asked = match test.asked {
                Asked::Parts(_) => true,
                Asked::Times(_) => self.question.tardiness || is_named,
                Asked::Whole(_) | Asked::Aside(_) => false,
            };
            let is_dominated = failed.is_some_and(|failed| dominates(failed, test.name));
            if !is_asked || is_dominated || !test.takes(&self.traits, &ground.case) {
                continue;
            }
            let shown = ground.ask(test);
            let keep = |case: &_, bounds: &_| keep(&mut self.best, test.name, case, bounds);
            match ground.learn(test, &shown, keep) {
                Found::Pass if is_named => ground.note(test),
                Found::Fail => failed = Some(test.name),
                _ => {}
            }
        }
    }

    /// Asks those tests for this criterion that look at all parts at once.
    fn ask_about_whole(&mut self, phase: Criterion, divided: &Divided<'_>) {
        for test in self.admitted(phase) {
            let needs = |ground| self.question.needs(phase, ground);
            if !matches!(test.asked, Asked::Whole(_)) || !self.grounds.iter().any(needs) {
                continue;
            }
            let whole = divided.whole(self.question.steps);
            if test.takes(&self.traits, &whole.case) && matches!(whole.ask(test), Shown::Pass(_)) {
                self.grounds.iter_mut().for_each(|ground| ground.note(test));
            }
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
        let mut refuted = self
            .grounds
            .iter()
            .filter_map(|ground| ground.refuted.as_ref());
        if let Some((test, _)) = refuted.next() {
            return Some(test);
        }
        let is_asked = |test: &&Test| {
            let is_exact = test.exact.is_some() && matches!(test.asked, Asked::Parts(_));
            is_exact && test.speaks_of(&self.traits) && self.question.admits(test)
        };
        let fails = |test: &&Test| {
            let grounds = self.grounds.iter();
            let mut open = grounds.filter(|ground| !ground.is_shown(Criterion::Hard));
            open.any(|ground| {
                test.takes(&self.traits, &ground.case)
                    && matches!(ground.ask(test), Shown::Fail(Some(_)))
            })
        };
        let disproof = TESTS.iter().filter(is_asked).find(fails);
        disproof.map(|test| test.name)
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

/// The tests for this criterion, the cheapest first: as in the catalogue but for those that take longest. With 70
/// tasks on 32 CPUs FF-DBF takes 1 us where deadlines are implicit and 7 us else, BAR 16 us, the bound of GEL 2 us, the
/// rounds of BCLI 130 us and those of RTA 1000 us: but these are in vain where RTA fails, and RTA passes early if
/// at all.
fn in_order(phase: Criterion) -> impl Iterator<Item = &'static Test> {
    let rank = |test: &Test| match test.name {
        "bar" => 1,
        "rta" => 2,
        "bcli" => 3,
        _ => 0,
    };
    (0..=3).flat_map(move |wanted| {
        TESTS
            .iter()
            .filter(move |test| test.criterion == phase && rank(test) == wanted)
    })
}

/// Whether the second test fails wherever the first does. RTA starts from the same bounds on interference as BCLI and
/// makes them smaller: a response time that BCLI bounds by R is a fixed point of RTA at R or less, so RTA
/// knows no less slack after any round.
fn dominates(first: &str, second: &str) -> bool {
    (first, second) == ("rta", "bcli")
}

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
