//! How long a job waits at most, by a linear program in the times that it waits at each level.
//!
//! Let X_g be how long it waits at level g, where |g| tasks execute, and I_i how long task i executes in the
//! window. For every set G of levels the tasks execute for the sum of |g| X_g over G while the job waits there, and
//! task i for no more than I_i nor the sum of X_g over those of G that contain it; the tasks of a group with
//! a capacity for no more than the capacity times that sum. Each choice of what counts for which task is a linear
//! inequality, a *cut*. Sums of cuts with factors, not negative, such that every X_g is counted once at least, bound
//! the time waited: that is a *price* for each task's execution. The prices here are integers above one
//! denominator, so that what they prove holds whatever led to them.

use std::ops::Range;

use shiftwork_model::CPUS_MAX;

use super::levels::{LEVELS_MAX, Program};
use crate::Steps;

/// A number for each level.
type Row = [i128; LEVELS_MAX];

/// Sets of levels, the empty one among them.
const SETS_MAX: usize = 1 << LEVELS_MAX;

/// Exchanges after which prices are good enough.
const EXCHANGES_MAX: usize = 64;

/// `slope` times X is at most the sum of what some tasks execute.
#[derive(Clone, Debug)]
struct Cut {
    slope: Row,
    /// By task, whether it counts, as all bits or none: sums of what counts have no branches and no indices then.
    counts: Vec<u64>,
}

/// As many cuts as levels, linearly independent, of which all X_g together are a combination with factors that are
/// not negative.
///
/// Invariant: with the cuts' slopes as the rows of A, A times `inverse` is the unit matrix times `determinant`, which
/// is above zero; the column sums of `inverse` are not negative.
#[derive(Clone, Debug)]
pub(super) struct Prices {
    cuts: Vec<Cut>,
    inverse: Vec<Row>,
    determinant: i128,
}

/// The right sides of cuts at some X_g.
struct Sums<'a> {
    program: &'a Program,
    works: &'a [u64],
    determinant: i128,
    /// By set of levels: the sum of their X_g times the determinant, and the least whole number that is not below the sum.
    thresholds: [(i128, u64); SETS_MAX],
    /// By group, as evaluated last.
    groups: Vec<Sum>,
}

/// What a group and those below it add to the right side of a cut.
#[derive(Clone, Copy, Default)]
struct Sum {
    value: i128,
    /// How often the sum of X_g is in that.
    above: i128,
    /// Whether that is its capacity, and no execution counts.
    is_capped: bool,
}

impl Prices {
    /// Each level by itself, its CPUs shared by the execution of all tasks inside. `None` if numbers become too large.
    pub(super) fn new(program: &Program) -> Option<Self> {
        let product = |all: i128, &size: &i128| all.checked_mul(size);
        let determinant = program.sizes.iter().try_fold(1, product)?;
        let (mut cuts, mut inverse) = (Vec::new(), Vec::new());
        for (level, &size) in program.sizes.iter().enumerate() {
            let (mut slope, mut column) = ([0; LEVELS_MAX], [0; LEVELS_MAX]);
            slope[level] = size;
            column[level] = determinant / size;
            let mut cut = Cut::new(slope, program.places.len());
            let groups = program.groups.iter();
            groups
                .filter(|group| group.levels >> level & 1 == 1)
                .for_each(|group| cut.counts[group.members.clone()].fill(u64::MAX));
            cuts.push(cut);
            inverse.push(column);
        }
        Some(Self {
            cuts,
            inverse,
            determinant,
        })
    }

    /// A bound on how long a job waits, in whole units, if the tasks of the program execute for as long as `works`
    /// says: the least there is, or some number up to `enough`. `None` when out of steps.
    pub(super) fn bound(
        &mut self,
        program: &Program,
        works: &[u64],
        enough: u64,
        steps: &mut Steps,
    ) -> Option<u128> {
        let mut best = u128::MAX;
        // So small that no sum of them exceeds 64 bits.
        let bits = works.iter().fold(0, |bits, work| bits | work);
        if bits.leading_zeros() <= works.len().max(1).ilog2() {
            return Some(best);
        }
        let mut totals: Vec<i128> = self.cuts.iter().map(|cut| cut.total(works)).collect();
        for _ in 0..EXCHANGES_MAX {
            let Some(times) = self.times(&totals) else {
                break;
            };
            let waited: i128 = times.iter().sum();
            best = best.min((waited / self.determinant).unsigned_abs());
            if best <= u128::from(enough) {
                break;
            }
            steps.take(works.len() + 1)?;
            let exchanged = self.violated(program, works, &times).and_then(|cut| {
                let total = cut.total(works);
                let place = self.exchange(cut)?;
                totals[place] = total;
                Some(())
            });
            if exchanged.is_none() {
                break;
            }
        }
        Some(best)
    }

