//! A run reconstructed from its records for the charts: the schedule, and the states of jobs.

use std::collections::VecDeque;

use shiftwork_model::{
    CpuId, Instant, JobId, NotReadyReason, RecordKind, Recorder, TaskId, TaskSet,
};
use shiftwork_trace::{Records, Segment, Segments};

use crate::excerpt::Excerpt;

#[cfg(test)]
mod tests;

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
    /// Waits for a mutex.
    Blocked,
    /// Waits for a mutex and keeps its CPU.
    Spinning,
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

/// The history of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobHistory {
    pub job: JobId,
    pub release: Instant,
    pub deadline: Instant,
    pub end: End,
    /// The states of the job with their starts; ascending, the first at the release.
    pub states: Vec<(Instant, State)>,
    /// Its execution, ascending in time.
    pub segments: Vec<Segment>,
}

/// A shift of a running job to another CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shift {
    pub at: Instant,
    pub job: JobId,
    pub from: CpuId,
    pub to: CpuId,
}

/// A trigger that was not lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TriggerMade {
    pub at: Instant,
    pub by: JobId,
    pub task: TaskId,
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

/// An excerpt of one run. All data per CPU and per task are in order of time.
pub(crate) struct Timeline {
    pub horizon: Instant,
    pub cpus: Vec<Vec<Segment>>,
    /// Per CPU background work and offline times, each without overlaps.
    pub away: Vec<[Vec<Away>; 3]>,
    pub shifts: Vec<Shift>,
    pub triggers: Vec<TriggerMade>,
    /// The jobs of each task that the excerpt shows, by number.
    pub tasks: Vec<Vec<JobHistory>>,
    /// The first jobs of the run by release, as many as were wanted.
    pub first: Vec<JobHistory>,
    pub refusals: Vec<(Instant, String)>,
    /// Records that name a task, job or CPU which the task set does not have; they were left out.
    pub foreign: usize,
}

impl Timeline {
    /// Reconstructs an excerpt of a run of `set` from its records, and the first `most` of all its jobs. Records after
    /// `horizon` are ignored.
    ///
    /// # Cost
    /// One pass over the records; memory for what is kept, and for the jobs that are pending at a time.
    pub fn of(
        set: &TaskSet,
        records: Records<'_>,
        horizon: Instant,
        (excerpt, most): (&Excerpt, usize),
    ) -> Self {
        let mut builder = Builder::new(set, horizon, excerpt, most);
        for record in records.iter().take_while(|record| record.at <= horizon) {
            if record.at != builder.now {
                builder.advance(record.at);
            }
            let known = builder.apply(&record.kind);
            builder.line.foreign += usize::from(known.is_none());
        }
        builder.finish()
    }
}

impl Timeline {
    fn keep(&mut self, history: JobHistory, excerpt: &Excerpt, first_until: Instant) {
        let end = history.end(self.horizon).max(history.deadline);
        if history.release <= first_until {
            self.first.push(history.clone());
        }
        if excerpt.shows(history.release, end) {
            self.tasks[history.job.task.index()].push(history);
        }
    }

    /// Puts what was kept when it ended into the order of its begin.
    fn sort(&mut self, most: usize) {
        for histories in &mut self.tasks {
            histories.sort_by_key(|history| history.job.number);
        }
        for slices in &mut self.cpus {
            slices.sort_by_key(|slice| slice.from);
        }
        self.shifts.sort_by_key(|shift| (shift.at, shift.to));
        self.first
            .sort_by_key(|history| (history.release, history.job));
        self.first.truncate(most);
    }
}

impl JobHistory {
    fn new(job: JobId, release: Instant, deadline: Instant) -> Self {
        Self {
            job,
            release,
            deadline,
            end: End::Unfinished,
            states: vec![(release, State::Queued)],
            segments: Vec::new(),
        }
    }

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
}

