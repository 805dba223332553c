//! How long a job waits at most, by a linear program in the times that it waits at each level.
//!
//! Let X_g be how long it waits at level g, where |g| tasks execute, and I_i how long task i executes in the
//! window. For every set G of levels the tasks execute for the sum of |g| X_g over G while the job waits there, and
//! task i for no more than I_i nor the sum of X_g over those of G that contain it; the tasks of a group with
//! a capacity for no more than the capacity times that sum. Each choice of what counts for which task is a linear
//! inequality, a *cut*. Sums of cuts with factors, not negative, such that every X_g is counted once at least, bound
//! the time waited: that is a *price* for each task's execution. The prices here are integers above one
//! denominator, so that what they prove holds whatever led to them.

use super::levels::{LEVELS_MAX, Program};
use crate::Steps;

/// A number for each level.
type Row = [i128; LEVELS_MAX];

/// Exchanges after which prices are good enough.
const EXCHANGES_MAX: usize = 64;

/// `slope` times X is at most the sum of what the tasks of `whole` execute.
#[derive(Clone, Debug)]
struct Cut {
    slope: Row,
    whole: Vec<usize>,
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

/// A cut as it is evaluated, by group.
#[derive(Default)]
struct Sums {
    values: Vec<i128>,
    above: Vec<i128>,
    is_capped: Vec<bool>,
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
            let inside = program
                .groups
                .iter()
                .filter(|group| group.levels >> level & 1 == 1);
            let whole = inside.flat_map(|group| group.members.clone()).collect();
            cuts.push(Cut { slope, whole });
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
        let mut totals: Vec<i128> = self.cuts.iter().map(|cut| cut.total(works)).collect();
        let mut best = u128::MAX;
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
    pub(super) fn bound_of(&self, mut total: impl FnMut(&[usize]) -> Option<i128>) -> Option<u128> {
        let totals: Option<Vec<i128>> = self.cuts.iter().map(|cut| total(&cut.whole)).collect();
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
            let (mut slope, whole) = ([0; LEVELS_MAX], Vec::new());
            slope[level] = -1;
            return Some(Cut { slope, whole });
        }
        let mut sums = Sums::default();
        let thresholds = self.thresholds(program, times);
        let (mut worst, mut most) = (None, 0);
        for levels in 1..1 << program.sizes.len() {
            let sizes = program.sizes.iter().zip(times).enumerate();
            let in_levels = sizes.filter(|(level, _)| levels >> level & 1 == 1);
            let mut left = in_levels.map(|(_, (size, time))| size.checked_mul(*time));
            let left = left.try_fold(0i128, |sum, term| sum.checked_add(term?))?;
            let right = sums.evaluate(program, works, levels, &thresholds, self.determinant)?;
            if left - right > most {
                (worst, most) = (Some(levels), left - right);
            }
        }
        let levels = worst?;
        sums.evaluate(program, works, levels, &thresholds, self.determinant)?;
        Some(sums.cut(program, works, levels, &thresholds))
    }

    /// By set of levels: the sum of X_g times the determinant, and the least whole number that is not below the sum.
    fn thresholds(&self, program: &Program, times: &Row) -> Vec<(i128, u64)> {
        let sum = |levels: usize| {
            let of_level = |(level, &time): (usize, &i128)| (levels >> level & 1) as i128 * time;
            times.iter().enumerate().map(of_level).sum::<i128>()
        };
        let sums = (0..1 << program.sizes.len()).map(sum);
        let above = |sum: i128| {
            let above = (sum + self.determinant - 1) / self.determinant;
            u64::try_from(above).unwrap_or(u64::MAX)
        };
        sums.map(|sum| (sum, above(sum))).collect()
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
    fn total(&self, works: &[u64]) -> i128 {
        self.whole
            .iter()
            .map(|&place| i128::from(works[place]))
            .sum()
    }
}

impl Sums {
    /// The right side of the cut for a set of levels, times the determinant.
    fn evaluate(
        &mut self,
        program: &Program,
        works: &[u64],
        levels: usize,
        thresholds: &[(i128, u64)],
        determinant: i128,
    ) -> Option<i128> {
        let count = program.groups.len();
        self.values.clear();
        self.values.resize(count, 0);
        self.above.clear();
        self.above.resize(count, 0);
        self.is_capped.clear();
        self.is_capped.resize(count, false);
        let mut sum = 0i128;
        for (place, group) in program.groups.iter().enumerate() {
            let (time, threshold) = thresholds[group.levels & levels];
            let (mut whole, mut above) = (0u128, 0i64);
            for &work in &works[group.members.clone()] {
                whole += u128::from(if work < threshold { work } else { 0 });
                above += i64::from(work >= threshold);
            }
            self.above[place] += i128::from(above);
            let rest = i128::from(above).checked_mul(time)?;
            let whole = i128::try_from(whole).ok()?;
            let own = whole.checked_mul(determinant)?.checked_add(rest)?;
            let mut value = self.values[place].checked_add(own)?;
            let most = group.capacity.checked_mul(time)?;
            if most <= value {
                self.is_capped[place] = true;
                self.above[place] = group.capacity;
                value = most;
            }
            match group.parent {
                Some(parent) => {
                    self.values[parent] = self.values[parent].checked_add(value)?;
                    self.above[parent] += self.above[place];
                }
                None => sum = sum.checked_add(value)?,
            }
        }
        Some(sum)
    }

    /// The cut that was evaluated last.
    fn cut(
        &mut self,
        program: &Program,
        works: &[u64],
        levels: usize,
        thresholds: &[(i128, u64)],
    ) -> Cut {
        let mut slope = [0; LEVELS_MAX];
        let mut whole = Vec::new();
        for (level, &size) in program.sizes.iter().enumerate() {
            let counts = levels >> level & 1 == 1;
            slope[level] = if counts { size } else { 0 };
        }
        for (place, group) in program.groups.iter().enumerate().rev() {
            let inside = group.levels & levels;
            match group.parent {
                // What is below a capacity counts with it.
                Some(parent) => self.is_capped[place] |= self.is_capped[parent],
                None => {
                    let counted = (0..program.sizes.len()).filter(|level| inside >> level & 1 == 1);
                    counted.for_each(|level| slope[level] -= self.above[place]);
                }
            }
            if !self.is_capped[place] {
                let (_, threshold) = thresholds[inside];
                let is_whole = |&member: &usize| works[member] < threshold;
                whole.extend(group.members.clone().filter(is_whole));
            }
        }
        Cut { slope, whole }
    }
}
