//! How tasks fared: what is counted from the facts that the kernel tells.
//!
//! A job of a program is what its thread does between waking up and blocking, or giving up what is left of its
//! budget; its deadline is the reservation's after waking up.

use std::collections::BTreeMap;

use shiftwork_live::standing::{Fact, FactKind};
use shiftwork_model::{CpuId, Span, TaskId};

/// How a task fared so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// How many jobs are finished.
    pub jobs: u64,
    /// How many of them, and of the one that is not, are late.
    pub misses: u64,
    /// How often a budget was used up.
    pub overruns: u64,
    /// By how much the latest job was late.
    pub tardiness_max: Span,
    /// The longest from waking up to blocking.
    pub response_max: Span,
    /// Of all jobs.
    pub ran: Span,
    /// Where it runs now.
    pub cpu: Option<CpuId>,
    /// When its present job woke up.
    began_ns: Option<u64>,
    /// Whether that is late and counted already.
    is_late: bool,
    deadline: Span,
}

/// A job that missed its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss {
    /// Whose.
    pub task: TaskId,
    /// When it woke up, on the monotonic clock in ns.
    pub began_ns: u64,
    /// When it was due.
    pub due_ns: u64,
}

/// The accounts of all tasks, and what runs where.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    tasks: BTreeMap<TaskId, Account>,
    running: BTreeMap<CpuId, TaskId>,
    /// What tasks ran on each CPU so far, without what runs now.
    loads: BTreeMap<CpuId, Span>,
    /// Of those that are gone, too.
    misses: u64,
}

impl Accounts {
    /// A task is there, whose jobs have this relative deadline. One that was there has it from its next job on.
    pub fn open(&mut self, task: TaskId, deadline: Span) {
        self.tasks.entry(task).or_default().deadline = deadline;
    }

    /// The task is gone.
    pub fn close(&mut self, task: TaskId) {
        self.tasks.remove(&task);
        self.running.retain(|_, running| *running != task);
    }

    /// How the task fared; `None` if there is none.
    pub fn of(&self, task: TaskId) -> Option<&Account> {
        self.tasks.get(&task)
    }

    /// What the CPU runs now; `None`: no task.
    pub fn running_on(&self, cpu: CpuId) -> Option<TaskId> {
        self.running.get(&cpu).copied()
    }

    /// What tasks ran on the CPU since the call before.
    pub fn take_load(&mut self, cpu: CpuId) -> Span {
        self.loads.remove(&cpu).unwrap_or_default()
    }

    /// How many jobs of all tasks that there ever were missed their deadlines.
    pub const fn misses(&self) -> u64 {
        self.misses
    }

    /// Something happened. Whether that is a miss that was not told before.
    pub fn tell(&mut self, fact: &Fact) -> Option<Miss> {
        let task = fact.task?;
        let account = self.tasks.get_mut(&task)?;
        match fact.what {
            FactKind::Woken | FactKind::Ready { .. } => {
                // What is replenished becomes ready, too, in the middle of a job.
                account.began_ns.get_or_insert(fact.at_ns);
            }
            FactKind::Blocked | FactKind::Yielded => {
                let missed = account.finish(task, fact.at_ns);
                self.misses += u64::from(missed.is_some());
                return missed;
            }
            FactKind::Spent | FactKind::Overrun => account.overruns += 1,
            FactKind::Entered { .. } => {
                // Nobody knows how the job ended in which it lost its reservation.
                account.began_ns = None;
                account.is_late = false;
            }
            FactKind::Running => {
                account.cpu = fact.cpu;
                if let Some(cpu) = fact.cpu {
                    self.running.insert(cpu, task);
                }
            }
            FactKind::Stopped { ran } => {
                account.cpu = None;
                account.ran += ran;
                if let Some(cpu) = fact.cpu {
                    self.running.remove(&cpu);
                    *self.loads.entry(cpu).or_default() += ran;
                }
            }
            _ => {}
        }
        None
    }

    /// It is now so late: whoever is not finished by its deadline has missed it. Returns them, each once.
    pub fn look(&mut self, now_ns: u64) -> Vec<Miss> {
        let mut late = Vec::new();
        for (&task, account) in &mut self.tasks {
            if let Some(miss) = account.late(task, now_ns) {
                account.is_late = true;
                account.misses += 1;
                self.misses += 1;
                late.push(miss);
            }
        }
        late
    }
}

impl Account {
    fn late(&self, task: TaskId, now_ns: u64) -> Option<Miss> {
        let began_ns = self.began_ns.filter(|_| !self.is_late)?;
        let due_ns = began_ns.saturating_add(self.deadline.as_ns());
        (now_ns > due_ns).then_some(Miss {
            task,
            began_ns,
            due_ns,
        })
    }

