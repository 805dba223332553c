//! A set of situations in which a scheduler may be when it has started certain jobs.

/// From when to when something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) low: u64,
    pub(super) high: u64,
}

/// When CPUs are available for jobs that are started next: at place x that x + 1 of them are.
///
/// Invariant: both ends are in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State(Vec<Interval>);

impl State {
    /// All CPUs are available.
    pub(super) fn new(cpus: usize) -> Self {
        Self(vec![Interval { low: 0, high: 0 }; cpus])
    }

    /// When the first CPU is available.
    pub(super) fn first(&self) -> Interval {
        self.0[0]
    }

    /// After a job took the first available CPU, from `earliest` on, which is available again in `end`.
    pub(super) fn after(&self, earliest: u64, end: Interval) -> Self {
        let rest = &self.0[1..];
        let ends = |of: fn(&Interval) -> u64| {
            let mut ends: Vec<u64> = rest.iter().map(|one| of(one).max(earliest)).collect();
            ends.push(of(&end));
            ends.sort_unstable();
            ends
        };
        let (lows, highs) = (ends(|one| one.low), ends(|one| one.high));
        let pairs = lows.into_iter().zip(highs);
        Self(pairs.map(|(low, high)| Interval { low, high }).collect())
    }

    /// Whether the hull says no more of any CPU than one of the two does.
    pub(super) fn meets(&self, other: &Self) -> bool {
        let meet = |(one, other): (&Interval, &Interval)| {
            one.low.max(other.low) <= one.high.min(other.high).saturating_add(1)
        };
        self.0.iter().zip(&other.0).all(meet)
    }

    /// The situations of both, and those between.
    pub(super) fn hull(&self, other: &Self) -> Self {
        let hull = |(one, other): (&Interval, &Interval)| Interval {
            low: one.low.min(other.low),
            high: one.high.max(other.high),
        };
        Self(self.0.iter().zip(&other.0).map(hull).collect())
    }
}
