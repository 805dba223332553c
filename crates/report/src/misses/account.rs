//! The losses of one missed job.

use std::collections::BTreeMap;

use shiftwork_model::{CpuId, CpuSet, Instant, JobId, Phase, Span, Task, TaskId, Work};

use super::shift_chain;
use super::{Blocker, Bound, Context, Loss, LossKind, Miss, Remedy};
use crate::timeline::{End, JobHistory, State};

/// Explains one missed job. `steps` grows by the number of states of CPUs looked at.
pub(super) fn miss(
    context: Context<'_>,
    history: &JobHistory,
    late_since: Option<JobId>,
    steps: &mut u64,
) -> Miss {
    let mut account = Account::new(context, history);
    for (from, to, state) in history.stretches(context.line.horizon) {
        match state {
            State::Queued => account.queued(from, to),
            State::Suspended => account.add(LossKind::Suspended, to.late_since(from)),
            State::Throttled => account.add(LossKind::Throttled, to.late_since(from)),
            State::Ready => account.ready(from, to, steps),
        }
    }
    account.own_doing();
    account.into_miss(late_since)
}

struct Account<'a> {
    context: Context<'a>,
    history: &'a JobHistory,
    losses: BTreeMap<LossKind, Span>,
    waited: Span,
    executed: Span,
    blockers: BTreeMap<TaskId, (CpuSet, Span)>,
    outside: (CpuSet, Span, Bound),
    chain: Option<(shift_chain::ShiftChain, Span)>,
}

impl<'a> Account<'a> {
    fn new(context: Context<'a>, history: &'a JobHistory) -> Self {
        Self {
            context,
            history,
            losses: BTreeMap::new(),
            waited: Span::ZERO,
            executed: context.line.executed(history),
            blockers: BTreeMap::new(),
            outside: (CpuSet::EMPTY, Span::ZERO, Bound::Affinity),
            chain: None,
        }
    }

    fn add(&mut self, kind: LossKind, time: Span) {
        if !time.is_zero() {
            *self.losses.entry(kind).or_default() += time;
        }
    }

    /// Charges a time in which the job was released and not ready: it waited for its predecessor as long as that
    /// was pending, and afterwards for its budget.
    fn queued(&mut self, from: Instant, to: Instant) {
        let task = self.history.job.task;
        let before = JobId {
            task,
            number: self.history.job.number.saturating_sub(1),
        };
        let line = self.context.line;
        let free = line
            .history(before)
            .map_or(from, |history| history.end(line.horizon))
            .clamp(from, to);
        self.add(LossKind::LatePredecessor, free.late_since(from));
        self.add(LossKind::Throttled, to.late_since(free));
    }

    /// Charges a time in which the job was ready: examines every state of the machine while the job did not run.
    fn ready(&mut self, from: Instant, to: Instant, steps: &mut u64) {
        let mut at = from;
        for &(cpu, index) in &self.history.slices {
            let slice = self.context.line.cpus[cpu][index];
            if slice.to <= at || slice.from >= to {
                continue;
            }
            self.waiting(at, slice.from, steps);
            at = slice.to;
        }
        self.waiting(at, to, steps);
    }

    fn waiting(&mut self, from: Instant, to: Instant, steps: &mut u64) {
        let mut at = from;
        for next in changes(self.context, from, to) {
            self.waiting_step(at, next.late_since(at));
            at = next;
            *steps += self.context.line.cpus.len() as u64;
        }
    }

    /// Charges an interval without any switch in which the job was ready and did not run.
    fn waiting_step(&mut self, at: Instant, time: Span) {
        if time.is_zero() {
            return;
        }
        self.waited += time;
        let Context { line, .. } = self.context;
        let job = self.history.job;
        let cpus = self.context.cpus(job.task, at);
        let in_range = |cpu: &CpuId| cpu.index() < line.cpus.len();
        let (mut idle, mut away, mut lesser, mut unranked) = (false, false, false, false);
        for cpu in cpus.iter().filter(in_range) {
            match (line.running(cpu.index(), at), line.absent(cpu.index(), at)) {
                (Some(other), _) => {
                    let entry = self.blockers.entry(other.task);
                    let (on, sum) = entry.or_insert((CpuSet::EMPTY, Span::ZERO));
                    on.insert(cpu);
                    *sum += time;
                    let before = self.context.before(job, other, at);
                    lesser |= before == Some(true);
                    unranked |= before.is_none();
                }
                (None, Some(_)) => away = true,
                (None, None) => idle = true,
            }
        }
        let kind = match (idle, lesser, away, unranked) {
            (true, ..) => LossKind::IdleCpu,
            (_, true, ..) => LossKind::LessUrgent,
            (_, _, true, _) => LossKind::CpuAway,
            (.., true) => LossKind::OtherWork,
            _ => LossKind::MoreUrgent,
        };
        self.add(kind, time);
        if !idle && !lesser {
            self.remedies(at, time, cpus);
        }
    }

