//! Priority inversions: jobs that wait although a CPU is idle or runs a less urgent job, possibly after shifts.

mod tally;
#[cfg(test)]
mod tests;

pub use tally::{InversionCounts, InversionStatistics, InversionSummary};

use shiftwork_model::{CpuSet, Instant, JobId, Order, RecordKind, Recorder, Span, TaskId, TaskSet};

use crate::check::state::State;
use crate::shift_chain::{Key, Reach, Reached, extremes, key};
use tally::Tally;

/// The kind of an inversion: what would let the waiting job run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InversionKind {
    /// No shift is needed: a CPU of its own affinity is idle or runs a less urgent job. The weak
    /// invariant is violated (Bonifaci et al. 2016, Def. II.1).
    Direct,
    /// Running jobs would have to shift, until a CPU is reached that is idle or runs a less urgent job.
    /// Only the strong invariant is violated (Def. II.2). Tang et al. call this an affinity-related
    /// priority inversion (ARPI).
    AffinityRelated,
}

/// An interval in which a ready job waits although the strong invariant would let it run.
///
/// It ends when the job runs, finishes or is no longer ready, when all CPUs that it could get run jobs that are at
/// least as urgent, and when the [`InversionKind`] changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inversion {
    /// The waiting job.
    pub job: JobId,
    /// Start of the interval.
    pub from: Instant,
    /// End of the interval; later than `from`.
    pub to: Instant,
    /// The kind.
    pub kind: InversionKind,
    /// At the beginning, the blocking job on a CPU of the waiting job's affinity: a less urgent one, otherwise
    /// one that could have shifted; on the lowest such CPU. `None` if a CPU was idle.
    pub in_the_way: Option<JobId>,
}

impl Inversion {
    /// Its length; never zero.
    pub fn length(&self) -> Span {
        self.to.late_since(self.from)
    }
}

/// Finds the inversions of a run, from its records alone.
///
/// Urgency goes by scheduling deadlines: under `dl-*` the deadlines of servers. Ties are no inversions. States are
/// compared after whole instants, so that an inversion resolved at its own instant does not count. CPUs that are
/// offline or run background work are not available.
///
/// # Cost
/// Per instant with a change, a step per ready job if any job waits; if there may be an inversion, also a step per
/// CPU for each distinct affinity of waiting jobs. Memory grows with tasks and CPUs, not with the length of the
/// run.
#[derive(Clone, Debug)]
pub struct Inversions<F = fn(&Inversion)> {
    order: Order,
    state: State,
    /// Number of busy CPUs.
    busy: usize,
    /// By mask, the CPUs that jobs could get, and the instant of that result.
    reached: Vec<Option<(Instant, Attainable)>>,
    /// By task, the current inversion.
    open: Vec<Option<Open>>,
    /// The tasks with a current inversion.
    listed: Vec<TaskId>,
    run: Tally,
    tasks: Vec<Tally>,
    on_end: F,
}

/// A current inversion.
#[derive(Clone, Copy, Debug)]
struct Open {
    job: JobId,
    from: Instant,
    kind: InversionKind,
    in_the_way: Option<JobId>,
    /// The last instant at which it was found.
    seen: Instant,
}

/// The CPUs that waiting jobs of a mask could get.
#[derive(Clone, Copy, Debug)]
struct Attainable {
    directly: Reach,
    by_shifts: Reach,
}

impl Attainable {
    fn of(order: Order, state: &State, available: &CpuSet, mask: &CpuSet) -> Self {
        let explore = |shifts| {
            let mut reached = Reached::new(state.cpus(), available);
            reached.add(mask);
            Reach::explore(order, shifts, state, &mut reached)
        };
        let directly = explore(false);
        let by_shifts = match directly.idle {
            Some(_) => directly,
            None => explore(true),
        };
        Self {
            directly,
            by_shifts,
        }
    }

    fn kind(&self, key: Key) -> Option<InversionKind> {
        if self.directly.is_open_to(key) {
            Some(InversionKind::Direct)
        } else if self.by_shifts.is_open_to(key) {
            Some(InversionKind::AffinityRelated)
        } else {
            None
        }
    }
}

impl Inversions {
    /// For a run of this task set under a policy that ranks jobs by `order`.
    pub fn new(set: &TaskSet, order: Order) -> Self {
        Self::with_callback(set, order, |_| {})
    }
}

impl<F: FnMut(&Inversion)> Inversions<F> {
    /// The same; calls `on_end` with each inversion when it ends.
    pub fn with_callback(set: &TaskSet, order: Order, on_end: F) -> Self {
        Self {
            order,
            state: State::new(set),
            busy: 0,
            reached: Vec::new(),
            open: vec![None; set.tasks.len()],
            listed: Vec::with_capacity(set.tasks.len()),
            run: Tally::default(),
            tasks: vec![Tally::default(); set.tasks.len()],
            on_end,
        }
    }

