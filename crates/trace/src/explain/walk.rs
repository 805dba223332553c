//! Walks over the records up to the end of late jobs, and divides the time of their tasks into pieces.

mod drawing;
mod execution;
mod mutexes;
mod rows;
mod waiting;

use std::collections::{BTreeMap, VecDeque};

use shiftwork_model::{
    CpuId, CpuSet, Frequency, Instant, Invariant, JobId, Record, RecordKind, ResourceId, Span,
    TaskId, TaskSet,
};

use super::attribution::{self, WalkResult};
use super::history::{Followed, Pending, Run, TaskHistory};
use super::interrupted::Losses;
use super::late_job::{LateJob, Sums};
use super::origins::Origins;
use super::timeline::Occupant;
use super::{Culprit, End, Explanation, Recording, Steps};
use crate::check::PolicyContract;
use crate::check::state::{State, TaskState};
use crate::shift_chain::{Key, key};
use waiting::Contention;

/// The state of the walk.
pub(super) struct Walk<'a> {
    set: &'a TaskSet,
    pub contract: Option<&'a PolicyContract>,
    pub state: State,
    pub histories: Vec<TaskHistory>,
    /// Whether all CPUs have the same speed, so that time on a CPU equals executed cost.
    pub are_cpus_alike: bool,
    losses: Losses,
    origins: Origins,
    /// By resource, the task that holds it.
    holders: BTreeMap<ResourceId, TaskId>,
    /// By CPU, the CPU from which its job was shifted.
    shifted: Vec<Option<CpuId>>,
    /// Number of steps that may still be taken.
    steps: Steps,
    /// The tasks of which time is divided at present, ascending: those of which the oldest pending job is late, or in the
    /// row of a job that is to be explained.
    followed: Vec<usize>,
    /// Number of late jobs that have not ended.
    remaining: usize,
    /// Whether the timelines of explained jobs are drawn.
    draws: bool,
    ended: Vec<(LateJob, Option<Explanation>)>,
}

impl<'a> Walk<'a> {
    /// Follows the jobs in `late`, of which it explains the first `explained`.
    pub fn new(recording: Recording<'a>, late: &[JobId], explained: usize, steps: Steps) -> Self {
        let Recording { set, records, .. } = recording;
        let history = |task: &shiftwork_model::Task| TaskHistory {
            cost: task.cost,
            pending: VecDeque::new(),
            run: None,
            executed: (0, Span::ZERO),
            consumed: Span::ZERO,
            is_spent: false,
            reason: None,
            spins: None,
            followed: Followed::default(),
        };
        let mut histories: Vec<TaskHistory> = set.tasks.iter().map(history).collect();
        let origins = Origins::of(recording, &late[..explained.min(late.len())]);
        // Sets of sorted numbers are made at once: there may be millions of late jobs.
        let mut numbers: Vec<Vec<u64>> = vec![Vec::new(); histories.len()];
        for (index, job) in late.iter().enumerate() {
            if let Some(history) = histories.get_mut(job.task.index()) {
                numbers[job.task.index()].push(job.number);
                if index < explained {
                    history.followed.explained.insert(job.number, None);
                }
            }
        }
        for (history, numbers) in histories.iter_mut().zip(numbers) {
            history.followed.late = numbers.into_iter().collect();
        }
        rows::find(recording, &mut histories);
        let late = |history: &TaskHistory| history.followed.late.len();
        let remaining = histories.iter().map(late).sum();
        let platform = &set.platform;
        Self {
            set,
            contract: recording.contract,
            state: State::new(set),
            histories,
            are_cpus_alike: platform.capacities.is_empty()
                && platform.frequency == Frequency::Fixed,
            losses: Losses::of(set, records),
            origins,
            holders: BTreeMap::new(),
            shifted: vec![None; platform.cpus],
            steps,
            followed: Vec::new(),
            remaining,
            draws: true,
            ended: Vec::new(),
        }
    }

    /// Draws no timelines.
    pub fn without_timelines(self) -> Self {
        Self {
            draws: false,
            ..self
        }
    }

