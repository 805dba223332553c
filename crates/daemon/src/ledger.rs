//! Who has which reservation.
//!
//! The ledger joins three answers: whether an owner may have so much (`limits`), whether the machine has
//! room for it (`analysis::admission`), and whether the machine carried it out ([`Hands`]). It reads no clock and
//! knows no socket; whoever asks has been identified before.

mod check;
mod cpus;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use shiftwork_analysis::admission::{Admitted, Claim, Guarantee, Placement, Refusal, Terms};
use shiftwork_model::{CpuSet, Instant, Share, Span, TaskId};

use crate::hands::Hands;
use crate::limits::{Holdings, Limits};
use crate::reservation::{Denial, Owner, Reservation, Thread};

/// How the ledger decides.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The CPUs of the agent, in the machine's numbers; at most 64, below 64.
    pub cpus: CpuSet,
    /// By what policy, and with what reserve.
    pub terms: Terms,
    /// What everybody is promised, no less and no more: a service that promised the first as much as it can
    /// could let in nobody after it.
    pub promising: Guarantee,
    /// What everybody may have.
    pub limits: Limits,
    /// How many tasks there may be.
    pub tasks_max: usize,
}

/// A thread and its reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Whose it is.
    pub owner: Owner,
    /// Which thread.
    pub thread: Thread,
    /// For people.
    pub name: String,
    /// What it was admitted with, or wants back.
    pub reservation: Reservation,
    /// Whether the machine schedules it by that; otherwise it runs in the background until there is room.
    pub is_served: bool,
}

/// Something happened to a holder that its owner did not ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// To which task.
    pub task: TaskId,
    /// What, for people.
    pub what: String,
}

/// Who has which reservation. Every holder is admitted, or waits to be again.
pub struct Ledger {
    rules: Rules,
    admitted: Admitted,
    holdings: Holdings,
    holders: BTreeMap<TaskId, Holder>,
    /// Numbers that are not given away before then: what their holders had still counts.
    resting: BTreeMap<TaskId, Instant>,
    now: Instant,
}

impl Ledger {
    /// Nobody has anything.
    pub fn new(rules: Rules) -> Self {
        Self {
            admitted: Admitted::new(rules.cpus, rules.terms).promising(rules.promising),
            holdings: Holdings::new(rules.limits),
            holders: BTreeMap::new(),
            resting: BTreeMap::new(),
            now: Instant::ZERO,
            rules,
        }
    }

    /// All holders, by their numbers.
    pub fn holders(&self) -> impl Iterator<Item = (TaskId, &Holder)> {
        self.holders.iter().map(|(&task, holder)| (task, holder))
    }

    /// The holder with this number.
    pub fn holder(&self, task: TaskId) -> Option<&Holder> {
        self.holders.get(&task)
    }

    /// What the task is promised; `None` while it is not served.
    pub fn promise(&self, task: TaskId) -> Option<Guarantee> {
        let holder = self.holders.get(&task)?;
        holder.is_served.then(|| self.admitted.promise(task))?
    }

    /// How it decides.
    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The CPUs of the agent that are online.
    pub const fn online(&self) -> &CpuSet {
        self.admitted.online()
    }

    /// How much more a task of this period, on these CPUs, could reserve; zero if nothing.
    pub fn room(&mut self, cpus: CpuSet, period: Span) -> Span {
        let claim = Claim {
            task: TaskId::from_index(self.rules.tasks_max),
            name: String::new(),
            cost: period,
            period,
            deadline: period,
            priority: shiftwork_model::Priority::LEAST_URGENT,
            cpus: cpus & *self.online(),
        };
        self.admitted.largest_cost(&claim).unwrap_or(Span::ZERO)
    }

    /// It is now so late: what is released by now is given to those that wait.
    pub fn advance(&mut self, now: Instant, hands: &mut dyn Hands) -> Vec<Turn> {
        self.now = self.now.max(now);
        self.resting.retain(|_, until| *until > now);
        let regained = self.admitted.advance(now);
        let tasks = regained.into_iter().map(|(task, _)| task);
        self.serve_again(tasks, hands)
    }

