//! What is left to do of each job while a simulation runs, the first deadline that is missed, and when the state repeats.

use std::cell::RefCell;
use std::collections::VecDeque;

use shiftwork_model::{Instant, JobId, RecordKind, Recorder, Span, Task, TaskId, TaskSet};

/// Why a simulation may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A job of the task was due then, and was not complete.
    Missed {
        /// The task.
        task: TaskId,
        /// The deadline.
        due: Instant,
    },
    /// No deadline was missed, and the state is the one of a hyperperiod before.
    Repeats,
}

/// The state of a simulation whose jobs execute for their whole costs.
///
/// Work is counted before the releases of an instant, and after its completions.
pub(super) struct Progress<'a> {
    set: &'a TaskSet,
    /// By task, the deadlines of its pending jobs, oldest first, all released before now or at it.
    pending: Vec<VecDeque<Instant>>,
    /// By task, what is left of the oldest pending job, as of `running`.
    left: Vec<Span>,
    /// By CPU, the job that it runs, and since when that is not yet taken off `left`.
    running: Vec<Option<(JobId, Instant)>>,
    /// The next instant at which the state is kept; the last one for which it is, with the work left of each task.
    next_sample: Instant,
    cycle: Option<Span>,
    sampled: Option<(Instant, Vec<u128>)>,
    end: Option<End>,
}

/// A recorder that keeps the progress, which is read meanwhile.
pub(super) struct Recording<'a, 'b>(pub(super) &'b RefCell<Progress<'a>>);

impl Recorder for Recording<'_, '_> {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        self.0.borrow_mut().take(at, kind);
    }
}

impl<'a> Progress<'a> {
    /// That of a simulation from time zero. The state is compared at `first` and every `cycle` after it; without a cycle,
    /// never.
    pub(super) fn new(set: &'a TaskSet, first: Instant, cycle: Option<Span>) -> Self {
        Self {
            set,
            pending: vec![VecDeque::new(); set.tasks.len()],
            left: vec![Span::ZERO; set.tasks.len()],
            running: vec![None; set.platform.cpus],
            next_sample: cycle.map_or(Instant::NEVER, |_| first),
            cycle,
            sampled: None,
            end: None,
        }
    }

    /// The last instant at which the state was kept; zero if there was none.
    pub(super) fn sampled(&self) -> Instant {
        self.sampled.as_ref().map_or(Instant::ZERO, |&(at, _)| at)
    }

    /// Goes on to `now`: everything before it was recorded. Returns why the simulation may end; `None` if it may not.
    pub(super) fn advance(&mut self, now: Instant) -> Option<End> {
        while self.end.is_none() && self.next_sample <= now {
            self.sample();
        }
        self.end
    }

    /// The same at the end of the simulation, with jobs that are overdue then.
    pub(super) fn finish(&mut self, now: Instant) -> Option<End> {
        self.advance(now);
        self.charge(now);
        self.end = self.end.or_else(|| self.first_overdue(now));
        self.end
    }

    fn sample(&mut self) {
        let at = self.next_sample;
        self.next_sample = self.cycle.map_or(Instant::NEVER, |cycle| at + cycle);
        self.charge(at);
        self.end = self.first_overdue(at);
        let work = self.work();
        let repeats = self
            .sampled
            .as_ref()
            .is_some_and(|(_, before)| *before == work);
        self.sampled = Some((at, work));
        if self.end.is_none() && repeats {
            self.end = Some(End::Repeats);
        }
    }

    /// By task, the work left of all its pending jobs.
    fn work(&self) -> Vec<u128> {
        let of = |((pending, left), task): ((&VecDeque<Instant>, &Span), &Task)| {
            let behind = pending.len().saturating_sub(1) as u128;
            u128::from(left.as_ns()) + behind * u128::from(task.cost.as_ns())
        };
        let pending = self.pending.iter().zip(&self.left);
        pending.zip(&self.set.tasks).map(of).collect()
    }

    /// The job with the earliest deadline of those that are not complete at it, if it is not after `at`.
    fn first_overdue(&self, at: Instant) -> Option<End> {
        let overdue = |(index, pending): (usize, &VecDeque<Instant>)| {
            // A job with nothing left completes at `at`, which is not recorded yet.
            let completes = self.left[index].is_zero();
            let mut due = pending.iter().copied().enumerate();
            let is_overdue = |(place, due): &(usize, Instant)| match completes && *place == 0 {
                true => *due < at,
                false => *due <= at,
            };
            let (_, due) = due.find(is_overdue)?;
            Some((due, TaskId::from_index(index)))
        };
        let pending = self.pending.iter().enumerate();
        let (due, task) = pending.filter_map(overdue).min()?;
        Some(End::Missed { task, due })
    }

    /// Takes what was executed until `at` off what is left.
    fn charge(&mut self, at: Instant) {
        for running in &mut self.running {
            charge(running, at, &mut self.left);
        }
    }

    fn take(&mut self, at: Instant, kind: &RecordKind) {
        match *kind {
            RecordKind::Released { job, deadline } => self.release(at, job.task, deadline),
            RecordKind::Completed { job } => self.complete(at, job.task),
            RecordKind::Switched { cpu, to, .. } => {
                if let Some(running) = self.running.get_mut(cpu.index()) {
                    charge(running, at, &mut self.left);
                    *running = to.map(|job| (job, at));
                }
            }
            _ => {}
        }
    }

    fn release(&mut self, at: Instant, id: TaskId, deadline: Instant) {
        let pending = &mut self.pending[id.index()];
        match pending.front() {
            None => self.left[id.index()] = self.set.tasks[id.index()].cost,
            Some(&due) if due <= at => self.miss(id, due),
            Some(_) => {}
        }
        self.pending[id.index()].push_back(deadline);
    }

    fn complete(&mut self, at: Instant, id: TaskId) {
        let pending = &mut self.pending[id.index()];
        let due = pending.pop_front();
        self.left[id.index()] = match pending.is_empty() {
            true => Span::ZERO,
            false => self.set.tasks[id.index()].cost,
        };
        for running in &mut self.running {
            running.take_if(|(job, _)| job.task == id);
        }
        if let Some(due) = due.filter(|&due| due < at) {
            self.miss(id, due);
        }
    }

    /// Notes a missed deadline, unless one is known.
    fn miss(&mut self, task: TaskId, due: Instant) {
        self.end.get_or_insert(End::Missed { task, due });
    }
}

/// Takes what the CPU has executed until `at` off what is left of its job.
fn charge(running: &mut Option<(JobId, Instant)>, at: Instant, left: &mut [Span]) {
    if let Some((job, since)) = running {
        let left = &mut left[job.task.index()];
        *left = left.saturating_sub(at.late_since(*since));
        *since = at;
    }
}
