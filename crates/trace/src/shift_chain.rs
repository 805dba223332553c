//! Shift chains: the CPUs that a waiting job could get if running jobs shifted within their affinities.
//!
//! A waiting job reaches the CPUs of its affinity, and from a CPU that it reaches all CPUs of the affinity of the
//! job that runs there: that job could shift. Such a chain is an alternating path in the affinity graph, whose edges
//! join jobs and the CPUs of their affinities. If it ends on a CPU that is idle or runs a less urgent job, shifts
//! along it give the waiting job a CPU; the strong invariant excludes such chains (Bonifaci et al. 2016, Def. II.2).
//!
//! All searches are breadth first. On m CPUs they visit each CPU once and merge one mask per visit: O(m²/64) steps.

use shiftwork_model::{CPUS_MAX, CpuId, CpuSet, Order, TaskId};

use crate::check::state::{State, TaskState};

const WORDS: usize = CPUS_MAX / 64;

/// The urgency of a job; the smaller key is the more urgent one. Only a strictly more urgent waiting job is a
/// violation, not a tie.
pub(crate) type Key = u64;

/// The key of the ready job of a task. By laxity all are equal unless a checker has [ranked](State::rank) them.
pub(crate) fn key(order: Order, task: &TaskState) -> Key {
    match order.is_by_laxity() {
        true => task.rank_by_laxity,
        false => order.rank(task.deadline, task.priority),
    }
}

/// Whether one of these CPUs is idle, and the key of the least urgent job that runs on them.
pub(crate) fn extremes(order: Order, state: &State, available: &CpuSet) -> (bool, Key) {
    let mut threshold = 0;
    for cpu in available.iter() {
        match state
            .on(cpu)
            .and_then(|job| state.tasks.get(job.task.index()))
        {
            Some(task) => threshold = threshold.max(key(order, task)),
            None => return (true, Key::MAX),
        }
    }
    (false, threshold)
}

/// The best of the reached CPUs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reach {
    /// The first idle CPU.
    pub idle: Option<CpuId>,
    /// The least urgent job that runs on one of them, and its CPU.
    pub least_urgent: Option<(Key, TaskId, CpuId)>,
}

impl Reach {
    /// Examines the reached CPUs; if jobs may shift (`shifts`), also those reachable over any chain of shifts.
    pub fn explore(order: Order, shifts: bool, state: &State, reached: &mut Reached) -> Self {
        let mut reach = Self::default();
        while let Some(cpu) = reached.next() {
            let Some(job) = state.on(cpu) else {
                reach.idle = reach.idle.or(Some(cpu));
                continue;
            };
            let Some(task) = state.tasks.get(job.task.index()) else {
                continue;
            };
            let candidate = (key(order, task), job.task, cpu);
            reach.least_urgent = reach.least_urgent.max(Some(candidate));
            if shifts {
                reached.add(&state.masks[task.mask]);
            }
        }
        reach
    }

    /// The keys of the waiting jobs that could get one of the CPUs: all below this number.
    pub fn limit(&self) -> u128 {
        match (self.idle, self.least_urgent) {
            (Some(_), _) => u128::from(Key::MAX) + 1,
            (None, Some((least, ..))) => u128::from(least),
            (None, None) => 0,
        }
    }

    /// Whether a waiting job of this key could get one of the CPUs: one that is idle or runs a less urgent job.
    pub fn is_open_to(&self, key: Key) -> bool {
        self.idle.is_some() || self.least_urgent.is_some_and(|(least, ..)| key < least)
    }
}

/// The CPUs reached from `from` on a machine with this number of CPUs; `affinity_on` is the affinity of the job
/// that runs on a CPU and could shift.
pub(crate) fn reachable(
    cpus: usize,
    from: &CpuSet,
    affinity_on: impl Fn(CpuId) -> Option<CpuSet>,
) -> CpuSet {
    let mut reached = Reached::new(cpus, &CpuSet::first(cpus));
    reached.add(from);
    let mut all = CpuSet::EMPTY;
    while let Some(cpu) = reached.next() {
        all.insert(cpu);
        if let Some(affinity) = affinity_on(cpu) {
            reached.add(&affinity);
        }
    }
    all
}

