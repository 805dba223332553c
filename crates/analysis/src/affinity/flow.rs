//! Any affinities: a maximum flow from the tasks to the CPUs, and its minimum cut as the witness.
//!
//! Tasks with one affinity are one source of flow; CPUs that the same affinities contain are one
//! sink, a *cell*. Up to three networks are solved. With demands rounded up, a saturating flow
//! shows that all tasks fit. With demands rounded down, a flow that is not saturating shows that
//! they do not. If neither decides, every amount is multiplied by a common multiple of the periods.

use std::collections::VecDeque;
use std::ops::{AddAssign, SubAssign};

use num_bigint::{BigInt, BigUint};
use num_rational::Ratio;
use shiftwork_model::{CPUS_MAX, CpuSet, Share};

use super::{Crowd, Group, Groups};
use crate::exact::{Demand, common_multiple, fraction, units_of};

/// Groups that need more than all their CPUs supply, `None` if all tasks fit. Exact.
///
/// # Cost
/// Dinic's algorithm on g affinities and at most as many cells as there are CPUs, m: O(g m) per
/// phase and augmentation, and in practice a few phases. With fractions only where 64 binary places
/// cannot decide, which in practice means that some CPUs are filled to the brim.
///
/// # Source
/// S. Baruah, B. Brandenburg, "Multiprocessor feasibility analysis of recurrent task systems with
/// specified processor affinities", RTSS 2013, whose linear program this is; D. Gale's theorem
/// makes the cut a set of tasks that breaks Hall's condition.
pub fn shortage(groups: &Groups, supply: Share) -> Option<Crowd> {
    let shape = Shape::new(groups);
    let demands: Vec<&Demand> = groups.iter().map(|(_, group)| group.demand()).collect();
    let cpu = units_of(supply);
    let units = |of: fn(&Demand) -> u128| demands.iter().map(|demand| of(demand)).collect();
    // All tasks fit even with every rate rounded up: done.
    Flow::new(&shape, units(Demand::units_max), &cpu).run()?;
    let crowd = Flow::new(&shape, units(Demand::units_min), &cpu).run();
    crowd.or_else(|| exactly(&shape, &demands, &fraction(supply)))
}

/// The crowd, or one on fewer of its CPUs: no crowd lies within a proper part of the result. So every
/// CPU that it names belongs to the explanation.
///
/// # Cost
/// A flow for each cell of the crowd, begun anew with every smaller crowd that is found; after 64
/// the smallest so far is the result, which may then not be the least.
pub fn tightened(groups: &Groups, crowd: Crowd, supply: Share) -> Crowd {
    const FLOWS: usize = 64;
    let mut crowd = crowd;
    let mut flows = 0;
    'smaller: loop {
        // Without any one cell: whatever lies within a proper part lies within one of these.
        for cell in cells(&crowd.masks) {
            let rest = groups.within(&(crowd.cpus - cell));
            if flows == FLOWS {
                return crowd;
            }
            flows += 1;
            if let Some(smaller) = shortage(&rest, supply) {
                crowd = smaller;
                continue 'smaller;
            }
        }
        return crowd;
    }
}

/// The same with a supply that may be any fraction above zero, by fractions alone.
pub(super) fn shortage_at(groups: &Groups, supply: &Ratio<BigInt>) -> Option<Crowd> {
    let demands: Vec<&Demand> = groups.iter().map(|(_, group)| group.demand()).collect();
    exactly(&Shape::new(groups), &demands, supply)
}

/// The answer where rounding hides it.
fn exactly(shape: &Shape, demands: &[&Demand], supply: &Ratio<BigInt>) -> Option<Crowd> {
    let common = common_multiple(demands.iter().copied());
    let parts = |demand: &&Demand| demand.in_parts(&common) * supply.denom().magnitude();
    let needed = demands.iter().map(parts).collect();
    Flow::new(shape, needed, &(&common * supply.numer().magnitude())).run()
}

/// The edges of the network. Edge e leads from group `edges[e].0` to cell `edges[e].1`.
#[derive(Debug)]
struct Shape {
    masks: Vec<CpuSet>,
    cells: Vec<CpuSet>,
    edges: Vec<(usize, usize)>,
    of_group: Vec<Vec<usize>>,
    of_cell: Vec<Vec<usize>>,
}