    /// Its job is finished. Its miss, if that was not told before.
    fn finish(&mut self, task: TaskId, at_ns: u64) -> Option<Miss> {
        let began_ns = self.began_ns.take()?;
        let response = Span::from_ns(at_ns.saturating_sub(began_ns));
        self.jobs += 1;
        self.response_max = self.response_max.max(response);
        let is_told = std::mem::take(&mut self.is_late);
        if response <= self.deadline {
            return None;
        }
        self.tardiness_max = self.tardiness_max.max(response - self.deadline);
        if is_told {
            return None;
        }
        self.misses += 1;
        Some(Miss {
            task,
            began_ns,
            due_ns: began_ns.saturating_add(self.deadline.as_ns()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: TaskId = TaskId::from_index(3);

    fn accounts() -> Accounts {
        let mut accounts = Accounts::default();
        accounts.open(TASK, Span::from_ns(100));
        accounts
    }

    fn tell(accounts: &mut Accounts, at_ns: u64, what: FactKind) {
        accounts.tell(&Fact {
            at_ns,
            task: Some(TASK),
            cpu: Some(CpuId::from_index(2)),
            what,
        });
    }

    #[test]
    fn a_job_is_from_waking_up_to_blocking() {
        let mut all = accounts();
        tell(&mut all, 10, FactKind::Woken);
        tell(&mut all, 12, FactKind::Running);
        assert_eq!(all.of(TASK).unwrap().cpu, Some(CpuId::from_index(2)));
        assert_eq!(all.running_on(CpuId::from_index(2)), Some(TASK));
        let ran = Span::from_ns(60);
        tell(&mut all, 72, FactKind::Stopped { ran });
        tell(&mut all, 72, FactKind::Blocked);
        tell(&mut all, 110, FactKind::Ready { deadline_ns: 210 });
        tell(&mut all, 200, FactKind::Yielded);
        let account = *all.of(TASK).unwrap();
        assert_eq!((account.jobs, account.misses, account.ran), (2, 0, ran));
        assert_eq!(account.response_max, Span::from_ns(90));
        assert_eq!(account.cpu, None);
        assert_eq!(all.running_on(CpuId::from_index(2)), None);
        assert_eq!(all.take_load(CpuId::from_index(2)), ran);
        assert_eq!(all.take_load(CpuId::from_index(2)), Span::ZERO);
    }

    #[test]
    fn who_is_throttled_in_the_middle_is_still_at_the_same_job() {
        let mut all = accounts();
        tell(&mut all, 0, FactKind::Woken);
        tell(&mut all, 50, FactKind::Spent);
        tell(&mut all, 90, FactKind::Ready { deadline_ns: 190 });
        tell(&mut all, 130, FactKind::Blocked);
        let account = *all.of(TASK).unwrap();
        assert_eq!((account.jobs, account.misses, account.overruns), (1, 1, 1));
        assert_eq!(account.tardiness_max, Span::from_ns(30));
    }

    #[test]
    fn who_has_its_reservation_again_begins_anew() {
        let mut all = accounts();
        let cpus = shiftwork_model::CpuSet::first(1);
        tell(&mut all, 0, FactKind::Woken);
        tell(&mut all, 50, FactKind::Demoted { asked: cpus });
        assert_eq!(all.look(101).len(), 1, "nobody promised it anything else");
        tell(&mut all, 900, FactKind::Entered { cpus });
        tell(&mut all, 900, FactKind::Woken);
        tell(&mut all, 990, FactKind::Blocked);
        let account = *all.of(TASK).unwrap();
        assert_eq!((account.jobs, account.misses), (1, 1));
        assert_eq!(account.response_max, Span::from_ns(90));
    }

    #[test]
    fn a_job_is_late_once_whether_or_not_it_ever_ends() {
        let mut all = accounts();
        tell(&mut all, 10, FactKind::Woken);
        assert_eq!(all.look(110), []);
        let miss = Miss {
            task: TASK,
            began_ns: 10,
            due_ns: 110,
        };
        assert_eq!(all.look(111), [miss]);
        assert_eq!(all.look(500), []);
        tell(&mut all, 510, FactKind::Blocked);
        let account = *all.of(TASK).unwrap();
        assert_eq!((account.jobs, account.misses), (1, 1));
        assert_eq!(account.tardiness_max, Span::from_ns(400));
        assert_eq!(all.misses(), 1);
        tell(&mut all, 600, FactKind::Woken);
        tell(&mut all, 701, FactKind::Blocked);
        assert_eq!((all.of(TASK).unwrap().misses, all.misses()), (2, 2));
        all.close(TASK);
        assert_eq!((all.of(TASK), all.misses()), (None, 2));
    }
}
