//! A run reconstructed from its records: the schedule, and the history of every job. Charts and explanations of
//! misses are based on it.
//!
//! Like the counters, the timeline compares states between whole instants: of several switches of
//! one CPU at one instant the last one counts.

use shiftwork_model::{
    Affinity, CpuId, CpuSet, Instant, JobId, NotReadyReason, Priority, Record, RecordKind, Span,
    TaskId, TaskSet,
};

/// An interval in which one CPU ran one job. Never of length zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub job: JobId,
    pub from: Instant,
    pub to: Instant,
}

/// The state of a pending job, independent of whether it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Released, and not ready yet: the job before it is not finished, or the budget is spent.
    Queued,
    /// Ready to run.
    Ready,
    /// Suspended itself.
    Suspended,
    /// Waits for its budget.
    Throttled,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It finished.
    Finished(Instant),
    /// Its task left, and the job was dropped.
    Dropped(Instant),
    /// It was not finished at the horizon.
    Unfinished,
}

/// The rank of a job from an instant on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    pub since: Instant,
    pub ready: Instant,
    pub deadline: Instant,
    pub priority: Priority,
}

/// The history of one job.
#[derive(Clone, Debug)]
pub(crate) struct JobHistory {
    pub job: JobId,
    pub release: Instant,
    pub deadline: Instant,
    pub end: End,
    /// The states of the job with their starts; ascending, the first at the release.
    pub states: Vec<(Instant, State)>,
    pub ranks: Vec<Rank>,
    /// Its execution: CPU and index into that CPU's slices, ascending in time.
    pub slices: Vec<(usize, usize)>,
}

/// A shift of a running job to another CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shift {
    pub at: Instant,
    pub job: JobId,
    pub from: usize,
    pub to: usize,
}

/// The reason why a CPU is unavailable for real-time jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// The CPU runs background work.
    Background,
    /// The CPU is offline.
    Offline,
    /// A higher scheduling class uses the CPU.
    Taken,
}

/// An interval in which a CPU was unavailable for real-time jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Away {
    pub from: Instant,
    pub to: Instant,
    pub why: Absence,
}

/// One run. All data per CPU and per task are in order of time.
pub(crate) struct Timeline {
    pub horizon: Instant,
    pub cpus: Vec<Vec<Slice>>,
    /// Per CPU background work and offline times, each without overlaps.
    pub away: Vec<[Vec<Away>; 3]>,
    pub shifts: Vec<Shift>,
    /// The jobs of each task, by number.
    pub tasks: Vec<Vec<JobHistory>>,
    /// The affinities of each task with their starts; the first at the start of the run.
    pub affinities: Vec<Vec<(Instant, Affinity)>>,
    /// The declared costs of each task with the first releases to which they apply.
    pub costs: Vec<Vec<(Instant, Span)>>,
    pub refusals: Vec<(Instant, String)>,
    /// Records that name a task, job or CPU which the task set does not have; they were left out.
    pub foreign: usize,
}

impl Timeline {
    /// Reconstructs a run of `set` from its records. Records after `horizon` are ignored.
    pub fn of(set: &TaskSet, records: &[Record], horizon: Instant) -> Self {
        let mut builder = Builder::new(set, horizon);
        for record in records {
            if record.at > builder.now {
                builder.settle();
                builder.now = record.at;
            }
            let known = builder.apply(&record.kind);
            builder.line.foreign += usize::from(known.is_none());
        }
        builder.finish()
    }

    /// The job, if it was released in this run.
    pub fn history(&self, job: JobId) -> Option<&JobHistory> {
        let histories = self.tasks.get(job.task.index())?;
        let index = histories.binary_search_by_key(&job.number, |history| history.job.number);
        histories.get(index.ok()?)
    }

    /// The job that the CPU ran just after this instant.
    pub fn running(&self, cpu: usize, at: Instant) -> Option<JobId> {
        let slices = &self.cpus[cpu];
        let after = slices.partition_point(|slice| slice.to <= at);
        slices
            .get(after)
            .filter(|slice| slice.from <= at)
            .map(|slice| slice.job)
    }

