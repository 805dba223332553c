//! Who has which reservation.
//!
//! The ledger joins three answers: whether an owner may have so much (`limits`), whether the machine has
//! room for it (`analysis::admission`), and whether the machine carried it out ([`SchedulerBackend`]). It reads no clock and
//! knows no socket; whoever asks has been identified before.

mod hotplug;
#[cfg(test)]
mod tests;
mod validation;

use std::collections::BTreeMap;

use shiftwork_analysis::admission::{Admitted, Claim, Guarantee, Placement, Refusal, Terms};
use shiftwork_model::{CpuSet, Instant, Share, Span, TaskId};

use crate::backend::SchedulerBackend;
use crate::quotas::{QuotaUsage, Quotas};
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
    pub guarantee: Guarantee,
    /// What everybody may have.
    pub quotas: Quotas,
    /// How many tasks there may be.
    pub tasks_max: usize,
}

/// A thread and its reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedTask {
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
pub struct TaskNotice {
    /// To which task.
    pub task: TaskId,
    /// What, for people.
    pub what: String,
}

/// Who has which reservation. Every holder is admitted, or waits to be again.
pub struct ReservationTable {
    rules: Rules,
    admitted: Admitted,
    usage: QuotaUsage,
    tasks: BTreeMap<TaskId, ReservedTask>,
    /// Numbers that are not given away before then: what their tasks had still counts.
    quarantined: BTreeMap<TaskId, Instant>,
    now: Instant,
}

impl ReservationTable {
    /// Nobody has anything.
    pub fn new(rules: Rules) -> Self {
        Self {
            admitted: Admitted::new(rules.cpus, rules.terms).promising(rules.guarantee),
            usage: QuotaUsage::new(rules.quotas),
            tasks: BTreeMap::new(),
            quarantined: BTreeMap::new(),
            now: Instant::ZERO,
            rules,
        }
    }

    /// All holders, by their numbers.
    pub fn tasks(&self) -> impl Iterator<Item = (TaskId, &ReservedTask)> {
        self.tasks.iter().map(|(&task, reserved)| (task, reserved))
    }

    /// The holder with this number.
    pub fn task(&self, task: TaskId) -> Option<&ReservedTask> {
        self.tasks.get(&task)
    }

