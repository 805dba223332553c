//! The jobs through which the longest time of a chain came about.

use std::borrow::Cow;

use shiftwork_model::{Chain, Instant, JobId, Record, Recorder, TaskId, TaskSet};

use super::latency::Latency;
use super::times::Interval;
use crate::jobs::{JobRow, JobSink, Jobs};
use crate::packed::Records;
use crate::tracker::JobTracker;

/// What is measured of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChainTime {
    /// Its reaction time.
    Reaction,
    /// Its data age.
    Age,
    /// Its end-to-end latency.
    Latency,
}

/// A part of a time of a chain: what one job took. The steps of a time follow each other without gaps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub task: TaskId,
    /// The job; `None` if none was released by the end of the time.
    pub job: Option<JobRow>,
    /// The end of the step before, or the begin of the time.
    pub from: Instant,
    /// When the job triggered the next or completed, or the end of the time.
    pub to: Instant,
    /// Whether the job passed its data on, or triggered the next, by then.
    pub is_over: bool,
}

/// The records of a run up to the end of a time of a chain, which had ended by then or is to be followed to the horizon.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured<'a> {
    pub set: &'a TaskSet,
    pub chain: &'a Chain,
    pub records: Records<'a>,
    pub time: Interval,
    pub has_ended: bool,
}

impl<'a> Measured<'a> {
    /// The steps of this time.
    ///
    /// - Reaction: the first job of the first task that reads after the event, and of each further task the first that reads
    ///   what the job before wrote, or a later output.
    /// - Age: of each task the job on whose output that of the last task rests, and the job of the last task that replaced it.
    /// - Latency: of each task the job that triggered the next.
    ///
    /// `None` if the records contradict each other.
    ///
    /// # Cost
    /// One pass over the records; memory for the jobs of the chain's tasks within the time.
    pub fn steps(self, kind: ChainTime) -> Option<Vec<Step>> {
        let steps = match kind {
            ChainTime::Reaction => self.reaction()?,
            ChainTime::Age => self.age()?,
            ChainTime::Latency => self.latency()?,
        };
        let last = steps.last()?;
        let is_consistent = last.to == self.time.to && last.is_over == self.has_ended;
        is_consistent.then_some(steps)
    }

    fn reaction(self) -> Option<Vec<Step>> {
        let tasks = self.jobs();
        let mut steps = Vec::new();
        let mut from = self.time.from;
        for (place, jobs) in tasks.iter().enumerate() {
            // The event is just after `from`; what is written at an instant is read at it.
            let is_late = |start: Instant| {
                if place == 0 {
                    start <= from
                } else {
                    start < from
                }
            };
            let reads = |job: &&JobRow| job.start.is_some_and(|start| !is_late(start));
            let step = match jobs.completed.iter().find(reads) {
                Some(job) => jobs.step(from, job)?,
                None => {
                    let waits = |job: &&JobRow| !job.start.is_some_and(is_late);
                    let job = jobs.pending.iter().find(waits).copied();
                    jobs.open(from, job, self.time.to)
                }
            };
            steps.push(step);
            if !step.is_over {
                break;
            }
            from = step.to;
        }
        Some(steps)
    }

    fn age(self) -> Option<Vec<Step>> {
        let tasks = self.jobs();
        let (last, before) = tasks.split_last()?;
        if !self.has_ended {
            let output = last.completed.last()?;
            let mut steps = self.rests_on(before, last, output)?;
            steps.push(last.open(output.finish?, last.pending.first().copied(), self.time.to));
            return Some(steps);
        }
        last.completed.windows(2).find_map(|pair| {
            let replaced = pair[1].finish == Some(self.time.to);
            let mut steps = replaced.then(|| self.rests_on(before, last, &pair[0]))??;
            steps.push(last.step(pair[0].finish?, &pair[1])?);
            Some(steps)
        })
    }

