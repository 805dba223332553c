//! For how long a job that is still unfinished in one run, and finished in the other, is rightly
//! kept waiting.
//!
//! That time does not count as a difference. What counts is the time during which the job executes,
//! or could have.

use shiftwork_model::{CpuId, Instant, JobId, Span, TaskId};

use super::replay::Replay;
use crate::check::{Facts, Invariant};

/// A job and the time in which it is finished in the other run only.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    pub job: JobId,
    pub from: Instant,
    /// When it ends in this run, or the horizon.
    pub to: Instant,
}

/// Which waiting is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Whatever the run does: it is the reference, or nothing is known of who should run.
    All,
    /// While every CPU that the job may use is away or runs a job at least as urgent.
    Blocked,
    /// While every CPU that the job may use is away or runs some job.
    Occupied,
}

impl Trust {
    /// What to trust in a measured run of such a policy.
    pub fn of(facts: &Facts) -> Self {
        match facts.invariant {
            Invariant::Quanta => Self::All,
            Invariant::NonPreemptive | Invariant::PushPull => Self::Occupied,
            Invariant::Weak | Invariant::Strong | Invariant::Packed => Self::Blocked,
        }
    }
}

/// How long each gap's job was rightly kept waiting in it.
///
/// Behind an unfinished job of its own task a job waits rightly as long as that one executes or
/// waits rightly itself: what goes wrong with that one is not counted again.
///
/// # Cost
/// Per instant, a step per CPU for each task that has a gap then.
pub(super) fn rightly_kept_waiting(
    mut replay: Replay<'_>,
    gaps: &[Gap],
    trust: Trust,
    horizon: Instant,
) -> Vec<Span> {
    let mut order: Vec<usize> = (0..gaps.len()).collect();
    order.sort_by_key(|&index| gaps[index].from);
    let mut order = order.into_iter().peekable();
    let mut clerk = Clerk {
        gaps,
        trust,
        waited: vec![Span::ZERO; gaps.len()],
        tasks: vec![Account::default(); replay.tasks.len()],
        active: Vec::new(),
    };
    let mut now = Instant::ZERO;
    loop {
        let next = replay.next_at().filter(|&at| at < horizon);
        let gap = order.peek().map(|&index| gaps[index].from);
        let Some(until) = next.into_iter().chain(gap).min() else {
            break;
        };
        clerk.pass(&replay, until.late_since(now));
        now = until;
        if next == Some(now) {
            replay.step();
            clerk.come_to_front(&replay);
        }
        clerk.close(now);
        while let Some(index) = order.next_if(|&index| gaps[index].from <= now) {
            clerk.open(index, &replay);
        }
    }
    clerk.pass(&replay, horizon.late_since(now));
    clerk.close(Instant::NEVER);
    clerk.waited
}

struct Clerk<'a> {
    gaps: &'a [Gap],
    trust: Trust,
    waited: Vec<Span>,
    tasks: Vec<Account>,
    /// The tasks with open gaps.
    active: Vec<usize>,
}

/// The time that the oldest job of a task spent while the task had an open gap.
#[derive(Clone, Debug, Default)]
struct Account {
    /// Rightly waiting.
    waiting: Span,
    /// Executing.
    executing: Span,
    open: Vec<Open>,
}

/// A gap that has begun.
#[derive(Clone, Copy, Debug)]
struct Open {
    index: usize,
    /// Whether the job is the oldest of its task.
    front: bool,
    /// The account when the gap began, or when the job became the oldest.
    since: Span,
}

impl Account {
    /// What counts for a job in this place.
    fn total(&self, front: bool) -> Span {
        match front {
            true => self.waiting,
            false => self.waiting + self.executing,
        }
    }
}

impl Clerk<'_> {
    fn open(&mut self, index: usize, replay: &Replay<'_>) {
        let job = self.gaps[index].job;
        let Some(account) = self.tasks.get_mut(job.task.index()) else {
            return;
        };
        let front = replay.is_current(job);
        let since = account.total(front);
        if account.open.is_empty() {
            self.active.push(job.task.index());
        }
        account.open.push(Open {
            index,
            front,
            since,
        });
    }

    /// Books what passed for jobs that are now the oldest of their tasks and were not before.
    fn come_to_front(&mut self, replay: &Replay<'_>) {
        for &task in &self.active {
            let account = &mut self.tasks[task];
            let (behind, front) = (account.total(false), account.total(true));
            for open in account.open.iter_mut().filter(|open| !open.front) {
                if replay.is_current(self.gaps[open.index].job) {
                    self.waited[open.index] += behind.saturating_sub(open.since);
                    (open.front, open.since) = (true, front);
                }
            }
        }
    }

    fn close(&mut self, now: Instant) {
        let Self {
            gaps,
            waited,
            tasks,
            active,
            ..
        } = self;
        for &task in active.iter() {
            let account = &mut tasks[task];
            let (behind, front) = (account.total(false), account.total(true));
            account.open.retain(|open| {
                let over = gaps[open.index].to <= now;
                if over {
                    let total = if open.front { front } else { behind };
                    waited[open.index] += total.saturating_sub(open.since);
                }
                !over
            });
        }
        active.retain(|&task| !tasks[task].open.is_empty());
    }

    fn pass(&mut self, replay: &Replay<'_>, time: Span) {
        for &task in &self.active {
            let account = &mut self.tasks[task];
            let state = &replay.tasks[task];
            if state.on_cpu.is_some() && state.on_cpu == state.pending.front().copied() {
                account.executing += time;
            } else if waits_rightly(replay, task, self.trust) {
                account.waiting += time;
            }
        }
    }
}

fn waits_rightly(replay: &Replay<'_>, task: usize, trust: Trust) -> bool {
    let state = &replay.tasks[task];
    let waits = replay.waiting(TaskId::from_index(task)).is_some();
    if trust == Trust::All {
        return waits || state.throttled;
    }
    let platform = (0..replay.cpus()).map(CpuId::from_index);
    let mut usable = platform.filter(|&cpu| state.cpus.contains(cpu) && !replay.away.contains(cpu));
    waits
        && usable.all(|cpu| {
            let job = replay.on(cpu).filter(|&job| replay.is_current(job));
            job.is_some_and(|job| {
                trust == Trust::Occupied || replay.tasks[job.task.index()].rank <= state.rank
            })
        })
}
