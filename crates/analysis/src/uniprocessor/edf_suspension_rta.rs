//! EDF on one CPU: response times of tasks that suspend themselves within jobs.

use std::cmp::Reverse;

use shiftwork_model::Span;

use super::{Suspending, span};
use crate::exact::{Demand, Rate, units_of, whole};
use crate::{NotShown, Outcome, Steps};

/// The number of passes over all tasks in which the choice for each may change.
const PASSES: usize = 2;

/// One choice may take such a part of the steps that are left.
const PARTS: u64 = 64;

/// Bounds on the response times, in the order of the tasks, each at most the period of its task, whether or not they are within
/// the deadlines; or a task for which none is found, which does not show that it is late.
///
/// Numbers R bound the responses if for each task k there are tasks A so that for all a >= 0 the least t > 0 with W(t) <= t
/// exists and is at most a + `R_k`. W(t) is `C_k + S_k`, and of each task i of A min(m, ceil(t / T_i)) (C_i + S_i), and of each
/// other min(f, ceil((t + R_i - C_i) / T_i) C_i). m is the number of jobs that may be released and due in a window that begins a
/// before the job of k and ends with its deadline, f the work of jobs that are due by then and complete within R, and
/// of k itself both count the jobs before. Where A is empty a = 0 is enough. The least R of those choices that are tried are found by
/// iteration from C + S.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, on one CPU alone, with any deadlines. A job may suspend itself at any times. Equal
/// deadlines count as more urgent both ways.
///
/// # Cost
/// One step per task and iteration of a recurrence, for each of few values of a, for each of a number of choices of A that is linear in the
/// number of tasks, for each task whenever its bound has risen; pseudo-polynomial. A choice that takes too large a part of
/// the steps is given up.
///
/// # Source
/// Our own: `docs/theory/suspensions.md`, Theorem 4. The offsets are those of M. Spuri, INRIA RR-2772, 1996; that jobs left from before
/// are complete within bounds that are yet to be found is as in J.-J. Chen, G. Nelissen, W.-H. Huang, ECRTS 2016.
pub fn edf_rta_with_suspensions(
    tasks: &[Suspending],
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Span>> {
    let is_hopeless = |of: &Suspending| {
        let task = &of.ranked.task;
        !task.is_possible() || of.alone() > task.period_ns()
    };
    if let Some(place) = tasks.iter().position(is_hopeless) {
        return Outcome::Fail(NotShown { place });
    }
    let mut search = Search::new(tasks);
    let mut rises = true;
    while rises {
        rises = false;
        for own in 0..tasks.len() {
            match search.raise(own, steps) {
                None => return Outcome::StepLimit,
                Some(Raised::Beyond) => return Outcome::Fail(NotShown { place: own }),
                Some(Raised::To(response)) => {
                    rises |= response > search.responses[own];
                    search.responses[own] = response;
                }
            }
        }
    }
    Outcome::Pass(search.responses.into_iter().map(span).collect())
}

/// What the bound of a task has to be, as the others are now.
enum Raised {
    To(u128),
    /// More than the period, by all choices that are tried.
    Beyond,
}

/// Numbers R that rise until they are bounds.
struct Search<'a> {
    tasks: &'a [Suspending],
    responses: Vec<u128>,
    /// By task k, which tasks were in A for the last bound.
    choices: Vec<Vec<bool>>,
    /// Choices to begin with.
    first: Vec<Vec<bool>>,
}

impl<'a> Search<'a> {
    fn new(tasks: &'a [Suspending]) -> Self {
        let none = vec![false; tasks.len()];
        let share = |of: &Suspending, whole: u128| of.suspended() * 1_000_000 / whole.max(1);
        let deadline = |of: &Suspending| of.ranked.task.deadline_ns();
        let first = [
            prefixes(tasks, |of| Reverse(deadline(of))),
            prefixes(tasks, |of| share(of, of.ranked.task.period_ns())),
            prefixes(tasks, |of| share(of, of.cost())),
        ];
        Self {
            tasks,
            responses: tasks.iter().map(Suspending::alone).collect(),
            choices: vec![none.clone(); tasks.len()],
            first: [none].into_iter().chain(first.concat()).collect(),
        }
    }

