//! Whether the affinities of a task set leave enough room for every task.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::ops::{AddAssign, SubAssign};

use num_bigint::BigUint;
use shiftwork_model::{CapacitySum, CpuSet, TaskSet, first_overlap};

/// Whether the CPUs can be shared such that every task gets its utilization, none more than one CPU
/// at a time. Exact, without floating point.
///
/// For implicit deadlines this is feasibility; for others it is necessary only. The reserve does not
/// count.
///
/// # Cost
/// For laminar affinities O(n d) for d distinct affinities. For others a maximum flow, with exact
/// fractions only where 64 binary places cannot decide.
///
/// # Source
/// S. Baruah, B. Brandenburg, "Multiprocessor feasibility analysis of recurrent task systems with
/// specified processor affinities", RTSS 2013; the sums for laminar families: Bonifaci et al. 2016.
pub fn is_feasible(set: &TaskSet) -> bool {
    if set
        .tasks
        .iter()
        .any(|task| task.utilization().exceeds_one())
    {
        return false;
    }
    let mut demands: BTreeMap<CpuSet, CapacitySum> = BTreeMap::new();
    for task in &set.tasks {
        demands.entry(*task.affinity.cpus()).or_default();
    }
    let masks: Vec<CpuSet> = demands.keys().copied().collect();
    if first_overlap(&masks).is_none() {
        return masks.iter().all(|mask| has_room(set, mask));
    }
    match flow_in_fixed_point(set, &masks) {
        Some(answer) => answer,
        None => flow_exactly(set, &masks),
    }
}

/// Whether the tasks that may only use CPUs of `mask` fit there.
fn has_room(set: &TaskSet, mask: &CpuSet) -> bool {
    let mut inside = set
        .tasks
        .iter()
        .filter(|task| task.affinity.cpus().is_subset(mask))
        .map(|task| task.utilization());
    let Some(first) = inside.next() else {
        return true;
    };
    let mut sum = CapacitySum::default();
    for utilization in inside {
        sum.add(utilization);
    }
    sum.fits(first, mask.len() as u64)
}

/// The sums of the utilizations per mask, in units of 2^-64 and rounded down; also how many tasks
/// each sum has, which bounds what rounding lost.
fn fixed_point_demands(set: &TaskSet, masks: &[CpuSet]) -> Vec<(u128, u128)> {
    let demand = |mask: &CpuSet| {
        let mut sum = CapacitySum::default();
        let mut tasks = 0;
        for task in set.tasks.iter().filter(|task| task.affinity.cpus() == mask) {
            sum.add(task.utilization());
            tasks += 1;
        }
        (sum.floor(), tasks)
    };
    masks.iter().map(demand).collect()
}

/// The answer if 64 binary places are enough to know it.
fn flow_in_fixed_point(set: &TaskSet, masks: &[CpuSet]) -> Option<bool> {
    let demands = fixed_point_demands(set, masks);
    let cpu: u128 = 1 << 64;
    let above = demands
        .iter()
        .map(|&(floor, tasks)| floor + tasks)
        .collect();
    if Flow::new(masks, above, set.platform.cpus, &cpu, 0).saturates() {
        return Some(true);
    }
    let below = demands.iter().map(|&(floor, _)| floor).collect();
    match Flow::new(masks, below, set.platform.cpus, &cpu, 0).saturates() {
        false => Some(false),
        true => None,
    }
}

/// The answer with every utilization multiplied by a common multiple of the periods.
fn flow_exactly(set: &TaskSet, masks: &[CpuSet]) -> bool {
    let mut periods: Vec<u64> = set.tasks.iter().map(|task| task.period.as_ns()).collect();
    periods.sort_unstable();
    periods.dedup();
    let common = periods.iter().fold(BigUint::from(1u8), |common, &period| {
        let rest = &common % period;
        let shared = gcd(
            u64::try_from(rest).expect("a remainder is below its divisor"),
            period,
        );
        common * (period / shared)
    });
    let demand = |mask: &CpuSet| {
        let tasks = set.tasks.iter().filter(|task| task.affinity.cpus() == mask);
        tasks.fold(BigUint::from(0u8), |sum, task| {
            sum + &common / task.period.as_ns() * task.cost.as_ns()
        })
    };
    let demands = masks.iter().map(demand).collect();
    Flow::new(
        masks,
        demands,
        set.platform.cpus,
        &common,
        BigUint::from(0u8),
    )
    .saturates()
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

/// What flows: any exact number.
trait Amount: Clone + Ord + for<'a> AddAssign<&'a Self> + for<'a> SubAssign<&'a Self> {}
impl<T: Clone + Ord + for<'a> AddAssign<&'a T> + for<'a> SubAssign<&'a T>> Amount for T {}

/// A flow from masks to the CPUs in them.
///
/// Invariant: `sent[m][c]` sums over c to what mask m has got rid of, over m to `cpu - room[c]`.
struct Flow<'a, A> {
    masks: &'a [CpuSet],
    /// What each mask still has to get rid of.
    left: Vec<A>,
    /// What each CPU can still take.
    room: Vec<A>,
    /// What each CPU takes from each mask.
    sent: Vec<Vec<A>>,
    zero: A,
}

impl<'a, A: Amount> Flow<'a, A> {
    fn new(masks: &'a [CpuSet], left: Vec<A>, cpus: usize, cpu: &A, zero: A) -> Self {
        Self {
            masks,
            left,
            room: vec![cpu.clone(); cpus],
            sent: vec![vec![zero.clone(); cpus]; masks.len()],
            zero,
        }
    }