    /// The steps up to the completion of `output` of the last task, if it rests on the read with which the time begins.
    fn rests_on(self, before: &[TaskJobs], last: &TaskJobs, output: &JobRow) -> Option<Vec<Step>> {
        let mut path = vec![(last, output)];
        for jobs in before.iter().rev() {
            let read = path.last()?.1.start?;
            let mut completed = jobs.completed.iter().rev();
            let writer = completed.find(|job| job.finish.is_some_and(|at| at <= read))?;
            path.push((jobs, writer));
        }
        if path.last()?.1.start != Some(self.time.from) {
            return None;
        }
        let mut from = self.time.from;
        let steps = path.into_iter().rev().map(|(jobs, job)| {
            let step = jobs.step(from, job)?;
            from = step.to;
            Some(step)
        });
        steps.collect()
    }

    fn latency(self) -> Option<Vec<Step>> {
        let tasks = self.jobs();
        let mut latency: Latency<Vec<(JobId, Instant)>> = Latency::of(self.chain, self.set)?;
        for record in self.records() {
            latency.record(record.at, &record.kind);
        }
        let open = latency.oldest().filter(|_| !self.has_ended);
        let trail = match open {
            Some((_, _, stem)) => &stem.trail,
            None => latency.longest(),
        };
        let mut from = self.time.from;
        let mut steps = Vec::new();
        for (jobs, &(id, to)) in tasks.iter().zip(trail) {
            let job = jobs.find(id)?;
            steps.push(Step {
                to,
                is_over: true,
                ..jobs.open(from, Some(job), to)
            });
            from = to;
        }
        if let Some((place, before, _)) = open {
            let jobs = &tasks[place];
            let job = jobs.pending.get(before).copied();
            steps.push(jobs.open(from, job, self.time.to));
        }
        Some(steps)
    }

    fn records(self) -> impl Iterator<Item = Cow<'a, Record>> {
        let end = self.time.to;
        self.records
            .iter()
            .take_while(move |record| record.at <= end)
    }

    /// The jobs of each task of the chain, from the begin of the time on.
    fn jobs(self) -> Vec<TaskJobs> {
        let of_task = |&task: &TaskId| TaskJobs {
            task,
            completed: Vec::new(),
            pending: Vec::new(),
        };
        let sink = Sink {
            tasks: self.chain.tasks.iter().map(of_task).collect(),
            from: self.time.from,
        };
        let mut jobs = Jobs::new(self.set, sink);
        let mut tracker = JobTracker::default();
        for record in self.records() {
            jobs.record(record.at, &record.kind);
            tracker.take(record.at, &record.kind);
        }
        let mut tasks = jobs.finish(self.time.to).tasks;
        for jobs in &mut tasks {
            // Others were dropped.
            let oldest = tracker.pending(jobs.task);
            jobs.pending
                .retain(|job| oldest.is_some_and(|oldest| oldest.number <= job.job.number));
        }
        tasks
    }
}

/// Jobs of one task of a chain, in their order.
#[derive(Debug)]
struct TaskJobs {
    task: TaskId,
    completed: Vec<JobRow>,
    /// Those that are not complete at the end of the time.
    pending: Vec<JobRow>,
}

impl TaskJobs {
    fn find(&self, id: JobId) -> Option<JobRow> {
        let mut all = self.completed.iter().chain(&self.pending);
        all.find(|job| job.job == id).copied()
    }

    /// From `from` to the completion of this job.
    fn step(&self, from: Instant, job: &JobRow) -> Option<Step> {
        Some(Step {
            task: self.task,
            job: Some(*job),
            from,
            to: job.finish?,
            is_over: true,
        })
    }

    /// From `from` to the end of the time.
    const fn open(&self, from: Instant, job: Option<JobRow>, to: Instant) -> Step {
        Step {
            task: self.task,
            job,
            from,
            to,
            is_over: false,
        }
    }
}

/// Collects jobs that may be part of a time that begins at `from`.
#[derive(Debug)]
struct Sink {
    tasks: Vec<TaskJobs>,
    from: Instant,
}

impl JobSink for Sink {
    fn take(&mut self, row: &JobRow) {
        let mut tasks = self.tasks.iter_mut();
        let Some(jobs) = tasks.find(|jobs| jobs.task == row.job.task) else {
            return;
        };
        match (row.finish, row.start) {
            (None, _) => jobs.pending.push(*row),
            // All jobs of the time read within it, and jobs that never start write nothing.
            (Some(_), Some(start)) if start >= self.from => jobs.completed.push(*row),
            _ => {}
        }
    }
}
