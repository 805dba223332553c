//! Which of a task's CPUs to look at alone.
//!
//! While a task waits, *all* its CPUs are busy, so also those of any subset; and there only tasks
//! that may use a CPU of the subset delay it. A smaller subset has fewer such tasks, but shares
//! their work among fewer CPUs: neither all CPUs nor one is always best.

use std::collections::BTreeMap;

use shiftwork_model::CpuSet;

use crate::Steps;

/// Up to so many cells, every subset is tried, if there are also few tasks.
const CELLS_MAX: usize = 10;

/// Up to so many pairs of a subset and a task, every subset is tried.
const PAIRS_MAX: usize = 1 << 16;

/// CPUs that the same other tasks may use. An analysis of one of them loses nothing by using all of
/// them.
#[derive(Debug)]
struct Cell {
    cpus: usize,
    /// Which masks have it, as bits.
    touched: Vec<u64>,
}

/// One task's CPUs and the others that may use some of them.
#[derive(Debug)]
pub(super) struct Ground {
    cells: Vec<Cell>,
    /// Per distinct mask the places of the tasks that have it.
    of_mask: Vec<Vec<usize>>,
    others: usize,
}

impl Ground {
    /// The ground of a task that may use `own` among others, given by place and mask.
    ///
    /// A step for each of s CPUs and k distinct masks that share some with them; `None` when out of
    /// steps.
    pub(super) fn new<'a>(
        own: &CpuSet,
        others: impl Iterator<Item = (usize, &'a CpuSet)>,
        steps: &mut Steps,
    ) -> Option<Self> {
        let mut by_mask: BTreeMap<CpuSet, Vec<usize>> = BTreeMap::new();
        for (place, mask) in others {
            by_mask.entry(*mask & *own).or_default().push(place);
        }
        by_mask.remove(&CpuSet::EMPTY);
        steps.take(by_mask.len() * own.len())?;
        let words = by_mask.len().div_ceil(64);
        let mut sizes: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
        for cpu in own.iter() {
            let mut touched = vec![0u64; words];
            for (index, _) in by_mask
                .keys()
                .enumerate()
                .filter(|(_, mask)| mask.contains(cpu))
            {
                touched[index / 64] |= 1 << (index % 64);
            }
            *sizes.entry(touched).or_default() += 1;
        }
        let cells = sizes
            .into_iter()
            .map(|(touched, cpus)| Cell { cpus, touched });
        Some(Self {
            cells: cells.collect(),
            others: by_mask.values().map(Vec::len).sum(),
            of_mask: by_mask.into_values().collect(),
        })
    }

    /// The least that `evaluate` finds, at most `limit`; something above if nothing is. `None` if
    /// `evaluate` gives none.
    ///
    /// `evaluate` gets a number of CPUs, the places of the others there, and what need not be
    /// exceeded to know that this is not the least. `weight` is how much another task matters.
    pub(super) fn least(
        &self,
        limit: u64,
        weight: impl Fn(usize) -> u64,
        mut evaluate: impl FnMut(usize, &[usize], u64) -> Option<u64>,
    ) -> Option<u64> {
        let mut best = limit.saturating_add(1);
        let mut look = |chosen: &[bool]| {
            let (cpus, others) = self.view(chosen);
            best = best.min(evaluate(cpus, &others, best - 1)?);
            Some(())
        };
        let count = self.cells.len();
        let few = count <= CELLS_MAX && (self.others + 1) << count <= PAIRS_MAX;
        if few {
            for bits in (1..1u32 << count).rev() {
                let chosen: Vec<bool> = (0..count).map(|cell| bits >> cell & 1 == 1).collect();
                if self.is_closed(&chosen) {
                    look(&chosen)?;
                }
            }
        } else {
            let mut chosen = vec![true; count];
            let weights: Vec<u128> = self.weights(weight);
            look(&chosen)?;
            while let Some(cell) = self.worst(&chosen, &weights) {
                chosen[cell] = false;
                look(&chosen)?;
            }
        }
        Some(best)
    }

    /// Whether no CPU outside could be added without another task that may use it.
    fn is_closed(&self, chosen: &[bool]) -> bool {
        let union = self.union(chosen);
        let covered = |cell: &Cell| cell.touched.iter().zip(&union).all(|(a, b)| a & !b == 0);
        let mut outside = self
            .cells
            .iter()
            .zip(chosen)
            .filter(|(_, chosen)| !**chosen);
        !outside.any(|(cell, _)| covered(cell))
    }

    fn union(&self, chosen: &[bool]) -> Vec<u64> {
        let mut union = vec![0u64; self.of_mask.len().div_ceil(64)];
        for (cell, _) in self.cells.iter().zip(chosen).filter(|(_, chosen)| **chosen) {
            union
                .iter_mut()
                .zip(&cell.touched)
                .for_each(|(all, one)| *all |= one);
        }
        union
    }

    fn view(&self, chosen: &[bool]) -> (usize, Vec<usize>) {
        let cells = self.cells.iter().zip(chosen).filter(|(_, chosen)| **chosen);
        let union = self.union(chosen);
        let others = bits(&union).flat_map(|mask| self.of_mask[mask].iter().copied());
        (cells.map(|(cell, _)| cell.cpus).sum(), others.collect())
    }

    fn weights(&self, weight: impl Fn(usize) -> u64) -> Vec<u128> {
        let sum = |members: &Vec<usize>| members.iter().map(|&m| u128::from(weight(m))).sum();
        self.of_mask.iter().map(sum).collect()
    }

    /// The chosen cell without which most weight per CPU is gone, if any is, and if it is not the
    /// last.
    fn worst(&self, chosen: &[bool], weights: &[u128]) -> Option<usize> {
        let mut times = vec![0usize; self.of_mask.len()];
        let cells = || (0..self.cells.len()).filter(|&cell| chosen[cell]);
        for cell in cells() {
            bits(&self.cells[cell].touched).for_each(|mask| times[mask] += 1);
        }
        if cells().count() < 2 {
            return None;
        }
        let gone = |cell: usize| -> u128 {
            let alone = bits(&self.cells[cell].touched).filter(|&mask| times[mask] == 1);
            alone
                .map(|mask| weights[mask])
                .fold(0, u128::saturating_add)
        };
        let per_cpu = |cell: usize| gone(cell) / self.cells[cell].cpus as u128;
        // The first among equals, so that the answer is always the same.
        let worst = cells().max_by_key(|&cell| (per_cpu(cell), std::cmp::Reverse(cell)))?;
        (gone(worst) > 0).then_some(worst)
    }
}

/// The places of the ones.
fn bits(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    let ones = |word: u64| (0..64).filter(move |bit| word >> bit & 1 == 1);
    let places = move |(index, &word): (usize, &u64)| ones(word).map(move |bit| index * 64 + bit);
    words.iter().enumerate().flat_map(places)
}