    /// What the task is promised; `None` while it is not served.
    pub fn guarantee(&self, task: TaskId) -> Option<Guarantee> {
        let reserved = self.tasks.get(&task)?;
        reserved.is_served.then(|| self.admitted.promise(task))?
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
    pub fn available_cost(&mut self, cpus: CpuSet, period: Span) -> Span {
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
    pub fn advance(&mut self, now: Instant, backend: &mut dyn SchedulerBackend) -> Vec<TaskNotice> {
        self.now = self.now.max(now);
        self.quarantined.retain(|_, until| *until > now);
        let regained = self.admitted.advance(now);
        let tasks = regained.into_iter().map(|(task, _)| task);
        self.readmit(tasks, backend)
    }

    /// Tries once more to serve the tasks that have their reservation but could not be served when they got it: their CPU
    /// went offline again, say, or their control group was too narrow. To be called now and then.
    pub fn retry(&mut self, backend: &mut dyn SchedulerBackend) -> Vec<TaskNotice> {
        let unserved = self.tasks().filter(|(task, reserved)| {
            !reserved.is_served && self.admitted.promise(*task).is_some()
        });
        let tasks: Vec<TaskId> = unserved.map(|(task, _)| task).collect();
        let notices = self.readmit(tasks.into_iter(), backend);
        // That a task goes on waiting is no news.
        let is_news =
            |notice: &TaskNotice| self.tasks.get(&notice.task).is_none_or(|it| it.is_served);
        notices.into_iter().filter(is_news).collect()
    }

    /// Everybody may have this from now on; whoever has more keeps it.
    pub fn set_quotas(&mut self, quotas: Quotas) {
        self.rules.quotas = quotas;
        self.usage.set_quotas(quotas);
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
        backend: &mut dyn SchedulerBackend,
    ) -> Result<(TaskId, Guarantee), Denial> {
        self.validate(&reservation)?;
        if let Some((task, _)) = self.tasks().find(|(_, reserved)| reserved.thread == thread) {
            return Err(Denial::Invalid {
                parameter: "thread",
                reason: format!(
                    "thread {} has a reservation already, as task {}; change that, or dismiss it first",
                    thread.thread,
                    task.index()
                ),
            });
        }
        self.usage.check(&owner, None, &reservation)?;
        let task = self.free_number()?;
        let guarantee = self.grant(task, name, &reservation)?;
        if let Err(denial) = backend.admit(task, &thread, &reservation) {
            // Nothing of it was ever used.
            self.admitted.leave(task, self.now);
            return Err(denial);
        }
        self.usage.exchange(&owner, None, Some(&reservation));
        self.tasks.insert(
            task,
            ReservedTask {
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
    pub fn restore(
        &mut self,
        reserved: ReservedTask,
        backend: &mut dyn SchedulerBackend,
    ) -> Option<TaskNotice> {
        let Ok(task) = self.free_number() else {
            return None;
        };
        let claim = claim(task, &reserved.name, &reserved.reservation);
        let binds = self.check_nesting(None, &reserved.reservation);
        let granted = binds.and_then(|()| {
            let entered = self.admitted.enter(claim.clone());
            entered.map_err(|refusal| refused(&refusal))
        });
        self.usage
            .exchange(&reserved.owner, None, Some(&reserved.reservation));
        let reserved = ReservedTask {
            is_served: false,
            ..reserved
        };
        self.tasks.insert(task, reserved.clone());
        match granted {
            Ok(_) => {
                let served = backend.admit(task, &reserved.thread, &reserved.reservation);
                Some(self.serve(task, served, backend))
            }
            Err(denial) => {
                self.admitted.wait(claim);
                Some(TaskNotice {
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
        backend: &mut dyn SchedulerBackend,
    ) -> Result<Guarantee, Denial> {
        self.validate(&to)?;
        let reserved = self.tasks.get(&task).ok_or_else(|| missing(task))?.clone();
        self.usage
            .check(&reserved.owner, Some(&reserved.reservation), &to)?;
        self.check_nesting(Some(task), &to)?;
        // What is granted is not taken back: first it has to be known that it would be.
        let mut trial = self.admitted.clone();
        let guarantee = trial
            .enter(claim(task, &reserved.name, &to))
            .map_err(|refusal| refused(&refusal))?;
        let done = match reserved.is_served {
            true => backend.change(task, &reserved.thread, &reserved.reservation, &to),
            false => backend.readmit(task, &reserved.thread, &to),
        };
        done?;
        self.admitted = trial;
        self.usage
            .exchange(&reserved.owner, Some(&reserved.reservation), Some(&to));
        if let Some(reserved) = self.tasks.get_mut(&task) {
            reserved.reservation = to;
            reserved.is_served = true;
        }
        Ok(guarantee)
    }

    /// The task gives its reservation back.
    ///
    /// # Errors
    /// If there is no such task.
    pub fn dismiss(
        &mut self,
        task: TaskId,
        backend: &mut dyn SchedulerBackend,
    ) -> Result<(), Denial> {
        if !self.tasks.contains_key(&task) {
            return Err(missing(task));
        }
        // One that is not served may still be waited for there.
        backend.dismiss(task);
        self.remove(task);
        Ok(())
    }

    /// The task's thread is gone, or nobody's that could be scheduled.
    pub fn remove(&mut self, task: TaskId) {
        let Some(reserved) = self.tasks.remove(&task) else {
            return;
        };
        let period = reserved.reservation.period;
        self.admitted.leave(task, self.now + period);
        // A change of affinity may make what it had count for a period more.
        self.quarantined.insert(task, self.now + period + period);
        self.usage
            .exchange(&reserved.owner, Some(&reserved.reservation), None);
    }

    /// The task's thread has asked the kernel for these CPUs of the machine, and is not served since. It is again
    /// if it may have them. That may have been heard before, or be what the thread was bound to meanwhile.
    pub fn request_affinity(
        &mut self,
        task: TaskId,
        cpus: CpuSet,
        backend: &mut dyn SchedulerBackend,
    ) -> Option<TaskNotice> {
        let reserved = self.tasks.get_mut(&task)?;
        if reserved.is_served && reserved.reservation.cpus == cpus {
            let notices = self.readmit([task].into_iter(), backend);
            // That it goes on as before is no news.
            return notices
                .into_iter()
                .find(|_| !self.tasks.contains_key(&task));
        }
        reserved.is_served = false;
        let lost = |what: &str| {
            Some(TaskNotice {
                task,
                what: format!("asked for CPUs {cpus} and lost its reservation: {what}"),
            })
        };
        let ours = cpus & self.rules.cpus;
        let to = Reservation {
            cpus: ours,
            ..reserved.reservation.clone()
        };
        let until = self.now + to.period;
        if ours.is_empty() {
            reserved.reservation.cpus = self.rules.cpus;
            // It counts as one that waits, which no CPU can ever serve as it is bound.
            let _ = self.admitted.request_affinity(task, ours, until);
            return lost(&format!("the agent has CPUs {}", self.rules.cpus));
        }
        reserved.reservation.cpus = ours;
        let nests = self.check_nesting(Some(task), &to);
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
            Ok(_) => self.readmit([task].into_iter(), backend).pop(),
            Err(denial) => lost(&denial.to_string()),
        }
    }

    /// Those that have a reservation again are scheduled by it.
    fn readmit(
        &mut self,
        tasks: impl Iterator<Item = TaskId>,
        backend: &mut dyn SchedulerBackend,
    ) -> Vec<TaskNotice> {
        let mut notices = Vec::new();
        for task in tasks {
            let Some(reserved) = self.tasks.get(&task) else {
                continue;
            };
            let served = backend.readmit(task, &reserved.thread, &reserved.reservation);
            notices.push(self.serve(task, served, backend));
        }
        notices
    }

    /// The task that waited is served, goes on waiting if it cannot be now, or is forgotten if its thread is gone.
    fn serve(
        &mut self,
        task: TaskId,
        served: Result<(), Denial>,
        backend: &mut dyn SchedulerBackend,
    ) -> TaskNotice {
        let what = match served {
            Ok(()) => {
                if let Some(reserved) = self.tasks.get_mut(&task) {
                    reserved.is_served = true;
                }
                "has its reservation again".to_owned()
            }
            // The report that it is gone is on its way, or never comes since nobody knows it.
            Err(denial @ Denial::Missing(_)) => {
                backend.dismiss(task);
                self.remove(task);
                format!("could not be served again: {denial}")
            }
            Err(denial) => {
                // It may have been served until now, and would go on as if it were.
                backend.dismiss(task);
                if let Some(reserved) = self.tasks.get_mut(&task) {
                    reserved.is_served = false;
                }
                format!("keeps its reservation and cannot be served for now: {denial}")
            }
        };
        TaskNotice { task, what }
    }

    fn grant(
        &mut self,
        task: TaskId,
        name: &str,
        reservation: &Reservation,
    ) -> Result<Guarantee, Denial> {
        self.check_nesting(None, reservation)?;
        let entered = self.admitted.enter(claim(task, name, reservation));
        entered.map_err(|refusal| refused(&refusal))
    }

    /// Counts this among what is promised from now on, of nobody's thread: everybody else is admitted beside it.
    ///
    /// # Errors
    /// If it does not fit. Then nothing has changed.
    pub fn reserve_share(&mut self, name: &str, reservation: &Reservation) -> Result<(), Denial> {
        let task = self.allocate_number()?;
        let granted = self.grant(task, name, reservation);
        if granted.is_err() {
            self.release_number(task);
        }
        granted.map(drop)
    }

    /// A number that no task has until it is given back, for something else that needs one.
    ///
    /// # Errors
    /// If there are no more.
    pub fn allocate_number(&mut self) -> Result<TaskId, Denial> {
        let task = self.free_number()?;
        self.quarantined.insert(task, Instant::NEVER);
        Ok(task)
    }

    /// The number is free again.
    pub fn release_number(&mut self, task: TaskId) {
        self.quarantined.remove(&task);
    }

    fn free_number(&self) -> Result<TaskId, Denial> {
        let mut numbers = (0..self.rules.tasks_max).map(TaskId::from_index);
        let is_free =
            |task: &TaskId| !self.tasks.contains_key(task) && !self.quarantined.contains_key(task);
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
