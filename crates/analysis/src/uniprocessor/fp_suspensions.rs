//! Fixed priorities on one CPU: response times of tasks that suspend themselves within jobs.

use shiftwork_model::Span;

use super::span;
use crate::{NotShown, Outcome, Ranked, Steps};

/// A task of which a job may be suspended for some time in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspending {
    /// The task and its priority. The cost does not include the suspension.
    pub ranked: Ranked,
    /// The longest that a job is suspended in all; zero if it never is.
    pub suspension: Span,
}

impl Suspending {
    pub(super) fn cost(&self) -> u128 {
        self.ranked.task.cost_ns()
    }

    pub(super) fn suspended(&self) -> u128 {
        self.suspension.as_ns().into()
    }

    /// What a job takes that nothing interferes with.
    pub(super) fn alone(&self) -> u128 {
        self.cost() + self.suspended()
    }

    /// The longest response that the theorem speaks of: by then the job is in time, and complete before the next release.
    fn limit(&self) -> u128 {
        let task = &self.ranked.task;
        task.deadline_ns().min(task.period_ns())
    }
}

/// A task that may preempt the one that is looked at.
#[derive(Clone, Copy, Debug)]
struct Interfering {
    task: Suspending,
    /// A bound on its response time, no less than [`Suspending::alone`] and no more than [`Suspending::limit`].
    response: u128,
    /// Whether no other task has its priority.
    is_only: bool,
}

impl Interfering {
    /// How much later than the release of a job it may begin to execute, if it executes for the whole cost.
    fn delay(&self) -> u128 {
        self.response - self.task.cost()
    }
}

/// The number of passes over all tasks of which each may change its choice between delay and suspension.
const PASSES: usize = 2;

/// Bounds on the response times, in the order of the tasks, all of them by the deadline and the end of the period; or the
/// first of the most urgent tasks that is not shown to be in time, which does not show that it is late.
///
/// A bound is the least of two: the time that passes if suspensions count as computing, of this task and of all that may
/// preempt it; and the least t above zero with C + S + sum of ceil((t + Q_i + (1 - x_i) (R_i - C_i)) / T_i) C_i <= t over the
/// more urgent tasks i, where x_i is 0 or 1 and Q_i the sum of x_j S_j over those of them that are no more urgent than i, i
/// included. Any choice of x gives a bound; of those that are tried the best counts.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, on one CPU alone. A job may suspend itself at any times. Equal
/// priorities count as more urgent both ways, whatever the order among equals.
///
/// # Cost
/// One step per more urgent task and iteration, for each of a number of choices that is linear in the number of tasks;
/// pseudo-polynomial.
///
/// # Source
/// J.-J. Chen, G. Nelissen, W.-H. Huang, "A Unifying Response Time Analysis Framework for Dynamic Self-Suspending Tasks", ECRTS
/// 2016, Theorem 1. Not published are the search among the choices, equal priorities, and that bounds may come from elsewhere;
/// `docs/theory/suspensions.md` has a proof of all.
pub fn fp_rta_with_suspensions(
    tasks: &[Suspending],
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Span>> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&place| tasks[place].ranked.priority);
    let mut responses = vec![0; tasks.len()];
    let mut urgent: Vec<Interfering> = Vec::new();
    let same =
        |one: &usize, other: &usize| tasks[*one].ranked.priority == tasks[*other].ranked.priority;
    for level in order.chunk_by(same) {
        // Until it is known better, a job of an equal task takes as long as it may.
        let at_most = |&place: &usize| {
            let task = tasks[place];
            Interfering {
                task,
                response: task.limit(),
                is_only: level.len() == 1,
            }
        };
        for &place in level {
            let own = &tasks[place];
            if !own.ranked.task.is_possible() || own.alone() > own.limit() {
                return Outcome::Fail(NotShown { place });
            }
        }
        for &place in level {
            let equals = level.iter().filter(|&&other| other != place).map(at_most);
            let interfering: Vec<Interfering> = urgent.iter().copied().chain(equals).collect();
            match least_bound(&tasks[place], &interfering, steps) {
                None => return Outcome::StepLimit,
                Some(None) => return Outcome::Fail(NotShown { place }),
                Some(Some(response)) => responses[place] = response,
            }
        }
        let known = level.iter().map(|place| Interfering {
            response: responses[*place],
            ..at_most(place)
        });
        urgent.extend(known);
    }
    Outcome::Pass(responses.into_iter().map(span).collect())
}