    /// The bound that the cuts prove if the tasks that count in one execute for as long in sum as `total` says;
    /// `None` if numbers become too large.
    ///
    /// `total` is given for each task whether it counts, as all bits or none.
    pub(super) fn bound_of(&self, total: impl FnMut(&[u64]) -> Option<i128>) -> Option<u128> {
        let counts = self.cuts.iter().map(|cut| cut.counts.as_slice());
        let totals: Option<Vec<i128>> = counts.map(total).collect();
        let waited: i128 = self.times(&totals?)?.iter().sum();
        Some((waited / self.determinant).unsigned_abs())
    }

    /// The X_g at which all cuts hold exactly, times the determinant.
    fn times(&self, totals: &[i128]) -> Option<Row> {
        let mut times = [0; LEVELS_MAX];
        for (time, row) in times.iter_mut().zip(&self.inverse) {
            for (&factor, &total) in row.iter().zip(totals) {
                *time = factor.checked_mul(total)?.checked_add(*time)?;
            }
        }
        Some(times)
    }

    /// A cut that does not hold at these X_g, the one that fails by the most; `None` if all hold, or numbers become
    /// too large.
    fn violated(&self, program: &Program, works: &[u64], times: &Row) -> Option<Cut> {
        if let Some(level) = times.iter().position(|&time| time < 0) {
            let mut slope = [0; LEVELS_MAX];
            slope[level] = -1;
            return Some(Cut::new(slope, works.len()));
        }
        let mut sums = Sums::new(program, works, self.determinant, times)?;
        // By set of levels, how much the left side of the cut exceeds the right one.
        let (mut excess, mut values) = ([0; SETS_MAX], [0; SETS_MAX]);
        let sets = 1usize << program.sizes.len();
        for levels in 1..sets {
            let level = levels.trailing_zeros() as usize;
            excess[levels] = excess[levels & (levels - 1)] + program.sizes[level] * times[level];
        }
        for (all, class) in &program.classes {
            for inside in (1..=*all).filter(|inside| inside & !all == 0) {
                values[inside] = sums.evaluate(class.clone(), inside);
            }
            for levels in 1..sets {
                excess[levels] -= values[levels & all];
            }
        }
        // The first of those that fail by the most.
        let worst = (1..sets).rev().max_by_key(|&levels| excess[levels])?;
        (excess[worst] > 0).then(|| sums.cut(worst))
    }

    /// Takes a cut into the combination for one that keeps all factors from being negative, and says which;
    /// `None`, and nothing has changed, if numbers become too large.
    fn exchange(&mut self, cut: Cut) -> Option<usize> {
        let count = self.cuts.len();
        let mut products = [0i128; LEVELS_MAX];
        let mut factors = [0i128; LEVELS_MAX];
        for (row, &slope) in self.inverse.iter().zip(&cut.slope) {
            for place in 0..count {
                products[place] = slope
                    .checked_mul(row[place])?
                    .checked_add(products[place])?;
                factors[place] = factors[place].checked_add(row[place])?;
            }
        }
        let mut leaving: Option<usize> = None;
        for place in (0..count).filter(|&place| products[place] > 0) {
            let is_less = match leaving {
                None => true,
                Some(other) => {
                    factors[place].checked_mul(products[other])?
                        < factors[other].checked_mul(products[place])?
                }
            };
            if is_less {
                leaving = Some(place);
            }
        }
        let leaving = leaving?;
        let pivot = products[leaving];
        let mut inverse = self.inverse.clone();
        for row in &mut inverse {
            for place in (0..count).filter(|&place| place != leaving) {
                let kept = pivot.checked_mul(row[place])?;
                let taken = products[place].checked_mul(row[leaving])?;
                row[place] = kept.checked_sub(taken)? / self.determinant;
            }
        }
        self.inverse = inverse;
        self.determinant = pivot;
        self.cuts[leaving] = cut;
        Some(leaving)
    }
}

