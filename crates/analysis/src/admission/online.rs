//! Admission at run time: the tasks that hold reservations, and the decisions on requests.

mod cpus;
mod release;
mod weigh;

use std::collections::BTreeMap;
use std::fmt;

use shiftwork_model::{CpuSet, Instant, Priority, Share, Span, TaskId};

use super::advice::largest_cost;
use super::books::{Books, Line};
use super::decide::{Counted, judge};
use super::lingering::{Former, Stay};
use super::{Claim, DeadlineTests, Decision, Guarantee, Terms, Verdict};
use crate::{Steps, Witness};

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For people.
    pub reason: String,
    /// What shows it, where the demand does not fit.
    pub witness: Option<Witness>,
    /// Earliest time at which a retry can succeed, if only lingering claims cause the refusal.
    pub again: Option<Instant>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Refusal {}

/// A promise that a change of the machine broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The task that the promise was given to.
    pub task: TaskId,
    /// What is still promised; `None`: the reservation is gone.
    pub left: Option<Guarantee>,
    /// For people.
    pub reason: String,
}

/// What a CPU that comes back changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The tasks that have a reservation again, each with its guarantee.
    pub regained: Vec<(TaskId, Guarantee)>,
    /// The tasks that have a weaker guarantee now.
    pub losses: Vec<Loss>,
}

/// A task that is known, with or without a reservation.
#[derive(Clone, Debug)]
struct Entry {
    claim: Claim,
    /// What was promised when the task's last request was granted; `None` without a reservation.
    promise: Option<Guarantee>,
    /// Sequence number of the grant: the older reservation has the smaller number.
    since: u64,
    /// What it had before and still counts.
    former: Vec<Former>,
    /// What the books say of it.
    line: Line,
}

impl Entry {
    fn held(&self) -> Option<&Claim> {
        self.promise.map(|_| &self.claim)
    }

    fn stay(&self) -> Stay<'_> {
        Stay {
            present: self.held(),
            replaced: None,
            former: &self.former,
        }
    }
}

/// What a task that left had, and still counts.
#[derive(Clone, Debug)]
struct Departed {
    task: TaskId,
    former: Vec<Former>,
    line: Line,
}

impl Departed {
    fn stay(&self) -> Stay<'_> {
        Stay {
            present: None,
            replaced: None,
            former: &self.former,
        }
    }
}

/// The admitted tasks, the tasks that wait for their reservations, and the lingering claims.
///
/// Invariant: the claims that hold a reservation, and those that linger, are admitted together,
/// each task with at least what it was promised. No request of one task ever breaks the promise to
/// another; only a CPU that goes or comes does. No sequence of requests yields more capacity than
/// what counts, at any time: a claim that ends, or becomes less, still counts until an instant that
/// the machine gives with the request. The private module `lingering` proves it and defines that
/// instant; the present instant plus the old period is never too early.
///
/// There is no clock here: [`advance`](Self::advance) sets the present time, and claims that linger
/// beyond it count. A caller that never advances the time never frees a lingering claim.
///
/// # Cost
/// Under EDF and the strong invariant, with deadlines at the end of the period, a request that is granted
/// costs one look at the sums of the different affinities; any other one decision on all tasks
/// ([`super::admit`]), and a refusal up to 80 for what would be granted instead.
#[derive(Clone, Debug)]
pub struct Admitted {
    terms: Terms,
    /// What every task is promised; `None`: as much as can be shown, which must be something.
    promising: Option<Guarantee>,
    online: CpuSet,
    now: Instant,
    entries: BTreeMap<TaskId, Entry>,
    departed: Vec<Departed>,
    books: Books,
    grants: u64,
    /// Whether capacity was released since the waiting tasks were last tried.
    freed: bool,
    /// With more tasks than this a refusal proposes nothing.
    advice_max: usize,
}