/// A shortest chain of at least one shift from `from` to one of `ends`: the CPUs in the order of the chain, each with
/// a job that could shift to the next one. `None` if there is no such chain.
pub(crate) fn shortest(
    cpus: usize,
    from: &CpuSet,
    affinity_on: impl Fn(CpuId) -> Option<CpuSet>,
    ends: &CpuSet,
) -> Option<Vec<CpuId>> {
    let mut reached = Reached::new(cpus, &CpuSet::first(cpus));
    reached.add(from);
    let mut came_from: Vec<Option<CpuId>> = vec![None; cpus];
    while let Some(cpu) = reached.next() {
        if came_from[cpu.index()].is_some() && ends.contains(cpu) {
            let before = |cpu: &CpuId| came_from[cpu.index()];
            let mut chain: Vec<CpuId> = std::iter::successors(Some(cpu), before).collect();
            chain.reverse();
            return Some(chain);
        }
        if let Some(affinity) = affinity_on(cpu) {
            for next in affinity.iter().filter(|&next| reached.is_unseen(next)) {
                came_from[next.index()] = Some(cpu);
            }
            reached.add(&affinity);
        }
    }
    None
}

/// A set of CPUs that grows while it is traversed breadth first, each CPU once. Uses only as many words as the
/// machine has CPUs, which makes small machines fast.
pub(crate) struct Reached {
    words: usize,
    /// CPUs that may still be added.
    unseen: [u64; WORDS],
    /// The CPUs of the current layer that are not visited, and those of the next layer.
    todo: [u64; WORDS],
    later: [u64; WORDS],
}

impl Reached {
    pub fn new(cpus: usize, available: &CpuSet) -> Self {
        Self {
            words: cpus.div_ceil(64),
            unseen: *available.words(),
            todo: [0; WORDS],
            later: [0; WORDS],
        }
    }

    pub fn add(&mut self, cpus: &CpuSet) {
        for word in 0..self.words {
            let fresh = cpus.words()[word] & self.unseen[word];
            self.unseen[word] &= !fresh;
            self.later[word] |= fresh;
        }
    }

    fn is_unseen(&self, cpu: CpuId) -> bool {
        self.unseen[cpu.index() / 64] >> (cpu.index() % 64) & 1 == 1
    }

    fn next(&mut self) -> Option<CpuId> {
        let unvisited = |words: &[u64]| words.iter().position(|&word| word != 0);
        let word = unvisited(&self.todo[..self.words]).or_else(|| {
            let (todo, later) = (&mut self.todo[..self.words], &mut self.later[..self.words]);
            todo.swap_with_slice(later);
            unvisited(todo)
        })?;
        let bit = self.todo[word].trailing_zeros() as usize;
        self.todo[word] &= self.todo[word] - 1;
        CpuId::new(word * 64 + bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cpu;
    use shiftwork_model::RandomStream;

    /// The definition, by exhaustion: a CPU is reached if some path of distinct CPUs leads to it.
    fn distances(cpus: usize, from: &CpuSet, affinities: &[Option<CpuSet>]) -> Vec<Option<usize>> {
        fn walk(
            at: CpuId,
            shifts: usize,
            affinities: &[Option<CpuSet>],
            found: &mut [Option<usize>],
        ) {
            if found[at.index()].is_some_and(|known| known <= shifts) {
                return;
            }
            found[at.index()] = Some(shifts);
            for next in affinities[at.index()].iter().flat_map(CpuSet::iter) {
                walk(next, shifts + 1, affinities, found);
            }
        }
        let mut found = vec![None; cpus];
        from.iter()
            .for_each(|start| walk(start, 0, affinities, &mut found));
        found
    }

    #[test]
    fn reachable_cpus_and_shortest_chains_are_those_of_the_definition() {
        for seed in 1..=500 {
            let mut random = RandomStream::new(seed, 0, 0);
            let cpus = 1 + random.below(7) as usize;
            let mut mask = || {
                let bits = random.below(1 << cpus) & random.below(1 << cpus);
                CpuSet::from_bits(bits)
            };
            let from = mask();
            let affinities: Vec<Option<CpuSet>> = (0..cpus)
                .map(|_| Some(mask()).filter(|mask| !mask.is_empty()))
                .collect();
            let affinity_on = |cpu: CpuId| affinities[cpu.index()];
            let distances = distances(cpus, &from, &affinities);
            let reached = reachable(cpus, &from, affinity_on);
            for (index, distance) in distances.iter().enumerate() {
                let to = cpu(index);
                assert_eq!(reached.contains(to), distance.is_some(), "seed {seed}");
                let chain = shortest(cpus, &from, affinity_on, &CpuSet::single(to));
                let shifts = chain.as_ref().map(|chain| chain.len() - 1);
                assert_eq!(shifts, distance.filter(|&shifts| shifts > 0), "seed {seed}");
                let Some(chain) = chain else { continue };
                assert!(from.contains(chain[0]) && chain.last() == Some(&to));
                let is_shift =
                    |pair: &[CpuId]| affinity_on(pair[0]).is_some_and(|it| it.contains(pair[1]));
                assert!(chain.windows(2).all(is_shift), "seed {seed}");
            }
        }
    }
}
