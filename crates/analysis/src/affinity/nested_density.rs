//! Deadlines under EDF with nested affinities, by densities alone.

use num_bigint::BigInt;
use shiftwork_model::Share;

use super::family::Family;
use crate::filter::{Interval, RATIO, ratio};
use crate::global_edf::fractions::common_multiple;
use crate::global_edf::{fits_alone, shorter};
use crate::{NotShown, Outcome, Placed, Sporadic, Steps};

/// Whether EDF with the strong invariant is shown to meet all deadlines under nested affinities, by
/// the densities C / min(D, T).
///
/// Let U(g) be the sum of the densities of all tasks whose affinities lie inside node g, |g| its
/// CPUs, and load(g) the greatest of
///
/// > (U(g) + (|g| - 1) delta) / |g|, for each task of density delta whose affinity is g,
/// > load(h) + (U(g) - U(h)) / |g|, for each child h of g.
///
/// The set passes if load(root) <= `supply` for every component. With one affinity that is the condition
/// of Goossens, Funk and Baruah. A failure has the task with the greatest density of the node from
/// which the greatest load comes.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension; arbitrary deadlines. At every time the
/// strong invariant holds for the deadlines of the current jobs (`hpa-edf`, `strong-edf`; `g-edf`
/// where all affinities are the same), ties in any way.
///
/// # Cost
/// One step per task, and O(s) for affinities of s CPUs in all; exact integers of the size of the
/// least common multiple of periods and deadlines only if both sides agree to about twelve digits.
///
/// # Source
/// Theorem 1 of `docs/theory/strong-edf.md`, not refereed; for one affinity [`crate::global_edf::gfb`].
pub fn nested_density(tasks: &[Placed], supply: Share, steps: &mut Steps) -> Outcome<NotShown> {
    if steps.take(tasks.len()).is_none() {
        return Outcome::StepLimit;
    }
    if let Some(place) = tasks.iter().position(|placed| !fits_alone(&placed.task)) {
        return Outcome::Fail(NotShown { place });
    }
    let family = match Family::of(tasks.iter().map(|placed| &placed.cpus)) {
        Ok(family) => family,
        Err(place) => return Outcome::Fail(NotShown { place }),
    };
    match nearly(tasks, &family, supply).or_else(|| exactly(tasks, &family, supply, steps)) {
        None => Outcome::StepLimit,
        Some(Ok(())) => Outcome::Pass(()),
        Some(Err(node)) => Outcome::Fail(NotShown {
            place: densest(tasks, &family)[node],
        }),
    }
}

/// The place of the first task of the greatest density, by node.
fn densest(tasks: &[Placed], family: &Family) -> Vec<usize> {
    let denser = |one: &Sporadic, other: &Sporadic| {
        let length = |task: &Sporadic| u128::from(shorter(task).as_ns());
        one.cost_ns() * length(other) > other.cost_ns() * length(one)
    };
    let mut densest = vec![usize::MAX; family.nodes().len()];
    for (place, &node) in family.node_of().iter().enumerate() {
        let known = tasks.get(densest[node]);
        if known.is_none_or(|known| denser(&tasks[place].task, &known.task)) {
            densest[node] = place;
        }
    }
    densest
}

/// By floats, if nothing is too close: whether all loads are at most `supply`, or the node from which a
/// load above it comes.
fn nearly(tasks: &[Placed], family: &Family, supply: Share) -> Option<Result<(), usize>> {
    // By node the sum, the greatest and the number of densities.
    let mut own = vec![(0.0, 0.0f64, 0); family.nodes().len()];
    for (placed, &node) in tasks.iter().zip(family.node_of()) {
        let density = ratio(placed.task.cost.as_ns(), shorter(&placed.task).as_ns());
        let (sum, greatest, count) = &mut own[node];
        *sum += density;
        *greatest = greatest.max(density);
        *count += 1;
    }
    let own = own.into_iter().map(|(sum, greatest, count)| {
        let sum = Interval::within(sum, count + RATIO);
        (sum, Interval::within(greatest, RATIO))
    });
    let supply = Interval::ratio(supply.billionths().into(), Share::WHOLE.into());
    decide(family, own.collect(), &supply)
}