/// The least bound on the response of a task that is found, if any is within its limit; the outer `None` when out of steps.
fn least_bound(
    own: &Suspending,
    interfering: &[Interfering],
    steps: &mut Steps,
) -> Option<Option<u128>> {
    let as_computing = interfering.iter().map(|other| Term {
        ahead: 0,
        period: other.task.ranked.task.period_ns(),
        cost: other.task.alone(),
    });
    let as_computing = least_time(own, &as_computing.collect::<Vec<_>>(), steps)?;
    let choices = Choices { own, interfering };
    let chosen = choices.best(steps)?;
    Some(as_computing.into_iter().chain(chosen).min())
}

/// The choices for one task: of which others suspensions shift all more urgent ones, and of which the delay counts.
struct Choices<'a> {
    own: &'a Suspending,
    /// The more urgent first, those of the same priority last.
    interfering: &'a [Interfering],
}

impl Choices<'_> {
    /// The least bound that is found. Begins with the best of four choices, and changes that for one task after the other as long
    /// as it helps, in a bounded number of passes.
    fn best(&self, steps: &mut Steps) -> Option<Option<u128>> {
        let mut best: Option<(u128, Vec<bool>)> = None;
        for choice in self.first() {
            let found = self.bound(&choice, steps)?;
            best = best
                .into_iter()
                .chain(found.map(|found| (found, choice)))
                .min();
        }
        let (mut bound, mut choice) = best.unwrap_or_else(|| (u128::MAX, self.by_weight()));
        for _ in 0..PASSES {
            let before = bound;
            for place in (0..choice.len()).filter(|&place| self.is_open(place)) {
                choice[place] = !choice[place];
                match self.bound(&choice, steps)? {
                    Some(found) if found < bound => bound = found,
                    _ => choice[place] = !choice[place],
                }
            }
            if bound == before {
                break;
            }
        }
        Some((bound < u128::MAX).then_some(bound))
    }

    /// Whether there is a choice. Where a task never suspends itself, shifting costs nothing; and among equals the theorem does
    /// not allow it.
    fn is_open(&self, place: usize) -> bool {
        let other = &self.interfering[place];
        other.is_only && !other.task.suspension.is_zero()
    }

    /// A choice where there is one.
    fn choose(&self, shifts: impl Fn(usize, &Interfering) -> bool) -> Vec<bool> {
        let all = self.interfering.iter().enumerate();
        let choice = all.map(|(place, other)| match self.is_open(place) {
            true => shifts(place, other),
            false => other.is_only,
        });
        choice.collect()
    }

    /// The choices to begin with: those of the publication, and all suspensions.
    fn first(&self) -> [Vec<bool>; 4] {
        [
            self.choose(|_, _| false),
            self.choose(|_, _| true),
            self.choose(|_, other| other.task.suspended() <= other.task.cost()),
            self.by_weight(),
        ]
    }

    /// By which of the two adds less to the sum if nothing were rounded.
    fn by_weight(&self) -> Vec<bool> {
        // Rates in millionths: they only guide the search.
        let rate = |other: &Interfering| {
            other.task.cost() * 1_000_000 / other.task.ranked.task.period_ns()
        };
        let rates: Vec<u128> = self.interfering.iter().map(rate).collect();
        self.choose(|place, other| {
            let shifted: u128 = rates[..=place].iter().sum();
            rates[place] * other.delay() > shifted * other.task.suspended()
        })
    }

    /// The bound by one choice, if it is within the limit.
    fn bound(&self, choice: &[bool], steps: &mut Steps) -> Option<Option<u128>> {
        let mut terms = Vec::with_capacity(choice.len());
        // Q.
        let mut shift = 0;
        for (other, &shifts) in self.interfering.iter().zip(choice).rev() {
            let delay = match shifts {
                true => {
                    shift += other.task.suspended();
                    0
                }
                false => other.delay(),
            };
            terms.push(Term {
                ahead: shift + delay,
                period: other.task.ranked.task.period_ns(),
                cost: other.task.cost(),
            });
        }
        least_time(self.own, &terms, steps)
    }
}

/// What one task adds to the sum: the cost for each period that begins in a window that is so much longer.
struct Term {
    ahead: u128,
    period: u128,
    cost: u128,
}

/// The least time that is no less than the sum of the terms and what the task itself takes, if it is within the task's limit.
fn least_time(own: &Suspending, terms: &[Term], steps: &mut Steps) -> Option<Option<u128>> {
    let mut time = own.alone();
    while time <= own.limit() {
        steps.take(terms.len() + 1)?;
        // Times are below 2^64, and so is each factor.
        let sum = terms.iter().try_fold(own.alone(), |sum, term| {
            let jobs = (time + term.ahead).div_ceil(term.period);
            sum.checked_add(jobs.checked_mul(term.cost)?)
        });
        match sum {
            Some(sum) if sum > time => time = sum,
            Some(_) => return Some(Some(time)),
            None => break,
        }
    }
    Some(None)
}