impl Shape {
    fn new(groups: &Groups) -> Self {
        let masks: Vec<CpuSet> = groups.iter().map(|(mask, _): (_, &Group)| *mask).collect();
        let cells = cells(&masks);
        let mut cell_of = vec![usize::MAX; CPUS_MAX];
        for (index, cell) in cells.iter().enumerate() {
            cell.iter().for_each(|cpu| cell_of[cpu.index()] = index);
        }
        let mut shape = Self {
            of_group: vec![Vec::new(); masks.len()],
            of_cell: vec![Vec::new(); cells.len()],
            edges: Vec::new(),
            masks,
            cells,
        };
        for group in 0..shape.masks.len() {
            let mut reached: Vec<usize> = shape.masks[group]
                .iter()
                .map(|cpu| cell_of[cpu.index()])
                .collect();
            reached.sort_unstable();
            reached.dedup();
            for cell in reached {
                shape.of_group[group].push(shape.edges.len());
                shape.of_cell[cell].push(shape.edges.len());
                shape.edges.push((group, cell));
            }
        }
        shape
    }
}

/// The CPUs that some mask has, split so that every mask has all or nothing of each cell.
pub(super) fn cells(masks: &[CpuSet]) -> Vec<CpuSet> {
    let all = masks.iter().fold(CpuSet::EMPTY, |all, mask| all | *mask);
    let mut cells = Vec::from_iter((!all.is_empty()).then_some(all));
    for mask in masks {
        for index in 0..cells.len() {
            let inside = cells[index] & *mask;
            if !inside.is_empty() && inside != cells[index] {
                cells.push(cells[index] - inside);
                cells[index] = inside;
            }
        }
        if cells.len() == all.len() {
            break;
        }
    }
    cells
}

/// What flows: any exact amount.
trait Amount: Clone + Ord + for<'a> AddAssign<&'a Self> + for<'a> SubAssign<&'a Self> {
    const ZERO: Self;
    fn times(&self, count: usize) -> Self;
}

impl Amount for u128 {
    const ZERO: Self = 0;
    fn times(&self, count: usize) -> Self {
        self * count as u128
    }
}

impl Amount for BigUint {
    const ZERO: Self = BigUint::ZERO;
    fn times(&self, count: usize) -> Self {
        self * count
    }
}

/// A flow that grows until it is maximal.
///
/// Invariant: what group g sends along its edges and `left[g]` are its demand; what cell c receives
/// and `room[c]` are its supply.
struct Flow<'a, A> {
    shape: &'a Shape,
    left: Vec<A>,
    room: Vec<A>,
    sent: Vec<A>,
    /// Distance from a group with something left, in steps from group to group; groups and cells
    /// at `usize::MAX` are out of reach.
    group_level: Vec<usize>,
    cell_level: Vec<usize>,
    /// The first edge that may still lead on, per group and per cell, within one phase.
    group_next: Vec<usize>,
    cell_next: Vec<usize>,
}

impl<'a, A: Amount> Flow<'a, A> {
    fn new(shape: &'a Shape, demands: Vec<A>, cpu: &A) -> Self {
        let (groups, cells) = (shape.masks.len(), shape.cells.len());
        Self {
            shape,
            left: demands,
            room: shape
                .cells
                .iter()
                .map(|cell| cpu.times(cell.len()))
                .collect(),
            sent: vec![A::ZERO; shape.edges.len()],
            group_level: vec![usize::MAX; groups],
            cell_level: vec![usize::MAX; cells],
            group_next: vec![0; groups],
            cell_next: vec![0; cells],
        }
    }

    /// Lets all flow that can. What is left over shows a crowd.
    fn run(mut self) -> Option<Crowd> {
        while self.measure() {
            self.group_next.fill(0);
            self.cell_next.fill(0);
            for group in 0..self.left.len() {
                while self.left[group] > A::ZERO {
                    let Some(path) = self.path_from(group) else {
                        break;
                    };
                    self.send(group, &path);
                }
            }
        }
        self.smallest_crowd()
    }

    /// Measures the levels; whether anything left over can reach a cell with room.
    fn measure(&mut self) -> bool {
        let sources = (0..self.left.len()).filter(|&group| self.left[group] > A::ZERO);
        let sources: Vec<usize> = sources.collect();
        self.spread(&sources)
    }

    /// Levels from these groups on; whether a cell with room is in reach.
    fn spread(&mut self, sources: &[usize]) -> bool {
        self.group_level.fill(usize::MAX);
        self.cell_level.fill(usize::MAX);
        let mut open: VecDeque<usize> = sources.iter().copied().collect();
        sources
            .iter()
            .for_each(|&group| self.group_level[group] = 0);
        let mut found = false;
        while let Some(group) = open.pop_front() {
            let level = self.group_level[group];
            for &edge in &self.shape.of_group[group] {
                let cell = self.shape.edges[edge].1;
                if self.cell_level[cell] != usize::MAX {
                    continue;
                }
                self.cell_level[cell] = level;
                found |= self.room[cell] > A::ZERO;
                for &back in &self.shape.of_cell[cell] {
                    let other = self.shape.edges[back].0;
                    if self.group_level[other] == usize::MAX && self.sent[back] > A::ZERO {
                        self.group_level[other] = level + 1;
                        open.push_back(other);
                    }
                }
            }
        }
        found
    }