    /// The reason why the CPU was unavailable for real-time jobs just after this instant, if it was.
    pub fn absent(&self, cpu: usize, at: Instant) -> Option<Absence> {
        self.away[cpu].iter().find_map(|stretches| {
            let after = stretches.partition_point(|away| away.to <= at);
            let within = stretches.get(after).filter(|away| away.from <= at);
            within.map(|away| away.why)
        })
    }

    /// The CPUs that the task could use just after this instant.
    pub fn affinity(&self, task: TaskId, at: Instant) -> &CpuSet {
        let changes = &self.affinities[task.index()];
        let next = changes.partition_point(|(since, _)| *since <= at);
        changes[next.max(1) - 1].1.cpus()
    }

    /// The declared cost of a job of the task that was released at this instant.
    pub fn cost(&self, task: TaskId, release: Instant) -> Span {
        let changes = &self.costs[task.index()];
        let next = changes.partition_point(|(since, _)| *since <= release);
        changes[next.max(1) - 1].1
    }

    /// Total execution time of the job.
    pub fn executed(&self, history: &JobHistory) -> Span {
        history
            .slices
            .iter()
            .map(|&(cpu, index)| {
                let slice = &self.cpus[cpu][index];
                slice.to.late_since(slice.from)
            })
            .fold(Span::ZERO, |sum, span| sum + span)
    }
}

impl JobHistory {
    /// End of the job, or the horizon if it did not end.
    pub fn end(&self, horizon: Instant) -> Instant {
        match self.end {
            End::Finished(at) | End::Dropped(at) => at,
            End::Unfinished => horizon,
        }
    }

    /// Whether the job counts as a deadline miss: finished late, or unfinished (dropped when its
    /// task left, for instance) and due at the horizon or before.
    pub fn missed(&self, horizon: Instant) -> bool {
        match self.end {
            End::Finished(at) => at > self.deadline,
            End::Dropped(_) | End::Unfinished => horizon >= self.deadline,
        }
    }

    /// The rank of the job just after this instant; `None` before it was first ready.
    pub fn rank(&self, at: Instant) -> Option<&Rank> {
        let next = self.ranks.partition_point(|rank| rank.since <= at);
        next.checked_sub(1).map(|index| &self.ranks[index])
    }

    /// The states with their ends.
    pub fn stretches(&self, horizon: Instant) -> impl Iterator<Item = (Instant, Instant, State)> {
        let ends = self.states[1..].iter().map(|&(at, _)| at);
        let ends = ends.chain([self.end(horizon)]);
        self.states
            .iter()
            .zip(ends)
            .map(|(&(from, state), to)| (from, to, state))
    }

    fn enter(&mut self, at: Instant, state: State) {
        match self.states.last_mut() {
            Some(last) if last.0 == at => last.1 = state,
            Some(last) if last.1 == state => {}
            _ => self.states.push((at, state)),
        }
    }

    fn set_rank(&mut self, rank: Rank) {
        match self.ranks.last_mut() {
            Some(last) if last.since == rank.since => *last = rank,
            _ => self.ranks.push(rank),
        }
    }
}

/// Reads records one by one. A helper returns `None` if the record names an unknown task, job or CPU.
struct Builder {
    line: Timeline,
    now: Instant,
    /// The job of each CPU and its start, as of the last whole instant.
    open: Vec<Option<(JobId, Instant)>>,
    /// The job of each CPU now, and the CPUs that changed at this instant.
    running: Vec<Option<JobId>>,
    touched: Vec<usize>,
    gone: Vec<[Option<Instant>; 3]>,
}

