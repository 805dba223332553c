//! Priority inversions: jobs that wait although a CPU is idle or runs a less urgent job, possibly after shifts.

mod queues;
mod tally;
#[cfg(test)]
mod tests;

pub use tally::{InversionCounts, InversionStatistics, InversionSummary};

use shiftwork_model::{
    CpuId, CpuSet, Instant, JobId, Order, RecordKind, Recorder, Span, TaskId, TaskSet,
};

use crate::check::state::State;
use crate::shift_chain::{Reach, Reached, key};
use queues::{ALL, Limit, NONE, Queues, Room};
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
/// Per instant with a change, a step per CPU, once and for each distinct affinity with a waiting job that is more urgent
/// than one that runs anywhere; and O(log n) for each job that begins or ends to wait, and for each inversion. Waiting jobs
/// for which nothing changes cost nothing. Memory grows with tasks and CPUs, not with the length of the run.
#[derive(Clone, Debug)]
pub struct Inversions<F = fn(&Inversion)> {
    order: Order,
    state: State,
    /// All CPUs.
    whole: CpuSet,
    /// The CPUs that real-time jobs may use, unless that has changed.
    available: CpuSet,
    is_available_stale: bool,
    /// By CPU, as of the last update.
    limits: Vec<Limit>,
    queues: Queues,
    /// The tasks of which records have spoken since the last update.
    touched: Vec<TaskId>,
    /// Room for lists, to allocate once.
    switched: Vec<CpuId>,
    masks: Vec<usize>,
    /// By task, the current inversion.
    open: Vec<Option<Open>>,
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
        let cpus = set.platform.cpus;
        Self {
            order,
            state: State::new(set),
            whole: CpuSet::first(cpus),
            available: CpuSet::EMPTY,
            is_available_stale: true,
            limits: vec![NONE; cpus],
            queues: Queues::new(set.tasks.len()),
            touched: Vec::new(),
            switched: Vec::new(),
            masks: Vec::new(),
            open: vec![None; set.tasks.len()],
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
        for index in 0..self.open.len() {
            self.close(TaskId::from_index(index), horizon);
        }
        InversionSummary {
            run: self.run.counts(),
            tasks: self.tasks.iter().map(Tally::counts).collect(),
        }
    }

    /// Examines the state after the instant: what has changed since the last one, and of the other waiting jobs those
    /// with keys between the old and the new limits of their affinities.
    fn update(&mut self) {
        if !self.state.is_changed() {
            return;
        }
        let mut touched = std::mem::take(&mut self.touched);
        let mut switched = std::mem::take(&mut self.switched);
        for change in self.state.changes() {
            switched.push(change.cpu);
            let jobs = [change.before, change.after].into_iter().flatten();
            touched.extend(jobs.map(|job| job.task));
        }
        self.state.settle();
        self.state.close();
        self.update_limits(&switched, &touched);
        for &id in &touched {
            self.update_place(id);
        }
        self.update_room(&mut touched);
        for id in touched.drain(..) {
            self.judge(id);
        }
        switched.clear();
        self.touched = touched;
        self.switched = switched;
    }

    /// Finds the limits of CPUs that were switched or run one of these tasks; of all if others are available than before.
    fn update_limits(&mut self, switched: &[CpuId], touched: &[TaskId]) {
        if self.is_available_stale {
            self.is_available_stale = false;
            self.available = self.state.available();
            for index in 0..self.limits.len() {
                self.limits[index] = self.limit_of(CpuId::from_index(index));
            }
            return;
        }
        for &cpu in switched {
            self.limits[cpu.index()] = self.limit_of(cpu);
        }
        for id in touched {
            let task = self.state.tasks.get(id.index());
            if let Some((_, cpu)) = task.and_then(|task| task.runs) {
                self.limits[cpu.index()] = self.limit_of(cpu);
            }
        }
    }

    /// The limit of a CPU: jobs with smaller keys could have it.
    fn limit_of(&self, cpu: CpuId) -> Limit {
        match self.state.on(cpu) {
            _ if !self.available.contains(cpu) => NONE,
            None => ALL,
            Some(job) => {
                let task = self.state.tasks.get(job.task.index());
                task.map_or(NONE, |task| Limit::from(key(self.order, task)))
            }
        }
    }

