//! What the overheads are on the CPUs of one part.

use shiftwork_model::{
    CpuId, CpuSet, Interrupts, Overheads, Platform, PolicyTraits, Span, TaskSet,
};

use super::Structure;
use crate::Sporadic;
use crate::policy::is_packed;

/// The overheads of one part, in nanoseconds.
pub(crate) struct Charges {
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

/// The properties of a set of CPUs that overheads depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub cpus: usize,
    /// How far any two of them are apart, each distance once.
    distances: Vec<usize>,
}

impl Site {
    pub fn new(platform: &Platform, cpus: &CpuSet) -> Self {
        Self {
            cpus: cpus.len(),
            distances: distances(platform, cpus),
        }
    }
}

impl Charges {
    /// With so many members. That a dedicated CPU may be busy with releases of others is still to be said.
    pub fn new(
        set: &TaskSet,
        (policy, structure): (&PolicyTraits, &Structure),
        (site, members): (&Site, usize),
        overheads: &Overheads,
    ) -> Self {
        let tasks = match is_packed(policy) {
            true => members,
            false => set.tasks.len(),
        };
        let dedicated = structure.interrupts != Interrupts::Global;
        let at = |cost: &shiftwork_model::LinearCost| u128::from(cost.at(tasks).as_ns());
        let (enqueue, dequeue) = (at(&overheads.enqueue), at(&overheads.dequeue));
        // All CPUs that use the ready queue and receive reschedule interrupts.
        let concerned = site.cpus + usize::from(dedicated);
        let others = concerned.saturating_sub(1) as u128;
        let wait = others * enqueue.max(dequeue);
        let quantum = structure.quantum.map(|quanta| quanta.quantum);
        // A task alone on its CPUs is never preempted; but quanta may interrupt any task.
        let is_undisturbed = members < 2 && quantum.is_none();
        Self {
            dedicated,
            release: at(&overheads.release) + enqueue + wait,
            queued: Some(0),
            switch: at(&overheads.schedule) + dequeue + wait + at(&overheads.switch),
            tick: at(&overheads.tick),
            ipi: match concerned {
                1 => 0,
                _ => at(&overheads.ipi),
            },
            refill: match is_undisturbed {
                true => 0,
                false => refill(overheads, &site.distances, tasks),
            },
            quantum: quantum.unwrap_or_else(|| set.scheduler.quantum_or_default()),
            cpus: site.cpus,
        }
    }

    /// The same where these are the members.
    pub fn of_members(mut self, tasks: &[Sporadic]) -> Self {
        if self.dedicated {
            let all = busy(self.release, tasks);
            self.queued = all.map(|all| all.saturating_sub(self.release));
        }
        self
    }
}

/// For how long a CPU that handles all releases of the part may be busy with that at a stretch: the least fixed point of
/// the sum of all ceil(B / T) releases, from one of each task on. `None` if there is none, or it takes long to find.
fn busy(release: u128, tasks: &[Sporadic]) -> Option<u128> {
    const ROUNDS: usize = 1_000;
    let periods = || tasks.iter().map(|task| task.period_ns().max(1));
    let mut stretch = release * tasks.len() as u128;
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

/// The largest refill of a job that goes on this far from where it was, or where it was.
fn refill(overheads: &Overheads, distances: &[usize], tasks: usize) -> u128 {
    let cost = |distance: &usize| overheads.cache_cost(*distance, tasks).as_ns();
    u128::from(distances.iter().map(cost).fold(cost(&0), u64::max))
}

/// How far apart any two of these CPUs are ([`Platform::cache_distance`]), each distance once, ascending.
///
/// O(g log g + s) for g groups that share a cache, with s CPUs in all, rather than looking at all pairs.
fn distances(platform: &Platform, cpus: &CpuSet) -> Vec<usize> {
    let mut distances = Vec::new();
    if cpus.len() < 2 {
        return distances;
    }
    let mut groups: Vec<(usize, &CpuSet)> = platform
        .caches
        .iter()
        .map(|group| (group.len(), group))
        .collect();
    groups.sort_unstable_by_key(|&(size, _)| size);
    // By CPU: itself and those that are no farther than the groups until now.
    let mut near: Vec<CpuSet> = Vec::new();
    let mut rank = 0;
    for of_size in groups.chunk_by(|(size, _), (next, _)| size == next) {
        rank += 1;
        let mut found = false;
        for (_, group) in of_size {
            let group = **group & *cpus;
            for cpu in group.iter() {
                near_of(&mut near, cpu);
                found |= !group.is_subset(&near[cpu.index()]);
                near[cpu.index()] = near[cpu.index()] | group;
            }
        }
        if found {
            distances.push(rank);
        }
    }
    let is_far = |cpu: CpuId| {
        near.get(cpu.index())
            .is_none_or(|near| !cpus.is_subset(near))
    };
    if cpus.iter().any(is_far) {
        distances.push(rank + 1);
    }
    distances
}

/// Every CPU is near itself.
fn near_of(near: &mut Vec<CpuSet>, cpu: CpuId) {
    while near.len() <= cpu.index() {
        near.push(CpuSet::single(CpuId::from_index(near.len())));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use shiftwork_model::RandomStream;

    use super::*;

    #[test]
    fn distances_are_those_of_all_pairs() {
        for seed in 0..300 {
            let mut stream = RandomStream::new(seed, 89, 0);
            let mut platform = Platform::uniform(1 + stream.below(9) as usize);
            let mut some = |platform: &Platform| -> CpuSet {
                let all = platform.all();
                all.iter().filter(|_| stream.below(2) == 0).collect()
            };
            let count = seed % 6;
            platform.caches = (0..count).map(|_| some(&platform)).collect();
            let cpus = some(&platform);
            let pairs = cpus.iter().flat_map(|a| cpus.iter().map(move |b| (a, b)));
            let apart = pairs.filter(|(a, b)| a != b);
            let expected: BTreeSet<usize> =
                apart.map(|(a, b)| platform.cache_distance(a, b)).collect();
            let found = distances(&platform, &cpus);
            assert_eq!(
                found,
                Vec::from_iter(expected),
                "seed {seed}: {platform:?}, {cpus}"
            );
        }
    }
}
