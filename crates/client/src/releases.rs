//! The release times of a periodic task.

use shiftwork_model::{Instant, Span};

/// Periodic releases: `last` is that of the current job, the next ones are at `last + k * period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Releases {
    last: Instant,
    /// Not zero.
    period: Span,
}

/// A release in the future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextRelease {
    /// Its instant; [`Instant::NEVER`] beyond the range of the clock.
    pub(crate) at: Instant,
    /// Number of releases since the last one that have passed without a wait.
    pub(crate) missed: u64,
}

impl Releases {
    /// Releases from `first` on. A period of zero, which the daemon refuses, is taken as a nanosecond.
    pub(crate) fn from(first: Instant, period: Span) -> Self {
        Self {
            last: first,
            period: period.max(Span::from_ns(1)),
        }
    }

    /// The release of the current job.
    pub(crate) const fn last(&self) -> Instant {
        self.last
    }

    /// The first release after `now`.
    ///
    /// A release exactly at `now` does not count: the thread would not sleep, and only sleeping ends a job for the daemon.
    pub(crate) fn next_after(&self, now: Instant) -> NextRelease {
        let missed = now.late_since(self.last).as_ns() / self.period.as_ns();
        let ahead = self.period.checked_mul(missed.saturating_add(1));
        NextRelease {
            at: ahead.map_or(Instant::NEVER, |span| self.last + span),
            missed,
        }
    }

    /// The release has been reached.
    pub(crate) fn pass(&mut self, release: NextRelease) {
        self.last = release.at;
    }

    /// Replaces the period, counted from the last release.
    pub(crate) fn set_period(&mut self, period: Span) {
        *self = Self::from(self.last, period);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: steps through the releases until one is in the future.
    fn defined(last: Instant, period: Span, now: Instant) -> NextRelease {
        let mut ahead = NextRelease {
            at: last + period,
            missed: 0,
        };
        while ahead.at <= now {
            ahead.at += period;
            ahead.missed += 1;
        }
        ahead
    }

    #[test]
    fn next_release_agrees_with_definition() {
        for (last, period, now) in (0..6).flat_map(|last| {
            (1..6).flat_map(move |period| (0..40).map(move |now| (last, period, now)))
        }) {
            let (last, now) = (Instant::from_ns(last), Instant::from_ns(now));
            let period = Span::from_ns(period);
            let mut releases = Releases::from(last, period);
            let ahead = releases.next_after(now);
            assert_eq!(
                ahead,
                defined(last, period, now),
                "{last} {period} at {now}"
            );
            releases.pass(ahead);
            assert_eq!(releases.last(), ahead.at);
        }
    }

    #[test]
    fn changed_period_counts_from_last_release() {
        let mut releases = Releases::from(Instant::from_ns(100), Span::from_ns(10));
        releases.pass(releases.next_after(Instant::from_ns(125)));
        assert_eq!(releases.last(), Instant::from_ns(130));
        releases.set_period(Span::from_ns(7));
        let ahead = releases.next_after(Instant::from_ns(138));
        assert_eq!((ahead.at, ahead.missed), (Instant::from_ns(144), 1));
    }

    #[test]
    fn next_release_does_not_overflow_at_extreme_times() {
        let at = |ns| Releases::from(Instant::from_ns(ns), Span::MAX);
        assert_eq!(
            at(u64::MAX - 1).next_after(Instant::NEVER).at,
            Instant::NEVER
        );
        assert_eq!(at(0).next_after(Instant::NEVER).at, Instant::NEVER);
        let every = Releases::from(Instant::ZERO, Span::ZERO);
        assert_eq!(every.next_after(Instant::NEVER).missed, u64::MAX);
    }
}
