//! Sets of CPUs as the arbitrary-affinity placements compute with them: one word on small machines,
//! many on large ones.

use core::fmt::Debug;

use shiftwork_model::{CpuId, CpuSet};

/// A set of CPUs that is cheap to combine.
pub(crate) trait Mask: Copy + Ord + Debug + Send {
    /// No CPU.
    const EMPTY: Self;
    /// The same CPUs; a one-word mask takes CPUs 0 to 63 only.
    fn of(set: &CpuSet) -> Self;
    fn single(cpu: CpuId) -> Self;
    fn insert(&mut self, cpu: CpuId);
    fn remove(&mut self, cpu: CpuId);
    fn contains(self, cpu: CpuId) -> bool;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn is_empty(self) -> bool;
    fn intersects(self, other: Self) -> bool;
    /// The lowest CPU, `None` if there is none.
    fn lowest(self) -> Option<CpuId>;
}

/// Iterates over the CPUs of a mask in ascending order.
pub(crate) fn cpus<M: Mask>(mut mask: M) -> impl Iterator<Item = CpuId> {
    core::iter::from_fn(move || {
        let cpu = mask.lowest()?;
        mask.remove(cpu);
        Some(cpu)
    })
}

impl Mask for u64 {
    const EMPTY: Self = 0;

    fn of(set: &CpuSet) -> Self {
        set.words()[0]
    }

    fn single(cpu: CpuId) -> Self {
        1 << cpu.index()
    }

    fn insert(&mut self, cpu: CpuId) {
        *self |= 1 << cpu.index();
    }

    fn remove(&mut self, cpu: CpuId) {
        *self &= !(1 << cpu.index());
    }

    fn contains(self, cpu: CpuId) -> bool {
        self >> cpu.index() & 1 == 1
    }

    fn and(self, other: Self) -> Self {
        self & other
    }

    fn or(self, other: Self) -> Self {
        self | other
    }

    fn minus(self, other: Self) -> Self {
        self & !other
    }

    fn is_empty(self) -> bool {
        self == 0
    }

    fn intersects(self, other: Self) -> bool {
        self & other != 0
    }

    fn lowest(self) -> Option<CpuId> {
        (self != 0).then(|| CpuId::from_index(self.trailing_zeros() as usize))
    }
}

impl Mask for CpuSet {
    const EMPTY: Self = Self::EMPTY;

    fn of(set: &CpuSet) -> Self {
        *set
    }

    fn single(cpu: CpuId) -> Self {
        Self::single(cpu)
    }

    fn insert(&mut self, cpu: CpuId) {
        Self::insert(self, cpu);
    }

    fn remove(&mut self, cpu: CpuId) {
        Self::remove(self, cpu);
    }

    fn contains(self, cpu: CpuId) -> bool {
        Self::contains(&self, cpu)
    }

    fn and(self, other: Self) -> Self {
        self & other
    }

    fn or(self, other: Self) -> Self {
        self | other
    }

    fn minus(self, other: Self) -> Self {
        self - other
    }

    fn is_empty(self) -> bool {
        Self::is_empty(&self)
    }

    fn intersects(self, other: Self) -> bool {
        Self::intersects(&self, &other)
    }

    fn lowest(self) -> Option<CpuId> {
        Self::lowest(&self)
    }
}
