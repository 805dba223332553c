//! Processes the records of a run instant by instant, and checks the time between.

use shiftwork_model::{CpuId, Instant, JobId, Record, RecordKind, Span, TaskId, TaskSet};

use super::state::{MachineError, State, is_event};
use super::{Basis, Disagreement, DisagreementKind, Judge, PATIENCE, Rule, Verdict};
use crate::check::VIOLATIONS_MAX;

/// A job that runs and should not, or should run and does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wrong {
    job: JobId,
    runs: bool,
    /// Whether later decisions do not restart the window.
    at_once: bool,
}

/// A CPU that started a job at a wrong instant, or instead of another job.
#[derive(Clone, Copy, Debug)]
struct Misstart {
    cpu: CpuId,
    job: JobId,
    instead_of: Option<JobId>,
}

pub(super) struct Engine<'a> {
    judge: Judge<'a>,
    window: Span,
    horizon: Instant,
    state: State,
    now: Instant,
    /// The last decision.
    decided: Instant,
    misstarts: Vec<Misstart>,
    /// By CPU, the task that left it last, and the instant.
    left: Vec<Option<(TaskId, Instant)>>,
    /// The tasks with jobs that run wrongly (`true`) or wait wrongly, and the start of that. Few at any time.
    since: Vec<(TaskId, bool, Instant)>,
    open: Option<Disagreement>,
    /// Time in it in which a CPU was idle that could have run one of its jobs.
    idled: Span,
    found: Verdict,
}

impl<'a> Engine<'a> {
    pub fn new(set: &TaskSet, basis: &Basis<'_>, judge: Judge<'a>) -> Self {
        let rule = match judge {
            Judge::SameSet(_) => Rule::SameSet,
            Judge::WeakInvariant => Rule::WeakInvariant,
            Judge::NonPreemptive => Rule::NonPreemptive,
            Judge::WorkConserving => Rule::WorkConserving,
            Judge::AtBoundaries(..) => Rule::AtBoundaries,
        };
        Self {
            judge,
            window: basis.window,
            horizon: basis.horizon,
            state: State::new(set, basis),
            now: Instant::ZERO,
            decided: Instant::ZERO,
            misstarts: Vec::new(),
            left: vec![None; set.platform.cpus],
            since: Vec::new(),
            open: None,
            idled: Span::ZERO,
            found: Verdict {
                rule,
                window: basis.window,
                tasks: set.tasks.iter().map(|task| task.name.clone()).collect(),
                decisions: 0,
                judged: Span::ZERO,
                disagreements: Vec::new(),
                count: 0,
                total: Span::ZERO,
                longest: Span::ZERO,
                stalls: 0,
                longest_stall: Span::ZERO,
            },
        }
    }

    pub fn run(mut self, records: &[Record]) -> Verdict {
        let mut order: Vec<&Record> = records.iter().collect();
        order.sort_by_key(|record| record.at);
        for instant in order.chunk_by(|a, b| a.at == b.at) {
            let at = instant[0].at;
            if at >= self.horizon {
                break;
            }
            self.pass(at);
            self.take(at, instant);
        }
        self.pass(self.horizon);
        self.close(self.horizon);
        let unnoticed: Vec<_> = self.state.unnoticed().collect();
        for (job, due) in unnoticed {
            if self.horizon.late_since(due) > self.window {
                self.find(Disagreement {
                    from: due,
                    waits: vec![job],
                    ..nothing(DisagreementKind::Unnoticed, self.horizon)
                });
            }
        }
        self.found.disagreements.sort_by_key(|it| it.from);
        self.found
    }

    /// Takes the records of an instant.
    fn take(&mut self, at: Instant, instant: &[&Record]) {
        let mut events = Vec::new();
        for (index, record) in instant.iter().enumerate() {
            if is_replenished_at_once(&record.kind, &instant[index..]) {
                continue;
            }
            let mut kind = record.kind.clone();
            match self.state.take(at, &mut kind) {
                Some(MachineError::Unnoticed(job, due)) => self.find(Disagreement {
                    from: due,
                    waits: vec![job],
                    ..nothing(DisagreementKind::Unnoticed, at)
                }),
                Some(MachineError::Rank(job)) => self.find(Disagreement {
                    waits: vec![job],
                    ..nothing(DisagreementKind::Rank, at)
                }),
                None => {}
            }
            if is_event(&kind) {
                events.push(kind);
            }
        }
        self.decide(at, &events);
        self.note_starts(at, instant);
    }

    fn decide(&mut self, at: Instant, events: &[RecordKind]) {
        let decides = match &mut self.judge {
            _ if events.is_empty() => false,
            Judge::SameSet(reference) => reference.apply(at, events),
            _ => true,
        };
        if decides {
            self.found.decisions += 1;
            self.decided = at;
        }
    }