    /// Notes the remedies while every CPU of the job ran more urgent jobs.
    fn remedies(&mut self, at: Instant, time: Span, cpus: CpuSet) {
        let line = self.context.line;
        let vacant = |&cpu: &CpuId| {
            let cpu = cpu.index();
            line.running(cpu, at).is_none() && line.absent(cpu, at).is_none()
        };
        let all = CpuSet::first(line.cpus.len());
        let idle: CpuSet = (all - cpus).iter().filter(vacant).collect();
        if !idle.is_empty() {
            let affinity = line.affinity(self.history.job.task, at);
            let (seen, sum, bound) = &mut self.outside;
            *seen = *seen | idle;
            *sum += time;
            if idle.intersects(affinity) {
                *bound = Bound::Packing;
            }
        }
        match (
            &mut self.chain,
            shift_chain::find(self.context, self.history.job, at),
        ) {
            (Some((_, sum)), Some(_)) => *sum += time,
            (none @ None, Some(chain)) => *none = Some((chain, time)),
            (_, None) => {}
        }
    }

    /// Notes the losses caused by the job itself: more time on a CPU than its declared cost or its deadline,
    /// or the departure of its task.
    fn own_doing(&mut self) {
        let task = &self.context.set.tasks[self.history.job.task.index()];
        let cost = self
            .context
            .line
            .cost(self.history.job.task, self.history.release);
        let most = most_work(task, cost).unwrap_or(self.executed);
        let overheads = self.executed.saturating_sub(most);
        self.add(LossKind::Overheads, overheads);
        let overrun = (self.executed - overheads).saturating_sub(cost);
        self.add(LossKind::Overrun, overrun);
        let window = self.history.deadline.late_since(self.history.release);
        let within_cost = self.executed.saturating_sub(overrun + overheads);
        self.add(LossKind::TooLong, within_cost.saturating_sub(window));
        if let End::Dropped(at) = self.history.end {
            self.add(LossKind::TaskLeft, self.history.deadline.late_since(at));
        }
    }

    fn into_miss(self, late_since: Option<JobId>) -> Miss {
        let mut losses: Vec<Loss> = self
            .losses
            .into_iter()
            .map(|(kind, time)| Loss { kind, time })
            .collect();
        losses.sort_by_key(|loss| (core::cmp::Reverse(loss.time), loss.kind));
        let mut blockers: Vec<Blocker> = self
            .blockers
            .into_iter()
            .map(|(task, (cpus, time))| Blocker { task, cpus, time })
            .collect();
        blockers.sort_by_key(|blocker| (core::cmp::Reverse(blocker.time), blocker.task));
        let mut remedies = Vec::new();
        if let Some((chain, time)) = self.chain {
            let shift_chain::ShiftChain { moves, displaced } = chain;
            remedies.push(Remedy::Shift {
                moves,
                displaced,
                time,
            });
        }
        let JobHistory { job, release, .. } = *self.history;
        let cost = self.context.line.cost(job.task, release);
        let remaining = match self.history.end {
            End::Finished(_) => Span::ZERO,
            End::Dropped(_) | End::Unfinished => cost.saturating_sub(self.executed),
        };
        let (idle, time, bound) = self.outside;
        if !idle.is_empty() {
            remedies.push(Remedy::Wider { idle, time, bound });
        }
        Miss {
            job: self.history.job,
            release: self.history.release,
            deadline: self.history.deadline,
            end: self.history.end,
            until: self.history.end(self.context.line.horizon),
            executed: self.executed,
            waited: self.waited,
            remaining,
            losses,
            remedies,
            blockers,
            late_since,
            explanation: None,
        }
    }
}

/// The longest time on a CPU that a job can need for its own work; `None` if a real program determines it.
fn most_work(task: &Task, cost: Span) -> Option<Span> {
    let most = match &task.work {
        Work::Cost => cost,
        Work::Constant(run) | Work::Uniform(_, run) => *run,
        Work::Trace(runs) => runs.iter().copied().max().unwrap_or(cost),
        Work::Phases(phases) => phases.iter().fold(Span::ZERO, |sum, phase| match *phase {
            Phase::Run(run) => sum + run,
            Phase::Sleep(_) => sum,
        }),
    };
    task.command.is_empty().then_some(most)
}

/// The instants of changes on any CPU inside `(from, to)`, ascending, and `to` itself.
fn changes(context: Context<'_>, from: Instant, to: Instant) -> Vec<Instant> {
    let inside = |at: &Instant| from < *at && *at < to;
    let mut instants = vec![to];
    for slices in &context.line.cpus {
        let first = slices.partition_point(|slice| slice.to <= from);
        let within = slices[first..].iter().take_while(|slice| slice.from < to);
        instants.extend(
            within
                .flat_map(|slice| [slice.from, slice.to])
                .filter(inside),
        );
    }
    for stretches in context.line.away.iter().flatten() {
        let first = stretches.partition_point(|away| away.to <= from);
        let within = stretches[first..].iter().take_while(|away| away.from < to);
        instants.extend(within.flat_map(|away| [away.from, away.to]).filter(inside));
    }
    let affinities = context.line.affinities.iter().flatten();
    instants.extend(affinities.map(|&(since, _)| since).filter(inside));
    instants.sort_unstable();
    instants.dedup();
    instants
}
