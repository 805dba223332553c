//! End-to-end latencies of chains in which each task is triggered by the one before.

use std::collections::VecDeque;

use shiftwork_model::{Chain, Instant, JobId, Join, RecordKind, Span, TaskId, TaskSet};

use super::EndToEnd;

/// Which job of the first task of one chain each later job stems from.
///
/// # Cost
/// Memory for each pending job and each waiting trigger of its tasks.
#[derive(Clone, Debug)]
pub(super) struct Latency {
    links: Vec<Link>,
    /// The relative deadline of the first task, by which its jobs say when they arrived.
    deadline: Span,
    times: EndToEnd,
}

/// One task of the chain.
#[derive(Clone, Debug)]
struct Link {
    task: TaskId,
    /// Whether triggers of other tasks release jobs, too.
    takes_any: bool,
    /// Of each job that is not completed, pending or still to be released by a trigger that waits: the arrival of the job
    /// of the first task that it stems from; `None` if it stems from none.
    stems: VecDeque<Option<Instant>>,
    /// The job that completed last and what it stems from.
    completed: (u64, Option<Instant>),
}

impl Latency {
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
            times: EndToEnd {
                wanted: chain.latency,
                ..EndToEnd::default()
            },
        })
    }

    pub fn record(&mut self, at: Instant, kind: &RecordKind) {
        match *kind {
            RecordKind::Released { job, deadline } if job.task == self.links[0].task => {
                let arrival = deadline.as_ns().saturating_sub(self.deadline.as_ns());
                let arrival = Instant::from_ns(arrival);
                self.links[0].stems.push_back(Some(arrival));
            }
            RecordKind::Completed { job } => self.complete(at, job),
            RecordKind::Triggered {
                by,
                task,
                is_lost: false,
            } => self.trigger(by, task),
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

    pub fn finish(mut self, horizon: Instant) -> EndToEnd {
        let pending = self.links.iter().flat_map(|link| &link.stems);
        let first = pending.flatten().min();
        self.times.pending = first.map(|arrival| horizon.late_since(*arrival));
        self.times
    }

    fn place(&self, task: TaskId) -> Option<usize> {
        self.links.iter().position(|link| link.task == task)
    }

    fn complete(&mut self, at: Instant, job: JobId) {
        let Some(place) = self.place(job.task) else {
            return;
        };
        let link = &mut self.links[place];
        let stem = link.stems.pop_front().flatten();
        link.completed = (job.number, stem);
        if let (Some(arrival), true) = (stem, place + 1 == self.links.len()) {
            self.times.add(1, at.late_since(arrival));
        }
    }

    fn trigger(&mut self, by: JobId, task: TaskId) {
        let Some(place) = self.place(task).filter(|place| *place > 0) else {
            return;
        };
        let before = &self.links[place - 1];
        let stem = match before.task == by.task {
            true if before.completed.0 == by.number => before.completed.1,
            true => before.stems.front().copied().flatten(),
            false if self.links[place].takes_any => None,
            // Its triggers count for themselves.
            false => return,
        };
        self.links[place].stems.push_back(stem);
    }
}
