//! What triggered a job, and how late after the job from which it stems.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use shiftwork_model::{Instant, JobId, Join, RecordKind, Span, TaskId, TaskSet};

use super::Recording;
use super::attribution::named;
use super::text::{readable, readable_at};
use crate::statistics::Distribution;

/// What triggered a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The job that triggered it; under `all` the one of which the trigger came last.
    pub by: JobId,
    /// When it did.
    pub at: Instant,
    /// The job that arrived by time and that `by` stems from in the same way; `by` itself if its task is not triggered.
    pub root: JobId,
    /// When that arrived.
    pub arrival: Instant,
    /// The median of the time from the arrival of the root to the trigger, over the jobs of its task in the records, to three
    /// digits.
    pub usual: Span,
}

impl Origin {
    /// The time from the arrival of the root to the trigger.
    pub const fn delay(&self) -> Span {
        self.at.late_since(self.arrival)
    }

    /// Whether the trigger came later than usual.
    pub const fn is_late(&self) -> bool {
        let usual = self.usual.as_ns();
        // The median is exact to three digits.
        self.delay().as_ns() > usual.saturating_add(usual / 500)
    }

    /// A sentence about a late trigger, with a space before it.
    pub(super) fn text(&self, names: &[&str]) -> String {
        let since = match self.root == self.by {
            true => "its arrival".to_owned(),
            false => format!("the arrival of {}", named(names, self.root)),
        };
        format!(
            " It was triggered late: by {} at {}, {} after {since}, where {} is usual.",
            named(names, self.by),
            readable_at(self.at),
            readable(self.delay()),
            readable(to_three_digits(self.usual)),
        )
    }

    pub(super) fn to_json(self, names: &[&str]) -> Value {
        let name = |job: JobId| names.get(job.task.index()).copied();
        json!({
            "task": name(self.by),
            "job": self.by.number,
            "at_ns": self.at.as_ns(),
            "root_task": name(self.root),
            "root_job": self.root.number,
            "root_arrival_ns": self.arrival.as_ns(),
            "usual_delay_ns": self.usual.as_ns(),
        })
    }
}

/// The span, rounded: digits beyond the third are not exact.
fn to_three_digits(span: Span) -> Span {
    let ns = span.as_ns();
    let unit = 10_u64.pow(ns.checked_ilog10().unwrap_or(0).saturating_sub(2));
    Span::from_ns(ns.saturating_add(unit / 2) / unit * unit)
}

/// The origins of some jobs.
#[derive(Debug, Default)]
pub(super) struct Origins(BTreeMap<JobId, Origin>);

impl Origins {
    /// The origins of these jobs. The records are passed over only if some of their tasks are triggered.
    pub fn of(recording: Recording<'_>, jobs: &[JobId]) -> Self {
        let Recording { set, .. } = recording;
        let trigger = |job: &JobId| set.tasks.get(job.task.index())?.trigger();
        if !jobs.iter().any(|job| trigger(job).is_some()) {
            return Self::default();
        }
        let mut stems = Stems::of(set);
        let mut origins = Self::default();
        for record in recording.in_window() {
            let released = stems.take(record.at, &record.kind);
            if let Some((job, origin)) = released.filter(|(job, _)| jobs.contains(job)) {
                origins.0.insert(job, origin);
            }
        }
        for (job, origin) in &mut origins.0 {
            origin.usual = stems.tasks[job.task.index()].median();
        }
        origins
    }

    /// `None` if the job was not triggered, or was not asked for.
    pub fn of_job(&self, job: JobId) -> Option<Origin> {
        self.0.get(&job).copied()
    }
}

/// A job that arrived by time, and its arrival.
type Root = (JobId, Instant);

/// From which job each pending job stems.
///
/// # Cost
/// Memory for each pending job and each trigger that waits.
#[derive(Debug)]
struct Stems {
    tasks: Vec<TaskStems>,
}

#[derive(Debug)]
struct TaskStems {
    /// The relative deadline, by which jobs say when they arrived.
    deadline: Span,
    /// `None` if its jobs arrive by time.
    join: Option<Join>,
    /// The triggers that have not released a job: by their sources if all of these are needed, else together.
    triggers: BTreeMap<Option<TaskId>, VecDeque<Origin>>,
    pending: VecDeque<(u64, Root)>,
    /// The job that completed last.
    completed: Option<(u64, Root)>,
    delays: Distribution,
    released: u64,
}

impl TaskStems {
    /// The trigger that released the next job, the last one of those that did.
    fn pop(&mut self) -> Option<Origin> {
        let released = self.triggers.values_mut().filter_map(VecDeque::pop_front);
        released.max_by_key(|origin| origin.at)
    }

    fn median(&self) -> Span {
        let median = self.delays.ranked_ns(self.released.div_ceil(2));
        Span::from_ns(median.unwrap_or_default())
    }
}

impl Stems {
    fn of(set: &TaskSet) -> Self {
        let stem = |task: &shiftwork_model::Task| TaskStems {
            deadline: task.deadline,
            join: task.trigger().map(|trigger| trigger.join),
            triggers: BTreeMap::new(),
            pending: VecDeque::new(),
            completed: None,
            delays: Distribution::default(),
            released: 0,
        };
        Self {
            tasks: set.tasks.iter().map(stem).collect(),
        }
    }

    /// Takes the next record. Returns a job that a trigger released, with its origin.
    fn take(&mut self, at: Instant, kind: &RecordKind) -> Option<(JobId, Origin)> {
        match *kind {
            RecordKind::Released { job, deadline } => return self.release(at, job, deadline),
            RecordKind::Completed { job } => {
                let task = self.tasks.get_mut(job.task.index())?;
                let (number, _) = task.pending.front()?;
                if *number == job.number {
                    task.completed = task.pending.pop_front();
                }
            }
            RecordKind::Triggered {
                by,
                task,
                is_lost: false,
            } => {
                let (root, arrival) = self.root(by)?;
                let task = self.tasks.get_mut(task.index())?;
                let source = (task.join == Some(Join::All)).then_some(by.task);
                let queue = task.triggers.entry(source).or_default();
                queue.push_back(Origin {
                    by,
                    at,
                    root,
                    arrival,
                    usual: Span::ZERO,
                });
            }
            RecordKind::Left { task } => {
                let task = self.tasks.get_mut(task.index())?;
                task.pending.clear();
                task.triggers.clear();
            }
            RecordKind::AttributesSet { task, deadline, .. } => {
                self.tasks.get_mut(task.index())?.deadline = deadline;
            }
            _ => {}
        }
        None
    }

    fn release(&mut self, at: Instant, job: JobId, deadline: Instant) -> Option<(JobId, Origin)> {
        let task = self.tasks.get_mut(job.task.index())?;
        if task.join.is_none() {
            let arrival = deadline.as_ns().saturating_sub(task.deadline.as_ns());
            let root = (job, Instant::from_ns(arrival));
            task.pending.push_back((job.number, root));
            return None;
        }
        let origin = task.pop()?;
        task.pending
            .push_back((job.number, (origin.root, origin.arrival)));
        task.delays.add(at.late_since(origin.arrival));
        task.released += 1;
        Some((job, origin))
    }

    /// What the job stems from; it is pending or completed last.
    fn root(&self, job: JobId) -> Option<Root> {
        let task = self.tasks.get(job.task.index())?;
        let mut known = task.pending.iter().chain(&task.completed);
        known
            .find(|(number, _)| *number == job.number)
            .map(|&(_, root)| root)
    }
}
