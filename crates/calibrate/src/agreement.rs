//! Whether two calibrations say the same of a machine.

use crate::statistics::Interval;

/// The mean of one quantity in a calibration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The quantity's name with what it is at.
    pub name: String,
    /// Its mean.
    pub mean: Interval,
}

/// What two calibrations say of one quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The quantity's name.
    pub name: String,
    /// What the earlier one says.
    pub before: Interval,
    /// What the later one says.
    pub after: Interval,
    /// Whether their intervals overlap.
    pub agrees: bool,
}

/// Whether so many differences among so many quantities may be chance: one in 20, as the intervals say.
pub fn may_be_chance(differing: usize, compared: usize) -> bool {
    differing * 20 <= compared
}

/// Compares the means of the quantities that both have measured, in the order of the later.
pub fn compare(before: &[Known], after: &[Known]) -> Vec<Verdict> {
    let of = |later: &Known| {
        let earlier = before.iter().find(|known| known.name == later.name)?;
        Some(Verdict {
            name: later.name.clone(),
            before: earlier.mean,
            after: later.mean,
            agrees: earlier.mean.overlaps(&later.mean),
        })
    };
    after.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(name: &str, low: i64, high: i64) -> Known {
        Known {
            name: name.to_owned(),
            mean: Interval {
                value: i64::midpoint(low, high),
                low,
                high,
            },
        }
    }

    #[test]
    fn one_in_twenty_may_differ_by_chance() {
        let allowed = [(0, 0), (0, 5), (1, 20), (2, 40)];
        assert!(
            allowed
                .into_iter()
                .all(|(differing, of)| may_be_chance(differing, of))
        );
        let refused = [(1, 19), (3, 59)];
        assert!(
            !refused
                .into_iter()
                .any(|(differing, of)| may_be_chance(differing, of))
        );
    }

    #[test]
    fn only_what_both_measured_is_compared() {
        let before = [known("a", 1, 3), known("b", 1, 3), known("c", 5, 6)];
        let after = [known("c", 6, 9), known("d", 0, 0), known("a", 4, 5)];
        let found = compare(&before, &after);
        let said: Vec<_> = found
            .iter()
            .map(|it| (it.name.as_str(), it.agrees))
            .collect();
        assert_eq!(said, [("c", true), ("a", false)]);
        assert_eq!(
            (found[0].before, found[0].after),
            (before[2].mean, after[0].mean)
        );
    }
}
