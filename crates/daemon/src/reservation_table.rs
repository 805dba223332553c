//! The reservations of all tasks.
//!
//! The table combines three checks: whether the owner's quotas allow a reservation ([`quotas`](crate::quotas)), whether it
//! fits on the CPUs (`analysis::admission`), and whether the scheduler accepts it ([`SchedulerBackend`]). It reads no clock
//! and knows no socket; callers are authenticated before.

mod affinity_requests;
pub mod capacity;
mod hotplug;
mod names;
mod notice;
mod released;
mod steps;
#[cfg(test)]
pub(crate) mod tests;
mod validation;

use std::collections::{BTreeMap, BTreeSet};

use names::placeholder;
pub use notice::{NoticeKind, TaskNotice};
use shiftwork_analysis::admission::{Admitted, Claim, Guarantee, Refusal, Terms};
use shiftwork_model::{CpuSet, Instant, Share, TaskId};
pub use steps::{Done, Failed, Step};

use crate::backend::SchedulerBackend;
use crate::quotas::{Amount, QuotaUsage, Quotas};
use crate::reservation::{Denial, Owner, Reservation, Thread};

/// With more tasks than this a refusal says only what does not fit: to find what would fit takes milliseconds.
const ADVICE_MAX: usize = 64;

/// Rules of admission.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The CPUs that can be reserved, by their numbers on the machine, which are below 64.
    pub cpus: CpuSet,
    /// Scheduling policy and reserve.
    pub terms: Terms,
    /// The guarantee of every task, neither weaker nor stronger: if the first tasks got the strongest possible guarantee,
    /// no others could be admitted after them.
    pub guarantee: Guarantee,
    /// Quotas of users and control groups.
    pub quotas: Quotas,
    /// Maximum number of tasks.
    pub tasks_max: usize,
}

/// A thread and its reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedTask {
    /// The user and control group that the reservation counts for.
    pub owner: Owner,
    /// The thread.
    pub thread: Thread,
    /// The name, for output only.
    pub name: String,
    /// What it was admitted with, or waits for.
    pub reservation: Reservation,
    /// Whether the scheduler enforces the reservation. Otherwise the thread runs as ordinary work and waits for it.
    pub is_served: bool,
}

/// What still counts of a reservation that has ended or changed.
#[derive(Clone, Debug)]
struct Released {
    /// The task that had it. If it has ended, its number is not assigned again before.
    task: TaskId,
    owner: Owner,
    amount: Amount,
    /// The earliest instant at which it counts no more.
    until: Instant,
}

/// All reservations. Each task is either admitted or waits for its reservation.
#[derive(Clone, Debug)]
pub struct ReservationTable {
    rules: Rules,
    admission: Admitted,
    usage: QuotaUsage,
    tasks: BTreeMap<TaskId, ReservedTask>,
    /// Numbers that belong to no task and may not be assigned: they were [allocated](Self::allocate_number), or a reservation
    /// that had them still counts.
    unavailable_numbers: BTreeSet<TaskId>,
    /// What still counts of reservations that have ended or changed.
    released: Vec<Released>,
    /// Tasks that requested CPUs more often than their owners' quotas allow, and wait until they allow the last request.
    deferred: BTreeSet<TaskId>,
    /// Names of reservations that belong to no task.
    shares: BTreeMap<TaskId, String>,
    now: Instant,
    version: u64,
}

impl ReservationTable {
    /// An empty table.
    pub fn new(rules: Rules) -> Self {
        Self {
            admission: Admitted::new(rules.cpus, rules.terms)
                .promising(rules.guarantee)
                .advising_up_to(ADVICE_MAX),
            usage: QuotaUsage::new(rules.quotas),
            tasks: BTreeMap::new(),
            unavailable_numbers: BTreeSet::new(),
            released: Vec::new(),
            deferred: BTreeSet::new(),
            shares: BTreeMap::new(),
            now: Instant::ZERO,
            version: 0,
            rules,
        }
    }

    /// All tasks, by number.
    pub fn tasks(&self) -> impl Iterator<Item = (TaskId, &ReservedTask)> {
        self.tasks.iter().map(|(&task, reserved)| (task, reserved))
    }

    /// The task with this number.
    pub fn task(&self, task: TaskId) -> Option<&ReservedTask> {
        self.tasks.get(&task)
    }

    /// The guarantee of the task; `None` while it is not served.
    pub fn guarantee(&self, task: TaskId) -> Option<Guarantee> {
        let reserved = self.tasks.get(&task)?;
        reserved.is_served.then(|| self.admission.promise(task))?
    }

    /// The rules of admission.
    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The online CPUs among those that can be reserved.
    pub const fn online(&self) -> &CpuSet {
        self.admission.online()
    }

