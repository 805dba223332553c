//! What can be computed apart: a range of task sets of one cell.

use core::fmt;
use core::str::FromStr;

use crate::error::StudyError;
use crate::plan::Plan;
use crate::tally::Tally;

/// Some task sets of one cell: those with the indices `first..last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Work {
    /// The number of the cell.
    pub cell: usize,
    /// The first index.
    pub first: u64,
    /// The first index after it; not below `first`.
    pub last: u64,
}

impl Work {
    /// How many task sets these are.
    pub const fn sets(&self) -> u64 {
        self.last - self.first
    }
}

/// Work that was done, with its answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Which task sets were asked about.
    pub work: Work,
    /// One for each question, as [`Cell::asked`](crate::Cell::asked) lists them.
    pub tallies: Vec<Tally>,
}

/// Work that was done, in no particular order. Because all that is counted are sums, it does not matter how the
/// whole is cut.
pub type Batch = Vec<Counted>;

/// Puts ranges together that follow one another, and sorts them. The ranges must not overlap.
pub fn join(mut batch: Batch) -> Batch {
    batch.sort_by_key(|counted| counted.work);
    let mut joined: Batch = Vec::new();
    for counted in batch {
        match joined.last_mut() {
            Some(before)
                if before.work.cell == counted.work.cell
                    && before.work.last == counted.work.first =>
            {
                before.work.last = counted.work.last;
                let both = before.tallies.iter_mut().zip(&counted.tallies);
                both.for_each(|(sum, tally)| sum.add(tally));
            }
            _ => joined.push(counted),
        }
    }
    joined
}

/// One of several equal shares of a study, for computers that know nothing of one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which one; from 1.
    number: u64,
    /// How many there are.
    of: u64,
}

impl Shard {
    /// The whole study.
    pub const ALL: Self = Self { number: 1, of: 1 };

    /// Number `number`, from 1, of `of`; `None` if there is none.
    pub const fn new(number: u64, of: u64) -> Option<Self> {
        match number >= 1 && number <= of {
            true => Some(Self { number, of }),
            false => None,
        }
    }

    /// Which of so many indices of each cell: `first..last`.
    pub fn range(self, sets: u64) -> (u64, u64) {
        // Products of two counts that fit 64 bits.
        let cut = |share: u64| u128::from(sets) * u128::from(share) / u128::from(self.of);
        (cut(self.number - 1) as u64, cut(self.number) as u64)
    }

    /// How many task sets it has of a study, in all cells together.
    pub fn sets(self, plan: &Plan) -> u64 {
        let (first, last) = self.range(plan.file.sets);
        let cells = plan.cells.iter().filter(|cell| !cell.asked.is_empty());
        (last - first) * cells.count() as u64
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text
            .split_once('/')
            .and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        numbers
            .and_then(|(number, of)| Self::new(number, of))
            .ok_or_else(|| "which share of how many, like 1/8 up to 8/8".to_owned())
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl Plan {
    /// Asks about these task sets, one after the other, as long as `goes_on` says so: before each of them, and
    /// while one is simulated. The range that comes back ends where it stopped; the task set that was given up is
    /// not in it.
    ///
    /// # Errors
    /// If a task set cannot be drawn.
    pub fn run_work(&self, work: Work, goes_on: impl Fn() -> bool) -> Result<Counted, StudyError> {
        let cell = &self.cells[work.cell];
        let mut tallies = vec![Tally::default(); cell.asked.len()];
        for index in work.first..work.last {
            let replies = match goes_on() {
                true => self.trial_while(cell, index, &goes_on)?,
                false => None,
            };
            let Some(replies) = replies else {
                let work = Work {
                    last: index,
                    ..work
                };
                return Ok(Counted { work, tallies });
            };
            for (tally, reply) in tallies.iter_mut().zip(replies) {
                tally.count(reply);
            }
        }
        Ok(Counted { work, tallies })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_everything_once() {
        for sets in [0, 1, 2, 7, 1_000, u64::MAX] {
            for of in [1, 2, 3, 7, 1_001] {
                let shards = (1..=of).filter_map(|number| Shard::new(number, of));
                let end = shards.fold(0, |end, shard| {
                    let (first, last) = shard.range(sets);
                    assert_eq!(first, end, "{shard} of {sets}");
                    assert!(
                        last - first <= (sets / of).saturating_add(1),
                        "{shard} of {sets}"
                    );
                    last
                });
                assert_eq!(end, sets, "{of} shards");
            }
        }
    }

    #[test]
    fn shards_count_from_one() {
        assert_eq!("3/8".parse(), Ok(Shard { number: 3, of: 8 }));
        for wrong in ["", "3", "0/8", "9/8", "1/0", "-1/8", "1/8/2", "a/b"] {
            let said = wrong.parse::<Shard>().unwrap_err();
            assert_eq!(said, "which share of how many, like 1/8 up to 8/8");
        }
    }

    #[test]
    fn neighbours_become_one() {
        let counted = |cell, first, last| Counted {
            work: Work { cell, first, last },
            tallies: vec![Tally {
                sets: last - first,
                ..Tally::default()
            }],
        };
        let all = vec![
            counted(1, 4, 6),
            counted(0, 4, 6),
            counted(0, 0, 4),
            counted(1, 7, 8),
        ];
        assert_eq!(
            join(all),
            [counted(0, 0, 6), counted(1, 4, 6), counted(1, 7, 8)]
        );
    }
}
