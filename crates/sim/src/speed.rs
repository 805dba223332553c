//! The speed of a CPU as a number, and the durations that follow from it.

use shiftwork_model::{Share, Span};

/// Work in a nanosecond, in units of 2^-20 ns. Never zero, never above full speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Speed(u32);

/// Progress within a nanosecond of work, in units of 2^-20 ns; less than a nanosecond.
pub(crate) type Begun = u32;

/// Number of fraction bits of a speed.
pub(crate) const BITS: u32 = 20;

/// Upper bound of durations, 146 years: the sum with any instant of a run stays below never.
const LONGEST: u64 = Span::MAX.as_ns();

impl Default for Speed {
    fn default() -> Self {
        Self::FULL
    }
}

impl Speed {
    pub(crate) const FULL: Self = Self(1 << BITS);

    /// The speed of `units` of 2^-20, at least one unit and at most `limit`.
    pub(crate) fn of(units: u64, limit: Self) -> Self {
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        Self(units.clamp(1, limit.0))
    }

    /// The capacity, rounded down.
    pub(crate) fn of_capacity(capacity: Share) -> Self {
        let units = (u64::from(capacity.billionths()) << BITS) / u64::from(Share::WHOLE);
        Self::of(units, Self::FULL)
    }

    /// Time that a CPU needs for `work` with the progress `begun`: until the end of the nanosecond in which the
    /// work ends.
    pub(crate) fn lasts(self, work: Span, begun: Begun) -> Span {
        let units = (u128::from(work.as_ns()) << BITS).saturating_sub(begun.into());
        let ns = units.div_ceil(self.0.into());
        Span::from_ns(u64::try_from(ns).map_or(LONGEST, |ns| ns.min(LONGEST)))
    }

    /// Work and progress executed of `work`, with the progress `begun` at the start, when `undone` is left of its
    /// duration.
    pub(crate) fn done(self, work: Span, begun: Begun, undone: Span) -> (Span, Begun) {
        let ran = self.lasts(work, begun).saturating_sub(undone);
        let units = u128::from(ran.as_ns()) * u128::from(self.0) + u128::from(begun);
        let whole = units >> BITS;
        if whole >= u128::from(work.as_ns()) {
            return (work, 0);
        }
        let part = units - (whole << BITS);
        (Span::from_ns(whole as u64), part as Begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::RandomStream;

    const NS: fn(u64) -> Span = Span::from_ns;

    #[test]
    fn durations_are_rounded_up_to_whole_nanoseconds() {
        let half = Speed::of(1 << 19, Speed::FULL);
        assert_eq!(half.lasts(NS(10), 0), NS(20));
        assert_eq!(Speed::FULL.lasts(NS(10), 0), NS(10));
        assert_eq!(Speed::of(3 << 18, Speed::FULL).lasts(NS(10), 0), NS(14));
        // Half of the first nanosecond is done already.
        assert_eq!(half.lasts(NS(10), 1 << 19), NS(19));
        assert_eq!(Speed::of(0, Speed::FULL).lasts(Span::MAX, 0), Span::MAX);
    }

    #[test]
    fn speeds_are_never_zero_and_never_above_their_limit() {
        let half = Speed::of(1 << 19, Speed::FULL);
        assert_eq!(Speed::of(0, half), Speed(1));
        assert_eq!(Speed::of(u64::MAX, half), half);
        let least = Share::from_billionths(1).unwrap();
        assert_eq!(Speed::of_capacity(least), Speed(1));
    }

    #[test]
    fn work_interrupted_at_any_speed_is_conserved() {
        let mut random = RandomStream::new(1, 0, 0);
        for run in 0..2_000 {
            let work = NS(1 + random.below(5_000));
            let (mut left, mut begun) = (work, 0);
            // In units of 2^-20 ns: what the CPUs did.
            let mut units = 0;
            while !left.is_zero() {
                let speed = Speed::of(1 + random.below(1 << BITS), Speed::FULL);
                let lasts = speed.lasts(left, begun);
                let ran = NS(1 + random.below(lasts.as_ns()));
                let done;
                (done, begun) = speed.done(left, begun, lasts - ran);
                left -= done;
                units += u64::from(speed.0) * ran.as_ns();
                let counted = ((work - left).as_ns() << BITS) + u64::from(begun);
                if left.is_zero() {
                    let beyond = units - counted;
                    assert!(beyond < u64::from(speed.0), "run {run}: {beyond} lost");
                } else {
                    assert_eq!(units, counted, "run {run}, {left} left");
                }
            }
        }
    }
}
