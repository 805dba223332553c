//! First-fit-decreasing packing of tasks onto groups of CPUs: the one function that partitioned and
//! clustered scheduling, their analysis and the live machine share.

use alloc::vec::Vec;

use shiftwork_model::{Affinity, CapacitySum, CpuSet, TaskSet, Utilization};

/// Which group every task was packed onto, and how full each group is.
#[derive(Clone, Debug)]
pub struct Packing {
    /// By task index: the index of its group. `None`: the task's affinity holds no whole group.
    pub group_of: Vec<Option<usize>>,
    /// By group: the sum of the utilizations packed onto it.
    pub loads: Vec<CapacitySum>,
    /// Tasks, by index, that fitted nowhere and went to the least loaded of their groups.
    pub overflowed: Vec<usize>,
}

impl Packing {
    /// Whether no group is loaded beyond its number of CPUs by a task that could not be placed.
    pub fn fits(&self) -> bool {
        self.overflowed.is_empty() && self.group_of.iter().all(Option::is_some)
    }
}

/// Packs the tasks onto the groups (disjoint sets of CPUs).
///
/// Tasks whose affinity holds exactly one group go there first. The others follow by decreasing
/// utilization (equal ones by index), each into the first group, in the given order, of its
/// affinity that still has room; one that fits nowhere goes to the least loaded of its groups, since
/// a simulation refuses no load. Exact.
///
/// O(n log n + n g) comparisons for n tasks and g groups.
pub fn pack(set: &TaskSet, groups: &[CpuSet]) -> Packing {
    let mut packing = Packing {
        group_of: alloc::vec![None; set.tasks.len()],
        loads: alloc::vec![CapacitySum::default(); groups.len()],
        overflowed: Vec::new(),
    };
    let mut movable: Vec<(usize, Vec<usize>)> = Vec::new();
    for (index, task) in set.tasks.iter().enumerate() {
        let candidates = groups_within(groups, &task.affinity);
        match candidates.as_slice() {
            [] => {}
            [only] => packing.put(index, *only, task.utilization(), groups),
            _ => movable.push((index, candidates)),
        }
    }
    let utilization = |index: usize| set.tasks[index].utilization();
    movable.sort_by(|(a, _), (b, _)| utilization(*b).cmp(&utilization(*a)).then(a.cmp(b)));
    for (index, candidates) in movable {
        let first_fit = candidates
            .iter()
            .copied()
            .find(|&group| packing.loads[group].fits(utilization(index), capacity(groups, group)));
        let group = first_fit.unwrap_or_else(|| packing.least_loaded(&candidates, groups));
        packing.put(index, group, utilization(index), groups);
    }
    packing
}

/// The groups that lie within an affinity, in the given order.
pub(crate) fn groups_within(groups: &[CpuSet], affinity: &Affinity) -> Vec<usize> {
    (0..groups.len())
        .filter(|&group| groups[group].is_subset(affinity.cpus()))
        .collect()
}

fn capacity(groups: &[CpuSet], group: usize) -> u64 {
    groups[group].len() as u64
}

impl Packing {
    fn put(&mut self, task: usize, group: usize, utilization: Utilization, groups: &[CpuSet]) {
        if !self.loads[group].fits(utilization, capacity(groups, group)) {
            self.overflowed.push(task);
        }
        self.loads[group].add(utilization);
        self.group_of[task] = Some(group);
    }

    /// By load per CPU; the first among equals.
    pub(crate) fn least_loaded(&self, candidates: &[usize], groups: &[CpuSet]) -> usize {
        let load_per_cpu =
            |&group: &usize| self.loads[group].floor() / u128::from(capacity(groups, group));
        candidates
            .iter()
            .copied()
            .min_by_key(load_per_cpu)
            .expect("there is a candidate")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::{CpuId, Span, Task};

    fn packed(tasks: &[(u64, u64, &str)]) -> Packing {
        let tasks = tasks.iter().map(|&(cost, period, cpus)| {
            let affinity = Affinity::new(cpus.parse().unwrap()).unwrap();
            Task::periodic("t", Span::from_ms(cost), Span::from_ms(period), affinity)
        });
        let groups: Vec<_> = (0..2)
            .map(|cpu| CpuSet::single(CpuId::from_index(cpu)))
            .collect();
        pack(&TaskSet::new("", 2, tasks.collect()), &groups)
    }

    #[test]
    fn pinned_tasks_stay_and_the_others_go_first_fit_decreasing() {
        let packing = packed(&[(1, 4, "0-1"), (1, 2, "1"), (3, 4, "0-1"), (1, 4, "0-1")]);
        assert_eq!(packing.group_of, [Some(0), Some(1), Some(0), Some(1)]);
        assert!(packing.fits());
    }

    #[test]
    fn a_cpu_can_be_filled_to_the_brim() {
        let packing = packed(&[(1, 3, "0-1"), (1, 3, "0-1"), (1, 3, "0-1")]);
        assert_eq!(packing.group_of, [Some(0); 3]);
    }

    #[test]
    fn what_fits_nowhere_goes_to_the_least_loaded_cpu() {
        let packing = packed(&[(2, 3, "0-1"), (2, 3, "0-1"), (2, 3, "0-1")]);
        assert_eq!(packing.group_of, [Some(0), Some(1), Some(0)]);
        assert_eq!(packing.overflowed, [2]);
    }
}