    /// Tries once more to serve the tasks that have their reservation but could not be served when they got it: their CPU
    /// went offline again, say, or their control group was too narrow. To be called now and then.
    pub fn retry(&mut self, hands: &mut dyn Hands) -> Vec<Turn> {
        let unserved = self
            .holders()
            .filter(|(task, holder)| !holder.is_served && self.admitted.promise(*task).is_some());
        let tasks: Vec<TaskId> = unserved.map(|(task, _)| task).collect();
        let turns = self.serve_again(tasks.into_iter(), hands);
        // That a task goes on waiting is no news.
        let is_news = |turn: &Turn| self.holders.get(&turn.task).is_none_or(|it| it.is_served);
        turns.into_iter().filter(is_news).collect()
    }

    /// Everybody may have this from now on; whoever has more keeps it.
    pub fn set_limits(&mut self, limits: Limits) {
        self.rules.limits = limits;
        self.holdings.set_limits(limits);
    }

    /// So much of each CPU is kept for ordinary work from now on.
    ///
    /// # Errors
    /// Who would lose by that. Then it stays as it is.
    pub fn set_reserve(&mut self, reserve: Share) -> Result<(), String> {
        let set = self.admitted.set_reserve(reserve);
        set.map_err(|refusal| refusal.reason)?;
        self.rules.terms.reserve = reserve;
        Ok(())
    }

    /// The thread asks for a reservation.
    ///
    /// # Errors
    /// Why it does not get it. Then nothing has changed.
    pub fn admit(
        &mut self,
        owner: Owner,
        thread: Thread,
        name: &str,
        reservation: Reservation,
        hands: &mut dyn Hands,
    ) -> Result<(TaskId, Guarantee), Denial> {
        self.check(&reservation)?;
        if let Some((task, _)) = self.holders().find(|(_, holder)| holder.thread == thread) {
            return Err(Denial::Invalid {
                parameter: "thread",
                reason: format!(
                    "thread {} has a reservation already, as task {}; change that, or dismiss it first",
                    thread.thread,
                    task.index()
                ),
            });
        }
        self.holdings.check(&owner, None, &reservation)?;
        let task = self.free_number()?;
        let guarantee = self.grant(task, name, &reservation)?;
        if let Err(denial) = hands.admit(task, &thread, &reservation) {
            // Nothing of it was ever used.
            self.admitted.leave(task, self.now);
            return Err(denial);
        }
        self.holdings.exchange(&owner, None, Some(&reservation));
        self.holders.insert(
            task,
            Holder {
                owner,
                thread,
                name: name.to_owned(),
                reservation,
                is_served: true,
            },
        );
        Ok((task, guarantee))
    }

    /// A holder from before the agent was restarted: it is served again if there is room, and waits otherwise. One whose
    /// thread is gone is forgotten.
    pub fn restore(&mut self, holder: Holder, hands: &mut dyn Hands) -> Option<Turn> {
        let Ok(task) = self.free_number() else {
            return None;
        };
        let claim = claim(task, &holder.name, &holder.reservation);
        let binds = self.binds(None, &holder.reservation);
        let granted = binds.and_then(|()| {
            let entered = self.admitted.enter(claim.clone());
            entered.map_err(|refusal| refused(&refusal))
        });
        self.holdings
            .exchange(&holder.owner, None, Some(&holder.reservation));
        let holder = Holder {
            is_served: false,
            ..holder
        };
        self.holders.insert(task, holder.clone());
        match granted {
            Ok(_) => {
                let served = hands.admit(task, &holder.thread, &holder.reservation);
                Some(self.serve(task, served, hands))
            }
            Err(denial) => {
                self.admitted.wait(claim);
                Some(Turn {
                    task,
                    what: format!("has lost its reservation over a restart: {denial}"),
                })
            }
        }
    }

