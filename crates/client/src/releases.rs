//! When the jobs of a task begin.

use shiftwork_model::{Instant, Span};

/// Releases that are a period apart: `last` is the one whose job is under way, the next are at `last + k * period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Releases {
    last: Instant,
    /// Not zero.
    period: Span,
}

/// A release that is still ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextRelease {
    /// When it is; [`Instant::NEVER`] beyond what the clock can show.
    pub(crate) at: Instant,
    /// How many there were since the last one for which nobody waited.
    pub(crate) missed: u64,
}

impl Releases {
    /// The first is now. A period of zero, which no agent admits, is taken for a nanosecond.
    pub(crate) fn from(first: Instant, period: Span) -> Self {
        Self {
            last: first,
            period: period.max(Span::from_ns(1)),
        }
    }

    /// The release whose job is under way.
    pub(crate) const fn last(&self) -> Instant {
        self.last
    }

    /// The first release after `now`.
    ///
    /// One that is just now is not ahead: whoever slept until then would not sleep, and the agent sees by sleep
    /// alone where a job ends.
    pub(crate) fn next_after(&self, now: Instant) -> NextRelease {
        let missed = now.late_since(self.last).as_ns() / self.period.as_ns();
        let ahead = self.period.checked_mul(missed.saturating_add(1));
        NextRelease {
            at: ahead.map_or(Instant::NEVER, |span| self.last + span),
            missed,
        }
    }

    /// This release has come.
    pub(crate) fn pass(&mut self, release: NextRelease) {
        self.last = release.at;
    }

    /// The next release is this much after the last one, and so forth.
    pub(crate) fn set_period(&mut self, period: Span) {
        *self = Self::from(self.last, period);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: the releases one after another, until one is ahead.
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
    fn the_next_release_is_the_first_one_ahead() {
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
    fn another_period_counts_from_the_last_release() {
        let mut releases = Releases::from(Instant::from_ns(100), Span::from_ns(10));
        releases.pass(releases.next_after(Instant::from_ns(125)));
        assert_eq!(releases.last(), Instant::from_ns(130));
        releases.set_period(Span::from_ns(7));
        let ahead = releases.next_after(Instant::from_ns(138));
        assert_eq!((ahead.at, ahead.missed), (Instant::from_ns(144), 1));
    }

    #[test]
    fn at_the_ends_of_the_clock_nothing_wraps() {
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