impl Admitted {
    /// No task is admitted yet, on these CPUs.
    pub fn new(online: CpuSet, terms: Terms) -> Self {
        Self {
            terms,
            promising: None,
            online,
            now: Instant::ZERO,
            entries: BTreeMap::new(),
            departed: Vec::new(),
            books: Books::default(),
            grants: 0,
            freed: false,
            advice_max: usize::MAX,
        }
    }

    /// Promises exactly this guarantee to every task from now on. A task with a weaker guarantee is
    /// refused. No task is refused because another would lose a stronger one. With
    /// [`Guarantee::None`] every task that fits is admitted, without any promise: best effort. For
    /// [`Guarantee::Hard`] at least the tests of windows are asked.
    pub fn promising(mut self, guarantee: Guarantee) -> Self {
        self.promising = Some(guarantee);
        if guarantee == Guarantee::Hard {
            self.terms.deadlines = self.terms.deadlines.max(DeadlineTests::Windows);
        }
        self
    }

    /// With more than so many tasks a refusal does not propose what would be granted instead, which takes many decisions.
    pub fn advising_up_to(mut self, tasks: usize) -> Self {
        self.advice_max = tasks;
        self
    }

    /// Starts with these tasks at once, which is how a run begins: a later one may lower what an
    /// earlier one alone would have been promised. In the order given, the earlier holds longer. Under EDF with the
    /// strong invariant on several CPUs bounded tardiness is promised, whatever the terms ask for.
    ///
    /// # Errors
    /// The decision, if it is a refusal: the demand does not fit, or nothing is guaranteed of some task.
    pub fn begin(
        online: CpuSet,
        terms: Terms,
        claims: Vec<Claim>,
    ) -> Result<(Self, Decision), Box<Decision>> {
        // Requests come while jobs run: none is refused for deadlines that were not asked for.
        let terms = Terms {
            deadlines: DeadlineTests::None,
            ..terms
        };
        let counted = Counted::all(&claims);
        let judgement = judge(&counted, &online, terms, &mut Steps::ordinary());
        let decision = judgement.in_words(&counted, &online, terms);
        if decision.verdict() == Verdict::Refused {
            return Err(Box::new(decision));
        }
        let mut admitted = Self::new(online, terms);
        for (claim, &(_, promise)) in claims.into_iter().zip(&decision.tasks) {
            admitted.grant(claim, promise, Instant::ZERO);
        }
        Ok((admitted, decision))
    }

    /// Under what tasks are admitted; the reserve may have changed since the start.
    pub const fn terms(&self) -> Terms {
        self.terms
    }

    /// The CPUs that are online.
    pub const fn online(&self) -> &CpuSet {
        &self.online
    }

    /// The latest instant given to [`advance`](Self::advance).
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// What a task is promised; `None` if it holds no reservation.
    pub fn promise(&self, task: TaskId) -> Option<Guarantee> {
        self.entries.get(&task).and_then(|entry| entry.promise)
    }

    /// What the task asked for last; `None` if it is not known.
    pub fn claim(&self, task: TaskId) -> Option<&Claim> {
        self.entries.get(&task).map(|entry| &entry.claim)
    }

    /// Number of lingering claims: they have ended and still count.
    pub fn lingering(&self) -> usize {
        let former = self.entries.values().map(|entry| entry.former.len());
        let departed = self.departed.iter().map(|departed| departed.former.len());
        former.chain(departed).sum()
    }

    /// Whether a claim that a task with this number had before still counts.
    pub fn lingers(&self, task: TaskId) -> bool {
        let entry = self.entries.get(&task);
        let is_of = |departed: &Departed| departed.task == task;
        entry.is_some_and(|entry| !entry.former.is_empty()) || self.departed.iter().any(is_of)
    }

    /// The decision on all tasks that hold a reservation, beside what lingers, as things stand. Of each
    /// task there is one promise, in the order of the tasks.
    pub fn decision(&self) -> Decision {
        let counted = self.counted(None, true);
        let judgement = judge(&counted, &self.online, self.terms, &mut Steps::ordinary());
        let mut decision = judgement.in_words(&counted, &self.online, self.terms);
        decision.tasks.sort_unstable();
        // Of several promises the least comes first.
        decision.tasks.dedup_by_key(|&mut (task, _)| task);
        decision
    }