    /// Advances to `now`: bandwidth that is released by then goes to waiting tasks.
    pub fn advance(&mut self, now: Instant, backend: &mut dyn SchedulerBackend) -> Vec<TaskNotice> {
        self.now = self.now.max(now);
        let lingering = self.admission.lingering();
        let regained = self.admission.advance(now);
        self.version += u64::from(self.admission.lingering() != lingering);
        self.settle_released();
        let tasks = regained.into_iter().map(|(task, _)| task);
        let mut notices = self.readmit(tasks, backend);
        notices.extend(self.retry_deferred(backend));
        notices
    }

    /// Retries tasks that are admitted but that the backend refused, for example because a CPU went offline again or a
    /// cpuset excluded it. To be called periodically.
    pub fn retry(&mut self, backend: &mut dyn SchedulerBackend) -> Vec<TaskNotice> {
        let unserved = self.tasks().filter(|(task, reserved)| {
            !reserved.is_served && self.admission.promise(*task).is_some()
        });
        let tasks: Vec<TaskId> = unserved.map(|(task, _)| task).collect();
        let notices = self.readmit(tasks.into_iter(), backend);
        // That a task still waits is no change.
        let has_changed =
            |notice: &TaskNotice| self.tasks.get(&notice.task).is_none_or(|it| it.is_served);
        notices.into_iter().filter(has_changed).collect()
    }

    /// Replaces the quotas. Reservations beyond them are kept.
    pub fn set_quotas(&mut self, quotas: Quotas) {
        self.rules.quotas = quotas;
        self.usage.set_quotas(quotas);
    }

    /// Replaces the share of each CPU that is reserved for ordinary work.
    ///
    /// # Errors
    /// If a task would lose its guarantee. Then nothing has changed.
    pub fn set_reserve(&mut self, reserve: Share) -> Result<(), String> {
        self.version += 1;
        let set = self.admission.set_reserve(reserve);
        set.map_err(|refusal| self.with_names(&refusal.reason, 0, None))?;
        self.rules.terms.reserve = reserve;
        Ok(())
    }