    /// Ends the run and all current inversions at `horizon`.
    pub fn finish(mut self, horizon: Instant) -> InversionSummary {
        if self.state.now() < horizon {
            self.update();
        }
        for at in 0..self.listed.len() {
            self.close(self.listed[at], horizon);
        }
        InversionSummary {
            run: self.run.counts(),
            tasks: self.tasks.iter().map(Tally::counts).collect(),
        }
    }

    /// Examines the state after the instant.
    fn update(&mut self) {
        if !self.state.is_changed() {
            return;
        }
        for change in self.state.changes() {
            self.busy += usize::from(change.after.is_some());
            self.busy -= usize::from(change.before.is_some());
        }
        self.state.settle();
        self.state.close();
        // Every running job is ready; if no more jobs are ready than run, none waits.
        if self.state.ready.len() > self.busy {
            self.find();
        }
        self.close_others();
    }

    /// Finds all jobs that wait and should not.
    fn find(&mut self) {
        let available = self.state.available();
        let (idle, threshold) = extremes(self.order, &self.state, &available);
        self.reached.resize(self.state.masks.len(), None);
        for at in 0..self.state.ready.len() {
            let id = self.state.ready[at];
            let task = &self.state.tasks[id.index()];
            let key = key(self.order, task);
            if !task.waits() || !(idle || key < threshold) {
                continue;
            }
            let mask = task.mask;
            if let Some(kind) = self.room(mask, &available).kind(key) {
                self.note(id, kind, &available);
            }
        }
    }

    /// The CPUs that waiting jobs of this mask could get now.
    fn room(&mut self, mask: usize, available: &CpuSet) -> Attainable {
        let now = self.state.now();
        if let Some((at, room)) = self.reached[mask]
            && at == now
        {
            return room;
        }
        let room = Attainable::of(self.order, &self.state, available, &self.state.masks[mask]);
        self.reached[mask] = Some((now, room));
        room
    }

    /// Notes that the task's ready job waits now, and should not.
    fn note(&mut self, id: TaskId, kind: InversionKind, available: &CpuSet) {
        let seen = self.state.now();
        let Some(number) = self.state.tasks[id.index()].ready else {
            return;
        };
        let job = JobId { task: id, number };
        match &mut self.open[id.index()] {
            Some(open) if open.job == job && open.kind == kind => {
                open.seen = seen;
                return;
            }
            Some(_) => self.close(id, seen),
            None => self.listed.push(id),
        }
        self.open[id.index()] = Some(Open {
            job,
            from: seen,
            kind,
            in_the_way: self.in_the_way(id, kind, available),
            seen,
        });
    }

    /// See [`Inversion::in_the_way`].
    fn in_the_way(&self, id: TaskId, kind: InversionKind, available: &CpuSet) -> Option<JobId> {
        let state = &self.state;
        let waiting = &state.tasks[id.index()];
        let key = key(self.order, waiting);
        let own = waiting.affinity & *available;
        let mut blockers = own.iter().map(|cpu| (cpu, state.on(cpu)));
        let makes_room = |job: JobId, cpu| {
            let mut reached = Reached::new(state.cpus(), available);
            match (kind, state.tasks.get(job.task.index())) {
                (InversionKind::Direct, _) | (_, None) => reached.add(&CpuSet::single(cpu)),
                (InversionKind::AffinityRelated, Some(task)) => reached.add(&task.affinity),
            }
            let shifts = kind == InversionKind::AffinityRelated;
            Reach::explore(self.order, shifts, state, &mut reached).is_open_to(key)
        };
        let found = blockers.find(|&(cpu, job)| job.is_none_or(|job| makes_room(job, cpu)));
        found.and_then(|(_, job)| job)
    }

    /// Ends the inversions that were not found at this instant.
    fn close_others(&mut self) {
        let now = self.state.now();
        let mut at = 0;
        while let Some(&id) = self.listed.get(at) {
            if self.open[id.index()].is_some_and(|open| open.seen < now) {
                self.close(id, now);
                self.listed.swap_remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// Ends the task's current inversion, if any, at `to`.
    fn close(&mut self, id: TaskId, to: Instant) {
        let Some(open) = self.open[id.index()].take() else {
            return;
        };
        let inversion = Inversion {
            job: open.job,
            from: open.from,
            to,
            kind: open.kind,
            in_the_way: open.in_the_way,
        };
        self.run.add(open.kind, inversion.length());
        self.tasks[id.index()].add(open.kind, inversion.length());
        (self.on_end)(&inversion);
    }
}

impl<F: FnMut(&Inversion)> Recorder for Inversions<F> {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        if at != self.state.now() {
            self.update();
            self.state.advance(at);
        }
        self.state.take(kind);
    }
}