    /// Explains this job as if it had been due so much before its end.
    pub fn with_excess(mut self, job: JobId, excess: Span) -> Self {
        if let Some(history) = self.histories.get_mut(job.task.index()) {
            history.followed.excess.insert(job.number, excess);
        }
        self
    }

    /// Walks over the records up to `until`, or to the end of the last job that is followed.
    pub fn run(
        mut self,
        recording: Recording<'_>,
        mut visit: impl FnMut(LateJob, Option<Explanation>),
    ) {
        let until = recording.until;
        for record in recording.in_window() {
            self.take(&record);
            for (job, explanation) in self.ended.drain(..) {
                visit(job, explanation);
            }
            if self.remaining == 0 {
                return;
            }
        }
        if self.state.now() < until {
            self.settle();
            self.pass(until);
        }
        for index in 0..self.histories.len() {
            self.end_pending(TaskId::from_index(index), End::Unfinished, until);
        }
        for (job, explanation) in self.ended {
            visit(job, explanation);
        }
    }

    fn take(&mut self, record: &Record) {
        if record.at != self.state.now() {
            self.settle();
            self.pass(record.at);
            self.state.advance(record.at);
        }
        self.note(record.at, &record.kind);
        self.state.take(&record.kind);
    }

    /// Ends the instant: updates the jobs that started and stopped.
    fn settle(&mut self) {
        let now = self.state.now();
        self.state.settle();
        let changes: Vec<_> = self.state.changes().collect();
        for change in &changes {
            let job = change.before;
            if let Some(job) = job
                && let Some(history) = self.histories.get_mut(job.task.index())
            {
                history.stop(job.number, now);
            }
        }
        for change in &changes {
            let Some(job) = change.after else { continue };
            if let Some(history) = self.histories.get_mut(job.task.index())
                && history.spins.is_none()
            {
                history.run = Some(Run {
                    number: job.number,
                    from: now,
                    lost: self.losses.at(change.cpu, now),
                });
            }
            let from = changes.iter().find(|other| other.before == Some(job));
            self.shifted[change.cpu.index()] = from.map(|from| from.cpu);
        }
        self.state.close();
    }

    /// The invariant of the policy, if it is known.
    pub fn invariant(&self) -> Option<Invariant> {
        self.contract.map(|contract| contract.invariant)
    }

    /// The key of the ready job of a task. If the order is unknown, all are equal.
    pub fn key(&self, task: &TaskState) -> Key {
        self.contract
            .map_or(0, |contract| key(contract.order, task))
    }

    /// Advances to `to`, before which there are no records.
    fn pass(&mut self, to: Instant) {
        for at in 0..self.followed.len() {
            if self.draws {
                self.draw(self.followed[at], to);
            }
            self.pass_task(self.followed[at], to);
        }
    }

    /// Follows the task from now on, or not any more, after its pending jobs or its late ones have changed.
    fn follow(&mut self, task: TaskId) {
        let Some(history) = self.histories.get(task.index()) else {
            return;
        };
        let is_wanted = history.followed_job().is_some();
        match (self.followed.binary_search(&task.index()), is_wanted) {
            (Err(place), true) => self.followed.insert(place, task.index()),
            (Ok(place), false) => drop(self.followed.remove(place)),
            _ => {}
        }
    }

    /// Omits the late jobs of the task from now on.
    fn give_up(&mut self, index: usize) {
        let followed = &mut self.histories[index].followed;
        self.remaining -= followed.late.len();
        followed.late.clear();
        followed.explained.clear();
        followed.rows.clear();
        followed.end_row();
    }