    /// The least bound that is found, no less than what is assumed now; `None` when out of steps.
    ///
    /// The last choice stays as long as it shows what is assumed. Else the best of those to begin with is taken, and changed for
    /// one task after the other as long as it helps, in a bounded number of passes.
    fn raise(&mut self, own: usize, steps: &mut Steps) -> Option<Raised> {
        let mut trial = Trial {
            known: self.responses[own],
            best: self.tasks[own].ranked.task.period_ns() + 1,
            choice: self.choices[own].clone(),
            gave_up: false,
        };
        let beyond = trial.best;
        self.attempt(own, &mut trial, self.choices[own].clone(), steps)?;
        for choice in &self.first {
            self.attempt(own, &mut trial, choice.clone(), steps)?;
        }
        for _ in 0..PASSES {
            let before = trial.best;
            for place in 0..self.tasks.len() {
                let mut choice = trial.choice.clone();
                choice[place] = !choice[place];
                self.attempt(own, &mut trial, choice, steps)?;
            }
            if trial.best == before {
                break;
            }
        }
        match trial.best < beyond {
            true => {
                self.choices[own] = trial.choice;
                Some(Raised::To(trial.best.max(trial.known)))
            }
            // A choice that was given up may have shown it.
            false if trial.gave_up => None,
            false => Some(Raised::Beyond),
        }
    }

    /// Keeps this choice if it is better than those before, unless one of these shows all that is assumed.
    fn attempt(
        &self,
        own: usize,
        trial: &mut Trial,
        choice: Vec<bool>,
        steps: &mut Steps,
    ) -> Option<()> {
        if trial.best <= trial.known {
            return Some(());
        }
        steps.take(self.tasks.len())?;
        let window = Window::new(self, own, &choice);
        let mut part = steps.set_aside(PARTS);
        let found = window.bound(trial.best - 1, &mut part);
        steps.give_back(part);
        match found {
            None => trial.gave_up = true,
            Some(None) => {}
            Some(Some(bound)) => {
                trial.best = bound;
                trial.choice = choice;
            }
        }
        Some(())
    }
}

/// The best choice so far.
struct Trial {
    /// What is assumed of the task: no bound need be less.
    known: u128,
    /// The least bound that is found, or one more than the longest that counts.
    best: u128,
    choice: Vec<bool>,
    /// Whether a choice took too many steps.
    gave_up: bool,
}

/// The first task in this order, the first two, and so on.
fn prefixes<Key: Ord>(tasks: &[Suspending], key: impl Fn(&Suspending) -> Key) -> Vec<Vec<bool>> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&place| key(&tasks[place]));
    let mut chosen = vec![false; tasks.len()];
    let add = |place: usize| {
        chosen[place] = true;
        chosen.clone()
    };
    order.into_iter().map(add).collect()
}

/// What one task adds to W.
struct Term {
    /// Whether the task is in A.
    computes: bool,
    /// What a job takes, with its suspensions if the task is in A.
    cost: u128,
    period: u128,
    /// How much longer than t the time is in which jobs are released that count: R - C, and 0 if the task is in A.
    ahead: u128,
    /// The offset and `lead` less `late` is x of a task that is not in A, and of one in A the time in which jobs are released.
    lead: u128,
    late: u128,
}

impl Term {
    fn reach(&self, offset: u128) -> Option<u128> {
        (offset + self.lead).checked_sub(self.late)
    }

    /// The number of jobs that are released in time.
    fn released(&self, time: u128) -> u128 {
        (time + self.ahead).div_ceil(self.period)
    }