    /// Notes whether the task has a waiting job, and which.
    fn update_place(&mut self, id: TaskId) {
        if let Some(task) = self.state.tasks.get(id.index()) {
            let place = task.waits().then(|| (task.mask, key(self.order, task)));
            self.queues.put(id, place);
        }
    }

    /// Finds which keys have room now, for each affinity of which waiting jobs have some now or had some before. Adds
    /// jobs for which that changed to `touched`.
    fn update_room(&mut self, touched: &mut Vec<TaskId>) {
        let most = self.limits.iter().copied().max().unwrap_or(NONE);
        let mut masks = std::mem::take(&mut self.masks);
        self.queues.with_room(most, &mut masks);
        for &mask in &masks {
            let room = self.room(mask, most);
            self.queues.set_room(mask, room, touched);
        }
        masks.clear();
        self.masks = masks;
    }

    /// Which keys have room on CPUs of this affinity. `most`: the highest limit of any CPU.
    fn room(&self, mask: usize, most: Limit) -> Room {
        if self.queues.is_none_between(mask, NONE, most) {
            return Room::default();
        }
        let limit = |cpu: CpuId| self.limits.get(cpu.index()).copied();
        let cpus = &self.state.masks[mask];
        let direct = match self.whole.is_subset(cpus) {
            true => most,
            false => cpus.iter().filter_map(limit).max().unwrap_or(NONE),
        };
        let by_shifts = match self.queues.is_none_between(mask, direct, most) {
            true => direct,
            false => {
                let mut reached = Reached::new(self.state.cpus(), &self.available);
                reached.add(cpus);
                Reach::explore(self.order, true, &self.state, &mut reached).limit()
            }
        };
        Room { direct, by_shifts }
    }

    /// Begins or ends the inversion of the task's job, as its queue says.
    fn judge(&mut self, id: TaskId) {
        let now = self.state.now();
        let Some(task) = self.state.tasks.get(id.index()) else {
            return;
        };
        let found = task.ready.zip(self.queues.kind(id));
        let found = found.map(|(number, kind)| (JobId { task: id, number }, kind));
        let open = self.open[id.index()].map(|open| (open.job, open.kind));
        if open == found {
            return;
        }
        self.close(id, now);
        self.open[id.index()] = found.map(|(job, kind)| Open {
            job,
            from: now,
            kind,
            in_the_way: self.in_the_way(id, kind),
        });
    }

    /// See [`Inversion::in_the_way`].
    fn in_the_way(&self, id: TaskId, kind: InversionKind) -> Option<JobId> {
        let state = &self.state;
        let waiting = &state.tasks[id.index()];
        let key = key(self.order, waiting);
        let own = waiting.affinity & self.available;
        let makes_room = |cpu: &CpuId| match (kind, state.on(*cpu)) {
            (InversionKind::Direct, _) | (_, None) => Limit::from(key) < self.limits[cpu.index()],
            (InversionKind::AffinityRelated, Some(job)) => {
                let Some(task) = state.tasks.get(job.task.index()) else {
                    return false;
                };
                let mut reached = Reached::new(state.cpus(), &self.available);
                reached.add(&task.affinity);
                Reach::explore(self.order, true, state, &mut reached).is_open_to(key)
            }
        };
        let found = own.iter().find(makes_room);
        found.and_then(|cpu| state.on(cpu))
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
        self.touched.extend(ranked_task(kind));
        self.is_available_stale |= is_about_cpus(kind);
    }
}

/// The task of which the record may change whether it waits, for which CPUs, or how urgently.
const fn ranked_task(kind: &RecordKind) -> Option<TaskId> {
    match *kind {
        RecordKind::Ready { job, .. }
        | RecordKind::NotReady { job, .. }
        | RecordKind::Completed { job } => Some(job.task),
        RecordKind::Left { task }
        | RecordKind::Replenished { task, .. }
        | RecordKind::RankChanged { task, .. }
        | RecordKind::PrioritySet { task, .. }
        | RecordKind::AffinitySet { task, .. } => Some(task),
        _ => None,
    }
}

/// Whether the record may change which CPUs are available.
const fn is_about_cpus(kind: &RecordKind) -> bool {
    matches!(
        kind,
        RecordKind::CpuOffline { .. }
            | RecordKind::CpuOnline { .. }
            | RecordKind::CpuTaken { .. }
            | RecordKind::CpuReturned { .. }
            | RecordKind::BackgroundStarted { .. }
            | RecordKind::BackgroundEnded { .. }
    )
}