    /// Edges from the group to a cell with room, forwards and backwards by turns, each a level on.
    /// Edges that lead nowhere are not tried again in this phase.
    fn path_from(&mut self, source: usize) -> Option<Vec<usize>> {
        let mut path = Vec::new();
        let mut group = source;
        loop {
            match self.forward(group) {
                Some(edge) => {
                    path.push(edge);
                    let cell = self.shape.edges[edge].1;
                    if self.room[cell] > A::ZERO {
                        return Some(path);
                    }
                    match self.backward(cell) {
                        Some(back) => {
                            path.push(back);
                            group = self.shape.edges[back].0;
                        }
                        None => {
                            path.pop();
                            self.group_next[group] += 1;
                        }
                    }
                }
                None => {
                    // Back to the cell before, which tries its next group.
                    let back = path.pop()?;
                    self.cell_next[self.shape.edges[back].1] += 1;
                    let edge = path.pop().expect("a way forward precedes each way back");
                    group = self.shape.edges[edge].0;
                }
            }
        }
    }

    /// The next edge of the group to a cell of its own level.
    fn forward(&mut self, group: usize) -> Option<usize> {
        let edges = &self.shape.of_group[group];
        while let Some(&edge) = edges.get(self.group_next[group]) {
            if self.cell_level[self.shape.edges[edge].1] == self.group_level[group] {
                return Some(edge);
            }
            self.group_next[group] += 1;
        }
        None
    }

    /// The next edge into the cell on which a group of the next level sends something.
    fn backward(&mut self, cell: usize) -> Option<usize> {
        let edges = &self.shape.of_cell[cell];
        while let Some(&edge) = edges.get(self.cell_next[cell]) {
            let other = self.shape.edges[edge].0;
            if self.group_level[other] == self.cell_level[cell] + 1 && self.sent[edge] > A::ZERO {
                return Some(edge);
            }
            self.cell_next[cell] += 1;
        }
        None
    }

    /// Sends as much as the path takes.
    fn send(&mut self, source: usize, path: &[usize]) {
        let last = path.last().expect("a path has at least one edge");
        let cell = self.shape.edges[*last].1;
        let backwards = path.iter().skip(1).step_by(2);
        let narrowest = backwards.map(|&edge| &self.sent[edge]).min();
        let mut amount = (&self.left[source]).min(&self.room[cell]);
        if let Some(narrowest) = narrowest {
            amount = amount.min(narrowest);
        }
        let amount = amount.clone();
        self.left[source] -= &amount;
        self.room[cell] -= &amount;
        for (step, &edge) in path.iter().enumerate() {
            match step % 2 {
                0 => self.sent[edge] += &amount,
                _ => self.sent[edge] -= &amount,
            }
        }
    }

    /// After all has flowed: everything in reach of a group with something left is full of what the
    /// groups in reach send, so they need more than there is. Of several such groups, the one with
    /// the fewest CPUs in reach, since it explains most.
    fn smallest_crowd(mut self) -> Option<Crowd> {
        /// Each look costs as much as a phase, and the reader gains little from many.
        const LOOKS: usize = 64;
        let unhappy = (0..self.left.len()).filter(|&group| self.left[group] > A::ZERO);
        let unhappy: Vec<usize> = unhappy.take(LOOKS).collect();
        let mut best: Option<Crowd> = None;
        for group in unhappy {
            self.spread(&[group]);
            let crowd = self.in_reach();
            let smaller = |best: &Crowd| {
                let size = |crowd: &Crowd| (crowd.cpus.len(), crowd.masks.len());
                size(&crowd) < size(best)
            };
            if best.as_ref().is_none_or(smaller) {
                best = Some(crowd);
            }
        }
        best
    }

    fn in_reach(&self) -> Crowd {
        let groups = (0..self.left.len()).filter(|&group| self.group_level[group] != usize::MAX);
        let cells = (0..self.room.len()).filter(|&cell| self.cell_level[cell] != usize::MAX);
        Crowd {
            masks: groups.map(|group| self.shape.masks[group]).collect(),
            cpus: cells.fold(CpuSet::EMPTY, |cpus, cell| cpus | self.shape.cells[cell]),
        }
    }
}
