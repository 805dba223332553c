//! The intervals in which a lock is held.

use shiftwork_model::{Instant, Span};

/// Maximum number of reservations. So many are outstanding only if CPUs lag far behind.
const RESERVATIONS_MAX: usize = 1_024;

/// The future intervals in which a lock is held.
///
/// Invariant: the intervals are in the order of time, are not empty and do not overlap.
#[derive(Clone, Debug, Default)]
pub(super) struct Lock {
    held: Vec<(Instant, Instant)>,
}

impl Lock {
    /// The first instant from `begin` on at which the lock is free, and stays so for `hold`.
    pub(super) fn first_free(&self, begin: Instant, hold: Span) -> Instant {
        let mut at = begin;
        for &(from, until) in &self.held {
            if at + hold <= from {
                break;
            }
            at = at.max(until);
        }
        at
    }

    /// Holds the lock for `hold` from `at` on, when it is free.
    ///
    /// If there are too many reservations, the first two are merged: the gap between them is lost.
    pub(super) fn hold(&mut self, at: Instant, hold: Span) {
        let place = self.held.partition_point(|&(from, _)| from < at);
        self.held.insert(place, (at, at + hold));
        if self.held.len() > RESERVATIONS_MAX {
            let (from, _) = self.held.remove(0);
            self.held[0].0 = from;
        }
    }

    /// Drops the reservations that end by `now`; later calls must not begin before it.
    pub(super) fn forget(&mut self, now: Instant) {
        let over = self.held.partition_point(|&(_, until)| until <= now);
        self.held.drain(..over);
    }
}

/// The first instant from `begin` on at which all of these locks are free for `hold`.
pub(super) fn first_free_of_all<'a>(
    locks: impl Iterator<Item = &'a Lock> + Clone,
    begin: Instant,
    hold: Span,
) -> Instant {
    let mut at = begin;
    loop {
        let next = locks.clone().fold(at, |at, lock| lock.first_free(at, hold));
        if next == at {
            return at;
        }
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::RandomStream;

    const AT: fn(u64) -> Instant = Instant::from_ns;
    const NS: fn(u64) -> Span = Span::from_ns;

    #[test]
    fn operation_waits_for_the_first_gap_that_is_long_enough() {
        let mut lock = Lock::default();
        lock.hold(AT(10), NS(5));
        lock.hold(AT(2), NS(4));
        assert_eq!(lock.first_free(AT(0), NS(2)), AT(0));
        assert_eq!(lock.first_free(AT(0), NS(3)), AT(6));
        assert_eq!(lock.first_free(AT(7), NS(3)), AT(7));
        assert_eq!(lock.first_free(AT(7), NS(4)), AT(15));
        lock.forget(AT(6));
        assert_eq!(lock.held, [(AT(10), AT(15))]);
    }

    #[test]
    fn free_intervals_contain_no_held_nanosecond() {
        for seed in 1..=300 {
            let mut random = RandomStream::new(seed, 0, 0);
            let mut locks = [Lock::default(), Lock::default()];
            let mut taken = [[false; 500]; 2];
            for step in 0..40 {
                let (begin, hold) = (random.below(100), 1 + random.below(6));
                let wanted = 0..1 + random.below(2) as usize;
                let is_free = |at: u64| {
                    let span = at as usize..(at + hold) as usize;
                    let held = |lock: usize| taken[lock][span.clone()].contains(&true);
                    !wanted.clone().any(held)
                };
                let expected = (begin..).find(|&at| is_free(at)).unwrap();
                let at = first_free_of_all(locks[wanted.clone()].iter(), AT(begin), NS(hold));
                assert_eq!(at, AT(expected), "seed {seed}, step {step}");
                for lock in wanted {
                    locks[lock].hold(at, NS(hold));
                    taken[lock][expected as usize..(expected + hold) as usize].fill(true);
                }
            }
        }
    }

    #[test]
    fn reservation_beyond_the_maximum_closes_the_first_gap() {
        let mut lock = Lock::default();
        for at in 0..=RESERVATIONS_MAX as u64 {
            lock.hold(AT(10 * at), NS(1));
        }
        assert_eq!(lock.held.len(), RESERVATIONS_MAX);
        assert_eq!(lock.first_free(AT(1), NS(1)), AT(11));
    }
}
