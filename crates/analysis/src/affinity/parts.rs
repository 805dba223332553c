//! What can be looked at alone: CPUs and tasks that no task connects with any others.

use shiftwork_model::CpuSet;

/// CPUs that affinities connect with each other, and the tasks that use them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The CPUs that any of the members may use; never empty.
    pub cpus: CpuSet,
    /// Places of the tasks, ascending.
    pub members: Vec<usize>,
    /// Whether each of the members may use all of them.
    pub is_uniform: bool,
}

/// The parts of tasks with these affinities, in the order of their first tasks. A task without any CPU
/// is in no part.
///
/// # Cost
/// O(n + d² + s), nearly, for n tasks with d distinct affinities that together have s CPUs; two of the distinct ones
/// are compared only if a hash of their lowest CPUs is the same.
pub(crate) fn parts(affinities: &[CpuSet]) -> Vec<Part> {
    parts_within(affinities.iter(), None)
}

/// The same with those CPUs of the affinities alone that are among `all`.
pub(crate) fn parts_within<'a>(
    affinities: impl ExactSizeIterator<Item = &'a CpuSet>,
    all: Option<&CpuSet>,
) -> Vec<Part> {
    let count = affinities.len();
    let mut masks = Masks::default();
    let of: Vec<usize> = affinities.map(|cpus| masks.place(cpus)).collect();
    let distinct = masks.distinct.into_iter();
    let distinct: Vec<CpuSet> = distinct
        .map(|cpus| all.map_or(*cpus, |all| *cpus & *all))
        .collect();
    let cpus = distinct.iter().flat_map(CpuSet::iter);
    let numbers = cpus.map(|cpu| cpu.index() + 1).max().unwrap_or(0);
    let mut parent: Vec<usize> = (0..numbers).collect();
    for cpus in &distinct {
        let mut indices = cpus.iter().map(|cpu| cpu.index());
        if let Some(first) = indices.next() {
            let first = root(&mut parent, first);
            for other in indices {
                let other = root(&mut parent, other);
                parent[other] = first;
            }
        }
    }
    let mut parts: Vec<Part> = Vec::new();
    let mut part_of_root: Vec<(usize, usize)> = Vec::new();
    // Distinct affinities are in the order of their first tasks.
    let mut part_of = |cpus: &CpuSet| {
        let root = root(&mut parent, cpus.lowest()?.index());
        let known = part_of_root.iter().find(|(other, _)| *other == root);
        let part = known.map(|&(_, part)| part).unwrap_or_else(|| {
            parts.push(Part {
                cpus: *cpus,
                members: Vec::new(),
                is_uniform: true,
            });
            part_of_root.push((root, parts.len() - 1));
            parts.len() - 1
        });
        if parts[part].cpus != *cpus {
            parts[part].is_uniform = false;
            parts[part].cpus = parts[part].cpus | *cpus;
        }
        Some(part)
    };
    let part_of: Vec<Option<usize>> = distinct.iter().map(&mut part_of).collect();
    if let [part] = parts.as_mut_slice() {
        part.members.reserve(count);
    }
    for (place, mask) in of.into_iter().enumerate() {
        if let Some(part) = part_of[mask] {
            parts[part].members.push(place);
        }
    }
    parts
}

/// By task the place of its affinity among the distinct ones, and these in the order of their first tasks.
pub(crate) fn distinct<'a>(
    affinities: impl Iterator<Item = &'a CpuSet>,
) -> (Vec<usize>, Vec<&'a CpuSet>) {
    let mut masks = Masks::default();
    let of = affinities.map(|cpus| masks.place(cpus)).collect();
    (of, masks.distinct)
}

/// Distinct affinities, in the order in which they came.
struct Masks<'a> {
    distinct: Vec<&'a CpuSet>,
    /// By a hash of the lowest CPUs: 1 and the place of the last that has it; 0: none.
    newest: [usize; BUCKETS],
    /// By place: the one before it with the same hash, likewise.
    older: Vec<usize>,
    last: usize,
}

const BUCKETS: usize = 128;

impl Default for Masks<'_> {
    fn default() -> Self {
        Self {
            distinct: Vec::new(),
            newest: [0; BUCKETS],
            older: Vec::new(),
            last: 0,
        }
    }
}

impl<'a> Masks<'a> {
    fn place(&mut self, cpus: &'a CpuSet) -> usize {
        // Most that differ do so in the first word, and comparing all of them takes a call.
        let is = |place: usize| {
            let known = self.distinct.get(place);
            known.is_some_and(|&known| known.words()[0] == cpus.words()[0] && known == cpus)
        };
        // Neighbours usually have the same.
        if is(self.last) {
            return self.last;
        }
        let bucket = bucket(cpus);
        let mut next = self.newest[bucket];
        while next > 0 && !is(next - 1) {
            next = self.older[next - 1];
        }
        self.last = next.checked_sub(1).unwrap_or_else(|| {
            self.distinct.push(cpus);
            self.older.push(self.newest[bucket]);
            self.newest[bucket] = self.distinct.len();
            self.distinct.len() - 1
        });
        self.last
    }
}

/// A number below [`BUCKETS`] that hangs on the CPUs of the first word that has any.
fn bucket(cpus: &CpuSet) -> usize {
    let mut words = cpus.words().iter().zip(0..);
    let (word, index) = words.find(|(word, _)| **word > 0).unwrap_or((&0, 0));
    // Fibonacci hashing: the upper bits of a product with 2^64 / phi.
    ((word ^ index).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BUCKETS.ilog2())) as usize
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
            is_uniform: false,
        });
        assert_eq!(found, expected);
        let affinities = ["1-2", "0", "3", "1-2", "0"].map(cpus);
        let found = parts(&affinities);
        let expected = [("1-2", vec![0, 3]), ("0", vec![1, 4]), ("3", vec![2])];
        let expected = expected.map(|(set, members)| Part {
            cpus: cpus(set),
            members,
            is_uniform: true,
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn excluded_cpus_connect_no_tasks() {
        let affinities = ["0,4", "1-2,4", "1-2", "4"].map(cpus);
        let found = parts_within(affinities.iter(), Some(&cpus("0-3")));
        let expected = [("0", vec![0]), ("1-2", vec![1, 2])];
        let expected = expected.map(|(set, members)| Part {
            cpus: cpus(set),
            members,
            is_uniform: true,
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn a_task_without_a_cpu_is_in_no_part() {
        assert_eq!(parts(&[CpuSet::EMPTY]), []);
        assert_eq!(parts(&[]), []);
    }
}
