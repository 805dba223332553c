//! Affinities, and what kind of family the affinities of a task set form.

use core::fmt;

use crate::cpu::{CpuId, CpuSet};

/// The CPUs a task may use. Never empty: a task that may run nowhere cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Affinity(CpuSet);

impl Affinity {
    /// The affinity for these CPUs; `None` if there are none.
    pub fn new(cpus: CpuSet) -> Option<Self> {
        (!cpus.is_empty()).then_some(Self(cpus))
    }

    /// Bound to one CPU.
    pub fn pinned(cpu: CpuId) -> Self {
        Self(CpuSet::single(cpu))
    }

    /// The CPUs, at least one.
    pub const fn cpus(&self) -> &CpuSet {
        &self.0
    }
}

impl fmt::Display for Affinity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the affinities of a task set look like together, from the most special to the most general:
/// the first that applies is the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AffinityKind {
    /// Every task may use every CPU.
    Global,
    /// Every task is bound to one CPU.
    Partitioned,
    /// Every task is bound to one CPU or may use all (Bonifaci et al. 2016, section IV).
    BiLevel,
    /// Disjoint clusters, and tasks that may use all CPUs (ibid.).
    Clustered,
    /// Any two affinities are nested or disjoint (ibid., section II).
    Laminar,
    /// Anything else.
    Arbitrary,
}

impl AffinityKind {
    /// The kind of these affinities on the CPUs `all`. No affinity at all counts as global.
    ///
    /// O(n²) comparisons of sets for n affinities.
    pub fn of<'a>(all: &CpuSet, affinities: impl IntoIterator<Item = &'a Affinity>) -> Self {
        let mut distinct = alloc::vec::Vec::<CpuSet>::new();
        for affinity in affinities {
            if !distinct.contains(affinity.cpus()) {
                distinct.push(*affinity.cpus());
            }
        }
        let spanning = distinct.iter().filter(|mask| *mask == all).count();
        let single = distinct
            .iter()
            .filter(|mask| *mask != all && mask.len() == 1)
            .count();
        distinct.retain(|mask| mask != all);
        if distinct.is_empty() {
            Self::Global
        } else if single == distinct.len() && spanning == 0 {
            Self::Partitioned
        } else if single == distinct.len() {
            Self::BiLevel
        } else if pairs(&distinct).all(|(a, b)| !a.intersects(b)) {
            Self::Clustered
        } else if pairs(&distinct).all(|(a, b)| nested_or_disjoint(a, b)) {
            Self::Laminar
        } else {
            Self::Arbitrary
        }
    }

    /// The name in files and JSON: `global`, `partitioned`, `bi-level`, `clustered`, `laminar` or
    /// `arbitrary`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Partitioned => "partitioned",
            Self::BiLevel => "bi-level",
            Self::Clustered => "clustered",
            Self::Laminar => "laminar",
            Self::Arbitrary => "arbitrary",
        }
    }
}

impl fmt::Display for AffinityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The indices of two sets that overlap without nesting, `None` if the family is laminar.
pub fn first_overlap(masks: &[CpuSet]) -> Option<(usize, usize)> {
    (0..masks.len())
        .flat_map(|i| (i + 1..masks.len()).map(move |j| (i, j)))
        .find(|&(i, j)| !nested_or_disjoint(&masks[i], &masks[j]))
}

fn nested_or_disjoint(a: &CpuSet, b: &CpuSet) -> bool {
    !a.intersects(b) || a.is_subset(b) || b.is_subset(a)
}

fn pairs(masks: &[CpuSet]) -> impl Iterator<Item = (&CpuSet, &CpuSet)> {
    masks
        .iter()
        .enumerate()
        .flat_map(|(i, a)| masks[i + 1..].iter().map(move |b| (a, b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn kind(cpus: usize, masks: &[&str]) -> AffinityKind {
        let affinities: Vec<_> = masks
            .iter()
            .map(|mask| Affinity::new(mask.parse().unwrap()).unwrap())
            .collect();
        AffinityKind::of(&CpuSet::first(cpus), &affinities)
    }

    #[test]
    fn the_most_special_kind_wins() {
        for (masks, expected) in [
            (&["0-3", "0-3"][..], AffinityKind::Global),
            (&[], AffinityKind::Global),
            (&["0", "3"], AffinityKind::Partitioned),
            (&["0", "0-3"], AffinityKind::BiLevel),
            (&["0-1", "2-3", "0-3"], AffinityKind::Clustered),
            (&["0-1", "2"], AffinityKind::Clustered),
            (&["0-1", "0", "0-3"], AffinityKind::Laminar),
            (&["0-1", "1-2"], AffinityKind::Arbitrary),
        ] {
            assert_eq!(kind(4, masks), expected, "{masks:?}");
        }
        assert_eq!(kind(1, &["0"]), AffinityKind::Global);
    }

    #[test]
    fn an_affinity_has_at_least_one_cpu() {
        assert_eq!(Affinity::new(CpuSet::EMPTY), None);
    }
}