    /// The task asks for another reservation, and keeps what it has if that is refused.
    ///
    /// # Errors
    /// Why it does not get it. Then nothing has changed.
    pub fn change(
        &mut self,
        task: TaskId,
        to: Reservation,
        hands: &mut dyn Hands,
    ) -> Result<Guarantee, Denial> {
        self.check(&to)?;
        let holder = self
            .holders
            .get(&task)
            .ok_or_else(|| missing(task))?
            .clone();
        self.holdings
            .check(&holder.owner, Some(&holder.reservation), &to)?;
        self.binds(Some(task), &to)?;
        // What is granted is not taken back: first it has to be known that it would be.
        let mut trial = self.admitted.clone();
        let guarantee = trial
            .enter(claim(task, &holder.name, &to))
            .map_err(|refusal| refused(&refusal))?;
        let done = match holder.is_served {
            true => hands.change(task, &holder.thread, &holder.reservation, &to),
            false => hands.serve_again(task, &holder.thread, &to),
        };
        done?;
        self.admitted = trial;
        self.holdings
            .exchange(&holder.owner, Some(&holder.reservation), Some(&to));
        if let Some(holder) = self.holders.get_mut(&task) {
            holder.reservation = to;
            holder.is_served = true;
        }
        Ok(guarantee)
    }

    /// The task gives its reservation back.
    ///
    /// # Errors
    /// If there is no such task.
    pub fn dismiss(&mut self, task: TaskId, hands: &mut dyn Hands) -> Result<(), Denial> {
        if !self.holders.contains_key(&task) {
            return Err(missing(task));
        }
        // One that is not served may still be waited for there.
        hands.dismiss(task);
        self.left(task);
        Ok(())
    }

    /// The task's thread is gone, or nobody's that could be scheduled.
    pub fn left(&mut self, task: TaskId) {
        let Some(holder) = self.holders.remove(&task) else {
            return;
        };
        let period = holder.reservation.period;
        self.admitted.leave(task, self.now + period);
        // A change of affinity may make what it had count for a period more.
        self.resting.insert(task, self.now + period + period);
        self.holdings
            .exchange(&holder.owner, Some(&holder.reservation), None);
    }

    /// The task's thread has asked the kernel for these CPUs of the machine, and is not served since. It is again
    /// if it may have them. That may have been heard before, or be what the thread was bound to meanwhile.
    pub fn asked(&mut self, task: TaskId, cpus: CpuSet, hands: &mut dyn Hands) -> Option<Turn> {
        let holder = self.holders.get_mut(&task)?;
        if holder.is_served && holder.reservation.cpus == cpus {
            let turns = self.serve_again([task].into_iter(), hands);
            // That it goes on as before is no news.
            return turns
                .into_iter()
                .find(|_| !self.holders.contains_key(&task));
        }
        holder.is_served = false;
        let lost = |what: &str| {
            Some(Turn {
                task,
                what: format!("asked for CPUs {cpus} and lost its reservation: {what}"),
            })
        };
        let ours = cpus & self.rules.cpus;
        let to = Reservation {
            cpus: ours,
            ..holder.reservation.clone()
        };
        let until = self.now + to.period;
        if ours.is_empty() {
            holder.reservation.cpus = self.rules.cpus;
            // It counts as one that waits, which no CPU can ever serve as it is bound.
            let _ = self.admitted.request_affinity(task, ours, until);
            return lost(&format!("the agent has CPUs {}", self.rules.cpus));
        }
        holder.reservation.cpus = ours;
        let nests = self.binds(Some(task), &to);
        let answer = match nests {
            Ok(()) => self
                .admitted
                .request_affinity(task, ours, until)
                .map_err(|refusal| refused(&refusal)),
            Err(denial) => {
                let _ = self.admitted.request_affinity(task, CpuSet::EMPTY, until);
                Err(denial)
            }
        };
        match answer {
            Ok(_) => self.serve_again([task].into_iter(), hands).pop(),
            Err(denial) => lost(&denial.to_string()),
        }
    }

