//! What the overheads are on the CPUs of one part.

use shiftwork_model::{CpuSet, Overheads, Platform, Span, TaskSet};

use super::{Interrupts, Structure};
use crate::affinity::parts::Part;
use crate::pfair::Quanta;
use crate::verdicts::Rule;

/// The overheads of one part, in nanoseconds.
pub(super) struct Charges {
    /// How many CPUs its tasks have.
    pub cpus: usize,
    pub dedicated: bool,
    /// Handling a release, with the wait for the queue.
    pub release: u128,
    /// How long a dedicated CPU may be busy with releases of others before it comes to one; `None` if it may never
    /// come to it. Zero without such a CPU.
    pub queued: Option<u128>,
    /// Deciding, with the wait for the queue, and switching.
    pub switch: u128,
    pub tick: u128,
    /// Zero on one CPU.
    pub ipi: u128,
    /// The most that refilling caches takes.
    pub refill: u128,
    /// The period of ticks; above zero.
    pub quantum: Span,
}

impl Charges {
    pub fn new(
        set: &TaskSet,
        (rule, structure): (Rule, &Structure),
        part: &Part,
        overheads: &Overheads,
    ) -> Self {
        let tasks = match rule.is_packed() {
            true => part.members.len(),
            false => set.tasks.len(),
        };
        let dedicated = structure.interrupts == Interrupts::Dedicated;
        let at = |cost: &shiftwork_model::LinearCost| u128::from(cost.at(tasks).as_ns());
        let (enqueue, dequeue) = (at(&overheads.enqueue), at(&overheads.dequeue));
        // All that use the ready queue and are told by others.
        let concerned = part.cpus.len() + usize::from(dedicated);
        let others = concerned.saturating_sub(1) as u128;
        let wait = others * enqueue.max(dequeue);
        let quantum = structure.quantum.map(|quanta| quanta.quantum);
        // Whoever is alone is never preempted; but quanta may pause anybody.
        let is_undisturbed = part.members.len() < 2 && quantum.is_none();
        let release = at(&overheads.release) + enqueue + wait;
        Self {
            dedicated,
            release,
            queued: match dedicated {
                true => busy(release, set, part).map(|all| all.saturating_sub(release)),
                false => Some(0),
            },
            switch: at(&overheads.schedule) + dequeue + wait + at(&overheads.switch),
            tick: at(&overheads.tick),
            ipi: match concerned {
                1 => 0,
                _ => at(&overheads.ipi),
            },
            refill: match is_undisturbed {
                true => 0,
                false => refill(overheads, &set.platform, &part.cpus, tasks),
            },
            quantum: quantum.unwrap_or_else(|| Quanta::of(set, false).quantum),
            cpus: part.cpus.len(),
        }
    }
}

/// For how long a CPU that handles all releases of the part may be busy with that at a stretch: the least fixed point of
/// the sum of all ceil(B / T) releases, from one of each task on. `None` if there is none, or it takes long to find.
fn busy(release: u128, set: &TaskSet, part: &Part) -> Option<u128> {
    const ROUNDS: usize = 1_000;
    let periods = || {
        let members = part.members.iter();
        members.map(|&place| u128::from(set.tasks[place].period.as_ns().max(1)))
    };
    let mut stretch = release * part.members.len() as u128;
    for _ in 0..ROUNDS {
        let mut next = 0_u128;
        for period in periods() {
            next = next.checked_add(release.checked_mul(stretch.div_ceil(period))?)?;
        }
        if next <= stretch {
            return Some(stretch);
        }
        stretch = next;
    }
    None
}

/// The largest refill of a job that goes on on one of these CPUs where it left another, or the same.
fn refill(overheads: &Overheads, platform: &Platform, cpus: &CpuSet, tasks: usize) -> u128 {
    let cost = |distance| overheads.cache_cost(distance, tasks).as_ns();
    let pairs = cpus
        .iter()
        .flat_map(|a| cpus.iter().filter(move |&b| a < b).map(move |b| (a, b)));
    let mut distances: Vec<usize> = pairs.map(|(a, b)| platform.cache_distance(a, b)).collect();
    distances.sort_unstable();
    distances.dedup();
    let migrations = distances.into_iter().map(cost);
    u128::from(migrations.fold(cost(0), u64::max))
}
