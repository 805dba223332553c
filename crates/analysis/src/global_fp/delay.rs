//! How long a task waits while every CPU runs others: the least fixed point of published response-time
//! iterations, found by leaps.

use crate::Steps;

/// The least length x >= `cost` with x = cost + floor(sum of min(W_i, x - cost + 1) / cpus), or some
/// length above `limit` if there is none up to it; `None` when out of steps.
///
/// `work` writes the W_i for a length: what each rival may run in a window that long. They must not
/// shrink as the length grows, nor may the sum with the best choice, if `work` chooses among several
/// bounds by the length. All in nanoseconds, `limit` and W_i below 2^64 - 1.
///
/// # Cost
/// One step per rival and leap. Plain iteration may go up by single nanoseconds where as many rivals
/// as CPUs are cut off; a leap goes to the least length that the W_i of the present one allow, which
/// is never beyond the least fixed point since they only grow.
pub(super) fn least_response(
    cost: u64,
    limit: u64,
    cpus: usize,
    steps: &mut Steps,
    mut work: impl FnMut(u64, &mut Vec<u64>),
) -> Option<u64> {
    let mut works = Vec::new();
    let mut length = cost;
    while length <= limit {
        works.clear();
        work(length, &mut works);
        steps.take(works.len() + 1)?;
        let most = length - cost + 1;
        let delay: u128 = works.iter().map(|&work| u128::from(work.min(most))).sum();
        if delay / cpus.max(1) as u128 <= u128::from(length - cost) {
            break;
        }
        works.sort_unstable();
        let next = u128::from(cost) + least_delay(&works, cpus.max(1));
        length = u64::try_from(next).unwrap_or(u64::MAX);
    }
    Some(length)
}

/// The least x with floor(sum of min(W_i, x + 1) / cpus) <= x, for ascending W_i.
fn least_delay(works: &[u64], cpus: usize) -> u128 {
    // With y = x + 1, the least y with sum of min(W_i, y) < cpus y. The sum is concave and zero at
    // zero, so the search is for the only place where it falls below the line. Between neighbours
    // of the W_i it is linear: those below count whole, `cut` others count y.
    let mut whole = 0;
    let mut last = 0;
    for (place, &work) in works.iter().enumerate() {
        let work = u128::from(work);
        let cut = works.len() - place;
        if cut < cpus {
            let y = (whole / (cpus - cut) as u128 + 1).max(last + 1);
            if y <= work {
                return y - 1;
            }
        }
        whole += work;
        last = work;
    }
    (whole / cpus as u128 + 1).max(last + 1) - 1
}

#[cfg(test)]
mod tests {
    use shiftwork_model::RandomStream;

    use super::*;

    #[test]
    fn leaps_end_where_single_steps_do() {
        for seed in 0..3_000 {
            let mut stream = RandomStream::new(seed, 61, 0);
            let cpus = 1 + stream.below(4) as usize;
            let cost = 1 + stream.below(5);
            let rivals: Vec<(u64, u64)> = (0..stream.below(7))
                .map(|_| (stream.below(6), 1 + stream.below(9)))
                .collect();
            let work = |length: u64, works: &mut Vec<u64>| {
                works.extend(
                    rivals
                        .iter()
                        .map(|&(cost, period)| length.div_ceil(period) * cost),
                );
            };
            let by_single_steps = (cost..=60).find(|&length| {
                let mut works = Vec::new();
                work(length, &mut works);
                let delay: u64 = works.iter().map(|&work| work.min(length - cost + 1)).sum();
                cost + delay / cpus as u64 <= length
            });
            let found = least_response(cost, 60, cpus, &mut Steps::ordinary(), work).unwrap();
            assert_eq!(
                (found <= 60).then_some(found),
                by_single_steps,
                "seed {seed}: {cost} among {rivals:?} on {cpus}"
            );
        }
    }
}
