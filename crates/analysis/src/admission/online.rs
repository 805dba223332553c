//! Admission while tasks run: who holds a reservation, and what becomes of requests.

use std::collections::BTreeMap;
use std::fmt;

use shiftwork_model::{CpuId, CpuSet, Priority, Share, Span, TaskId};

use super::decide::decide;
use super::{Claim, Decision, Guarantee, Terms, Verdict};
use crate::Witness;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For people.
    pub reason: String,
    /// What shows it, where the demand does not fit.
    pub witness: Option<Witness>,
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
    /// Whose.
    pub task: TaskId,
    /// What is still promised; `None`: the reservation is gone.
    pub left: Option<Guarantee>,
    /// For people.
    pub reason: String,
}

/// What a CPU that comes back changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// Who has a reservation again, and with what promise.
    pub regained: Vec<(TaskId, Guarantee)>,
    /// Whose promise is weaker now.
    pub losses: Vec<Loss>,
}

/// A task that is known, with or without a reservation.
#[derive(Clone, Debug)]
struct Entry {
    claim: Claim,
    /// What was promised when the task's last request was granted; `None` without a reservation.
    promise: Option<Guarantee>,
    /// Counts grants: who holds a reservation longer has the smaller number.
    since: u64,
}

/// The admitted tasks, and those that lost their reservation and want it back.
///
/// Invariant: the claims that hold a reservation are admitted together, each with at least what it
/// was promised. No request of one task ever breaks the promise to another; only a CPU that goes
/// or comes does.
///
/// Each request costs one decision on all tasks ([`super::admit`]).
#[derive(Clone, Debug)]
pub struct Admitted {
    terms: Terms,
    online: CpuSet,
    entries: BTreeMap<TaskId, Entry>,
    grants: u64,
}

impl Admitted {
    /// Nobody is admitted yet, on these CPUs.
    pub const fn new(online: CpuSet, terms: Terms) -> Self {
        Self {
            terms,
            online,
            entries: BTreeMap::new(),
            grants: 0,
        }
    }