impl Builder {
    fn new(set: &TaskSet, horizon: Instant) -> Self {
        let cpus = set.platform.cpus;
        let affinities = set
            .tasks
            .iter()
            .map(|task| vec![(Instant::ZERO, task.affinity)]);
        let costs = set
            .tasks
            .iter()
            .map(|task| vec![(Instant::ZERO, task.cost)]);
        let line = Timeline {
            horizon,
            cpus: vec![Vec::new(); cpus],
            away: vec![[const { Vec::new() }; 3]; cpus],
            shifts: Vec::new(),
            tasks: vec![Vec::new(); set.tasks.len()],
            affinities: affinities.collect(),
            costs: costs.collect(),
            refusals: Vec::new(),
            foreign: 0,
        };
        Self {
            line,
            now: Instant::ZERO,
            open: vec![None; cpus],
            running: vec![None; cpus],
            touched: Vec::new(),
            gone: vec![[None; 3]; cpus],
        }
    }

    fn apply(&mut self, kind: &RecordKind) -> Option<()> {
        let now = self.now;
        match *kind {
            RecordKind::Released { job, deadline } => self.release(job, deadline)?,
            RecordKind::Ready {
                job,
                deadline,
                priority,
            } => {
                let history = self.history(job)?;
                history.enter(now, State::Ready);
                history.set_rank(Rank {
                    since: now,
                    ready: now,
                    deadline,
                    priority,
                });
            }
            RecordKind::NotReady { job, reason } => {
                let state = match reason {
                    NotReadyReason::Suspended => State::Suspended,
                    NotReadyReason::Throttled => State::Throttled,
                };
                self.history(job)?.enter(now, state);
            }
            RecordKind::Completed { job } => self.history(job)?.end = End::Finished(now),
            RecordKind::Switched { cpu, to, .. } => self.switch(cpu, to)?,
            RecordKind::Replenished { task, deadline, .. } => {
                self.change_rank(task, |rank| rank.deadline = deadline)?;
            }
            RecordKind::PrioritySet { task, priority } => {
                self.change_rank(task, |rank| rank.priority = priority)?;
            }
            RecordKind::Left { task } => self.drop_jobs(task)?,
            RecordKind::AffinitySet { task, ref affinity } => {
                let changes = self.line.affinities.get_mut(task.index())?;
                changes.push((now, **affinity));
            }
            RecordKind::CpuOffline { cpu } => self.leave_cpu(cpu, Absence::Offline)?,
            RecordKind::CpuOnline { cpu } => self.serve_cpu(cpu, Absence::Offline)?,
            RecordKind::CpuTaken { cpu } => self.leave_cpu(cpu, Absence::Taken)?,
            RecordKind::CpuReturned { cpu } => self.serve_cpu(cpu, Absence::Taken)?,
            RecordKind::BackgroundStarted { cpu } => self.leave_cpu(cpu, Absence::Background)?,
            RecordKind::BackgroundEnded { cpu } => self.serve_cpu(cpu, Absence::Background)?,
            RecordKind::Refused { action, ref reason } => {
                let text = format!("action {}: {reason}", action + 1);
                self.line.refusals.push((now, text));
            }
            RecordKind::AttributesSet { task, cost, .. } => {
                self.line.costs.get_mut(task.index())?.push((now, cost));
            }
            RecordKind::BudgetSpent { .. }
            | RecordKind::Interrupted { .. }
            | RecordKind::Demoted { .. }
            | RecordKind::Entered { .. } => {}
        }
        Some(())
    }

    fn history(&mut self, job: JobId) -> Option<&mut JobHistory> {
        let histories = self.line.tasks.get_mut(job.task.index())?;
        let index = histories.binary_search_by_key(&job.number, |history| history.job.number);
        histories.get_mut(index.ok()?)
    }

    fn release(&mut self, job: JobId, deadline: Instant) -> Option<()> {
        // A run covers the time before the horizon.
        if self.now >= self.line.horizon {
            return self.line.tasks.get(job.task.index()).map(|_| ());
        }
        let histories = self.line.tasks.get_mut(job.task.index())?;
        // A number that does not grow would break the search by number.
        if histories
            .last()
            .is_some_and(|last| last.job.number >= job.number)
        {
            return None;
        }
        histories.push(JobHistory {
            job,
            release: self.now,
            deadline,
            end: End::Unfinished,
            states: vec![(self.now, State::Queued)],
            ranks: Vec::new(),
            slices: Vec::new(),
        });
        Some(())
    }