/// By integers, as parts of a CPU of which a density and the share of every node are whole numbers.
fn exactly(
    tasks: &[Placed],
    family: &Family,
    supply: Share,
    steps: &mut Steps,
) -> Option<Result<(), usize>> {
    let mut lengths: Vec<u64> = tasks
        .iter()
        .map(|placed| shorter(&placed.task).as_ns())
        .collect();
    lengths.sort_unstable();
    lengths.dedup();
    let whole = common_multiple(&lengths, steps)?;
    let mut sizes: Vec<u64> = family.nodes().iter().map(|node| node.cpus as u64).collect();
    sizes.dedup();
    let whole = whole * common_multiple(&sizes, steps)?;
    let words = whole.bits() as usize / 64 + 1;
    steps.take(words.checked_mul(tasks.len() + family.nodes().len())?)?;
    let density =
        |task: &Sporadic| BigInt::from(&whole / shorter(task).as_ns() * task.cost.as_ns());
    let mut own = vec![(BigInt::ZERO, BigInt::ZERO); family.nodes().len()];
    for (placed, &node) in tasks.iter().zip(family.node_of()) {
        let density = density(&placed.task);
        let (sum, greatest) = &mut own[node];
        *sum += &density;
        if density > *greatest {
            *greatest = density;
        }
    }
    // Loads are whole numbers, so the limit may be rounded down.
    let supply = whole * supply.billionths() / Share::WHOLE;
    decide(family, own, &BigInt::from(supply))
}

/// What loads are computed in.
trait Number: Clone {
    fn plus(&self, other: &Self) -> Self;
    fn minus(&self, other: &Self) -> Self;
    /// `of` of `cpus` equal parts.
    fn share(&self, of: usize, cpus: usize) -> Self;
    fn greater(&self, other: &Self) -> Self;
    /// `None` if that is not known.
    fn at_most(&self, other: &Self) -> Option<bool>;
}

impl Number for Interval {
    fn plus(&self, other: &Self) -> Self {
        *self + *other
    }

    fn minus(&self, other: &Self) -> Self {
        *self - *other
    }

    fn share(&self, of: usize, cpus: usize) -> Self {
        *self * Self::of(of as u128) / Self::of(cpus as u128)
    }

    fn greater(&self, other: &Self) -> Self {
        self.max(*other)
    }

    fn at_most(&self, other: &Self) -> Option<bool> {
        Self::at_most(*self, *other)
    }
}

impl Number for BigInt {
    fn plus(&self, other: &Self) -> Self {
        self + other
    }

    fn minus(&self, other: &Self) -> Self {
        self - other
    }

    /// Exact, as all numbers are multiples of all |g|.
    fn share(&self, of: usize, cpus: usize) -> Self {
        self / cpus * of
    }

    fn greater(&self, other: &Self) -> Self {
        self.max(other).clone()
    }

    fn at_most(&self, other: &Self) -> Option<bool> {
        Some(self <= other)
    }
}

/// Whether all loads are at most `supply`, from the sum and the greatest of the densities of the own tasks
/// of each node; or the node where a load above it begins.
fn decide<N: Number>(family: &Family, own: Vec<(N, N)>, supply: &N) -> Option<Result<(), usize>> {
    let nodes = family.nodes();
    let mut sums = Vec::with_capacity(nodes.len());
    // By node the greatest load less U/|g|, and where it begins.
    let mut extra = Vec::with_capacity(nodes.len());
    for ((sum, greatest), (place, node)) in own.into_iter().zip(nodes.iter().enumerate()) {
        sums.push(sum);
        extra.push((greatest.share(node.cpus - 1, node.cpus), place));
    }
    for (place, node) in nodes.iter().enumerate().rev() {
        let sum = sums[place].clone();
        let (begun, from) = &extra[place];
        let (load, from) = (begun.plus(&sum.share(1, node.cpus)), *from);
        let Some(parent) = node.parent else {
            match load.at_most(supply) {
                Some(true) => continue,
                Some(false) => return Some(Err(from)),
                None => return None,
            }
        };
        let carried = load.minus(&sum.share(1, nodes[parent].cpus));
        let (known, begins) = &extra[parent];
        // Where it is not known which is greater, either may be named.
        let begins = match carried.at_most(known) {
            Some(false) => from,
            _ => *begins,
        };
        extra[parent] = (known.greater(&carried), begins);
        sums[parent] = sums[parent].plus(&sum);
    }
    Some(Ok(()))
}