    /// What jobs take that are due in time.
    fn due(&self, offset: u128) -> u128 {
        let Some(reach) = self.reach(offset) else {
            return 0;
        };
        let begun = match self.computes {
            true => self.cost,
            false => (reach % self.period).min(self.cost),
        };
        (reach / self.period)
            .saturating_mul(self.cost)
            .saturating_add(begun)
    }

    fn adds(&self, offset: u128, time: u128) -> u128 {
        let released = self.released(time).saturating_mul(self.cost);
        released.min(self.due(offset))
    }

    /// The least offset from which on to this one the term is the same, for each time up to this one.
    fn same_from(&self, offset: u128, time: u128) -> u128 {
        let Some(reach) = self.reach(offset) else {
            return 0;
        };
        // Where the work of the last job that counts is all due.
        let whole = if self.computes { 0 } else { self.cost };
        let Some(beyond) = reach.checked_sub(whole) else {
            return if reach == 0 { 0 } else { offset };
        };
        let last = (beyond / self.period).min(self.released(time) - 1);
        let since = beyond - last * self.period;
        let rises =
            !self.computes && last < self.released(time) - 1 && since > self.period - self.cost;
        match rises {
            true => offset,
            false => offset.saturating_sub(since),
        }
    }

    /// For how far below this offset the term is less by as much as the offset is, at this time.
    fn falls_for(&self, offset: u128, time: u128) -> u128 {
        let reach = self.reach(offset).filter(|&reach| reach > 0);
        match reach {
            Some(reach) if !self.computes => {
                let since = (reach - 1) % self.period + 1;
                let is_due = self.due(offset) <= self.released(time).saturating_mul(self.cost);
                if since <= self.cost && is_due {
                    since
                } else {
                    0
                }
            }
            _ => 0,
        }
    }
}

/// The windows of a task with one choice of A.
struct Window {
    /// What the job itself takes.
    own: u128,
    terms: Vec<Term>,
    /// Whether a window may begin before the job is released.
    begins_early: bool,
    /// Whether windows end, whatever the offset.
    ends: bool,
}

impl Window {
    fn new(search: &Search<'_>, own: usize, choice: &[bool]) -> Self {
        let deadline = search.tasks[own].ranked.task.deadline_ns();
        let term = |(place, of): (usize, &Suspending)| {
            let task = &of.ranked.task;
            let (computes, response) = (choice[place], search.responses[place]);
            let (cost, ahead, left) = match computes {
                true => (of.alone(), 0, 0),
                false => (of.cost(), response - of.cost(), response),
            };
            // Of the task itself the jobs before.
            let late = match place == own {
                true => deadline + task.period_ns(),
                false => task.deadline_ns(),
            };
            Term {
                computes,
                cost,
                period: task.period_ns(),
                ahead,
                lead: deadline + left,
                late,
            }
        };
        let mut others = (0..choice.len()).filter(|&place| place != own);
        Self {
            own: search.tasks[own].alone(),
            terms: search.tasks.iter().enumerate().map(term).collect(),
            begins_early: others.any(|place| choice[place]),
            ends: is_below_one(search.tasks, choice),
        }
    }

    /// The longest response for any offset, if it is found to be within the limit. The outer `None` when out of steps.
    ///
    /// From an offset on which the response is short enough it goes down, as QPA does. The finish does not fall as the offset grows, so what
    /// is shown at an offset is shown down to the offset at which the same finish would be too late; and where it is the
    /// same for all offsets of an interval the response is longest for the first of these.
    fn bound(&self, limit: u128, steps: &mut Steps) -> Option<Option<u128>> {
        let Some(mut longest) = self.finish(0, limit, steps)? else {
            return Some(None);
        };
        if !self.begins_early {
            return Some(Some(longest));
        }
        if !self.ends {
            return Some(None);
        }
        let mut offset = self.last_finish(steps)?.saturating_sub(longest);
        while offset > 0 {
            let Some(finish) = self.finish(offset, limit, steps)? else {
                return Some(None);
            };
            steps.take(2 * self.terms.len())?;
            let same = self.terms.iter().map(|term| term.same_from(offset, finish));
            let first = same.max().unwrap_or(0);
            longest = longest.max(finish.saturating_sub(first));
            if longest > limit {
                return Some(None);
            }
            let shown = finish.saturating_sub(longest);
            offset = match shown < first {
                true => shown,
                false => {
                    // The response is the longest here, and as long where the finish falls with the offset.
                    let falls = self.terms.iter().map(|term| term.falls_for(first, finish));
                    first.saturating_sub(falls.max().unwrap_or(0).max(1))
                }
            };
        }
        Some(Some(longest))
    }