    /// Starts with these tasks at once, which is how a run begins: a later one may lower what an
    /// earlier one alone would have been promised. In the order given, the earlier holds longer.
    ///
    /// # Errors
    /// The decision, if it is a refusal.
    pub fn begin(
        online: CpuSet,
        terms: Terms,
        claims: Vec<Claim>,
    ) -> Result<(Self, Decision), Box<Decision>> {
        let decision = decide(&claims.iter().collect::<Vec<_>>(), &online, terms);
        if decision.verdict == Verdict::Refused {
            return Err(Box::new(decision));
        }
        let mut admitted = Self::new(online, terms);
        for (claim, &(_, promise)) in claims.into_iter().zip(&decision.tasks) {
            admitted.grant(claim, promise);
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

    /// What a task is promised; `None` if it holds no reservation.
    pub fn promise(&self, task: TaskId) -> Option<Guarantee> {
        self.entries.get(&task).and_then(|entry| entry.promise)
    }

    /// The decision on all tasks that hold a reservation, as things stand.
    pub fn decision(&self) -> Decision {
        decide(&self.holders(None), &self.online, self.terms)
    }

    /// A task asks to be let in; one that is known asks anew with this claim, and keeps what it has
    /// if refused.
    ///
    /// # Errors
    /// Why not.
    pub fn enter(&mut self, claim: Claim) -> Result<Guarantee, Box<Refusal>> {
        let promise = self.consider(&claim)?;
        self.grant(claim, promise);
        Ok(promise)
    }

    /// The task is gone, whether it held a reservation or not. A task under a bandwidth server must
    /// not be let go before its zero-lag time (server deadline - remaining budget x T / C): until
    /// then what it has already consumed counts, or coming and going would yield more than its share.
    pub fn leave(&mut self, task: TaskId) {
        self.entries.remove(&task);
    }

    /// The task's affinity has changed, which no one can forbid: `cpus` is where the policy now binds
    /// it. If that is not admitted the task loses its reservation, and nobody else anything; it gets it
    /// back by another change, or when a CPU comes back.
    ///
    /// # Errors
    /// Why it has no reservation now. Also for a task that is not known.
    pub fn request_affinity(
        &mut self,
        task: TaskId,
        cpus: CpuSet,
    ) -> Result<Guarantee, Box<Refusal>> {
        let entry = self.entries.get_mut(&task).ok_or_else(|| unknown(task))?;
        entry.claim.cpus = cpus;
        let claim = entry.claim.clone();
        match self.consider(&claim) {
            Ok(promise) => {
                self.grant(claim, promise);
                Ok(promise)
            }
            Err(refusal) => {
                if let Some(entry) = self.entries.get_mut(&task) {
                    entry.promise = None;
                }
                Err(refusal)
            }
        }
    }

    /// The task asks for another cost, period and deadline, and keeps what it has if refused.
    ///
    /// # Errors
    /// Why not. Also for a task that is not known.
    pub fn set_parameters(
        &mut self,
        task: TaskId,
        cost: Span,
        period: Span,
        deadline: Span,
    ) -> Result<Guarantee, Box<Refusal>> {
        let known = self.entries.get(&task).ok_or_else(|| unknown(task))?;
        self.enter(Claim {
            cost,
            period,
            deadline,
            ..known.claim.clone()
        })
    }

    /// The task asks for another priority, and keeps what it has if refused.
    ///
    /// # Errors
    /// Why not. Also for a task that is not known.
    pub fn set_priority(
        &mut self,
        task: TaskId,
        priority: Priority,
    ) -> Result<Guarantee, Box<Refusal>> {
        let known = self.entries.get(&task).ok_or_else(|| unknown(task))?;
        self.enter(Claim {
            priority,
            ..known.claim.clone()
        })
    }

    /// The reserve is to be another. All promises must hold with it, or it stays as it is.
    ///
    /// # Errors
    /// Who would lose.
    pub fn set_reserve(&mut self, reserve: Share) -> Result<(), Box<Refusal>> {
        let terms = Terms {
            reserve,
            ..self.terms
        };
        let decision = decide(&self.holders(None), &self.online, terms);
        self.check_promises(&decision, None)?;
        self.terms = terms;
        Ok(())
    }

    /// A CPU is gone. Whoever no longer fits loses the reservation, last come first: among the tasks
    /// that together need too much, the one that was admitted or changed last, again and again until
    /// the rest fit. Others may keep theirs with a weaker promise.
    pub fn cpu_offline(&mut self, cpu: CpuId) -> Vec<Loss> {
        self.online.remove(cpu);
        let mut losses = Vec::new();
        // Each round takes a reservation, so there are at most as many as tasks.
        loop {
            let decision = self.decision();
            match self.last_come(&decision) {
                Some(task) => {
                    self.entries
                        .entry(task)
                        .and_modify(|entry| entry.promise = None);
                    losses.push(Loss {
                        task,
                        left: None,
                        reason: format!("CPU {cpu} is gone: {}", decision.reason),
                    });
                }
                None => {
                    losses.extend(self.weaken(&decision, &format!("CPU {cpu} is gone")));
                    return losses;
                }
            }
        }
    }

    /// A CPU is back. Whoever waits for a reservation and now fits gets it, those first who had theirs
    /// longest. Affinities that were alike without the CPU may differ with it, so that less can be
    /// shown of the tasks that hold a reservation: nobody loses it, but a promise may be weaker.
    pub fn cpu_online(&mut self, cpu: CpuId) -> Returned {
        self.online.insert(cpu);
        let decision = self.decision();
        let losses = self.weaken(&decision, &format!("CPU {cpu} is back"));
        let mut waiting: Vec<(u64, TaskId)> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.promise.is_none())
            .map(|(&task, entry)| (entry.since, task))
            .collect();
        waiting.sort_unstable();
        let mut regained = Vec::new();
        for (_, task) in waiting {
            let claim = self.entries[&task].claim.clone();
            if let Ok(promise) = self.consider(&claim) {
                self.grant(claim, promise);
                regained.push((task, promise));
            }
        }
        Returned { regained, losses }
    }

    /// The largest cost, at most `claim.cost`, with which the claim would be admitted; `None` if it
    /// would not be with any. For explaining a refusal: it takes up to 63 decisions.
    pub fn largest_cost(&self, claim: &Claim) -> Option<Span> {
        let admitted = |cost_ns: u64| {
            let cost = Span::from_ns(cost_ns);
            let claim = Claim {
                cost,
                ..claim.clone()
            };
            self.consider(&claim).is_ok()
        };
        let (mut fits, mut too_much) = (0, claim.cost.as_ns().checked_add(1)?);
        while too_much - fits > 1 {
            let middle = fits + (too_much - fits) / 2;
            match admitted(middle) {
                true => fits = middle,
                false => too_much = middle,
            }
        }
        (fits > 0).then(|| Span::from_ns(fits))
    }

    /// What the claim would be promised beside all others.
    fn consider(&self, claim: &Claim) -> Result<Guarantee, Box<Refusal>> {
        let holders = self.holders(Some(claim));
        let decision = decide(&holders, &self.online, self.terms);
        self.check_promises(&decision, Some(claim))?;
        let own = decision.tasks.last().map(|&(_, promise)| promise);
        Ok(own.unwrap_or(Guarantee::None))
    }

    /// Whether a decision admits, and keeps what was promised to everybody but `claim`.
    fn check_promises(
        &self,
        decision: &Decision,
        claim: Option<&Claim>,
    ) -> Result<(), Box<Refusal>> {
        let refuse = |reason| {
            Err(Box::new(Refusal {
                reason,
                witness: decision.witness.clone(),
            }))
        };
        if decision.verdict == Verdict::Refused {
            return refuse(decision.reason.clone());
        }
        let others = decision
            .tasks
            .iter()
            .filter(|&&(task, _)| claim.is_none_or(|claim| claim.task != task));
        for &(task, now) in others {
            let entry = &self.entries[&task];
            if let Some(promise) = entry.promise.filter(|&promise| promise > now) {
                return refuse(format!(
                    "task `{}` was promised `{promise}` and would have `{now}`: {}",
                    entry.claim.name, decision.reason
                ));
            }
        }
        Ok(())
    }

    /// The claims that hold a reservation, without that of `asking`'s task; `asking` comes last.
    fn holders<'a>(&'a self, asking: Option<&'a Claim>) -> Vec<&'a Claim> {
        let held = self.entries.values().filter(|entry| {
            entry.promise.is_some() && asking.is_none_or(|claim| claim.task != entry.claim.task)
        });
        held.map(|entry| &entry.claim).chain(asking).collect()
    }

    fn grant(&mut self, claim: Claim, promise: Guarantee) {
        self.grants += 1;
        let entry = Entry {
            promise: Some(promise),
            since: self.grants,
            claim,
        };
        self.entries.insert(entry.claim.task, entry);
    }

    /// Who has to go if the decision is a refusal.
    fn last_come(&self, decision: &Decision) -> Option<TaskId> {
        if decision.verdict == Verdict::Admitted {
            return None;
        }
        let held = |task: &TaskId| self.promise(*task).is_some();
        let involved: Vec<TaskId> = match &decision.witness {
            Some(Witness::Crowd { tasks, .. }) => tasks.clone(),
            Some(
                Witness::NoTask { task }
                | Witness::Alone { task, .. }
                | Witness::Nowhere { task }
                | Witness::Late { task, .. },
            ) => vec![*task],
            Some(Witness::Interval { cpu, .. }) => {
                let there = |entry: &&Entry| entry.claim.cpus.contains(*cpu);
                let there = self.entries.values().filter(there);
                there.map(|entry| entry.claim.task).collect()
            }
            None => self.entries.keys().copied().collect(),
        };
        let since = |task: &TaskId| self.entries[task].since;
        involved.into_iter().filter(held).max_by_key(since)
    }

    /// Lowers the promises that the decision no longer keeps.
    fn weaken(&mut self, decision: &Decision, why: &str) -> Vec<Loss> {
        let mut losses = Vec::new();
        for &(task, now) in &decision.tasks {
            let Some(entry) = self.entries.get_mut(&task) else {
                continue;
            };
            if entry.promise.is_some_and(|promise| promise > now) {
                entry.promise = Some(now);
                losses.push(Loss {
                    task,
                    left: Some(now),
                    reason: format!("{why}: {}", decision.reason),
                });
            }
        }
        losses
    }
}

fn unknown(task: TaskId) -> Box<Refusal> {
    Box::new(Refusal {
        reason: format!("{task:?} is not known here; it has to enter first"),
        witness: None,
    })
}
