//! The reasons why a ready job does not run.

use shiftwork_model::{CpuId, CpuSet, Instant, Invariant, JobId};

use super::timeline::Occupant;
use super::walk::{Piece, Walk};
use super::{Culprit, Part};
use crate::shift_chain::{self, Key, key};

/// The pieces of an interval without events in which the task's job was ready and did not run.
pub(super) fn pieces(walk: &Walk<'_>, number: u64, from: Instant, to: Instant) -> Vec<Piece> {
    let contention = Contention::of(walk);
    let piece = |from, to, part, without| Piece {
        from,
        to,
        number,
        part,
        without,
        is_by_newcomer: contention.has_newcomer(),
    };
    if let Some((part, culprit)) = contention.open() {
        return vec![piece(from, to, part, vec![(culprit, CpuSet::EMPTY)])];
    }
    let mut cuts = contention.cuts(from, to);
    cuts.push(to);
    let mut pieces = Vec::new();
    let mut at = from;
    for next in cuts {
        let (part, without) = contention.blocked(at);
        pieces.push(piece(at, next, part, without));
        at = next;
    }
    pieces
}

/// A job on a CPU that the waiting job could have got.
struct Competitor {
    cpu: CpuId,
    job: JobId,
    key: Key,
    /// Start of its execution, and the instant at which it has executed its cost.
    crossings: [Instant; 2],
}

/// The CPUs on which the job could have run, and the jobs there.
struct Contention<'a> {
    walk: &'a Walk<'a>,
    key: Key,
    /// The CPUs that it could have got, also over shifts if the policy makes them.
    reached: CpuSet,
    competitors: Vec<Competitor>,
    is_one_idle: bool,
}

impl<'a> Contention<'a> {
    fn of(walk: &'a Walk<'a>) -> Self {
        let task = &walk.state.tasks[walk.job.task.index()];
        let own = own(walk) & CpuSet::first(walk.state.cpus());
        let reached = match walk.contract.invariant {
            Invariant::Strong => over_shifts(walk, own),
            _ => own,
        };
        let rival_on = |cpu| match walk.occupant(cpu) {
            Occupant::Job(job) => competitor(walk, cpu, job),
            _ => None,
        };
        Self {
            walk,
            key: key(walk.contract.order, task),
            reached,
            competitors: reached.iter().filter_map(rival_on).collect(),
            is_one_idle: reached
                .iter()
                .any(|cpu| walk.occupant(cpu) == Occupant::Idle),
        }
    }

    /// Whether a CPU was available to the job, and whether that violates the policy's promise.
    fn open(&self) -> Option<(Part, Culprit)> {
        let invariant = self.walk.contract.invariant;
        let is_wronged = match invariant {
            Invariant::Weak | Invariant::Strong | Invariant::Packed => {
                self.is_one_idle || self.is_one_less_urgent()
            }
            Invariant::NonPreemptive | Invariant::PushPull => self.is_one_idle,
            Invariant::Quanta => false,
        };
        if is_wronged {
            Some((Part::Stalled, Culprit::Stall))
        } else if self.is_one_idle || self.is_one_less_urgent() {
            Some((Part::HeldBack, Culprit::Rule))
        } else {
            None
        }
    }

    fn has_newcomer(&self) -> bool {
        let mut competitors = self.competitors.iter();
        competitors.any(|competitor| self.walk.is_newcomer(competitor.job))
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

    /// The CPUs that it could not get, and that did not run a more urgent job.
    fn narrow(&self) -> Vec<(Culprit, CpuSet)> {
        let state = &self.walk.state;
        let others = state.available() - self.reached;
        let is_free = |cpu: &CpuId| match self.walk.occupant(*cpu) {
            Occupant::Idle => true,
            Occupant::Job(job) => state
                .tasks
                .get(job.task.index())
                .is_some_and(|task| self.key < key(self.walk.contract.order, task)),
            Occupant::Offline | Occupant::Taken | Occupant::Background => false,
        };
        let free: CpuSet = others.iter().filter(is_free).collect();
        let affinity = state.tasks[self.walk.job.task.index()].affinity;
        let (inside, outside) = (free & affinity, free - affinity);
        let shifted = match self.walk.contract.invariant {
            Invariant::Weak | Invariant::PushPull => free & over_shifts(self.walk, self.reached),
            // The policy makes shifts, or has another rule.
            _ => CpuSet::EMPTY,
        };
        [
            (Culprit::NoShift, shifted),
            (Culprit::NarrowPacking, inside),
            (Culprit::NarrowAffinity, outside),
        ]
        .into_iter()
        .filter(|(_, cpus)| !cpus.is_empty())
        .collect()
    }
}

/// The CPUs that the policy lets the task use.
fn own(walk: &Walk<'_>) -> CpuSet {
    let task = walk.job.task.index();
    let affinity = walk.state.tasks[task].affinity;
    let packing = walk.contract.packing.as_ref();
    let packed = packing.and_then(|packing| packing.get(task));
    match packed.map(|packed| *packed.cpus() & affinity) {
        // A change of affinity may have moved the task out of its original packing.
        Some(cpus) if !cpus.is_empty() && walk.contract.invariant == Invariant::Packed => cpus,
        _ => affinity,
    }
}

/// These CPUs, and those to which the jobs there could shift, transitively.
fn over_shifts(walk: &Walk<'_>, from: CpuSet) -> CpuSet {
    let affinity_on = |cpu| match walk.occupant(cpu) {
        Occupant::Job(job) => walk.state.tasks.get(job.task.index()),
        _ => None,
    };
    shift_chain::reachable(walk.state.cpus(), &from, |cpu| {
        affinity_on(cpu).map(|task| task.affinity)
    })
}

fn competitor(walk: &Walk<'_>, cpu: CpuId, job: JobId) -> Option<Competitor> {
    let task = walk.state.tasks.get(job.task.index())?;
    let history = &walk.histories[job.task.index()];
    let [begins, crosses] = history
        .crossings(walk.state.now())
        .unwrap_or([Instant::ZERO, Instant::NEVER]);
    Some(Competitor {
        cpu,
        job,
        key: key(walk.contract.order, task),
        crossings: [
            begins,
            if walk.are_cpus_alike {
                crosses
            } else {
                Instant::NEVER
            },
        ],
    })
}
