//! Evaluation of a request: the decision, the reason for a refusal, and what would be granted
//! instead.

use shiftwork_model::{Instant, TaskId};

use super::super::advice::{STEPS, candidates, first_accepted, largest_cost};
use super::super::books::Line;
use super::super::decide::{Counted, Judgement, judge};
use super::super::lingering::{FORMER_MAX, Former, Stay, is_linear};
use super::super::{Claim, Guarantee, words};
use super::{Admitted, Departed, Entry, Refusal};
use crate::Steps;
use crate::exact::beside;

/// What speaks against a claim.
pub(super) struct Against {
    pub(super) judgement: Judgement,
    /// The task that would lose a promise, its guarantee, and the weaker one that would be left.
    pub(super) broken: Option<(TaskId, Guarantee, Guarantee)>,
    /// The least that is promised to a task, and what could be promised to the one that asks.
    pub(super) less: Option<(Guarantee, Guarantee)>,
}

impl Admitted {
    /// What the claim would be promised beside all others, in place of what its task has; nothing
    /// changes. For a machine that has to know before it changes something.
    ///
    /// # Errors
    /// Why it would be refused.
    pub fn consider(&mut self, claim: &Claim) -> Result<Guarantee, Box<Refusal>> {
        let mut answer = self.answer(claim);
        if self.entries.len() <= self.advice_max
            && let Err(refusal) = &mut answer
        {
            self.advise(claim, refusal);
        }
        answer
    }

    /// The same, and nothing is proposed instead.
    pub(super) fn answer(&mut self, claim: &Claim) -> Result<Guarantee, Box<Refusal>> {
        self.check_former(claim)?;
        match self.weigh(claim, &mut Steps::ordinary()) {
            Ok(promise) => Ok(promise),
            Err(against) => Err(Box::new(self.explain(claim, *against))),
        }
    }

    pub(super) fn accepts(&mut self, claim: &Claim, steps: &mut Steps) -> Option<bool> {
        let fits = self.weigh(claim, steps).is_ok();
        (*steps != Steps::at_most(0)).then_some(fits)
    }

    /// Whether the task has not changed so often that it has to wait.
    pub(super) fn check_former(&self, claim: &Claim) -> Result<(), Box<Refusal>> {
        let task = claim.task;
        let former: &[Former] = self.entries.get(&task).map_or(&[], |entry| &entry.former);
        let left = self
            .departed
            .iter()
            .filter(|departed| departed.task == task);
        let ends = |former: &[Former]| former.iter().map(|former| former.until).max();
        if former.len() < FORMER_MAX && left.clone().count() < FORMER_MAX {
            return Ok(());
        }
        let last = left.filter_map(|departed| ends(&departed.former));
        Err(Box::new(Refusal {
            reason: format!(
                "task `{}` has changed {FORMER_MAX} times within its periods; it has to wait until \
                 they are over",
                claim.name
            ),
            witness: None,
            again: last.chain(ends(former)).max(),
        }))
    }

    /// What the claim would be promised beside all others, or what speaks against it.
    pub(super) fn weigh(
        &mut self,
        claim: &Claim,
        steps: &mut Steps,
    ) -> Result<Guarantee, Box<Against>> {
        let (wanted, least) = (self.promising, self.least());
        if let Some(promise) = self.by_sums(claim)
            && least <= promise
        {
            return Ok(wanted.unwrap_or(promise));
        }
        let counted = self.counted(Some(claim), true);
        let judgement = judge(&counted, &self.online, self.terms, steps);
        let judgement = self.check_promises(judgement, Some(claim.task))?;
        let promise = judgement.promise(claim.task).unwrap_or(Guarantee::None);
        match promise < least {
            true => Err(Box::new(Against {
                judgement,
                broken: None,
                less: Some((least, promise)),
            })),
            false => Ok(wanted.unwrap_or(promise)),
        }
    }

    /// The weakest promise with which a claim is admitted: without a promise to all, any but none.
    fn least(&self) -> Guarantee {
        self.promising.unwrap_or(Guarantee::Share)
    }

    /// The same by the books, if they decide it and the answer is yes.
    pub(super) fn by_sums(&mut self, claim: &Claim) -> Option<Guarantee> {
        let entry = self.entries.get(&claim.task);
        let nothing = Line::Nothing;
        let old = entry.map_or(&nothing, |entry| &entry.line);
        let new = Line::of(asking(claim, entry), self.terms, &self.online);
        let (entries, supply) = (&self.entries, beside(self.terms.reserve));
        let is_hard = |task: TaskId| {
            let entry = entries.get(&task).filter(|_| task != claim.task);
            entry.is_some_and(|entry| entry.promise == Some(Guarantee::Hard))
        };
        self.books.promise(claim.task, old, &new, supply, is_hard)
    }

    /// Whether a judgement admits, and keeps the promises to all tasks except `asking`.
    pub(super) fn check_promises(
        &self,
        judgement: Judgement,
        asking: Option<TaskId>,
    ) -> Result<Judgement, Box<Against>> {
        let broken = judgement.tasks.iter().find_map(|&(task, now)| {
            let promise = self.promise(task).filter(|_| asking != Some(task))?;
            (promise > now).then_some((task, promise, now))
        });
        if judgement.fits && broken.is_none() {
            return Ok(judgement);
        }
        Err(Box::new(Against {
            judgement,
            broken,
            less: None,
        }))
    }

