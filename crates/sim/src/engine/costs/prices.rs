//! The costs of scheduling on each CPU: the overheads of a policy, for the number of tasks that its scheduler
//! handles there.

use shiftwork_model::{CpuId, CpuSet, Overheads, Platform, Span};

/// The costs of scheduling on some CPUs.
pub(crate) struct Prices {
    pub(crate) release: Span,
    pub(crate) schedule: Span,
    pub(crate) switch: Span,
    pub(crate) tick: Span,
    pub(crate) ipi: Span,
    preemption: Span,
    /// The cost of a migration inside each group, smallest groups first.
    inside: Vec<(CpuSet, Span)>,
    /// The cost of a migration between CPUs that share nothing.
    outside: Span,
}

impl Prices {
    /// The costs of a scheduler that handles `tasks` tasks.
    pub(crate) fn new(overheads: &Overheads, platform: &Platform, tasks: usize) -> Self {
        let mut groups = platform.caches.clone();
        groups.sort_by_key(CpuSet::len);
        let mut sizes: Vec<usize> = groups.iter().map(CpuSet::len).collect();
        sizes.dedup();
        let rank = |group: &CpuSet| 1 + sizes.partition_point(|&size| size < group.len());
        let inside = groups
            .iter()
            .map(|group| (*group, overheads.cache_cost(rank(group), tasks)));
        Self {
            release: overheads.release.at(tasks),
            schedule: overheads.schedule.at(tasks),
            switch: overheads.switch.at(tasks),
            tick: overheads.tick.at(tasks),
            ipi: overheads.ipi.at(tasks),
            preemption: overheads.cache_cost(0, tasks),
            inside: inside.collect(),
            outside: overheads.cache_cost(1 + sizes.len(), tasks),
        }
    }

    /// Time that a preempted job needs to refill its caches when it resumes.
    pub(crate) fn refill(&self, from: CpuId, to: CpuId) -> Span {
        if from == to {
            return self.preemption;
        }
        let shared = |group: &&(CpuSet, Span)| group.0.contains(from) && group.0.contains(to);
        self.inside
            .iter()
            .find(shared)
            .map_or(self.outside, |&(_, cost)| cost)
    }
}

/// The prices on each CPU. `bound` is the packing of policies that pack tasks; without it one scheduler handles
/// all tasks.
pub(crate) fn on_each_cpu(
    overheads: &Overheads,
    platform: &Platform,
    tasks: usize,
    bound: Option<&[CpuSet]>,
) -> (Vec<Prices>, Vec<usize>) {
    let handled = |cpu: CpuId| match bound {
        None => tasks,
        Some(bound) => bound.iter().filter(|cpus| cpus.contains(cpu)).count(),
    };
    let counts: Vec<usize> = (0..platform.cpus)
        .map(|cpu| handled(CpuId::from_index(cpu)))
        .collect();
    let mut distinct = counts.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let prices = distinct
        .iter()
        .map(|&tasks| Prices::new(overheads, platform, tasks));
    let place = |count: &usize| distinct.partition_point(|other| other < count);
    (prices.collect(), counts.iter().map(place).collect())
}
