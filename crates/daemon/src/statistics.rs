//! How tasks fared: what is counted from the facts that the kernel tells.
//!
//! A job of a program is what its thread does between waking up and blocking, or giving up what is left of its
//! budget; its deadline is the reservation's after waking up.

use std::collections::BTreeMap;

use shiftwork_live::standing::{Fact, FactKind};
use shiftwork_model::{CpuId, Span, TaskId};

/// How a task fared so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounters {
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
    is_counted: bool,
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
pub struct TaskStatistics {
    tasks: BTreeMap<TaskId, TaskCounters>,
    running: BTreeMap<CpuId, TaskId>,
    /// What tasks ran on each CPU so far, without what runs now.
    loads: BTreeMap<CpuId, Span>,
    /// Of those that are gone, too.
    misses: u64,
}

impl TaskStatistics {
    /// A task is there, whose jobs have this relative deadline. One that was there has it from its next job on.
    pub fn insert(&mut self, task: TaskId, deadline: Span) {
        self.tasks.entry(task).or_default().deadline = deadline;
    }

    /// The task is gone.
    pub fn remove(&mut self, task: TaskId) {
        self.tasks.remove(&task);
        self.running.retain(|_, running| *running != task);
    }

    /// How the task fared; `None` if there is none.
    pub fn of(&self, task: TaskId) -> Option<&TaskCounters> {
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
    pub fn record(&mut self, fact: &Fact) -> Option<Miss> {
        let task = fact.task?;
        let counters = self.tasks.get_mut(&task)?;
        match fact.what {
            FactKind::Woken | FactKind::Ready { .. } => {
                // What is replenished becomes ready, too, in the middle of a job.
                counters.began_ns.get_or_insert(fact.at_ns);
            }
            FactKind::Blocked | FactKind::Yielded => {
                let missed = counters.finish(task, fact.at_ns);
                self.misses += u64::from(missed.is_some());
                return missed;
            }
            FactKind::Spent | FactKind::Overrun => counters.overruns += 1,
            FactKind::Entered { .. } => {
                // Nobody knows how the job ended in which it lost its reservation.
                counters.began_ns = None;
                counters.is_counted = false;
            }
            FactKind::Running => {
                counters.cpu = fact.cpu;
                if let Some(cpu) = fact.cpu {
                    self.running.insert(cpu, task);
                }
            }
            FactKind::Stopped { ran } => {
                counters.cpu = None;
                counters.ran += ran;
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
    pub fn find_late(&mut self, now_ns: u64) -> Vec<Miss> {
        let mut late = Vec::new();
        for (&task, counters) in &mut self.tasks {
            if let Some(miss) = counters.find_miss(task, now_ns) {
                counters.is_counted = true;
                counters.misses += 1;
                self.misses += 1;
                late.push(miss);
            }
        }
        late
    }
}

impl TaskCounters {
    fn find_miss(&self, task: TaskId, now_ns: u64) -> Option<Miss> {
        let began_ns = self.began_ns.filter(|_| !self.is_counted)?;
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
        let was_counted = std::mem::take(&mut self.is_counted);
        if response <= self.deadline {
            return None;
        }
        self.tardiness_max = self.tardiness_max.max(response - self.deadline);
        if was_counted {
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

    fn statistics() -> TaskStatistics {
        let mut statistics = TaskStatistics::default();
        statistics.insert(TASK, Span::from_ns(100));
        statistics
    }

    fn record(statistics: &mut TaskStatistics, at_ns: u64, what: FactKind) {
        statistics.record(&Fact {
            at_ns,
            task: Some(TASK),
            cpu: Some(CpuId::from_index(2)),
            what,
        });
    }

    #[test]
    fn a_job_is_from_waking_up_to_blocking() {
        let mut all = statistics();
        record(&mut all, 10, FactKind::Woken);
        record(&mut all, 12, FactKind::Running);
        assert_eq!(all.of(TASK).unwrap().cpu, Some(CpuId::from_index(2)));
        assert_eq!(all.running_on(CpuId::from_index(2)), Some(TASK));
        let ran = Span::from_ns(60);
        record(&mut all, 72, FactKind::Stopped { ran });
        record(&mut all, 72, FactKind::Blocked);
        record(&mut all, 110, FactKind::Ready { deadline_ns: 210 });
        record(&mut all, 200, FactKind::Yielded);
        let counters = *all.of(TASK).unwrap();
        assert_eq!((counters.jobs, counters.misses, counters.ran), (2, 0, ran));
        assert_eq!(counters.response_max, Span::from_ns(90));
        assert_eq!(counters.cpu, None);
        assert_eq!(all.running_on(CpuId::from_index(2)), None);
        assert_eq!(all.take_load(CpuId::from_index(2)), ran);
        assert_eq!(all.take_load(CpuId::from_index(2)), Span::ZERO);
    }

    #[test]
    fn who_is_throttled_in_the_middle_is_still_at_the_same_job() {
        let mut all = statistics();
        record(&mut all, 0, FactKind::Woken);
        record(&mut all, 50, FactKind::Spent);
        record(&mut all, 90, FactKind::Ready { deadline_ns: 190 });
        record(&mut all, 130, FactKind::Blocked);
        let counters = *all.of(TASK).unwrap();
        assert_eq!(
            (counters.jobs, counters.misses, counters.overruns),
            (1, 1, 1)
        );
        assert_eq!(counters.tardiness_max, Span::from_ns(30));
    }

    #[test]
    fn who_has_its_reservation_again_begins_anew() {
        let mut all = statistics();
        let cpus = shiftwork_model::CpuSet::first(1);
        record(&mut all, 0, FactKind::Woken);
        record(&mut all, 50, FactKind::Demoted { asked: cpus });
        assert_eq!(
            all.find_late(101).len(),
            1,
            "nobody promised it anything else"
        );
        record(&mut all, 900, FactKind::Entered { cpus });
        record(&mut all, 900, FactKind::Woken);
        record(&mut all, 990, FactKind::Blocked);
        let counters = *all.of(TASK).unwrap();
        assert_eq!((counters.jobs, counters.misses), (1, 1));
        assert_eq!(counters.response_max, Span::from_ns(90));
    }

    #[test]
    fn a_job_is_counted_once_whether_or_not_it_ever_ends() {
        let mut all = statistics();
        record(&mut all, 10, FactKind::Woken);
        assert_eq!(all.find_late(110), []);
        let miss = Miss {
            task: TASK,
            began_ns: 10,
            due_ns: 110,
        };
        assert_eq!(all.find_late(111), [miss]);
        assert_eq!(all.find_late(500), []);
        record(&mut all, 510, FactKind::Blocked);
        let counters = *all.of(TASK).unwrap();
        assert_eq!((counters.jobs, counters.misses), (1, 1));
        assert_eq!(counters.tardiness_max, Span::from_ns(400));
        assert_eq!(all.misses(), 1);
        record(&mut all, 600, FactKind::Woken);
        record(&mut all, 701, FactKind::Blocked);
        assert_eq!((all.of(TASK).unwrap().misses, all.misses()), (2, 2));
        all.remove(TASK);
        assert_eq!((all.of(TASK), all.misses()), (None, 2));
    }
}
