//! Sums of fractions compared exactly, for what the filter leaves open.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use num_bigint::{BigInt, BigUint};

use crate::Steps;

/// How the sum of fractions (numerator, denominator) compares with another fraction. Denominators
/// are above zero. `None` when out of steps.
///
/// # Cost
/// One step per fraction, and for each different denominator one per word of their common multiple.
pub(super) fn compare(
    parts: impl IntoIterator<Item = (BigInt, u64)>,
    bound: (i128, u128),
    steps: &mut Steps,
) -> Option<Ordering> {
    let mut by_denominator: BTreeMap<u64, BigInt> = BTreeMap::new();
    for (numerator, denominator) in parts {
        steps.take(1)?;
        *by_denominator.entry(denominator).or_default() += numerator;
    }
    let common = common_multiple(by_denominator.keys(), steps)?;
    let words = common.bits() as usize / 64 + 1;
    let mut sum = BigInt::ZERO;
    for (denominator, numerator) in by_denominator {
        steps.take(words)?;
        sum += numerator * BigInt::from(&common / denominator);
    }
    let bound_sum = BigInt::from(bound.0) * BigInt::from(common);
    Some((sum * BigInt::from(bound.1)).cmp(&bound_sum))
}

/// The least common multiple of numbers above zero.
pub(crate) fn common_multiple<'a>(
    numbers: impl IntoIterator<Item = &'a u64>,
    steps: &mut Steps,
) -> Option<BigUint> {
    let mut common = BigUint::from(1u8);
    for &number in numbers {
        steps.take(common.bits() as usize / 64 + 1)?;
        let rest = u64::try_from(&common % number).expect("a remainder is below its divisor");
        common *= number / gcd(number, rest);
    }
    Some(common)
}

const fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirds_and_sixths_make_a_whole_exactly() {
        let compare = |bound| {
            let parts = [(1.into(), 3), (1.into(), 6), (1.into(), 2)];
            compare(parts, bound, &mut Steps::ordinary())
        };
        assert_eq!(compare((1, 1)), Some(Ordering::Equal));
        assert_eq!(compare((i128::MAX, 1 << 127)), Some(Ordering::Greater));
        assert_eq!(compare(((1 << 100) + 1, 1 << 100)), Some(Ordering::Less));
        assert_eq!(compare((-1, 1)), Some(Ordering::Greater));
    }

    #[test]
    fn a_sum_may_be_too_long_for_the_steps() {
        let parts = (1..100u64).map(|number| (BigInt::from(1), number));
        assert_eq!(compare(parts, (5, 1), &mut Steps::at_most(120)), None);
    }
}
