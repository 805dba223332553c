//! Statistics of tasks, from the scheduling events of the kernel.
//!
//! A job of a thread lasts from waking up to blocking, or to `sched_yield`, which gives up the rest of the budget. Its
//! absolute deadline is the reservation's relative deadline after waking up.

use std::collections::BTreeMap;

use shiftwork_live::standing::{Fact, FactKind};
use shiftwork_model::{CpuId, Span, TaskId};

/// Statistics of one task so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounters {
    /// Number of completed jobs.
    pub jobs: u64,
    /// Number of late jobs, including the current one.
    pub misses: u64,
    /// Number of exhausted budgets.
    pub overruns: u64,
    /// Maximum tardiness of any job.
    pub tardiness_max: Span,
    /// Maximum response time of any job, from waking up to blocking.
    pub response_max: Span,
    /// CPU time of all jobs.
    pub ran: Span,
    /// The CPU that it runs on now.
    pub cpu: Option<CpuId>,
    /// When its current job woke up.
    began_ns: Option<u64>,
    /// Whether the current job is late and already counted.
    is_counted: bool,
    deadline: Span,
}

/// A job that missed its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss {
    /// The task of the job.
    pub task: TaskId,
    /// When it woke up, on the monotonic clock in ns.
    pub began_ns: u64,
    /// Its absolute deadline, on the same clock.
    pub due_ns: u64,
}

/// Statistics of all tasks, and the task that each CPU runs.
#[derive(Clone, Debug, Default)]
pub struct TaskStatistics {
    tasks: BTreeMap<TaskId, TaskCounters>,
    running: BTreeMap<CpuId, TaskId>,
    /// CPU time used by tasks on each CPU, without the tasks that run now.
    loads: BTreeMap<CpuId, Span>,
    /// Missed deadlines, including those of tasks that have ended.
    misses: u64,
}

impl TaskStatistics {
    /// Adds a task with this relative deadline, or changes the deadline of a known task.
    pub fn insert(&mut self, task: TaskId, deadline: Span) {
        self.tasks.entry(task).or_default().deadline = deadline;
    }

    /// Removes the task.
    pub fn remove(&mut self, task: TaskId) {
        self.tasks.remove(&task);
        self.running.retain(|_, running| *running != task);
    }

    /// Statistics of the task; `None` if it is not known.
    pub fn of(&self, task: TaskId) -> Option<&TaskCounters> {
        self.tasks.get(&task)
    }

    /// The task that the CPU runs now.
    pub fn running_on(&self, cpu: CpuId) -> Option<TaskId> {
        self.running.get(&cpu).copied()
    }

    /// CPU time used by tasks on the CPU since the previous call.
    pub fn take_load(&mut self, cpu: CpuId) -> Span {
        self.loads.remove(&cpu).unwrap_or_default()
    }

    /// Number of missed deadlines of all tasks, including those that have ended.
    pub const fn misses(&self) -> u64 {
        self.misses
    }

    /// Counts a scheduling event. Returns the miss that it reveals, if that was not returned before.
    pub fn record(&mut self, fact: &Fact) -> Option<Miss> {
        let task = fact.task?;
        let counters = self.tasks.get_mut(&task)?;
        match fact.what {
            FactKind::Woken | FactKind::Ready { .. } => {
                // `Ready` also follows a replenishment in the middle of a job.
                counters.began_ns.get_or_insert(fact.at_ns);
            }
            FactKind::Blocked | FactKind::Yielded => {
                let missed = counters.finish(task, fact.at_ns);
                self.misses += u64::from(missed.is_some());
                return missed;
            }
            FactKind::Spent | FactKind::Overrun => counters.overruns += 1,
            FactKind::Entered { .. } => {
                // The end of the job in which it lost its reservation was not observed.
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

    /// Finds current jobs whose deadlines are past at `now_ns`. Returns each once.
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

    /// Completes the current job. Returns its miss if that was not counted before.
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
    fn job_lasts_from_waking_up_to_blocking() {
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
    fn throttled_task_continues_same_job() {
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
    fn readmitted_task_starts_new_job() {
        let mut all = statistics();
        let cpus = shiftwork_model::CpuSet::first(1);
        record(&mut all, 0, FactKind::Woken);
        record(&mut all, 50, FactKind::Demoted { asked: cpus });
        assert_eq!(all.find_late(101).len(), 1, "its deadline still counts");
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
