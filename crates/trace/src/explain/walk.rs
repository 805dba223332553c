//! Walks over the records up to the end of one job, and divides the time of its task into pieces.

use std::collections::VecDeque;

use shiftwork_model::{
    CpuId, CpuSet, Frequency, Instant, JobId, NotReadyReason, Record, RecordKind, Span, TaskId,
    TaskSet,
};

use super::interrupted::Losses;
use super::timeline::{Occupant, Slice, TimelineBuilder};
use super::{Culprit, End, Part, waiting};
use crate::check::PolicyContract;
use crate::check::state::State;

/// An interval in which the state of the task's oldest pending job had one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub from: Instant,
    pub to: Instant,
    /// The job.
    pub number: u64,
    pub part: Part,
    /// Culprits; without any one of them the job would have run in this interval.
    pub without: Vec<(Culprit, CpuSet)>,
    /// Whether one of the blocking jobs was released when the job was late already.
    pub is_by_newcomer: bool,
}

/// A released job of some task.
#[derive(Clone, Copy, Debug)]
struct Pending {
    number: u64,
    release: Instant,
    deadline: Instant,
    cost: Span,
}

/// The current stretch of a job on a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    number: u64,
    from: Instant,
    /// Time lost to overheads; assumed at the begin of the stretch, since the records do not have the instants.
    lost: Span,
}

impl Run {
    /// Start of the job's execution.
    pub fn begins(self) -> Instant {
        self.from + self.lost
    }

    fn executed(self, at: Instant) -> Span {
        at.late_since(self.begins())
    }
}

/// The history of a task, beyond its ready and running jobs.
#[derive(Clone, Debug)]
pub(super) struct TaskHistory {
    cost: Span,
    pending: VecDeque<Pending>,
    run: Option<Run>,
    /// Execution of a job before the current stretch.
    executed: (u64, Span),
    /// Execution since the last replenishment.
    consumed: Span,
    is_spent: bool,
    /// The reason why its job is not ready.
    reason: Option<NotReadyReason>,
}

impl TaskHistory {
    fn executed(&self, number: u64, at: Instant) -> Span {
        let before = if self.executed.0 == number {
            self.executed.1
        } else {
            Span::ZERO
        };
        let run = self.run.filter(|run| run.number == number);
        before + run.map_or(Span::ZERO, |run| run.executed(at))
    }

    fn cost(&self, number: u64) -> Span {
        let pending = self.pending.iter().find(|job| job.number == number);
        pending.map_or(self.cost, |job| job.cost)
    }

    /// Start of the running job's execution, and the instant at which it has executed its cost, if it continues
    /// from `at`.
    pub fn crossings(&self, at: Instant) -> Option<[Instant; 2]> {
        let run = self.run?;
        let begins = run.begins();
        let left = self
            .cost(run.number)
            .saturating_sub(self.executed(run.number, at));
        Some([begins, begins.max(at) + left])
    }

    fn stop(&mut self, number: u64, at: Instant) {
        let Some(run) = self.run.take_if(|run| run.number == number) else {
            return;
        };
        let executed = run.executed(at);
        self.consumed += executed;
        if self.executed.0 != number {
            self.executed = (number, Span::ZERO);
        }
        self.executed.1 += executed;
    }
}

/// The result of the walk.
#[derive(Debug)]
pub(super) struct WalkResult {
    pub job: JobId,
    pub deadline: Instant,
    pub until: Instant,
    pub end: End,
    /// The row of jobs that ends with the job, each pending at the release of the next: number, release and
    /// remaining execution.
    pub row: Vec<(u64, Instant, Span)>,
    /// Without gaps from the release of the first of them on.
    pub pieces: Vec<Piece>,
    pub timeline: Vec<Slice>,
}

/// The state of the walk.
pub(super) struct Walk<'a> {
    pub contract: &'a PolicyContract,
    pub state: State,
    pub histories: Vec<TaskHistory>,
    pub job: JobId,
    /// Whether all CPUs have the same speed, so that time on a CPU equals executed cost.
    pub are_cpus_alike: bool,
    losses: &'a Losses,
    /// By CPU, the CPU from which its job was shifted.
    shifted: Vec<Option<CpuId>>,
    row: Vec<Pending>,
    pieces: Vec<Piece>,
    line: TimelineBuilder,
    deadline: Option<Instant>,
    end: Option<(End, Instant)>,
}

impl<'a> Walk<'a> {
    pub fn new(
        set: &TaskSet,
        contract: &'a PolicyContract,
        losses: &'a Losses,
        job: JobId,
    ) -> Self {
        let history = |task: &shiftwork_model::Task| TaskHistory {
            cost: task.cost,
            pending: VecDeque::new(),
            run: None,
            executed: (0, Span::ZERO),
            consumed: Span::ZERO,
            is_spent: false,
            reason: None,
        };
        let platform = &set.platform;
        Self {
            contract,
            state: State::new(set),
            histories: set.tasks.iter().map(history).collect(),
            job,
            are_cpus_alike: platform.capacities.is_empty()
                && platform.frequency == Frequency::Fixed,
            losses,
            shifted: vec![None; platform.cpus],
            row: Vec::new(),
            pieces: Vec::new(),
            line: TimelineBuilder::default(),
            deadline: None,
            end: None,
        }
    }

    /// Takes the next record. Returns false if the job has ended.
    pub fn take(&mut self, record: &Record) -> bool {
        if record.at != self.state.now() {
            self.settle();
            self.pass(record.at);
            self.state.advance(record.at);
        }
        self.note(record.at, &record.kind);
        self.state.take(&record.kind);
        self.end.is_none()
    }