    /// In words what speaks against something.
    pub(super) fn explain(&self, claim: &Claim, against: Against) -> Refusal {
        let mut reason = self.reason(&against, &self.counted(Some(claim), true));
        let again = self.again(claim);
        if let Some((former, _)) = &again {
            reason.push_str(former);
        }
        Refusal {
            reason,
            witness: against.judgement.witness,
            again: again.map(|(_, until)| until),
        }
    }

    /// Adds what would be granted instead.
    fn advise(&mut self, claim: &Claim, refusal: &mut Refusal) {
        let mut steps = STEPS;
        let cost = largest_cost(claim, |trial| self.accepts(trial, &mut steps));
        let others = self.entries.values().filter_map(Entry::held);
        let others: Vec<&Claim> = others.filter(|other| other.task != claim.task).collect();
        let wider = candidates(claim, &others, &[], &self.online, self.terms);
        let wider = first_accepted(claim, &wider, |trial| self.accepts(trial, &mut steps));
        if cost.is_some() || wider.is_some() {
            let advice = words::advice(claim, cost, wider.as_ref());
            refusal.reason.push_str(&advice);
        }
    }

    pub(super) fn reason(&self, against: &Against, counted: &Counted<'_>) -> String {
        let why = against.judgement.reason(counted, &self.online, self.terms);
        match (against.broken, against.less) {
            (Some((task, promise, now)), _) => format!(
                "task `{}` was promised `{promise}` and would have `{now}`: {why}",
                self.entries[&task].claim.name
            ),
            // Which promise was wanted does not matter where there is none.
            (None, None | Some((_, Guarantee::None))) => why,
            (None, Some((wanted, now))) => format!(
                "every task is to be promised `{wanted}`, and this one could be promised only `{now}`: {why}"
            ),
        }
    }

    /// If the claim fits except for lingering claims: these as text, and the earliest time to
    /// retry.
    pub(super) fn again(&self, claim: &Claim) -> Option<(String, Instant)> {
        let entries = self.entries.values().flat_map(|entry| &entry.former);
        let departed = self.departed.iter().flat_map(|departed| &departed.former);
        let mut former: Vec<&Former> = entries
            .chain(departed)
            .filter(|former| former.claim.cpus.intersects(&claim.cpus))
            .collect();
        former.sort_by_key(|former| former.until);
        let last = former.last()?.until;
        let counted = self.counted(Some(claim), false);
        let judgement = judge(&counted, &self.online, self.terms, &mut Steps::ordinary());
        let judgement = self.check_promises(judgement, Some(claim.task)).ok()?;
        let promise = judgement.promise(claim.task).unwrap_or(Guarantee::None);
        if promise < self.least() {
            return None;
        }
        let mut latest: Vec<(&Claim, Instant)> = Vec::new();
        for former in former {
            match latest
                .iter_mut()
                .find(|entry| entry.0.task == former.claim.task)
            {
                Some(entry) => entry.1 = former.until,
                None => latest.push((&former.claim, former.until)),
            }
        }
        Some((words::lingering(&latest), last))
    }

    /// All claims that count: those of the tasks that hold a reservation, the `asked` claim in
    /// place of its task's own, and, if `linger`, the lingering claims.
    pub(super) fn counted<'a>(&'a self, asked: Option<&'a Claim>, linger: bool) -> Counted<'a> {
        let own = asked.and_then(|claim| self.entries.get(&claim.task));
        let others = self.entries.values();
        let others =
            others.filter(|entry| asked.is_none_or(|claim| claim.task != entry.claim.task));
        let holders = others.clone().filter(|entry| entry.promise.is_some());
        let waiting = others.filter(|entry| entry.promise.is_none());
        let asking = asked.map(|claim| asking(claim, own));
        let asking = holders
            .map(Entry::stay)
            .chain(asking)
            .map(|stay| match linger {
                true => stay,
                false => Stay {
                    replaced: None,
                    former: &[],
                    ..stay
                },
            });
        let rest = waiting.map(Entry::stay);
        let rest = rest.chain(self.departed.iter().map(Departed::stay));
        let rest = rest.filter(|_| linger);
        let stays: Vec<Stay<'a>> = asking.clone().chain(rest.clone()).collect();
        let linear = is_linear(self.terms, stays.iter().flat_map(|stay| stay.all()));
        let mut counted = Counted::default();
        let mut count = |stay: Stay<'a>| {
            let (claims, links) = stay.counted(self.terms, linear, &self.online);
            counted.claims.extend(claims);
            counted.links.extend(links);
            counted.claims.len()
        };
        let asked = asking.map(&mut count).last().unwrap_or(0);
        rest.map(&mut count).for_each(drop);
        counted.asked = asked;
        counted
    }
}

/// What the task's server would have if the claim were granted.
fn asking<'a>(claim: &'a Claim, entry: Option<&'a Entry>) -> Stay<'a> {
    Stay {
        present: Some(claim),
        replaced: entry.and_then(Entry::held),
        former: entry.map_or(&[], |entry| &entry.former),
    }
}