    /// Notes wrong starts of jobs, for rules that restrict starts.
    fn note_starts(&mut self, at: Instant, instant: &[&Record]) {
        let state = &self.state;
        let still = |it: &Misstart| state.cpus.get(it.cpu.index()) == Some(&Some(it.job));
        self.misstarts.retain(still);
        for record in instant {
            let RecordKind::Switched { cpu, from, to } = record.kind else {
                continue;
            };
            if let (Some(from), Some(left)) = (from, self.left.get_mut(cpu.index())) {
                *left = Some((from.task, at));
            }
            let Some(job) = to else { continue };
            let misstart = Misstart {
                cpu,
                job,
                instead_of: None,
            };
            if !still(&misstart) || state.ready_job(job.task).is_none() {
                continue;
            }
            match &self.judge {
                Judge::AtBoundaries(length, phases) => {
                    let phase = phases.get(cpu.index()).copied().unwrap_or(Span::ZERO);
                    let into = at.late_since(Instant::ZERO + phase).as_ns() % length.as_ns().max(1);
                    if into > self.window.as_ns() && !self.follows(cpu, job.task, at) {
                        self.misstarts.push(misstart);
                    }
                }
                Judge::NonPreemptive => {
                    if let Some(instead_of) = self.passed_by(cpu, job.task, at) {
                        self.misstarts.push(Misstart {
                            instead_of: Some(instead_of),
                            ..misstart
                        });
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether the task was on the CPU just before: its next job has the rest of the quantum.
    fn follows(&self, cpu: CpuId, task: TaskId, at: Instant) -> bool {
        let left = self.left.get(cpu.index()).copied().flatten();
        left.is_some_and(|(last, when)| last == task && at.late_since(when) <= self.window)
    }

    /// A job that waits for the CPU, and should have got it instead of this task's job.
    fn passed_by(&self, cpu: CpuId, task: TaskId, at: Instant) -> Option<JobId> {
        let state = &self.state;
        let mut passed = state.waiting().filter(|&waits| {
            state.tasks[waits.index()].cpus.contains(cpu)
                && state.precedes(waits, task)
                && at.late_since(state.since(waits)) > self.window
        });
        state.ready_job(passed.next()?)
    }

    /// Checks the time until `to`, in which there are no records.
    fn pass(&mut self, to: Instant) {
        let begun = std::mem::replace(&mut self.now, to);
        if begun >= to {
            return;
        }
        self.found.judged += to.late_since((self.decided + self.window).max(begun));
        let wrong = self.wrong();
        self.note_since(begun, &wrong);
        let judged: Vec<(Instant, Wrong)> = wrong
            .iter()
            .map(|it| (self.begin(it), *it))
            .filter(|(begin, _)| *begin + self.window < to)
            .collect();
        let Some(from) = judged.iter().map(|(begin, _)| *begin).min() else {
            let goes_on = |open: &Disagreement| {
                let mut jobs = open.runs.iter().chain(&open.waits);
                jobs.any(|job| wrong.iter().any(|it| it.job == *job))
            };
            if !self.open.as_ref().is_some_and(goes_on) {
                self.close(begun);
            }
            return;
        };
        let idle = self.idle_cpu(&judged);
        if self.open.is_none() {
            self.idled = Span::ZERO;
        }
        let open = self.open.get_or_insert_with(|| Disagreement {
            from,
            ..nothing(DisagreementKind::Set, to)
        });
        open.to = to;
        if let Some(cpu) = idle {
            open.idle.get_or_insert(cpu);
            self.idled += to.late_since(begun.max(open.from));
        }
        if self.idled > self.window {
            open.kind = DisagreementKind::Stall;
        }
        for (_, it) in &judged {
            let jobs = if it.runs {
                &mut open.runs
            } else {
                &mut open.waits
            };
            if !jobs.contains(&it.job) {
                jobs.push(it.job);
            }
        }
    }

    /// Start of the wrong state, or the last decision if that was later.
    fn begin(&self, it: &Wrong) -> Instant {
        let since = since_when(&self.since, it).unwrap_or(self.now);
        let patience = self.window.checked_mul(PATIENCE).unwrap_or(Span::MAX);
        match it.at_once || self.now.late_since(since) > patience {
            true => since,
            false => since.max(self.decided),
        }
    }

    /// Notes the starts of all wrong states.
    fn note_since(&mut self, from: Instant, wrong: &[Wrong]) {
        let before = std::mem::take(&mut self.since);
        let since = wrong.iter().map(|it| {
            let since = since_when(&before, it).unwrap_or(from);
            (it.job.task, it.runs, since)
        });
        self.since = since.collect();
    }

    /// An idle CPU that could run a job that waits wrongly.
    fn idle_cpu(&self, wrong: &[(Instant, Wrong)]) -> Option<CpuId> {
        let mut waits = wrong.iter().filter(|(_, it)| !it.runs);
        waits.find_map(|(_, it)| {
            let cpus = self.state.tasks[it.job.task.index()].cpus & self.state.available();
            cpus.iter()
                .find(|cpu| self.state.cpus[cpu.index()].is_none())
        })
    }

    /// The current deviations from the rule.
    fn wrong(&self) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        let mut add = |job, runs, at_once| wrong.push(Wrong { job, runs, at_once });
        match &self.judge {
            Judge::SameSet(reference) => {
                let mut selected = Vec::new();
                reference.selected(&mut selected);
                let (runs, waits) = self.difference(&selected);
                runs.into_iter().for_each(|job| add(job, true, false));
                waits.into_iter().for_each(|job| add(job, false, false));
            }
            Judge::WeakInvariant => self.passed_over(true, &mut |job, runs| add(job, runs, false)),
            Judge::WorkConserving => {
                self.passed_over(false, &mut |job, runs| add(job, runs, false))
            }
            Judge::NonPreemptive => {
                self.passed_over(false, &mut |job, runs| add(job, runs, false));
                for task in self.state.waiting() {
                    let job = self.state.ready_job(task);
                    if let Some(job) = job.filter(|_| self.state.tasks[task.index()].preempted) {
                        add(job, false, false);
                    }
                }
            }
            Judge::AtBoundaries(..) => {}
        }
        for misstart in &self.misstarts {
            add(misstart.job, true, true);
            let waits = |job: &JobId| self.state.waiting().any(|task| task == job.task);
            if let Some(job) = misstart.instead_of.filter(waits) {
                add(job, false, true);
            }
        }
        for (job, cpu) in self.on_cpus() {
            if !self.state.may_run(job, cpu) && !matches!(self.judge, Judge::SameSet(_)) {
                add(job, true, false);
            }
        }
        wrong
    }

    fn on_cpus(&self) -> impl Iterator<Item = (JobId, CpuId)> + '_ {
        let cpus = self.state.cpus.iter().enumerate();
        let known = |job: &JobId| job.task.index() < self.state.tasks.len();
        cpus.filter_map(move |(cpu, job)| Some((job.filter(known)?, CpuId::from_index(cpu))))
    }

    /// The jobs that run and are not selected, and vice versa, without pairs of equal rank.
    fn difference(&self, selected: &[TaskId]) -> (Vec<JobId>, Vec<JobId>) {
        let rightly =
            |job: JobId, cpu| self.state.may_run(job, cpu) && selected.contains(&job.task);
        let mut runs: Vec<JobId> = self
            .on_cpus()
            .filter(|&(job, cpu)| !rightly(job, cpu))
            .map(|(job, _)| job)
            .collect();
        let waits = selected.iter().filter(|&&task| !self.state.runs(task));
        let mut waits: Vec<JobId> = waits
            .filter_map(|&task| self.state.ready_job(task))
            .collect();
        waits.retain(|waiting| {
            let equal = |job: &JobId| {
                self.state.runs(job.task) && self.state.equals(job.task, waiting.task)
            };
            match runs.iter().position(equal) {
                Some(place) => {
                    runs.swap_remove(place);
                    false
                }
                None => true,
            }
        });
        (runs, waits)
    }

    /// The waiting jobs for which a CPU is idle, or, if `ranks` count, runs a less urgent job.
    fn passed_over(&self, ranks: bool, add: &mut dyn FnMut(JobId, bool)) {
        let available = self.state.available();
        for task in self.state.waiting() {
            let Some(job) = self.state.ready_job(task) else {
                continue;
            };
            for cpu in (self.state.tasks[task.index()].cpus & available).iter() {
                match self.state.cpus[cpu.index()] {
                    None => {
                        add(job, false);
                        break;
                    }
                    Some(other) if ranks && self.state.may_run(other, cpu) => {
                        if self.state.precedes(task, other.task) {
                            add(job, false);
                            add(other, true);
                            break;
                        }
                    }
                    Some(_) => {}
                }
            }
        }
    }

    fn close(&mut self, at: Instant) {
        if let Some(mut open) = self.open.take() {
            open.to = open.to.min(at);
            self.find(open);
        }
    }

    fn find(&mut self, it: Disagreement) {
        let (found, length) = (&mut self.found, it.length());
        found.count += 1;
        found.total += length;
        found.longest = found.longest.max(length);
        if matches!(
            it.kind,
            DisagreementKind::Stall | DisagreementKind::Unnoticed
        ) {
            found.stalls += 1;
            found.longest_stall = found.longest_stall.max(length);
        }
        if found.disagreements.len() < VIOLATIONS_MAX {
            found.disagreements.push(it);
        }
    }
}

/// Start of this deviation of the task's job; `None` if there was none.
fn since_when(known: &[(TaskId, bool, Instant)], it: &Wrong) -> Option<Instant> {
    let same =
        |(task, runs, _): &&(TaskId, bool, Instant)| (*task, *runs) == (it.job.task, it.runs);
    known.iter().find(same).map(|(_, _, since)| *since)
}

/// Whether a spent budget is replenished at the same instant: then the job stays ready.
fn is_replenished_at_once(kind: &RecordKind, rest: &[&Record]) -> bool {
    let RecordKind::BudgetSpent { job } = *kind else {
        return false;
    };
    let mut rest = rest.iter();
    rest.any(
        |record| matches!(record.kind, RecordKind::Replenished { task, .. } if task == job.task),
    )
}

/// A disagreement without jobs that ends at `to`.
const fn nothing(kind: DisagreementKind, to: Instant) -> Disagreement {
    Disagreement {
        kind,
        from: to,
        to,
        runs: Vec::new(),
        waits: Vec::new(),
        idle: None,
    }
}
