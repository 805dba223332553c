//! Follows each task's jobs through the records of a run.

use shiftwork_model::{CpuId, Instant, JobId, RecordKind, TaskId};

use crate::backlog::{Backlog, Pending};

/// What records say of each task's jobs: which are pending, whether the oldest is ready, and what each CPU runs.
///
/// Records that contradict each other (a job that finishes twice) change nothing.
#[derive(Clone, Debug, Default)]
pub struct JobTracker {
    tasks: Vec<TrackedTask>,
    running: Vec<Option<JobId>>,
}

#[derive(Clone, Debug, Default)]
struct TrackedTask {
    backlog: Backlog,
    /// Number of the ready job.
    ready: Option<u64>,
}

impl JobTracker {
    /// Takes the next record. The job that ends with it, if it was the oldest pending one of its task: it is completed,
    /// or dropped because its task left.
    pub fn take(&mut self, at: Instant, kind: &RecordKind) -> Option<Pending> {
        match *kind {
            RecordKind::Released { job, deadline } => {
                self.task_mut(job.task).backlog.push(Pending {
                    number: job.number,
                    release: at,
                    deadline,
                });
            }
            RecordKind::Ready { job, .. } => self.task_mut(job.task).ready = Some(job.number),
            RecordKind::NotReady { job, .. } => self.task_mut(job.task).ready = None,
            RecordKind::Completed { job } => {
                let task = self.task_mut(job.task);
                let completed = task.backlog.pop(job.number)?;
                task.ready = None;
                return Some(completed);
            }
            RecordKind::Switched { cpu, to, .. } => {
                if self.running.len() <= cpu.index() {
                    self.running.resize(cpu.index() + 1, None);
                }
                self.running[cpu.index()] = to;
            }
            RecordKind::Left { task } => {
                let task = self.task_mut(task);
                task.ready = None;
                let oldest = task.backlog.front();
                task.backlog.drain().for_each(drop);
                return oldest;
            }
            _ => {}
        }
        None
    }

    /// The oldest pending job of the task.
    pub fn pending(&self, task: TaskId) -> Option<Pending> {
        self.tasks.get(task.index())?.backlog.front()
    }

    /// Whether the job may run.
    pub fn is_ready(&self, job: JobId) -> bool {
        let task = self.tasks.get(job.task.index());
        task.is_some_and(|task| task.ready == Some(job.number))
    }

    /// What the CPU runs.
    pub fn running_on(&self, cpu: CpuId) -> Option<JobId> {
        *self.running.get(cpu.index())?
    }

    /// Where a job of the task runs.
    pub fn cpu_of(&self, task: TaskId) -> Option<CpuId> {
        let is_there = |job: &Option<JobId>| job.is_some_and(|job| job.task == task);
        self.running
            .iter()
            .position(is_there)
            .map(CpuId::from_index)
    }

    fn task_mut(&mut self, task: TaskId) -> &mut TrackedTask {
        if self.tasks.len() <= task.index() {
            self.tasks.resize(task.index() + 1, TrackedTask::default());
        }
        &mut self.tasks[task.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Script, at, job};

    fn track(script: &Script) -> (JobTracker, Vec<Option<u64>>) {
        let mut tracker = JobTracker::default();
        let mut ended = Vec::new();
        for record in &script.records {
            let job = tracker.take(record.at, &record.kind);
            ended.push(job.map(|job| job.number));
        }
        (tracker, ended)
    }

    #[test]
    fn jobs_of_a_task_are_pending_one_after_the_other() {
        let script = Script::default()
            .at(0)
            .release(0, 1, 10)
            .switch(1, Some((0, 1)))
            .at(5)
            .record(RecordKind::Released {
                job: job(0, 2),
                deadline: at(15),
            });
        let (tracker, _) = track(&script);
        let task = TaskId::from_index(0);
        assert_eq!(
            tracker.pending(task).map(|job| (job.number, job.deadline)),
            Some((1, at(10)))
        );
        assert!(tracker.is_ready(job(0, 1)) && !tracker.is_ready(job(0, 2)));
        assert_eq!(tracker.cpu_of(task), CpuId::new(1));
        assert_eq!(tracker.running_on(CpuId::from_index(1)), Some(job(0, 1)));
        let (tracker, ended) = track(&script.at(6).complete(0, 1).complete(0, 1).switch(1, None));
        assert_eq!(ended[ended.len() - 3..], [Some(1), None, None]);
        assert_eq!(tracker.pending(task).map(|job| job.release), Some(at(5)));
        assert_eq!(
            (tracker.cpu_of(task), tracker.is_ready(job(0, 1))),
            (None, false)
        );
    }

    #[test]
    fn jobs_of_a_task_that_left_are_not_pending() {
        let task = TaskId::from_index(0);
        let script = Script::default().at(0).release(0, 1, 10).release(0, 2, 12);
        let (tracker, ended) = track(&script.at(3).record(RecordKind::Left { task }));
        assert_eq!(ended.last(), Some(&Some(1)));
        assert_eq!(tracker.pending(task).map(|job| job.number), None);
    }
}
