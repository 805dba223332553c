//! Statistics of tasks, from the records.
//!
//! A job of a program is what its thread does between waking up and blocking, or giving up what is left of its
//! budget; its deadline is the reservation's after waking up.

use std::collections::BTreeMap;

use shiftwork_model::{CpuId, Instant, JobId, Record, RecordKind, Span, TaskId};
use shiftwork_trace::{JobTracker, Pending};

/// Counters of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounters {
    /// How many jobs are finished.
    pub jobs: u64,
    /// How many of them, and of the one that is not, are late.
    pub misses: u64,
    /// How often a budget was used up.
    pub overruns: u64,
    /// Maximum tardiness of any job.
    pub tardiness_max: Span,
    /// The longest from waking up to blocking.
    pub response_max: Span,
    /// Processor time of all jobs.
    pub ran: Span,
    /// CPU time in the last [measured](TaskStatistics::measure) interval.
    pub recent: Span,
    /// The CPU that it is on.
    pub cpu: Option<CpuId>,
    /// The job that it had when it lost its reservation.
    dropped: Option<Pending>,
    /// Number of the job with the miss that was counted last.
    counted: u64,
    /// CPU time until the last measurement.
    measured: Span,
}

/// A job that missed its deadline. Instants are of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss {
    /// The job.
    pub job: JobId,
    /// When its thread woke up.
    pub release: Instant,
    /// When it was due.
    pub due: Instant,
}

/// The statistics of all tasks, and what runs where.
#[derive(Clone, Debug, Default)]
pub struct TaskStatistics {
    tasks: BTreeMap<TaskId, TaskCounters>,
    tracker: JobTracker,
    /// Since when a CPU has run its job, less the time that was not the job's own.
    since: BTreeMap<CpuId, Instant>,
    /// Processor time of tasks on each CPU so far, without the jobs that run now.
    loads: BTreeMap<CpuId, Span>,
    /// Of those that are gone, too.
    misses: u64,
}

impl TaskStatistics {
    /// A task is there from now on, if it was not before.
    pub fn insert(&mut self, task: TaskId) {
        self.tasks.entry(task).or_default();
    }

    /// The task is gone; the next task with its number has none of its jobs.
    pub fn remove(&mut self, task: TaskId) {
        self.tasks.remove(&task);
        self.tracker.take(Instant::ZERO, &RecordKind::Left { task });
    }

    /// The counters of the task; `None` if there is none.
    pub fn of(&self, task: TaskId) -> Option<&TaskCounters> {
        self.tasks.get(&task)
    }

    /// What the CPU runs now; `None`: no task.
    pub fn running_on(&self, cpu: CpuId) -> Option<TaskId> {
        let task = self.tracker.running_on(cpu)?.task;
        self.tasks.contains_key(&task).then_some(task)
    }

    /// Processor time of tasks on the CPU since the call before.
    pub fn take_load(&mut self, cpu: CpuId) -> Span {
        self.loads.remove(&cpu).unwrap_or_default()
    }

    /// Measures the CPU time of each task since the call before, the present stretch of execution included.
    pub fn measure(&mut self, now: Instant) {
        let running = self.since.iter();
        let running = running.filter_map(|(&cpu, &since)| {
            let task = self.tracker.running_on(cpu)?.task;
            Some((task, now.late_since(since)))
        });
        let running: BTreeMap<TaskId, Span> = running.collect();
        for (task, counters) in &mut self.tasks {
            let present = running.get(task).copied().unwrap_or_default();
            let used = counters.ran + present;
            // The last measurement was too high by an execution that had ended, of which the record was still to come.
            counters.recent = used.saturating_sub(counters.measured);
            counters.measured = counters.measured.max(used);
        }
    }

    /// How many jobs of all tasks that there ever were missed their deadlines.
    pub const fn misses(&self) -> u64 {
        self.misses
    }

    /// Takes a record; returns a miss that was not counted before.
    pub fn record(&mut self, record: &Record) -> Option<Miss> {
        let ended = self.tracker.take(record.at, &record.kind);
        match record.kind {
            RecordKind::Switched { cpu, from, to } => self.switch(record.at, cpu, from, to),
            RecordKind::Interrupted { job, time } => {
                let cpu = self.tasks.get(&job.task)?.cpu?;
                *self.since.get_mut(&cpu)? += time;
            }
            RecordKind::BudgetSpent { job } => self.tasks.get_mut(&job.task)?.overruns += 1,
            RecordKind::Completed { job } => {
                let missed = self
                    .tasks
                    .get_mut(&job.task)?
                    .finish(job, ended?, record.at);
                self.misses += u64::from(missed.is_some());
                return missed;
            }
            RecordKind::Left { task } => self.tasks.get_mut(&task)?.dropped = ended,
            // It is not known how the job ended in which it lost its reservation.
            RecordKind::Entered { task } => self.tasks.get_mut(&task)?.dropped = None,
            _ => {}
        }
        None
    }

