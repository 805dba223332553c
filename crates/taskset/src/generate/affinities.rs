//! Random affinities of a given shape.

use shiftwork_model::{Affinity, CpuId, CpuSet, RandomStream};

use crate::error::TasksetError;

/// What the affinities look like together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Every task may use every CPU.
    Global,
    /// Every task is bound to a CPU.
    Partitioned,
    /// Every task is, as likely, bound to a CPU or may use all.
    BiLevel,
    /// Every task may, as likely, use all CPUs or one cluster of as many CPUs as said here (the last
    /// may be smaller).
    Clustered(usize),
    /// Every task may, as likely, use all CPUs, one socket of as many CPUs as said here, or one CPU
    /// (Bonifaci et al. 2016, section V).
    ThreeLevel(usize),
    /// A random tree of nested sets of CPUs, of which every task uses one.
    Laminar,
    /// Every set of CPUs is as likely.
    Arbitrary,
}

/// The sets that a shape has on a platform, ready to draw from.
pub(super) struct Affinities {
    cpus: usize,
    /// Each level is as likely, and in it each set. Empty for arbitrary sets.
    levels: Vec<Vec<CpuSet>>,
    clusters: Vec<CpuSet>,
}

impl Shape {
    /// All of them with their names, where clusters have so many CPUs.
    pub const fn all(cluster: usize) -> [(&'static str, Self); 7] {
        [
            ("global", Self::Global),
            ("partitioned", Self::Partitioned),
            ("bi-level", Self::BiLevel),
            ("clustered", Self::Clustered(cluster)),
            ("three-level", Self::ThreeLevel(cluster)),
            ("laminar", Self::Laminar),
            ("arbitrary", Self::Arbitrary),
        ]
    }

    /// Refuses clusters without CPUs.
    pub(super) fn check(self, cpus: usize) -> Result<(), TasksetError> {
        match self {
            Self::Clustered(size) | Self::ThreeLevel(size) if size == 0 || size > cpus => {
                Err(TasksetError::Impossible {
                    what: format!("{cpus} CPUs cannot be in clusters of {size}"),
                    accepted: format!("write 1 to {cpus}"),
                })
            }
            _ => Ok(()),
        }
    }

    /// The sets to draw from. Only a laminar shape draws something here: its tree.
    pub(super) fn prepare(self, cpus: usize, stream: &mut RandomStream) -> Affinities {
        let all = || vec![CpuSet::first(cpus)];
        let singles = || {
            (0..cpus)
                .map(|cpu| CpuSet::single(CpuId::from_index(cpu)))
                .collect()
        };
        let clusters = match self {
            Self::Clustered(size) | Self::ThreeLevel(size) => clusters_of(size, cpus),
            _ => Vec::new(),
        };
        let levels = match self {
            Self::Global => vec![all()],
            Self::Partitioned => vec![singles()],
            Self::BiLevel => vec![all(), singles()],
            Self::Clustered(_) => vec![all(), clusters.clone()],
            Self::ThreeLevel(_) => vec![all(), clusters.clone(), singles()],
            Self::Laminar => vec![random_tree(cpus, stream)],
            Self::Arbitrary => Vec::new(),
        };
        Affinities {
            cpus,
            levels,
            clusters,
        }
    }
}

impl Affinities {
    /// The affinity of one task.
    pub(super) fn draw(&mut self, stream: &mut RandomStream) -> Affinity {
        let set = match self.levels.is_empty() {
            true => self.any_set(stream),
            false => {
                let level = &self.levels[stream.below(self.levels.len() as u64) as usize];
                level[stream.below(level.len() as u64) as usize]
            }
        };
        Affinity::new(set).expect("every set that is drawn has a CPU")
    }

    /// Every affinity that can be drawn; of arbitrary ones two that overlap without nesting, if there are CPUs for them.
    pub(super) fn every(&self) -> impl Iterator<Item = Affinity> + '_ {
        let overlapping = [0..2, 1..3].map(|range: core::ops::Range<usize>| {
            let within = range.map(|cpu| cpu.min(self.cpus - 1));
            within.map(CpuId::from_index).collect::<CpuSet>()
        });
        let arbitrary = overlapping.into_iter().filter(|_| self.levels.is_empty());
        let sets = self.levels.iter().flatten().copied().chain(arbitrary);
        sets.map(|set| Affinity::new(set).expect("every set that is drawn has a CPU"))
    }