    /// Ends the window at `until`. `None` if the job is not known.
    pub fn finish(mut self, until: Instant) -> Option<WalkResult> {
        if self.end.is_none() && self.state.now() < until {
            self.settle();
            self.pass(until);
        }
        let (end, until) = self.end.unwrap_or((End::Unfinished, until));
        let history = self.histories.get(self.job.task.index())?;
        let left = |job: &Pending| match end {
            // An unfinished job has at least a nanosecond left, also beyond its cost.
            End::Unfinished | End::Dropped
                if history.pending.iter().any(|it| it.number == job.number) =>
            {
                let left = job.cost.saturating_sub(history.executed(job.number, until));
                left.max(Span::from_ns(1))
            }
            _ => Span::ZERO,
        };
        Some(WalkResult {
            job: self.job,
            deadline: self.deadline?,
            until,
            end,
            row: self
                .row
                .iter()
                .map(|job| (job.number, job.release, left(job)))
                .collect(),
            pieces: self.pieces,
            timeline: self.line.finish(),
        })
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
            if let Some(history) = self.histories.get_mut(job.task.index()) {
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

    /// Advances to `to`, before which there are no records.
    fn pass(&mut self, to: Instant) {
        let from = self.state.now();
        if self.deadline.is_some() {
            self.draw(from, to);
        }
        let task = self.job.task.index();
        let Some(first) = self.histories.get(task).and_then(|it| it.pending.front()) else {
            return;
        };
        let number = first.number;
        let state = &self.state.tasks[task];
        let pieces = if state.runs.is_some_and(|(runs, _)| runs == number) {
            self.executing(number, from, to)
        } else if state.ready == Some(number) {
            waiting::pieces(self, number, from, to)
        } else {
            vec![self.held(number, from, to)]
        };
        self.pieces.extend(pieces);
    }

    fn draw(&mut self, from: Instant, to: Instant) {
        let affinity = self.state.tasks[self.job.task.index()].affinity;
        let all = CpuSet::first(self.state.cpus());
        for cpu in (affinity & all).iter() {
            let occupant = self.occupant(cpu);
            let is_job = matches!(occupant, Occupant::Job(_));
            self.line.add(Slice {
                cpu,
                from,
                to,
                occupant,
                shifted_from: self.shifted[cpu.index()].filter(|_| is_job),
            });
        }
    }

    /// Whether the job was released when the explained job was late already.
    pub fn is_newcomer(&self, job: JobId) -> bool {
        let pending = self.histories.get(job.task.index()).map(|it| &it.pending);
        let mut found = pending.into_iter().flatten();
        let found = found.find(|pending| pending.number == job.number);
        found
            .zip(self.deadline)
            .is_some_and(|(pending, deadline)| pending.release >= deadline)
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

    /// The pieces of an interval in which the job of the task is on a CPU.
    fn executing(&self, number: u64, from: Instant, to: Instant) -> Vec<Piece> {
        let history = &self.histories[self.job.task.index()];
        let [begins, crosses] = history.crossings(from).unwrap_or([from, Instant::NEVER]);
        let crosses = if self.are_cpus_alike {
            crosses
        } else {
            Instant::NEVER
        };
        let (begins, crosses) = (begins.clamp(from, to), crosses.clamp(from, to));
        let none = CpuSet::EMPTY;
        [
            (
                from,
                begins,
                Part::Interrupted,
                vec![(Culprit::Interrupts, none)],
            ),
            (begins, crosses, Part::Executing, Vec::new()),
            (
                crosses,
                to,
                Part::OwnOverrun,
                vec![(Culprit::OwnOverrun, none)],
            ),
        ]
        .into_iter()
        .filter(|(from, to, ..)| from < to)
        .map(|(from, to, part, without)| Piece {
            from,
            to,
            number,
            part,
            without,
            is_by_newcomer: false,
        })
        .collect()
    }

    /// The piece of an interval in which the job of the task is not ready.
    fn held(&self, number: u64, from: Instant, to: Instant) -> Piece {
        let history = &self.histories[self.job.task.index()];
        let is_out_of_budget =
            self.contract.immediate || history.is_spent || history.consumed >= history.cost;
        let (part, culprit) = match history.reason {
            Some(NotReadyReason::Suspended) => (Part::Suspended, Culprit::Suspension),
            Some(NotReadyReason::Throttled) => (Part::Throttled, Culprit::OwnOverrun),
            None if is_out_of_budget => (Part::Throttled, Culprit::OwnOverrun),
            // Released but not ready: the machine was late to notice the release.
            None => (Part::Stalled, Culprit::Stall),
        };
        Piece {
            from,
            to,
            number,
            part,
            without: vec![(culprit, CpuSet::EMPTY)],
            is_by_newcomer: false,
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
        if job.task == self.job.task && self.deadline.is_none() {
            self.row.push(pending);
            self.deadline = (job == self.job).then_some(pending.deadline);
        }
    }

    fn complete(&mut self, at: Instant, job: JobId) {
        let Some(history) = self.histories.get_mut(job.task.index()) else {
            return;
        };
        history.reason = None;
        history
            .pending
            .retain(|pending| pending.number != job.number);
        if job == self.job && self.deadline.is_some() {
            self.end = Some((End::Finished, at));
        } else if job.task == self.job.task && history.pending.is_empty() {
            self.row.clear();
            self.pieces.clear();
        }
    }

    fn leave(&mut self, at: Instant, task: TaskId) {
        let Some(history) = self.histories.get_mut(task.index()) else {
            return;
        };
        if task == self.job.task && self.deadline.is_some() {
            self.end = Some((End::Dropped, at));
            return;
        }
        history.pending.clear();
        history.reason = None;
        if task == self.job.task {
            self.row.clear();
            self.pieces.clear();
        }
    }
}