    /// Sets the present time. Claims that lingered until `now` no longer count, unless another
    /// claim depends on them. Waiting tasks that fit now get their reservations, in the order of
    /// their last grants. Returns these tasks. An instant before the last one changes nothing.
    pub fn advance(&mut self, now: Instant) -> Vec<(TaskId, Guarantee)> {
        self.now = self.now.max(now);
        self.release();
        match std::mem::take(&mut self.freed) {
            true => self.regain(),
            false => Vec::new(),
        }
    }

    /// A task requests admission. A known task makes a new request with this claim. If that is
    /// refused, it keeps its reservation; if it is granted, its old claim lingers for one of its
    /// periods from now.
    ///
    /// # Errors
    /// Why not.
    pub fn enter(&mut self, claim: Claim) -> Result<Guarantee, Box<Refusal>> {
        let held = self.entries.get(&claim.task).and_then(Entry::held);
        let until = held.map_or(self.now, |held| self.now + held.period);
        self.change(claim, until)
    }

    /// The task, which is not known, waits for this reservation until a CPU comes back or something is released.
    /// One that is known is left as it is.
    pub fn wait(&mut self, claim: Claim) {
        let task = claim.task;
        let entry = Entry {
            claim,
            promise: None,
            since: 0,
            former: Vec::new(),
            line: Line::Nothing,
        };
        self.entries.entry(task).or_insert(entry);
    }

    /// The task leaves, with or without a reservation. Its claim counts until `until`: the end of
    /// its server's period, or its zero-lag time (server deadline - remaining budget x T / C,
    /// rounded up) if the remaining budget is given up.
    pub fn leave(&mut self, task: TaskId, until: Instant) {
        let Some(mut entry) = self.entries.remove(&task) else {
            return;
        };
        self.books.remove(task, &entry.line);
        self.freed = true;
        linger(&mut entry, until);
        if entry.former.is_empty() {
            return;
        }
        let mut departed = Departed {
            task,
            former: entry.former,
            line: Line::Nothing,
        };
        departed.line = Line::of(departed.stay(), self.terms, &self.online);
        self.books.add(task, &departed.line);
        self.departed.push(departed);
        self.release();
    }

    /// The task's affinity has changed, which admission cannot forbid: `cpus` is where the policy
    /// now binds it. If that is not admitted the task loses its reservation, and other tasks keep
    /// theirs. It gets its reservation back by another change, when a CPU comes back, or when
    /// capacity is released.
    ///
    /// Its old claim counts until `until`, the end of its server's period, and another period.
    ///
    /// # Errors
    /// Why it has no reservation now. Also for a task that is not known.
    pub fn request_affinity(
        &mut self,
        task: TaskId,
        cpus: CpuSet,
        until: Instant,
    ) -> Result<Guarantee, Box<Refusal>> {
        let entry = self.entries.get(&task).ok_or_else(|| unknown(task))?;
        let mut claim = entry.claim.clone();
        claim.cpus = cpus;
        // It has happened, and others wait: nothing is proposed instead.
        match self.answer(&claim) {
            Ok(promise) => {
                self.grant(claim, promise, until);
                Ok(promise)
            }
            Err(refusal) => {
                if let Some(entry) = self.entries.get_mut(&task) {
                    if entry.claim.cpus != cpus {
                        linger(entry, until + entry.claim.period);
                    } else {
                        linger(entry, until);
                    }
                    entry.promise = None;
                    entry.claim.cpus = cpus;
                }
                self.rebook(task);
                Err(refusal)
            }
        }
    }

    /// The task requests another cost, period and deadline. If that is refused, it keeps its
    /// reservation. The old claim counts until `until`, the end of its server's period, where it is
    /// larger.
    ///
    /// # Errors
    /// Why not. Also for a task that is not known.
    pub fn set_parameters(
        &mut self,
        task: TaskId,
        [cost, period, deadline]: [Span; 3],
        until: Instant,
    ) -> Result<Guarantee, Box<Refusal>> {
        let known = self.entries.get(&task).ok_or_else(|| unknown(task))?;
        let claim = Claim {
            cost,
            period,
            deadline,
            ..known.claim.clone()
        };
        self.change(claim, until)
    }

