//! Which of several overlapping ranges to keep, and what is missing then.

/// A range of indices, `first..last`, with an identifying number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first index.
    pub first: u64,
    /// The first index after it.
    pub last: u64,
    /// The place among all ranges.
    pub place: usize,
}

/// The ranges to keep: no two overlap, and no other choice has more indices. So whatever is added, nothing
/// that was there is lost; and the gaps that were filled stay filled. Ranges must not be empty; the result is sorted.
///
/// # Cost
/// O(n log n): scheduling of weighted intervals, by dynamic programming over their ends.
pub fn keep(mut ranges: Vec<Span>) -> Vec<Span> {
    ranges.sort_by_key(|range| (range.last, range.first, range.place));
    // most[i]: how many indices the first i ranges can have; and whether the last of them is taken for that.
    let mut most = vec![0_u64];
    let mut taken = Vec::with_capacity(ranges.len());
    let before = |range: &Span| ranges.partition_point(|other| other.last <= range.first);
    for range in &ranges {
        let with = most[before(range)] + (range.last - range.first);
        let without = most[most.len() - 1];
        taken.push(with > without);
        most.push(with.max(without));
    }
    let mut kept = Vec::new();
    let mut left = ranges.len();
    while left > 0 {
        left = match taken[left - 1] {
            true => {
                kept.push(ranges[left - 1]);
                before(&ranges[left - 1])
            }
            false => left - 1,
        };
    }
    kept.reverse();
    kept
}

/// What of `first..last` is in none of these ranges, which are sorted and do not overlap.
pub fn gaps(kept: impl IntoIterator<Item = (u64, u64)>, first: u64, last: u64) -> Vec<(u64, u64)> {
    let mut gaps = Vec::new();
    let mut at = first;
    for (from, to) in kept {
        let until = from.min(last);
        if until > at {
            gaps.push((at, until));
        }
        at = at.max(to);
    }
    if last > at {
        gaps.push((at, last));
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(ranges: &[(u64, u64)]) -> Vec<Span> {
        let span = |(place, &(first, last))| Span { first, last, place };
        ranges.iter().enumerate().map(span).collect()
    }

    /// The definition: the most indices of any choice without overlaps.
    fn most(ranges: &[(u64, u64)]) -> u64 {
        let choices = 0_u32..1 << ranges.len();
        let value = |choice: u32| {
            let mut chosen: Vec<_> = ranges
                .iter()
                .enumerate()
                .filter(|(place, _)| choice >> place & 1 == 1)
                .map(|(_, &range)| range)
                .collect();
            chosen.sort_unstable();
            let fits = chosen.windows(2).all(|pair| pair[0].1 <= pair[1].0);
            fits.then(|| chosen.iter().map(|(first, last)| last - first).sum())
        };
        choices.filter_map(value).max().unwrap_or(0)
    }

    #[test]
    fn as_much_is_kept_as_can_be() {
        for seed in 1..=400 {
            let mut random = shiftwork_model::RandomStream::new(seed, 0, 0);
            let count = 1 + random.below(7);
            let ranges: Vec<(u64, u64)> = (0..count)
                .map(|_| {
                    let first = random.below(12);
                    (first, first + 1 + random.below(6))
                })
                .collect();
            let kept = keep(spans(&ranges));
            assert!(
                kept.windows(2).all(|pair| pair[0].last <= pair[1].first),
                "seed {seed}: {ranges:?} {kept:?}"
            );
            let sum: u64 = kept.iter().map(|span| span.last - span.first).sum();
            assert_eq!(sum, most(&ranges), "seed {seed}: {ranges:?} {kept:?}");
            let pairs = || kept.iter().map(|span| (span.first, span.last));
            let missing: u64 = gaps(pairs(), 0, 20).iter().map(|(a, b)| b - a).sum();
            assert_eq!(missing + sum, 20, "seed {seed}: {ranges:?} {kept:?}");
        }
    }

    #[test]
    fn gaps_lie_inside_what_is_asked() {
        assert_eq!(gaps([], 3, 5), [(3, 5)]);
        assert_eq!(gaps([(0, 4), (6, 9)], 2, 12), [(4, 6), (9, 12)]);
        assert_eq!(gaps([(0, 4), (6, 9)], 7, 8), []);
        assert_eq!(gaps([(6, 9)], 0, 3), [(0, 3)]);
    }
}