impl Cut {
    /// One in which none of so many tasks counts.
    fn new(slope: Row, tasks: usize) -> Self {
        let counts = vec![0; tasks];
        Self { slope, counts }
    }

    /// How long its tasks execute, if all tasks together do so for less than 2^64 units.
    fn total(&self, works: &[u64]) -> i128 {
        let works = works.iter().zip(&self.counts);
        works
            .map(|(work, counts)| work & counts)
            .sum::<u64>()
            .into()
    }
}

impl<'a> Sums<'a> {
    /// `None` if numbers become too large: no product and no sum exceeds what is looked at here.
    fn new(program: &'a Program, works: &'a [u64], determinant: i128, times: &Row) -> Option<Self> {
        let work = i128::from(works.iter().sum::<u64>()).checked_mul(determinant)?;
        let mut times_left = times.iter();
        let longest = times_left.try_fold(0i128, |sum, &time| sum.checked_add(time))?;
        let counts = works.len() + CPUS_MAX * (program.groups.len() + LEVELS_MAX);
        let counted = longest.checked_mul(counts as i128)?;
        work.checked_add(counted)?.checked_add(determinant)?;

        let mut thresholds = [(0, 0); SETS_MAX];
        for levels in 1..1usize << program.sizes.len() {
            let (sum, _) = thresholds[levels & (levels - 1)];
            let sum = sum + times[levels.trailing_zeros() as usize];
            let above = (sum + determinant - 1) / determinant;
            thresholds[levels] = (sum, u64::try_from(above).unwrap_or(u64::MAX));
        }
        Some(Self {
            program,
            works,
            determinant,
            thresholds,
            groups: vec![Sum::default(); program.groups.len()],
        })
    }

    /// What the groups of a class add to the right side of each cut in which just these of their levels are, times the
    /// determinant.
    fn evaluate(&mut self, class: Range<usize>, inside: usize) -> i128 {
        let (time, threshold) = self.thresholds[inside];
        let mut sum = 0;
        self.groups[class.clone()].fill(Sum::default());
        for place in class {
            let group = &self.program.groups[place];
            let (mut whole, mut above) = (0, 0);
            for &work in &self.works[group.members.clone()] {
                whole += if work < threshold { work } else { 0 };
                above += i64::from(work >= threshold);
            }
            let own = &mut self.groups[place];
            own.above += i128::from(above);
            own.value += i128::from(whole) * self.determinant + i128::from(above) * time;
            let most = group.capacity * time;
            own.is_capped = most <= own.value;
            if own.is_capped {
                own.above = group.capacity;
                own.value = most;
            }
            let Sum { value, above, .. } = *own;
            match group.parent {
                Some(parent) => {
                    self.groups[parent].value += value;
                    self.groups[parent].above += above;
                }
                None => sum += value,
            }
        }
        sum
    }

    /// The cut for a set of levels.
    fn cut(&mut self, levels: usize) -> Cut {
        let mut cut = Cut::new([0; LEVELS_MAX], self.works.len());
        for (level, &size) in self.program.sizes.iter().enumerate() {
            let counts = levels >> level & 1 == 1;
            cut.slope[level] = if counts { size } else { 0 };
        }
        for (all, class) in &self.program.classes {
            let inside = all & levels;
            if inside == 0 {
                continue;
            }
            self.evaluate(class.clone(), inside);
            let (_, threshold) = self.thresholds[inside];
            for place in class.clone().rev() {
                let group = &self.program.groups[place];
                match group.parent {
                    // What is below a capacity counts with it.
                    Some(parent) => self.groups[place].is_capped |= self.groups[parent].is_capped,
                    None => {
                        let counted = (0..LEVELS_MAX).filter(|level| inside >> level & 1 == 1);
                        counted.for_each(|level| cut.slope[level] -= self.groups[place].above);
                    }
                }
                if !self.groups[place].is_capped {
                    for member in group.members.clone() {
                        let is_whole = self.works[member] < threshold;
                        cut.counts[member] = if is_whole { u64::MAX } else { 0 };
                    }
                }
            }
        }
        cut
    }
}