    fn pass_task(&mut self, index: usize, to: Instant) {
        let from = self.state.now();
        let history = &self.histories[index];
        let Some(number) = history.followed_job() else {
            return;
        };
        let is_explaining = history.followed.is_in_row(number);
        if *self.steps.of(is_explaining) == 0 {
            self.give_up(index);
            return;
        }
        let state = &self.state.tasks[index];
        let mut steps = 1;
        let mut blockers = Vec::new();
        let mut chain = None;
        let pieces = if state.runs.is_some_and(|(runs, _)| runs == number) {
            self.executing(index, number, from, to)
        } else if state.ready == Some(number) {
            let contention = Contention::of(self, TaskId::from_index(index));
            let pieces = contention.pieces(number, from, to);
            contention.add_blockers(&mut blockers);
            let no_shift = |(culprit, _): &(Culprit, CpuSet)| *culprit == Culprit::NoShift;
            if history.followed.sums.chain.is_none()
                && pieces
                    .iter()
                    .any(|piece| piece.without.iter().any(no_shift))
            {
                chain = contention.chain();
            }
            steps += self.state.cpus() as u64;
            pieces
        } else {
            vec![self.held(index, number, from, to)]
        };
        let held = self.held_mutexes(index);
        let left = self.steps.of(is_explaining);
        *left = left.saturating_sub(steps);
        let Followed {
            sums, pieces: all, ..
        } = &mut self.histories[index].followed;
        for (task, cpu) in blockers {
            let time = to.late_since(from);
            let (sum, cpus) = sums.blockers.entry(task).or_default();
            *sum += time;
            cpus.insert(cpu);
        }
        sums.chain = sums.chain.take().or(chain);
        sums.mutexes.add(&held, to.late_since(from));
        pieces.iter().for_each(|piece| sums.add(piece));
        if is_explaining {
            all.extend(pieces);
        }
    }

    /// The occupant of the CPU after the instant.
    pub fn occupant(&self, cpu: CpuId) -> Occupant {
        let state = &self.state;
        if state.taken.contains(cpu) {
            Occupant::Taken
        } else if state.offline.contains(cpu) {
            Occupant::Offline
        } else if state.background.contains(cpu) {
            Occupant::Background
        } else {
            state.on(cpu).map_or(Occupant::Idle, Occupant::Job)
        }
    }

    /// Takes a record before the state does.
    fn note(&mut self, at: Instant, kind: &RecordKind) {
        match *kind {
            RecordKind::Released { job, deadline } => self.release(at, job, deadline),
            RecordKind::Ready { job, .. } => {
                if let Some(history) = self.histories.get_mut(job.task.index()) {
                    history.reason = None;
                }
            }
            RecordKind::NotReady { job, reason } => {
                if let Some(history) = self.histories.get_mut(job.task.index()) {
                    history.reason = Some(reason);
                }
            }
            RecordKind::Completed { job } => self.complete(at, job),
            RecordKind::BudgetSpent { job } => {
                if let Some(history) = self.histories.get_mut(job.task.index()) {
                    history.is_spent = true;
                }
            }
            RecordKind::Replenished { task, .. } => {
                if let Some(history) = self.histories.get_mut(task.index()) {
                    history.is_spent = false;
                    history.consumed = Span::ZERO;
                }
            }
            RecordKind::Spinning { job, resource } => {
                if let Some(history) = self.histories.get_mut(job.task.index()) {
                    history.stop(job.number, at);
                    history.spins = Some(resource);
                }
            }
            RecordKind::Locked { job, resource } => {
                self.holders.insert(resource, job.task);
                self.end_spinning(at, job);
            }
            RecordKind::Unlocked { resource, .. } => drop(self.holders.remove(&resource)),
            RecordKind::AttributesSet { task, cost, .. } => {
                if let Some(history) = self.histories.get_mut(task.index()) {
                    history.cost = cost;
                }
            }
            RecordKind::Left { task } => self.leave(at, task),
            _ => {}
        }
    }

    fn release(&mut self, at: Instant, job: JobId, deadline: Instant) {
        let Some(history) = self.histories.get_mut(job.task.index()) else {
            return;
        };
        let pending = Pending {
            number: job.number,
            release: at,
            deadline,
            cost: history.cost,
        };
        history.pending.push_back(pending);
        let followed = &mut history.followed;
        if followed.is_in_row(job.number) {
            followed.row.push(pending);
        }
        if let Some(timeline) = followed.explained.get_mut(&job.number) {
            timeline.get_or_insert_default();
        }
        self.follow(job.task);
    }