    /// Admits the thread with this reservation.
    ///
    /// # Errors
    /// Why it is not admitted, without [names](Self::with_names). Then nothing has changed.
    pub fn admit(
        &mut self,
        owner: Owner,
        thread: Thread,
        name: &str,
        reservation: Reservation,
        backend: &mut dyn SchedulerBackend,
    ) -> Result<(TaskId, Guarantee), Denial> {
        self.version += 1;
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
        let guarantee = self.grant(task, &reservation)?;
        if let Err(denial) = backend.admit(task, &thread, &reservation) {
            // None of it was used: the bandwidth is released at once, unless the guarantees of others depend on it.
            self.admission.leave(task, self.now);
            self.release(task, &owner, Amount::of(&reservation), self.now);
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

    /// Restores a task that was saved before a restart. It is served if it fits and waits otherwise. If its thread has ended
    /// it is dropped.
    pub fn restore(
        &mut self,
        reserved: ReservedTask,
        backend: &mut dyn SchedulerBackend,
    ) -> Option<TaskNotice> {
        self.version += 1;
        let Ok(task) = self.free_number() else {
            return None;
        };
        let claim = claim(task, &reserved.reservation);
        let binds = self.check_nesting(None, &reserved.reservation);
        let granted = binds.and_then(|()| {
            let entered = self.admission.enter(claim.clone());
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
                self.serve(task, served, backend)
            }
            Err(denial) => {
                self.admission.wait(claim);
                let denial = self.with_names(&denial.to_string(), 0, None);
                let what = format!("lost its reservation at the restart: {denial}");
                self.notice(task, NoticeKind::Lost, what)
            }
        }
    }

    /// Replaces the reservation of the task.
    ///
    /// # Errors
    /// Why the new reservation is refused, without [names](Self::with_names). Then nothing has changed.
    pub fn change(
        &mut self,
        task: TaskId,
        to: Reservation,
        backend: &mut dyn SchedulerBackend,
    ) -> Result<Guarantee, Denial> {
        self.version += 1;
        self.validate(&to)?;
        let reserved = self.tasks.get(&task).ok_or_else(|| missing(task))?.clone();
        self.usage
            .check(&reserved.owner, Some(&reserved.reservation), &to)?;
        self.check_nesting(Some(task), &to)?;
        // Entering cannot be undone, so it is tried on a copy until the backend has accepted the change.
        let mut trial = self.admission.clone();
        let guarantee = trial
            .enter(claim(task, &to))
            .map_err(|refusal| refused(&refusal))?;
        let done = match reserved.is_served {
            true => backend.change(task, &reserved.thread, &reserved.reservation, &to),
            false => backend.readmit(task, &reserved.thread, &to),
        };
        done?;
        self.admission = trial;
        self.usage
            .exchange(&reserved.owner, Some(&reserved.reservation), Some(&to));
        let amount = Amount::released_by_change(&reserved.reservation, &to);
        let period = reserved.reservation.period;
        self.release(task, &reserved.owner, amount, self.now + period + period);
        self.deferred.remove(&task);
        if let Some(reserved) = self.tasks.get_mut(&task) {
            reserved.reservation = to;
            reserved.is_served = true;
        }
        Ok(guarantee)
    }

    /// Ends the reservation of the task.
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
        // Also if it is not served: the scheduler may still expect it.
        backend.dismiss(task);
        self.remove(task);
        Ok(())
    }

    /// Removes the task: its thread has ended or can no longer be scheduled.
    pub fn remove(&mut self, task: TaskId) {
        self.version += 1;
        let Some(reserved) = self.tasks.remove(&task) else {
            return;
        };
        let period = reserved.reservation.period;
        self.deferred.remove(&task);
        self.admission.leave(task, self.now + period);
        self.usage
            .exchange(&reserved.owner, Some(&reserved.reservation), None);
        // After a change of affinity its former bandwidth may count for one more period.
        let amount = Amount::of(&reserved.reservation);
        self.release(task, &reserved.owner, amount, self.now + period + period);
    }

    /// Serves tasks that are admitted again.
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
            notices.extend(self.serve(task, served, backend));
        }
        notices
    }

    /// Records the answer `served` of the backend: the task is served, waits, or is removed if its thread has ended.
    fn serve(
        &mut self,
        task: TaskId,
        served: Result<(), Denial>,
        backend: &mut dyn SchedulerBackend,
    ) -> Option<TaskNotice> {
        self.version += 1;
        match served {
            Ok(()) => {
                if let Some(reserved) = self.tasks.get_mut(&task) {
                    reserved.is_served = true;
                }
                let what = "has its reservation again".to_owned();
                self.notice(task, NoticeKind::Regained, what)
            }
            // The event that reports its end is still pending, or never comes if the scheduler does not know the thread.
            Err(denial @ Denial::Missing(_)) => {
                let notice = self.notice(task, NoticeKind::Ended, format!("removed: {denial}"));
                backend.dismiss(task);
                self.remove(task);
                notice
            }
            Err(denial) => {
                // If it was served until now the scheduler would keep enforcing the old reservation.
                backend.dismiss(task);
                if let Some(reserved) = self.tasks.get_mut(&task) {
                    reserved.is_served = false;
                }
                let what =
                    format!("keeps its reservation, which is not in effect for now: {denial}");
                self.notice(task, NoticeKind::Lost, what)
            }
        }
    }

    /// A change of this task; `None` if there is none.
    pub(crate) fn notice(
        &self,
        task: TaskId,
        kind: NoticeKind,
        what: String,
    ) -> Option<TaskNotice> {
        let of = Box::new(self.tasks.get(&task)?.clone());
        Some(TaskNotice {
            task,
            kind,
            what,
            of,
        })
    }

    fn grant(&mut self, task: TaskId, reservation: &Reservation) -> Result<Guarantee, Denial> {
        self.check_nesting(None, reservation)?;
        let entered = self.admission.enter(claim(task, reservation));
        entered.map_err(|refusal| refused(&refusal))
    }

    /// Counts this reservation, which belongs to no task, in the admission of all tasks from now on.
    ///
    /// # Errors
    /// If it does not fit. Then nothing has changed.
    pub fn reserve_share(&mut self, name: &str, reservation: &Reservation) -> Result<(), Denial> {
        self.version += 1;
        let task = self.allocate_number()?;
        let granted = self.grant(task, reservation);
        match &granted {
            Ok(_) => drop(self.shares.insert(task, name.to_owned())),
            Err(_) => self.release_number(task),
        }
        granted.map(drop)
    }

    /// Takes a number that no task gets until [`release_number`](Self::release_number).
    ///
    /// # Errors
    /// If all are in use.
    pub fn allocate_number(&mut self) -> Result<TaskId, Denial> {
        let task = self.free_number()?;
        self.unavailable_numbers.insert(task);
        Ok(task)
    }

    /// Returns the number.
    pub fn release_number(&mut self, task: TaskId) {
        self.unavailable_numbers.remove(&task);
    }

    fn free_number(&self) -> Result<TaskId, Denial> {
        let mut numbers = (0..self.rules.tasks_max).map(TaskId::from_index);
        let is_free = |task: &TaskId| {
            !self.tasks.contains_key(task) && !self.unavailable_numbers.contains(task)
        };
        numbers.find(is_free).ok_or_else(|| {
            Denial::Exhausted(format!(
                "the daemon schedules at most {} tasks; all numbers are in use or were until a moment ago",
                self.rules.tasks_max
            ))
        })
    }
}

fn claim(task: TaskId, it: &Reservation) -> Claim {
    Claim {
        task,
        name: placeholder(task),
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