    /// Any set of CPUs but the empty one.
    fn any_set(&self, stream: &mut RandomStream) -> CpuSet {
        loop {
            let mut set = CpuSet::EMPTY;
            for cpu in (0..self.cpus).map(CpuId::from_index) {
                if stream.bits() >> 63 == 1 {
                    set.insert(cpu);
                }
            }
            if !set.is_empty() {
                return set;
            }
        }
    }

    /// The clusters of the platform; empty if the shape has none.
    pub(super) fn clusters(self) -> Vec<CpuSet> {
        self.clusters
    }
}

/// The CPUs in clusters of `size`, which is above zero; the last may have fewer.
pub fn clusters_of(size: usize, cpus: usize) -> Vec<CpuSet> {
    let first = (0..cpus).step_by(size);
    let cluster = |first: usize| {
        (first..cpus.min(first + size))
            .map(CpuId::from_index)
            .collect()
    };
    first.map(cluster).collect()
}

/// The sets of a random tree over the CPUs in a random order: every set of two CPUs or more falls
/// into two to four parts.
fn random_tree(cpus: usize, stream: &mut RandomStream) -> Vec<CpuSet> {
    let mut order: Vec<CpuId> = (0..cpus).map(CpuId::from_index).collect();
    stream.shuffle(&mut order);
    let mut sets = Vec::new();
    let whole = 0..cpus;
    let mut open = Vec::from([whole]);
    while let Some(range) = open.pop() {
        sets.push(order[range.clone()].iter().copied().collect());
        let inner = range.len() as u64 - 1;
        if inner == 0 {
            continue;
        }
        let mut cuts: Vec<usize> = (0..1 + stream.below(3))
            .map(|_| range.start + 1 + stream.below(inner) as usize)
            .collect();
        cuts.extend([range.start, range.end]);
        cuts.sort_unstable();
        cuts.dedup();
        open.extend(cuts.windows(2).map(|pair| pair[0]..pair[1]));
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::AffinityKind;

    fn draw(shape: Shape, cpus: usize, tasks: usize, seed: u64) -> Vec<Affinity> {
        let mut stream = RandomStream::new(seed, 2, 0);
        let mut affinities = shape.prepare(cpus, &mut stream);
        (0..tasks).map(|_| affinities.draw(&mut stream)).collect()
    }

    #[test]
    fn every_shape_is_of_its_kind() {
        let all = CpuSet::first(12);
        for (shape, kind) in [
            (Shape::Global, AffinityKind::Global),
            (Shape::Partitioned, AffinityKind::Partitioned),
            (Shape::BiLevel, AffinityKind::BiLevel),
            (Shape::Clustered(4), AffinityKind::Clustered),
            (Shape::ThreeLevel(6), AffinityKind::Laminar),
            (Shape::Arbitrary, AffinityKind::Arbitrary),
        ] {
            for seed in 0..20 {
                let drawn = draw(shape, 12, 60, seed);
                assert_eq!(AffinityKind::of(&all, &drawn), kind, "{shape:?} {seed}");
            }
        }
        for seed in 0..200 {
            let kind = AffinityKind::of(&all, &draw(Shape::Laminar, 12, 60, seed));
            assert!(kind <= AffinityKind::Laminar, "{seed}");
        }
    }

    #[test]
    fn levels_are_as_likely_and_so_are_the_sets_in_them() {
        let drawn = draw(Shape::ThreeLevel(12), 24, 36_000, 1);
        let count = |size| {
            drawn
                .iter()
                .filter(|affinity| affinity.cpus().len() == size)
                .count()
        };
        for size in [24, 12, 1] {
            assert!(
                (11_600..12_400).contains(&count(size)),
                "{size}: {}",
                count(size)
            );
        }
        for cpu in (0..24).map(CpuId::from_index) {
            let pinned = drawn
                .iter()
                .filter(|a| **a == Affinity::pinned(cpu))
                .count();
            assert!((400..600).contains(&pinned), "{cpu}: {pinned}");
        }
    }

    #[test]
    fn clusters_cover_the_platform_and_the_last_may_be_smaller() {
        let lists: Vec<String> = clusters_of(3, 8).iter().map(CpuSet::to_string).collect();
        assert_eq!(lists, ["0-2", "3-5", "6,7"]);
    }
}