    fn switch(&mut self, at: Instant, cpu: CpuId, from: Option<JobId>, to: Option<JobId>) {
        if let Some(since) = self.since.remove(&cpu)
            && let Some(counters) = from.and_then(|job| self.tasks.get_mut(&job.task))
        {
            let ran = at.late_since(since);
            counters.ran += ran;
            *self.loads.entry(cpu).or_default() += ran;
        }
        for (job, cpu_of) in [(from, None), (to, Some(cpu))] {
            if let Some(counters) = job.and_then(|job| self.tasks.get_mut(&job.task)) {
                counters.cpu = cpu_of;
            }
        }
        if to.is_some() {
            self.since.insert(cpu, at);
        }
    }

    /// The jobs that have missed their deadlines by now, each once.
    pub fn find_late(&mut self, now: Instant) -> Vec<Miss> {
        let mut late = Vec::new();
        for (&task, counters) in &mut self.tasks {
            let pending = self.tracker.pending(task).or(counters.dropped);
            let is_late = |job: &Pending| now > job.deadline && job.number != counters.counted;
            if let Some(job) = pending.filter(is_late) {
                late.push(counters.miss(task, job));
            }
        }
        self.misses += late.len() as u64;
        late
    }
}

impl TaskCounters {
    const fn miss(&mut self, task: TaskId, job: Pending) -> Miss {
        self.counted = job.number;
        self.misses += 1;
        Miss {
            job: JobId {
                task,
                number: job.number,
            },
            release: job.release,
            due: job.deadline,
        }
    }

    /// The job is finished. Its miss, if that was not counted before.
    fn finish(&mut self, id: JobId, job: Pending, at: Instant) -> Option<Miss> {
        self.jobs += 1;
        self.response_max = self.response_max.max(at.late_since(job.release));
        self.tardiness_max = self.tardiness_max.max(at.late_since(job.deadline));
        let is_new = at > job.deadline && job.number != self.counted;
        is_new.then(|| self.miss(id.task, job))
    }
}

#[cfg(test)]
mod tests {
    use shiftwork_model::{NotReadyReason, Priority};

    use super::*;

    const TASK: TaskId = TaskId::from_index(3);
    const CPU: CpuId = CpuId::from_index(2);

    const fn job(number: u64) -> JobId {
        JobId { task: TASK, number }
    }

    fn record(all: &mut TaskStatistics, at_ns: u64, kind: RecordKind) -> Option<Miss> {
        let at = Instant::from_ns(at_ns);
        all.record(&Record { at, kind })
    }

    /// The job wakes up, and is due 100 ns later.
    fn wake(all: &mut TaskStatistics, at_ns: u64, number: u64) {
        all.insert(TASK);
        let (job, deadline) = (job(number), Instant::from_ns(at_ns + 100));
        record(all, at_ns, RecordKind::Released { job, deadline });
        let priority = Priority::MOST_URGENT;
        record(
            all,
            at_ns,
            RecordKind::Ready {
                job,
                deadline,
                priority,
            },
        );
    }

    fn block(all: &mut TaskStatistics, at_ns: u64, number: u64) -> Option<Miss> {
        record(all, at_ns, RecordKind::Completed { job: job(number) })
    }

    fn switch(all: &mut TaskStatistics, at_ns: u64, from: Option<u64>, to: Option<u64>) {
        let (from, to) = (from.map(job), to.map(job));
        record(all, at_ns, RecordKind::Switched { cpu: CPU, from, to });
    }

    fn counters(all: &TaskStatistics) -> TaskCounters {
        *all.of(TASK).unwrap()
    }

