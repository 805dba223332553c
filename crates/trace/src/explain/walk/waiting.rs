//! The reasons why a ready job does not run.

use shiftwork_model::{CpuId, CpuSet, Instant, Invariant, JobId, TaskId};

use super::Walk;
use crate::check::state::TaskState;
use crate::explain::late_job::{Move, ShiftChain};
use crate::explain::piece::Piece;
use crate::explain::timeline::Occupant;
use crate::explain::{Culprit, Part};
use crate::shift_chain::{self, Key};

/// A job on a CPU that the waiting job could have got.
struct Competitor {
    cpu: CpuId,
    job: JobId,
    key: Key,
    release: Instant,
    /// Start of its execution, and the instant at which it has executed its cost.
    crossings: [Instant; 2],
}

/// The CPUs on which the ready job of a task could have run, and the jobs there.
pub(super) struct Contention<'a> {
    walk: &'a Walk<'a>,
    task: &'a TaskState,
    key: Key,
    /// The CPUs that the policy lets it use.
    own: CpuSet,
    /// The CPUs that it could have got, also over shifts if the policy makes them.
    reached: CpuSet,
    competitors: Vec<Competitor>,
    is_one_idle: bool,
}

impl<'a> Contention<'a> {
    pub fn of(walk: &'a Walk<'a>, id: TaskId) -> Self {
        let task = &walk.state.tasks[id.index()];
        let own = own(walk, id) & CpuSet::first(walk.state.cpus());
        let reached = match walk.invariant() {
            Some(Invariant::Strong) => over_shifts(walk, &own),
            _ => own,
        };
        let competitor_on = |cpu| match walk.occupant(cpu) {
            Occupant::Job(job) => competitor(walk, cpu, job),
            _ => None,
        };
        let mut competitors = Vec::with_capacity(walk.state.cpus());
        competitors.extend(reached.iter().filter_map(competitor_on));
        Self {
            walk,
            task,
            key: walk.key(task),
            own,
            reached,
            competitors,
            is_one_idle: reached
                .iter()
                .any(|cpu| walk.occupant(cpu) == Occupant::Idle),
        }
    }

    /// The pieces of an interval without events in which the job was ready and did not run.
    pub fn pieces(&self, number: u64, from: Instant, to: Instant) -> Vec<Piece> {
        let releases = self.competitors.iter().map(|competitor| competitor.release);
        let youngest = releases.max().unwrap_or(Instant::ZERO);
        let piece = |from, to, part, without| Piece {
            from,
            to,
            number,
            part,
            without,
            youngest,
        };
        if let Some((part, culprit)) = self.open() {
            return vec![piece(from, to, part, vec![(culprit, CpuSet::EMPTY)])];
        }
        let mut cuts = self.cuts(from, to);
        cuts.push(to);
        let mut pieces = Vec::new();
        let mut at = from;
        for next in cuts {
            let (part, without) = self.blocked(at);
            pieces.push(piece(at, next, part, without));
            at = next;
        }
        pieces
    }

    /// Appends the tasks on the CPUs that the policy lets the job use.
    pub fn add_blockers(&self, blockers: &mut Vec<(TaskId, CpuId)>) {
        let own = self
            .competitors
            .iter()
            .filter(|it| self.own.contains(it.cpu));
        // At every switch anywhere: growing step by step takes long.
        blockers.reserve(self.competitors.len());
        blockers.extend(own.map(|competitor| (competitor.job.task, competitor.cpu)));
    }

    /// A shortest shift chain to a CPU that is idle or runs a less urgent job.
    pub fn chain(&self) -> Option<ShiftChain> {
        let job_on = |cpu| match self.walk.occupant(cpu) {
            Occupant::Job(job) => Some(job),
            _ => None,
        };
        let (cpus, free) = (self.walk.state.cpus(), self.free());
        let chain = shift_chain::shortest(
            cpus,
            &self.reached,
            |cpu| affinity_on(self.walk, cpu),
            &free,
        )?;
        let shift = |pair: &[CpuId]| {
            let (from, to) = (pair[0], pair[1]);
            job_on(from).map(|job| Move { job, from, to })
        };
        Some(ShiftChain {
            moves: chain.windows(2).rev().filter_map(shift).collect(),
            displaced: chain.last().and_then(|&cpu| job_on(cpu)),
        })
    }

    /// Whether a CPU was available to the job, and whether that violates the policy's promise.
    fn open(&self) -> Option<(Part, Culprit)> {
        let is_one_less_urgent = self.is_one_less_urgent();
        let is_wronged = match self.walk.invariant() {
            Some(Invariant::Weak | Invariant::Strong | Invariant::Packed) => {
                self.is_one_idle || is_one_less_urgent
            }
            Some(Invariant::NonPreemptive | Invariant::PushPull) => self.is_one_idle,
            Some(Invariant::Quanta) | None => false,
        };
        if is_wronged {
            Some((Part::Stalled, Culprit::Stall))
        } else if self.is_one_idle || is_one_less_urgent {
            Some((Part::HeldBack, Culprit::Rule))
        } else {
            None
        }
    }

    fn is_one_less_urgent(&self) -> bool {
        self.competitors
            .iter()
            .any(|competitor| self.key < competitor.key)
    }

    /// The instants within the interval at which competitors begin to execute or to overrun; ascending.
    fn cuts(&self, from: Instant, to: Instant) -> Vec<Instant> {
        let crossings = self
            .competitors
            .iter()
            .flat_map(|competitor| competitor.crossings);
        let mut cuts: Vec<Instant> = crossings.filter(|&at| from < at && at < to).collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }

