//! End-to-end latencies of chains in which each task is triggered by the one before.

use std::collections::VecDeque;

use shiftwork_model::{Chain, Instant, JobId, Join, RecordKind, Span, TaskId, TaskSet};

use super::{Interval, Times};

/// What is kept of the jobs through which a job stems from one of the first task.
pub(crate) trait Trail: Clone + Default {
    /// The trail of what this job triggered at this instant, or completed, if this is its own.
    fn passed_on(&self, job: JobId, at: Instant) -> Self;
}

/// Nothing, at no cost.
impl Trail for () {
    fn passed_on(&self, _: JobId, _: Instant) {}
}

/// Each job, and when it triggered the next one; the last one, when it completed.
impl Trail for Vec<(JobId, Instant)> {
    fn passed_on(&self, job: JobId, at: Instant) -> Self {
        self.iter().copied().chain([(job, at)]).collect()
    }
}

/// Which job of the first task of one chain each later job stems from.
///
/// # Cost
/// Memory for each pending job and each waiting trigger of its tasks.
#[derive(Clone, Debug)]
pub(crate) struct Latency<T = ()> {
    links: Vec<Link<T>>,
    /// The relative deadline of the first task, by which its jobs say when they arrived.
    deadline: Span,
    times: Times,
    /// Of the longest time that ended.
    longest: T,
}

/// What a job stems from.
#[derive(Clone, Debug)]
pub(crate) struct Stem<T> {
    /// The arrival of the job of the first task.
    pub arrival: Instant,
    /// The jobs between.
    pub trail: T,
}

/// One task of the chain.
#[derive(Clone, Debug)]
struct Link<T> {
    task: TaskId,
    /// Whether triggers of other tasks release jobs, too.
    takes_any: bool,
    /// Of each job that is not completed, pending or still to be released by a trigger that waits: what it stems from;
    /// `None` if it stems from no job of the first task.
    stems: VecDeque<Option<Stem<T>>>,
    /// The job that completed last and what it stems from.
    completed: (u64, Option<Stem<T>>),
}

impl<T: Trail> Latency<T> {
    /// `None` if some task of the chain is not triggered by the one before.
    pub fn of(chain: &Chain, set: &TaskSet) -> Option<Self> {
        if !chain.is_triggered(set) {
            return None;
        }
        let link = |&task: &TaskId| Link {
            task,
            takes_any: set.tasks[task.index()]
                .trigger()
                .is_some_and(|trigger| trigger.join == Join::Any),
            stems: VecDeque::new(),
            completed: (0, None),
        };
        let first = chain.tasks.first()?;
        Some(Self {
            links: chain.tasks.iter().map(link).collect(),
            deadline: set.tasks[first.index()].deadline,
            times: Times::new(chain.latency),
            longest: T::default(),
        })
    }

    pub fn record(&mut self, at: Instant, kind: &RecordKind) {
        match *kind {
            RecordKind::Released { job, deadline } if job.task == self.links[0].task => {
                let arrival = deadline.as_ns().saturating_sub(self.deadline.as_ns());
                let arrival = Instant::from_ns(arrival);
                let trail = T::default();
                self.links[0].stems.push_back(Some(Stem { arrival, trail }));
            }
            RecordKind::Completed { job } => self.complete(at, job),
            RecordKind::Triggered {
                by,
                task,
                is_lost: false,
            } => self.trigger(at, by, task),
            RecordKind::Left { task } => {
                if let Some(place) = self.place(task) {
                    self.links[place].stems.clear();
                }
            }
            RecordKind::AttributesSet { task, deadline, .. } if task == self.links[0].task => {
                self.deadline = deadline;
            }
            _ => {}
        }
    }

    pub fn finish(mut self, horizon: Instant) -> Times {
        let first = self.oldest().map(|(_, _, stem)| stem.arrival);
        self.times.pending = first.map(|arrival| Interval::new(arrival, horizon));
        self.times
    }

    /// The trail of the longest time that ended.
    pub fn longest(&self) -> &T {
        &self.longest
    }

    /// What stems from the earliest arrival of all that has not ended: the place of its task, the number of incomplete jobs of
    /// that task before it, and what it stems from.
    pub fn oldest(&self) -> Option<(usize, usize, &Stem<T>)> {
        let links = self.links.iter().enumerate();
        let stems = links.flat_map(|(place, link)| {
            let stems = link.stems.iter().enumerate();
            stems.filter_map(move |(before, stem)| Some((place, before, stem.as_ref()?)))
        });
        stems.min_by_key(|(_, _, stem)| stem.arrival)
    }

    fn place(&self, task: TaskId) -> Option<usize> {
        self.links.iter().position(|link| link.task == task)
    }

    fn complete(&mut self, at: Instant, job: JobId) {
        let Some(place) = self.place(job.task) else {
            return;
        };
        let is_last = place + 1 == self.links.len();
        let link = &mut self.links[place];
        let stem = link.stems.pop_front().flatten();
        if let (Some(stem), true) = (&stem, is_last)
            && self.times.add(1, Interval::new(stem.arrival, at))
        {
            self.longest = stem.trail.passed_on(job, at);
        }
        link.completed = (job.number, stem);
    }

    fn trigger(&mut self, at: Instant, by: JobId, task: TaskId) {
        let Some(place) = self.place(task).filter(|place| *place > 0) else {
            return;
        };
        let before = &self.links[place - 1];
        let stem = match before.task == by.task {
            true if before.completed.0 == by.number => before.completed.1.as_ref(),
            true => before.stems.front().and_then(Option::as_ref),
            false if self.links[place].takes_any => None,
            // Its triggers count for themselves.
            false => return,
        };
        let stem = stem.map(|stem| Stem {
            arrival: stem.arrival,
            trail: stem.trail.passed_on(by, at),
        });
        self.links[place].stems.push_back(stem);
    }
}