/// Reads records one by one. A helper returns `None` if the record names an unknown task, job or CPU.
struct Builder<'a> {
    line: Timeline,
    excerpt: &'a Excerpt,
    /// The end of the last window of the excerpt. Of jobs that are released later only that they are known matters, unless they
    /// are among the first.
    shown_until: Instant,
    /// Number of first jobs that are kept wherever they are.
    most: usize,
    /// Number of jobs released so far, and the instant at which the last of the first jobs was released.
    released: usize,
    first_until: Instant,
    now: Instant,
    segments: Segments,
    gone: Vec<[Option<Instant>; 3]>,
    /// The jobs of each task that are pending, or ended at this instant, by number.
    live: Vec<VecDeque<JobHistory>>,
    /// By task, the number of the last job that was released.
    last: Vec<u64>,
    /// The tasks with live jobs that have ended.
    ended: Vec<TaskId>,
    /// Takes what is said of jobs after their ends.
    past: JobHistory,
}

impl<'a> Builder<'a> {
    fn new(set: &TaskSet, horizon: Instant, excerpt: &'a Excerpt, most: usize) -> Self {
        let cpus = set.platform.cpus;
        let line = Timeline {
            horizon,
            cpus: vec![Vec::new(); cpus],
            away: vec![[const { Vec::new() }; 3]; cpus],
            shifts: Vec::new(),
            triggers: Vec::new(),
            tasks: vec![Vec::new(); set.tasks.len()],
            first: Vec::new(),
            refusals: Vec::new(),
            foreign: 0,
        };
        let nothing = JobId {
            task: TaskId::LAST,
            number: 0,
        };
        Self {
            line,
            excerpt,
            shown_until: excerpt.windows.last().map_or(horizon, |&(_, end)| end),
            most,
            released: 0,
            first_until: Instant::ZERO,
            now: Instant::ZERO,
            segments: Segments::new(cpus),
            gone: vec![[None; 3]; cpus],
            live: vec![VecDeque::new(); set.tasks.len()],
            last: vec![0; set.tasks.len()],
            ended: Vec::new(),
            past: JobHistory::new(nothing, Instant::ZERO, Instant::ZERO),
        }
    }

    /// Ends an instant: keeps or drops what has ended.
    fn advance(&mut self, to: Instant) {
        let ended = std::mem::take(&mut self.ended);
        if !ended.is_empty() || !self.segments.is_settled() {
            self.segments.advance(to);
            self.take_segments();
        }
        for &task in &ended {
            self.take_ended(task);
        }
        // The list is empty: what ends now ends at the new instant.
        self.ended = ended;
        self.ended.clear();
        self.now = to;
    }

    fn take_segments(&mut self) {
        let ended: Vec<Segment> = self.segments.take_ended().collect();
        for segment in ended {
            self.take_segment(segment);
        }
    }

    fn take_segment(&mut self, segment: Segment) {
        if self.excerpt.shows_slice(&segment) {
            self.line.cpus[segment.cpu.index()].push(segment);
        }
        self.add_segment(segment);
    }

    /// Keeps or drops the jobs of the task that have ended.
    fn take_ended(&mut self, task: TaskId) {
        let live = &mut self.live[task.index()];
        while let Some(at) = live.iter().position(|job| job.end != End::Unfinished) {
            let history = live.remove(at).expect("it is there");
            self.line.keep(history, self.excerpt, self.first_until);
        }
    }

    fn apply(&mut self, kind: &RecordKind) -> Option<()> {
        let now = self.now;
        match *kind {
            RecordKind::Released { job, deadline } => self.release(job, deadline)?,
            RecordKind::Ready { job, .. } => self.history(job)?.enter(now, State::Ready),
            RecordKind::NotReady { job, reason } => {
                let state = match reason {
                    NotReadyReason::Suspended => State::Suspended,
                    NotReadyReason::Throttled => State::Throttled,
                    NotReadyReason::Blocked(_) => State::Blocked,
                };
                self.history(job)?.enter(now, state);
            }
            RecordKind::Spinning { job, .. } => self.history(job)?.enter(now, State::Spinning),
            RecordKind::Locked { job, .. } => {
                let history = self.history(job)?;
                let spins = matches!(history.states.last(), Some((_, State::Spinning)));
                if spins {
                    history.enter(now, State::Ready);
                }
            }
            RecordKind::Completed { job } => {
                self.history(job)?.end = End::Finished(now);
                self.ended.push(job.task);
            }
            RecordKind::Switched { cpu, to, .. } => {
                if let Some(job) = to {
                    self.history(job)?;
                }
                self.line.cpus.get(cpu.index())?;
                self.segments.record(now, kind);
            }
            RecordKind::Left { task } => self.drop_jobs(task)?,
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
            RecordKind::Triggered { by, task, is_lost } => {
                self.history(by)?;
                self.line.tasks.get(task.index())?;
                let made = TriggerMade { at: now, by, task };
                let is_shown = !is_lost && self.excerpt.shows(now, now);
                self.line.triggers.extend(is_shown.then_some(made));
            }
            RecordKind::AffinitySet { task, .. }
            | RecordKind::AttributesSet { task, .. }
            | RecordKind::PrioritySet { task, .. }
            | RecordKind::RankChanged { task, .. }
            | RecordKind::Replenished { task, .. } => {
                self.line.tasks.get(task.index())?;
            }
            RecordKind::BudgetSpent { .. }
            | RecordKind::Interrupted { .. }
            | RecordKind::Unlocked { .. }
            | RecordKind::Demoted { .. }
            | RecordKind::Entered { .. } => {}
        }
        Some(())
    }