    /// The task requests another priority. If that is refused, it keeps its reservation. Where
    /// priorities matter, the old claim counts until `until`, the end of its server's period.
    ///
    /// # Errors
    /// Why not. Also for a task that is not known.
    pub fn set_priority(
        &mut self,
        task: TaskId,
        priority: Priority,
        until: Instant,
    ) -> Result<Guarantee, Box<Refusal>> {
        let known = self.entries.get(&task).ok_or_else(|| unknown(task))?;
        let claim = Claim {
            priority,
            ..known.claim.clone()
        };
        self.change(claim, until)
    }

    /// Changes the reserve. It stays unchanged unless all promises hold with the new one.
    ///
    /// # Errors
    /// If a task would lose its guarantee.
    pub fn set_reserve(&mut self, reserve: Share) -> Result<(), Box<Refusal>> {
        let before = std::mem::replace(&mut self.terms.reserve, reserve);
        let counted = self.counted(None, true);
        let judgement = judge(&counted, &self.online, self.terms, &mut Steps::ordinary());
        let Err(against) = self.check_promises(judgement, None) else {
            self.freed |= reserve.billionths() < before.billionths();
            return Ok(());
        };
        let reason = self.reason(&against, &counted);
        self.terms.reserve = before;
        Err(Box::new(Refusal {
            reason,
            witness: against.judgement.witness,
            again: None,
        }))
    }

    /// The largest cost, at most `claim.cost`, with which the claim would be admitted; `None` if it
    /// would not be with any, or if finding out takes more steps than a decision may. It takes up to 64
    /// decisions.
    pub fn largest_cost(&mut self, claim: &Claim) -> Option<Span> {
        let mut steps = Steps::ordinary();
        if self.weigh(claim, &mut steps).is_ok() {
            return Some(claim.cost);
        }
        largest_cost(claim, |trial| self.accepts(trial, &mut steps))
    }

    fn change(&mut self, claim: Claim, until: Instant) -> Result<Guarantee, Box<Refusal>> {
        let promise = self.consider(&claim)?;
        self.grant(claim, promise, until);
        Ok(promise)
    }

    /// The claim is the task's from now on, and the one that it had lingers.
    fn grant(&mut self, claim: Claim, promise: Guarantee, until: Instant) {
        self.grants += 1;
        let task = claim.task;
        let fresh = || Entry {
            claim: claim.clone(),
            promise: None,
            since: 0,
            former: Vec::new(),
            line: Line::Nothing,
        };
        let since = self.grants;
        let entry = self.entries.entry(task).or_insert_with(fresh);
        let moved = entry.claim.cpus != claim.cpus;
        let longer = if moved {
            entry.claim.period
        } else {
            Span::ZERO
        };
        if entry.claim != claim {
            linger(entry, until + longer);
            self.freed = true;
        }
        entry.claim = claim;
        entry.promise = Some(promise);
        entry.since = since;
        self.rebook(task);
        self.release();
    }
}

fn unknown(task: TaskId) -> Box<Refusal> {
    Box::new(Refusal {
        reason: format!("{task:?} is not known here; it has to enter first"),
        witness: None,
        again: None,
    })
}

/// The claim that the entry holds counts until then, beside or instead of others that it had.
fn linger(entry: &mut Entry, until: Instant) {
    let Some(claim) = entry.held().cloned() else {
        return;
    };
    let covered = |former: &Former| {
        let (old, new) = (&former.claim, &claim);
        let same = (old.cpus, old.priority) == (new.cpus, new.priority);
        let no_more =
            old.cost <= new.cost && old.period >= new.period && old.deadline >= new.deadline;
        former.until <= until && same && no_more
    };
    entry.former.retain(|former| !covered(former));
    entry.former.push(Former { claim, until });
}