    /// Whether everything can be sent: augments along shortest paths (Edmonds and Karp) from one
    /// mask after the other. What one mask has got rid of is never taken back, only rerouted.
    fn saturates(&mut self) -> bool {
        for mask in 0..self.masks.len() {
            while self.left[mask] > self.zero {
                if !self.augment(mask) {
                    return false;
                }
            }
        }
        true
    }

    /// Sends as much as fits along a shortest path from `source` to a CPU with room.
    fn augment(&mut self, source: usize) -> bool {
        let Some(path) = self.shortest_path(source) else {
            return false;
        };
        let last = path[path.len() - 1].1;
        let mut amount = self.left[source].clone().min(self.room[last].clone());
        for pair in path.windows(2) {
            // The next mask sends less to this CPU, to make room for the mask before it.
            amount = amount.min(self.sent[pair[1].0][pair[0].1].clone());
        }
        self.left[source] -= &amount;
        self.room[last] -= &amount;
        for (step, &(mask, cpu)) in path.iter().enumerate() {
            self.sent[mask][cpu] += &amount;
            if let Some(&(next, _)) = path.get(step + 1) {
                self.sent[next][cpu] -= &amount;
            }
        }
        true
    }

    /// The steps (mask, CPU) of a shortest path to a CPU with room, first to last.
    fn shortest_path(&self, source: usize) -> Option<Vec<(usize, usize)>> {
        let mut came_from: Vec<Option<usize>> = vec![None; self.room.len()];
        let mut reached_by: Vec<Option<usize>> = vec![None; self.masks.len()];
        let mut reached = vec![false; self.masks.len()];
        reached[source] = true;
        let mut open = VecDeque::from([source]);
        while let Some(mask) = open.pop_front() {
            for cpu in self.masks[mask].iter().map(|cpu| cpu.index()) {
                if came_from[cpu].is_some() {
                    continue;
                }
                came_from[cpu] = Some(mask);
                if self.room[cpu] > self.zero {
                    return Some(trace_back(cpu, &came_from, &reached_by));
                }
                for other in 0..self.masks.len() {
                    if !reached[other] && self.sent[other][cpu] > self.zero {
                        reached[other] = true;
                        reached_by[other] = Some(cpu);
                        open.push_back(other);
                    }
                }
            }
        }
        None
    }
}

/// The path that ends at `cpu`.
fn trace_back(
    cpu: usize,
    came_from: &[Option<usize>],
    reached_by: &[Option<usize>],
) -> Vec<(usize, usize)> {
    let mut path = Vec::new();
    let mut at = Some(cpu);
    while let Some(cpu) = at {
        let mask = came_from[cpu].expect("every CPU on the path was reached from a mask");
        path.push((mask, cpu));
        at = reached_by[mask];
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::{Affinity, CapacitySum, RandomStream, Span, Task};

    /// Hall's condition by its definition: for every set of CPUs, the tasks confined to it fit
    /// there.
    fn by_every_subset(set: &TaskSet) -> bool {
        let fits = |bits: u64| {
            let cpus = CpuSet::from_bits(bits);
            let mut sum = CapacitySum::default();
            let inside = set
                .tasks
                .iter()
                .filter(|task| task.affinity.cpus().is_subset(&cpus));
            inside.for_each(|task| sum.add(task.utilization()));
            sum.to_fraction() <= num_rational::Ratio::from_integer((cpus.len() as u64).into())
        };
        let single = set.tasks.iter().all(|task| task.cost <= task.period);
        single && (1..1u64 << set.platform.cpus).all(fits)
    }

    fn random_set(seed: u64) -> TaskSet {
        let mut stream = RandomStream::new(seed, 9, 9);
        let cpus = 1 + stream.below(4) as usize;
        let tasks = 1 + stream.below(9);
        let task = |_| {
            let bits = 1 + stream.below((1 << cpus) - 1);
            let affinity = Affinity::new(CpuSet::from_bits(bits)).unwrap();
            // Small numbers make sums that fill CPUs exactly likely.
            let period = 1 + stream.below(6);
            let cost = 1 + stream.below(period);
            Task::periodic("", Span::from_ns(cost), Span::from_ns(period), affinity)
        };
        TaskSet::new("", cpus, (0..tasks).map(task).collect())
    }

    #[test]
    fn the_flow_agrees_with_every_subset_of_cpus() {
        let (mut yes, mut no, mut close) = (0, 0, 0);
        for seed in 0..4_000 {
            let set = random_set(seed);
            let expected = by_every_subset(&set);
            assert_eq!(is_feasible(&set), expected, "seed {seed}: {set:?}");
            let mut masks: Vec<CpuSet> = set.tasks.iter().map(|t| *t.affinity.cpus()).collect();
            masks.sort();
            masks.dedup();
            assert_eq!(flow_exactly(&set, &masks), expected, "seed {seed}: {set:?}");
            close += usize::from(flow_in_fixed_point(&set, &masks).is_none());
            match expected {
                true => yes += 1,
                false => no += 1,
            }
        }
        assert!(yes > 300 && no > 300 && close > 50, "{yes} {no} {close}");
    }

    #[test]
    fn a_task_never_uses_two_cpus_at_once() {
        let affinity = Affinity::new(CpuSet::first(2)).unwrap();
        let task = Task::periodic("", Span::from_ms(15), Span::from_ms(10), affinity);
        assert!(!is_feasible(&TaskSet::new("", 2, vec![task])));
    }
}
