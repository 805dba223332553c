//! What can be looked at alone: CPUs and tasks that no task connects with any others.

use std::collections::BTreeSet;

use shiftwork_model::{CPUS_MAX, CpuSet};

/// CPUs that affinities connect with each other, and the tasks that use them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The CPUs that any of the members may use; never empty.
    pub cpus: CpuSet,
    /// Places of the tasks, ascending.
    pub members: Vec<usize>,
}

/// The parts of tasks with these affinities, in the order of their first tasks. A task without any CPU
/// is in no part.
///
/// # Cost
/// O(n log n + s) for n tasks, nearly, with s the total size of the distinct affinities.
pub(crate) fn parts(affinities: &[CpuSet]) -> Vec<Part> {
    let mut parent: Vec<usize> = (0..CPUS_MAX).collect();
    let distinct: BTreeSet<&CpuSet> = affinities.iter().collect();
    for cpus in distinct {
        let mut indices = cpus.iter().map(|cpu| cpu.index());
        if let Some(first) = indices.next() {
            let first = root(&mut parent, first);
            for other in indices {
                let other = root(&mut parent, other);
                parent[other] = first;
            }
        }
    }
    let mut part_of: Vec<Option<usize>> = vec![None; CPUS_MAX];
    let mut parts: Vec<Part> = Vec::new();
    for (place, cpus) in affinities.iter().enumerate() {
        let Some(lowest) = cpus.lowest() else {
            continue;
        };
        let root = root(&mut parent, lowest.index());
        let part = *part_of[root].get_or_insert_with(|| {
            parts.push(Part {
                cpus: CpuSet::EMPTY,
                members: Vec::new(),
            });
            parts.len() - 1
        });
        parts[part].cpus = parts[part].cpus | *cpus;
        parts[part].members.push(place);
    }
    parts
}

/// The representative of a CPU's part; paths are halved on the way.
fn root(parent: &mut [usize], mut at: usize) -> usize {
    while parent[at] != at {
        parent[at] = parent[parent[at]];
        at = parent[at];
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    #[test]
    fn tasks_are_together_if_a_chain_of_affinities_connects_them() {
        let affinities = ["0", "2-3", "1", "3-4", "0-1"].map(cpus);
        let found = parts(&affinities);
        let expected = [("0-1", vec![0, 2, 4]), ("2-4", vec![1, 3])];
        let expected = expected.map(|(set, members)| Part {
            cpus: cpus(set),
            members,
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn a_task_without_a_cpu_is_in_no_part() {
        assert_eq!(parts(&[CpuSet::EMPTY]), []);
        assert_eq!(parts(&[]), []);
    }
}