    /// The least time with W(t) <= t, unless it is more than the limit after the release.
    fn finish(&self, offset: u128, limit: u128, steps: &mut Steps) -> Option<Option<u128>> {
        let last = offset + limit;
        let mut time = self.own;
        while time <= last {
            steps.take(self.terms.len() + 1)?;
            let adds = self.terms.iter().map(|term| term.adds(offset, time));
            match adds.fold(self.own, u128::saturating_add) {
                sum if sum > time => time = sum,
                _ => return Some(Some(time)),
            }
        }
        Some(None)
    }

    /// A time by which all windows end: the least with W(t) <= t for an offset without end.
    fn last_finish(&self, steps: &mut Steps) -> Option<u128> {
        let mut time = self.own;
        loop {
            steps.take(self.terms.len() + 1)?;
            let adds = |term: &Term| term.released(time).saturating_mul(term.cost);
            match self
                .terms
                .iter()
                .map(adds)
                .fold(self.own, u128::saturating_add)
            {
                sum if sum > time => time = sum,
                _ => return Some(time),
            }
        }
    }
}

/// Whether what is counted of the tasks is less than the CPU does in the long run.
fn is_below_one(tasks: &[Suspending], choice: &[bool]) -> bool {
    let mut used = Demand::default();
    for (of, &computes) in tasks.iter().zip(choice) {
        let task = &of.ranked.task;
        let work = match computes {
            true => task.cost + of.suspension,
            false => task.cost,
        };
        match Rate::new(work, task.period) {
            Some(rate) => used.add(rate),
            None => return false,
        }
    }
    used.units_max() < units_of(whole())
}

#[cfg(test)]
mod tests {
    use shiftwork_model::RandomStream;

    use super::Term;

    fn random(stream: &mut RandomStream) -> Term {
        let period = 1 + stream.below(12);
        let cost = 1 + stream.below(period);
        let (computes, response) = (stream.below(3) == 0, cost + stream.below(period - cost + 1));
        let (ahead, left) = match computes {
            true => (0, 0),
            false => (response - cost, response),
        };
        Term {
            computes,
            cost: cost.into(),
            period: period.into(),
            ahead: ahead.into(),
            lead: u128::from(stream.below(20) + left),
            late: stream.below(20).into(),
        }
    }

    #[test]
    fn term_is_the_same_and_falls_where_it_is_said_to() {
        for seed in 0..20_000 {
            let stream = &mut RandomStream::new(seed, 151, 0);
            let term = random(stream);
            let (offset, time) = (stream.below(40).into(), 1 + u128::from(stream.below(40)));
            let context = format!("seed {seed}: offset {offset}, time {time}");
            let is_same =
                |from: u128| (1..=time).all(|t| term.adds(from, t) == term.adds(offset, t));
            let same_from = term.same_from(offset, time);
            assert!((same_from..=offset).all(is_same), "{context}");
            assert!(same_from == 0 || !is_same(same_from - 1), "{context}");
            let falls = term.falls_for(offset, time).min(offset);
            let adds = term.adds(offset, time);
            let is_less = |by: u128| term.adds(offset - by, time) + by == adds;
            assert!((0..=falls).all(is_less), "{context}");
            let is_longest = term.computes || falls == offset || term.cost == term.period;
            assert!(is_longest || !is_less(falls + 1), "{context}");
        }
    }
}