    /// Changes the rank of the task's ready job. At most one job of a task is ready.
    fn change_rank(&mut self, task: TaskId, change: impl Fn(&mut Rank)) -> Option<()> {
        let now = self.now;
        let histories = self.line.tasks.get_mut(task.index())?;
        let pending = histories.iter_mut().rev();
        let pending = pending.take_while(|history| history.end == End::Unfinished);
        for history in pending {
            if let Some(&last) = history.ranks.last() {
                let mut rank = Rank { since: now, ..last };
                change(&mut rank);
                history.set_rank(rank);
            }
        }
        Some(())
    }

    fn drop_jobs(&mut self, task: TaskId) -> Option<()> {
        let now = self.now;
        let histories = self.line.tasks.get_mut(task.index())?;
        for history in histories.iter_mut().rev() {
            if history.end != End::Unfinished {
                break;
            }
            history.end = End::Dropped(now);
        }
        Some(())
    }

    fn switch(&mut self, cpu: CpuId, to: Option<JobId>) -> Option<()> {
        if let Some(job) = to {
            self.history(job)?;
        }
        *self.running.get_mut(cpu.index())? = to;
        if !self.touched.contains(&cpu.index()) {
            self.touched.push(cpu.index());
        }
        Some(())
    }

    fn leave_cpu(&mut self, cpu: CpuId, why: Absence) -> Option<()> {
        let now = self.now;
        self.gone.get_mut(cpu.index())?[why as usize].get_or_insert(now);
        Some(())
    }

    fn serve_cpu(&mut self, cpu: CpuId, why: Absence) -> Option<()> {
        let from = self.gone.get_mut(cpu.index())?[why as usize].take();
        if let Some(from) = from {
            let to = self.now;
            self.line.away[cpu.index()][why as usize].push(Away { from, to, why });
        }
        Some(())
    }

    /// Turns the changes of the instant into slices and shifts.
    fn settle(&mut self) {
        let mut vacated: Vec<(JobId, usize)> = Vec::new();
        let mut touched = core::mem::take(&mut self.touched);
        touched.retain(|&cpu| self.open[cpu].map(|(job, _)| job) != self.running[cpu]);
        for &cpu in &touched {
            if let Some((job, from)) = self.open[cpu].take() {
                self.close(cpu, job, from);
                vacated.push((job, cpu));
            }
        }
        for &cpu in &touched {
            let Some(job) = self.running[cpu] else {
                continue;
            };
            self.open[cpu] = Some((job, self.now));
            if let Some(&(_, from)) = vacated.iter().find(|(other, _)| *other == job) {
                let at = self.now;
                self.line.shifts.push(Shift {
                    at,
                    job,
                    from,
                    to: cpu,
                });
            }
        }
        touched.clear();
        self.touched = touched;
    }

    fn close(&mut self, cpu: usize, job: JobId, from: Instant) {
        let to = self.now.min(self.line.horizon);
        if from >= to {
            return;
        }
        let index = self.line.cpus[cpu].len();
        self.line.cpus[cpu].push(Slice { job, from, to });
        if let Some(history) = self.history(job) {
            history.slices.push((cpu, index));
        }
    }

    fn finish(mut self) -> Timeline {
        // Changes exactly at the horizon are not part of the run.
        if self.now < self.line.horizon {
            self.settle();
        }
        self.now = self.now.max(self.line.horizon);
        for cpu in 0..self.open.len() {
            if let Some((job, from)) = self.open[cpu].take() {
                self.close(cpu, job, from);
            }
            for why in [Absence::Background, Absence::Offline, Absence::Taken] {
                // The CPU is in range, so the result cannot be `None`.
                let _ = self.serve_cpu(CpuId::from_index(cpu), why);
            }
        }
        self.line
    }
}
