//! The most that can be gained with so many CPUs. An array says it for 0, 1, 2, ... of them; it
//! begins with zero and never falls.

use super::number::Number;
use crate::Steps;

/// Leaves in `best` the most that both gain together. `next` is scratch.
pub(super) fn merge<N: Number>(
    best: &mut Vec<N>,
    other: &[N],
    next: &mut Vec<N>,
    steps: &mut Steps,
) -> Option<()> {
    let cpus = best.len();
    let many = other.len().min(cpus);
    // Most nodes in deep trees have one child.
    if best.last().is_none_or(|&most| most <= N::ZERO) {
        steps.take(cpus)?;
        let last = other.last().copied().unwrap_or(N::ZERO);
        best.clear();
        best.extend_from_slice(&other[..many]);
        best.resize(cpus, last);
        return Some(());
    }
    steps.take(cpus * many.saturating_sub(1))?;
    next.clone_from(best);
    for (given, &gain) in other.iter().enumerate().take(many).skip(1) {
        for (sum, &before) in next[given..].iter_mut().zip(best.iter()) {
            *sum = sum.or_more(before + gain);
        }
    }
    std::mem::swap(best, next);
    Some(())
}

/// The array of single tasks that gain this much, one CPU each, for up to `cpus`.
pub(super) fn collect<N: Number>(gains: &[N], cpus: usize, array: &mut Vec<N>) {
    array.clear();
    array.extend(gains.iter().filter(|&&gain| gain > N::ZERO));
    // Gains are finite, so any two compare.
    array.sort_unstable_by(|a, b| b.partial_cmp(a).unwrap_or(std::cmp::Ordering::Equal));
    array.truncate(cpus);
    array.insert(0, N::ZERO);
    for at in 1..array.len() {
        let before = array[at - 1];
        array[at] += before;
    }
}