    /// Those that have a reservation again are scheduled by it.
    fn serve_again(
        &mut self,
        tasks: impl Iterator<Item = TaskId>,
        hands: &mut dyn Hands,
    ) -> Vec<Turn> {
        let mut turns = Vec::new();
        for task in tasks {
            let Some(holder) = self.holders.get(&task) else {
                continue;
            };
            let served = hands.serve_again(task, &holder.thread, &holder.reservation);
            turns.push(self.serve(task, served, hands));
        }
        turns
    }

    /// The task that waited is served, goes on waiting if it cannot be now, or is forgotten if its thread is gone.
    fn serve(&mut self, task: TaskId, served: Result<(), Denial>, hands: &mut dyn Hands) -> Turn {
        let what = match served {
            Ok(()) => {
                if let Some(holder) = self.holders.get_mut(&task) {
                    holder.is_served = true;
                }
                "has its reservation again".to_owned()
            }
            // The report that it is gone is on its way, or never comes since nobody knows it.
            Err(denial @ Denial::Missing(_)) => {
                hands.dismiss(task);
                self.left(task);
                format!("could not be served again: {denial}")
            }
            Err(denial) => {
                // It may have been served until now, and would go on as if it were.
                hands.dismiss(task);
                if let Some(holder) = self.holders.get_mut(&task) {
                    holder.is_served = false;
                }
                format!("keeps its reservation and cannot be served for now: {denial}")
            }
        };
        Turn { task, what }
    }

    fn grant(
        &mut self,
        task: TaskId,
        name: &str,
        reservation: &Reservation,
    ) -> Result<Guarantee, Denial> {
        self.binds(None, reservation)?;
        let entered = self.admitted.enter(claim(task, name, reservation));
        entered.map_err(|refusal| refused(&refusal))
    }

    /// Counts this among what is promised from now on, of nobody's thread: everybody else is admitted beside it.
    ///
    /// # Errors
    /// If it does not fit. Then nothing has changed.
    pub fn set_apart(&mut self, name: &str, reservation: &Reservation) -> Result<(), Denial> {
        let task = self.lend_number()?;
        let granted = self.grant(task, name, reservation);
        if granted.is_err() {
            self.take_back_number(task);
        }
        granted.map(drop)
    }

    /// A number that no task has until it is given back, for something else that needs one.
    ///
    /// # Errors
    /// If there are no more.
    pub fn lend_number(&mut self) -> Result<TaskId, Denial> {
        let task = self.free_number()?;
        self.resting.insert(task, Instant::NEVER);
        Ok(task)
    }

    /// The number is free again.
    pub fn take_back_number(&mut self, task: TaskId) {
        self.resting.remove(&task);
    }

    fn free_number(&self) -> Result<TaskId, Denial> {
        let mut numbers = (0..self.rules.tasks_max).map(TaskId::from_index);
        let is_free =
            |task: &TaskId| !self.holders.contains_key(task) && !self.resting.contains_key(task);
        numbers.find(is_free).ok_or_else(|| {
            Denial::Exhausted(format!(
                "the agent schedules at most {} tasks, and there are as many or were a moment ago",
                self.rules.tasks_max
            ))
        })
    }
}

fn claim(task: TaskId, name: &str, it: &Reservation) -> Claim {
    Claim {
        task,
        name: name.to_owned(),
        cost: it.cost,
        period: it.period,
        deadline: it.deadline,
        priority: it.priority,
        cpus: it.cpus,
    }
}

fn refused(refusal: &Refusal) -> Denial {
    Denial::Refused(refusal.reason.clone())
}

fn missing(task: TaskId) -> Denial {
    Denial::Missing(format!("task {}", task.index()))
}
