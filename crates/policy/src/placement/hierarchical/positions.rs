//! Where the scheduled jobs run: the CPUs, lined up so that every affinity is one range of
//! positions.

use alloc::vec::Vec;

use shiftwork_model::{CpuId, CpuSet, Platform, TaskId};

use super::super::support::laminar::{NodeId, Shape};
use super::super::support::least_urgent::LeastUrgent;
use super::range_bits::RangeBits;
use crate::order::JobOrder;

/// Up to this many CPUs a victim is found by looking at all CPUs of its affinity, most often few.
const FEW: usize = 64;

/// What every CPU runs, and how large the affinity of that is.
///
/// Positions are those of [`Shape`].
#[derive(Debug)]
pub(super) struct Positions<O: JobOrder> {
    pub shape: Shape,
    /// By position.
    runners: Vec<Option<TaskId>>,
    /// By position. Read for full affinities only, where every CPU online has a job; a position
    /// without a job holds [`FIRST`](crate::order::Ranking::FIRST).
    least: LeastUrgent<O::Key>,
    /// `taken[0]`: the free positions; `taken[d + 1]`: those that run a job of an affinity of depth d.
    taken: Vec<RangeBits>,
    /// By position: which set of `taken` it is in.
    taken_by: Vec<usize>,
    /// By CPU: the positions that share a cache with it; empty if nothing is known.
    mates: Vec<RangeBits>,
}

impl<O: JobOrder> Positions<O> {
    /// All CPUs that are online are free.
    pub fn new(shape: Shape, platform: &Platform, online: &CpuSet) -> Self {
        let deepest = shape.nodes.iter().map(|node| node.depth).max().unwrap_or(0);
        let mut taken = alloc::vec![RangeBits::default(); deepest + 2];
        for cpu in online.iter() {
            taken[0].insert(shape.position_of[cpu.index()]);
        }
        Self {
            runners: alloc::vec![None; platform.cpus],
            least: LeastUrgent::new(platform.cpus, FEW, O::FIRST),
            taken,
            taken_by: alloc::vec![0; platform.cpus],
            mates: mates(&shape, platform),
            shape,
        }
    }

    #[inline]
    pub fn position(&self, cpu: CpuId) -> usize {
        self.shape.position_of[cpu.index()]
    }

    #[inline]
    pub fn cpu(&self, position: usize) -> CpuId {
        self.shape.cpu_at[position]
    }

    #[inline]
    pub fn runner(&self, position: usize) -> Option<TaskId> {
        self.runners[position]
    }

    /// What every CPU runs, by CPU.
    pub fn snapshot(&self) -> Vec<Option<TaskId>> {
        let positions = self.shape.position_of.iter();
        positions.map(|&position| self.runners[position]).collect()
    }

    /// The key of the least urgent job that runs inside a full affinity.
    #[inline]
    pub fn least_urgent(&self, full: NodeId) -> O::Key {
        let node = &self.shape.nodes[full.index()];
        self.least.key_in(node.first, node.last)
    }

    /// Where a job of this affinity can go: a free position (and 0), else one whose job has the
    /// largest affinity (and 1 + the depth of that). `last` is the CPU that the job's task last used.
    #[inline]
    pub fn find(&self, affinity: NodeId, last: Option<CpuId>) -> (usize, usize) {
        let node = &self.shape.nodes[affinity.index()];
        let last_position = last
            .map(|cpu| self.position(cpu))
            .filter(|position| (node.first..node.last).contains(position));
        for set in 0..=node.depth {
            let taken = &self.taken[set];
            if let Some(position) = last_position.filter(|&position| taken.contains(position)) {
                return (position, set);
            }
            if let Some(position) = taken.first_in(node.first, node.last) {
                let near = last.and_then(|cpu| {
                    let mates = self.mates.get(cpu.index())?;
                    taken.first_in_both(mates, node.first, node.last)
                });
                return (near.unwrap_or(position), set);
            }
        }
        unreachable!("an admitted job fits");
    }

    /// Lets a position run a job of this affinity, or nothing; returns what it ran.
    #[inline]
    pub fn set(&mut self, position: usize, to: Option<(O::Key, NodeId)>) -> Option<TaskId> {
        let (set, key, task) = match to {
            Some((key, affinity)) => {
                let depth = self.shape.nodes[affinity.index()].depth;
                (depth + 1, key, Some(O::task(&key)))
            }
            None => (0, O::FIRST, None),
        };
        self.retake(position, set);
        self.least.set(position, || key);
        core::mem::replace(&mut self.runners[position], task)
    }

    /// Ranks the job at a position anew.
    pub fn rerank(&mut self, position: usize, key: O::Key) {
        self.least.set(position, || key);
    }

    /// Marks a position as free for [`Self::find`], while its runner is still to be replaced.
    #[inline]
    pub fn vacate(&mut self, position: usize) {
        self.retake(position, 0);
    }

    /// Takes a position that runs nothing out of use.
    pub fn close(&mut self, position: usize) {
        self.taken[0].remove(position);
    }

    /// Takes a position back into use, free.
    pub fn open(&mut self, position: usize) {
        self.taken[0].insert(position);
    }

    #[inline]
    fn retake(&mut self, position: usize, set: usize) {
        let before = core::mem::replace(&mut self.taken_by[position], set);
        if before != set {
            self.taken[before].remove(position);
            self.taken[set].insert(position);
        }
    }
}

fn mates(shape: &Shape, platform: &Platform) -> Vec<RangeBits> {
    if platform.caches.is_empty() {
        return Vec::new();
    }
    let mates_of = |cpu| {
        let mut mates = RangeBits::default();
        for mate in platform.cache_mates(CpuId::from_index(cpu)).iter() {
            mates.insert(shape.position_of[mate.index()]);
        }
        mates
    };
    (0..platform.cpus).map(mates_of).collect()
}