    /// The history of the job; one that is not kept if it ended before.
    fn history(&mut self, job: JobId) -> Option<&mut JobHistory> {
        let histories = self.live.get_mut(job.task.index())?;
        match place_of(histories, job.number) {
            Some(index) => histories.get_mut(index),
            None => {
                let was_released = (1..=self.last[job.task.index()]).contains(&job.number);
                self.past.states.truncate(1);
                was_released.then_some(&mut self.past)
            }
        }
    }

    fn release(&mut self, job: JobId, deadline: Instant) -> Option<()> {
        // A run covers the time before the horizon.
        if self.now >= self.line.horizon {
            return self.line.tasks.get(job.task.index()).map(|_| ());
        }
        let last = self.last.get_mut(job.task.index())?;
        // A number that does not grow would break the search by number.
        if *last >= job.number {
            return None;
        }
        *last = job.number;
        self.released += 1;
        if self.released <= self.most {
            self.first_until = self.now;
        }
        if self.now <= self.first_until.max(self.shown_until) {
            self.live[job.task.index()].push_back(JobHistory::new(job, self.now, deadline));
        }
        Some(())
    }

    fn drop_jobs(&mut self, task: TaskId) -> Option<()> {
        let now = self.now;
        let histories = self.live.get_mut(task.index())?;
        let pending = |history: &&mut JobHistory| history.end == End::Unfinished;
        for history in histories.iter_mut().filter(pending) {
            history.end = End::Dropped(now);
        }
        self.ended.push(task);
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

    fn finish(mut self) -> Timeline {
        let horizon = self.line.horizon;
        self.now = horizon;
        for cpu in (0..self.gone.len()).map(CpuId::from_index) {
            for why in [Absence::Background, Absence::Offline, Absence::Taken] {
                // The CPU is in range, so the result cannot be `None`.
                let _ = self.serve_cpu(cpu, why);
            }
        }
        let segments = std::mem::replace(&mut self.segments, Segments::new(0));
        for segment in segments.finish(horizon) {
            self.take_segment(segment);
        }
        for history in std::mem::take(&mut self.live).into_iter().flatten() {
            self.line.keep(history, self.excerpt, self.first_until);
        }
        self.line.sort(self.most);
        self.line
    }

    /// Adds the next segment of its job. It begins with a shift if the job was on another CPU until then.
    fn add_segment(&mut self, segment: Segment) {
        let Some(history) = self.history(segment.job) else {
            return;
        };
        if history.job != segment.job {
            return;
        }
        let before = history.segments.last().copied();
        history.segments.push(segment);
        let is_shown = self.excerpt.shows(segment.from, segment.from);
        if let Some(before) = before.filter(|before| is_shown && before.to == segment.from) {
            self.line.shifts.push(Shift {
                at: segment.from,
                job: segment.job,
                from: before.cpu,
                to: segment.cpu,
            });
        }
    }
}

/// Where the job of this number is among those of its task, of which mostly none is missing in between.
fn place_of(histories: &VecDeque<JobHistory>, number: u64) -> Option<usize> {
    let first = histories.front()?.job.number;
    let likely = usize::try_from(number.checked_sub(first)?).ok();
    let is_there = |&place: &usize| {
        let found = histories.get(place);
        found.is_some_and(|history| history.job.number == number)
    };
    let searched = || histories.binary_search_by_key(&number, |history| history.job.number);
    likely.filter(is_there).or_else(|| searched().ok())
}