    fn complete(&mut self, at: Instant, job: JobId) {
        let Some(history) = self.histories.get_mut(job.task.index()) else {
            return;
        };
        history.reason = None;
        let is_same = |pending: &Pending| pending.number == job.number;
        let Some(pending) = history.pending.iter().copied().find(is_same) else {
            return;
        };
        let is_oldest = history.pending.front().is_some_and(is_same);
        history.pending.retain(|pending| !is_same(pending));
        self.end(job.task, &pending, (End::Finished, at), Span::ZERO);
        let Some(history) = self.histories.get_mut(job.task.index()) else {
            return;
        };
        if is_oldest {
            history.followed.sums = Sums::default();
        }
        if history.pending.is_empty() {
            history.followed.end_row();
        }
        self.follow(job.task);
    }

    fn leave(&mut self, at: Instant, task: TaskId) {
        self.end_pending(task, End::Dropped, at);
        if let Some(history) = self.histories.get_mut(task.index()) {
            history.pending.clear();
            history.reason = None;
            history.followed.sums = Sums::default();
            history.followed.end_row();
        }
        self.follow(task);
    }

    /// Ends all pending jobs of the task, without completion.
    fn end_pending(&mut self, task: TaskId, end: End, at: Instant) {
        let mut remaining = Span::ZERO;
        let pending = self
            .histories
            .get(task.index())
            .map(|it| it.pending.clone());
        for job in pending.iter().flatten() {
            remaining += self.histories[task.index()].left(job, at);
            self.end(task, job, (end, at), remaining);
            // Younger jobs were never the oldest.
            self.histories[task.index()].followed.sums = Sums::default();
        }
    }

    /// Ends a job, if it is one of those to be followed. `remaining`: what its task has to execute up to this job.
    fn end(&mut self, task: TaskId, pending: &Pending, (end, at): (End, Instant), remaining: Span) {
        let history = &mut self.histories[task.index()];
        let number = pending.number;
        if !history.followed.late.remove(&number) {
            return;
        }
        self.remaining -= 1;
        let is_oldest = history
            .pending
            .front()
            .is_none_or(|front| front.number >= number);
        let sums = if is_oldest {
            std::mem::take(&mut history.followed.sums)
        } else {
            Sums::default()
        };
        let excess = history.followed.excess.remove(&number);
        let deadline = excess.map_or(pending.deadline, |excess| {
            Instant::from_ns(at.as_ns().saturating_sub(excess.as_ns()))
        });
        let job = LateJob {
            job: JobId { task, number },
            release: pending.release,
            deadline,
            until: at,
            end,
            remaining,
            parts: sums.parts_of(at.late_since(pending.release)),
            delays: sums.delays,
            blockers: sums.blockers,
            chain: sums.chain,
            mutexes: sums.mutexes.waits(self.set),
        };
        let timeline = history.followed.explained.remove(&number);
        let explanation = timeline.map(|timeline| {
            let history = &self.histories[task.index()];
            let left = |job: &Pending| match end {
                End::Dropped | End::Unfinished if history.pending.contains(job) => {
                    history.left(job, at)
                }
                _ => Span::ZERO,
            };
            let row = &history.followed.row;
            let last = row.iter().position(|job| job.number == number);
            let row = row.iter().take(last.map_or(0, |last| last + 1));
            let explanation = attribution::explained(WalkResult {
                job: &job,
                row: row
                    .map(|job| (job.number, job.release, left(job)))
                    .collect(),
                pieces: &history.followed.pieces,
                timeline: timeline.unwrap_or_default().finish(),
            });
            Explanation {
                origin: self.origins.of_job(job.job),
                ..explanation
            }
        });
        let followed = &mut self.histories[task.index()].followed;
        if followed.explained.is_empty() {
            followed.end_row();
        }
        self.ended.push((job, explanation));
    }
}