    /// The part to charge from this instant on, if all CPUs run more urgent jobs or are away; and all culprits
    /// without which the job would have run.
    fn blocked(&self, at: Instant) -> (Part, Vec<(Culprit, CpuSet)>) {
        let mut without: Vec<(Culprit, CpuSet)> = Vec::new();
        let mut add = |culprit, cpu| match without.iter_mut().find(|(it, _)| *it == culprit) {
            Some((_, cpus)) => cpus.insert(cpu),
            None => without.push((culprit, CpuSet::single(cpu))),
        };
        for cpu in self.reached.iter() {
            match self.walk.occupant(cpu) {
                Occupant::Taken => add(Culprit::CpuTaken, cpu),
                Occupant::Offline => add(Culprit::CpuOffline, cpu),
                Occupant::Background => add(Culprit::Reserve, cpu),
                Occupant::Idle | Occupant::Job(_) => {}
            }
        }
        for competitor in &self.competitors {
            let [begins, crosses] = competitor.crossings;
            add(
                match at {
                    _ if at < begins => Culprit::Interrupts,
                    _ if at >= crosses => Culprit::Overrun(competitor.job.task),
                    _ => Culprit::Overload,
                },
                competitor.cpu,
            );
        }
        let part = self.part(at, &without);
        if matches!(part, Part::MoreUrgent(_)) {
            without.extend(self.narrow());
        }
        (part, without)
    }

    /// Unavailable CPUs and overruns come first; of several jobs the least urgent one.
    fn part(&self, at: Instant, without: &[(Culprit, CpuSet)]) -> Part {
        let has = |culprit| without.iter().any(|(other, _)| *other == culprit);
        let least = |competitors: &mut dyn Iterator<Item = &Competitor>| {
            let last = competitors.max_by_key(|competitor| (competitor.key, competitor.job.task));
            last.map(|competitor| competitor.job.task)
        };
        let overruns = &mut self
            .competitors
            .iter()
            .filter(|competitor| at >= competitor.crossings[1]);
        if has(Culprit::CpuTaken) {
            Part::Taken
        } else if has(Culprit::CpuOffline) {
            Part::Offline
        } else if has(Culprit::Reserve) {
            Part::Background
        } else if let Some(task) = least(overruns) {
            Part::Overrun(task)
        } else {
            match least(&mut self.competitors.iter()) {
                Some(task) => Part::MoreUrgent(task),
                // None of its CPUs is in the platform.
                None => Part::Offline,
            }
        }
    }

    /// The CPUs that it could not get, and that were idle or ran less urgent jobs.
    fn free(&self) -> CpuSet {
        let state = &self.walk.state;
        let others = state.available() - self.reached;
        let is_free = |cpu: &CpuId| match self.walk.occupant(*cpu) {
            Occupant::Idle => true,
            Occupant::Job(job) => state
                .tasks
                .get(job.task.index())
                .is_some_and(|task| self.key < self.walk.key(task)),
            Occupant::Offline | Occupant::Taken | Occupant::Background => false,
        };
        others.iter().filter(is_free).collect()
    }

    fn narrow(&self) -> Vec<(Culprit, CpuSet)> {
        let free = self.free();
        let affinity = self.task.affinity;
        let shifted = match self.walk.invariant() {
            Some(Invariant::Weak | Invariant::PushPull) | None => {
                free & over_shifts(self.walk, &self.reached)
            }
            // The policy makes shifts, or has another rule.
            _ => CpuSet::EMPTY,
        };
        [
            (Culprit::NoShift, shifted),
            (Culprit::NarrowPacking, free & affinity),
            (Culprit::NarrowAffinity, free - affinity),
        ]
        .into_iter()
        .filter(|(_, cpus)| !cpus.is_empty())
        .collect()
    }
}

/// The CPUs that the policy lets the task use.
pub(super) fn own(walk: &Walk<'_>, task: TaskId) -> CpuSet {
    let affinity = walk.state.tasks[task.index()].affinity;
    let packing = walk.contract.and_then(|contract| contract.packing.as_ref());
    let packed = packing.and_then(|packing| packing.get(task.index()));
    match packed.map(|packed| *packed.cpus() & affinity) {
        // A change of affinity may have moved the task out of its original packing.
        Some(cpus) if !cpus.is_empty() => cpus,
        _ => affinity,
    }
}

/// The affinity of the job on the CPU.
fn affinity_on(walk: &Walk<'_>, cpu: CpuId) -> Option<CpuSet> {
    match walk.occupant(cpu) {
        Occupant::Job(job) => Some(walk.state.tasks.get(job.task.index())?.affinity),
        _ => None,
    }
}

/// These CPUs, and those to which the jobs there could shift, transitively.
fn over_shifts(walk: &Walk<'_>, from: &CpuSet) -> CpuSet {
    shift_chain::reachable(walk.state.cpus(), from, |cpu| affinity_on(walk, cpu))
}

fn competitor(walk: &Walk<'_>, cpu: CpuId, job: JobId) -> Option<Competitor> {
    let task = walk.state.tasks.get(job.task.index())?;
    let history = &walk.histories[job.task.index()];
    let [begins, crosses] = history
        .crossings(walk.state.now())
        .unwrap_or([Instant::ZERO, Instant::NEVER]);
    let crosses = if walk.are_cpus_alike {
        crosses
    } else {
        Instant::NEVER
    };
    Some(Competitor {
        cpu,
        job,
        key: walk.key(task),
        release: history.release_of(job.number),
        crossings: [begins, crosses],
    })
}