    #[test]
    fn job_lasts_from_waking_up_to_blocking() {
        let mut all = TaskStatistics::default();
        wake(&mut all, 10, 1);
        switch(&mut all, 12, None, Some(1));
        assert_eq!(counters(&all).cpu, Some(CPU));
        assert_eq!(all.running_on(CPU), Some(TASK));
        let time = Span::from_ns(5);
        record(&mut all, 72, RecordKind::Interrupted { job: job(1), time });
        switch(&mut all, 72, Some(1), None);
        block(&mut all, 72, 1);
        wake(&mut all, 110, 2);
        block(&mut all, 200, 2);
        let (found, ran) = (counters(&all), Span::from_ns(55));
        assert_eq!((found.jobs, found.misses, found.ran), (2, 0, ran));
        assert_eq!(found.response_max, Span::from_ns(90));
        assert_eq!((found.cpu, all.running_on(CPU)), (None, None));
        assert_eq!(all.take_load(CPU), ran);
        assert_eq!(all.take_load(CPU), Span::ZERO);
    }

    #[test]
    fn measurement_counts_present_stretch_once() {
        let mut all = TaskStatistics::default();
        let measure = |all: &mut TaskStatistics, at_ns| {
            all.measure(Instant::from_ns(at_ns));
            counters(all).recent.as_ns()
        };
        wake(&mut all, 0, 1);
        assert_eq!(measure(&mut all, 10), 0);
        switch(&mut all, 12, None, Some(1));
        assert_eq!(measure(&mut all, 20), 8);
        assert_eq!(measure(&mut all, 50), 30);
        assert_eq!(counters(&all).ran, Span::ZERO, "it has not ended");
        let time = Span::from_ns(4);
        record(&mut all, 60, RecordKind::Interrupted { job: job(1), time });
        switch(&mut all, 70, Some(1), None);
        assert_eq!(measure(&mut all, 80), 16);
        assert_eq!(measure(&mut all, 90), 0);
        // The record of an end comes after a measurement that counted more.
        switch(&mut all, 100, None, Some(1));
        assert_eq!(measure(&mut all, 120), 20);
        switch(&mut all, 115, Some(1), None);
        assert_eq!(measure(&mut all, 130), 0);
        switch(&mut all, 130, None, Some(1));
        assert_eq!(measure(&mut all, 140), 5);
        let total = counters(&all).ran + Span::from_ns(10);
        assert_eq!(total, Span::from_ns(54 + 15 + 10));
    }

    #[test]
    fn throttled_task_continues_same_job() {
        let mut all = TaskStatistics::default();
        wake(&mut all, 0, 1);
        record(&mut all, 50, RecordKind::BudgetSpent { job: job(1) });
        let reason = NotReadyReason::Throttled;
        record(
            &mut all,
            50,
            RecordKind::NotReady {
                job: job(1),
                reason,
            },
        );
        assert!(block(&mut all, 130, 1).is_some());
        let found = counters(&all);
        assert_eq!((found.jobs, found.misses, found.overruns), (1, 1, 1));
        assert_eq!(found.tardiness_max, Span::from_ns(30));
    }

    #[test]
    fn readmitted_task_starts_new_job() {
        let mut all = TaskStatistics::default();
        wake(&mut all, 0, 1);
        record(&mut all, 50, RecordKind::Left { task: TASK });
        let late = all.find_late(Instant::from_ns(101));
        assert_eq!(
            late.len(),
            1,
            "its reservation was lost, and its deadline was not"
        );
        assert_eq!(all.find_late(Instant::from_ns(500)), []);
        record(&mut all, 900, RecordKind::Entered { task: TASK });
        wake(&mut all, 900, 2);
        block(&mut all, 990, 2);
        let found = counters(&all);
        assert_eq!((found.jobs, found.misses), (1, 1));
        assert_eq!(found.response_max, Span::from_ns(90));
    }

    #[test]
    fn a_job_is_late_once_whether_or_not_it_ever_ends() {
        let mut all = TaskStatistics::default();
        wake(&mut all, 10, 1);
        assert_eq!(all.find_late(Instant::from_ns(110)), []);
        let miss = Miss {
            job: job(1),
            release: Instant::from_ns(10),
            due: Instant::from_ns(110),
        };
        assert_eq!(all.find_late(Instant::from_ns(111)), [miss]);
        assert_eq!(all.find_late(Instant::from_ns(500)), []);
        assert_eq!(block(&mut all, 510, 1), None);
        let found = counters(&all);
        assert_eq!((found.jobs, found.misses), (1, 1));
        assert_eq!(found.tardiness_max, Span::from_ns(400));
        assert_eq!(all.misses(), 1);
        wake(&mut all, 600, 2);
        assert!(block(&mut all, 701, 2).is_some());
        assert_eq!((counters(&all).misses, all.misses()), (2, 2));
        all.remove(TASK);
        assert_eq!((all.of(TASK), all.misses()), (None, 2));
    }
}
