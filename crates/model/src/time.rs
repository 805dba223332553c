//! Nanosecond instants and spans. Two instants cannot be added, and a span is never an instant.

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};

/// A point on the machine clock: nanoseconds since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Instant {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than everything that happens; the sum of an instant and a span never exceeds it.
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds after the start of the run.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the start of the run.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to this instant; `None` if `earlier` is in fact later.
    pub const fn since(self, earlier: Self) -> Option<Span> {
        match self.0.checked_sub(earlier.0) {
            Some(ns) => Some(Span(ns)),
            None => None,
        }
    }

    /// The span from `earlier` to this instant, zero if `earlier` is in fact later: how late this
    /// instant is, seen from a deadline at `earlier`.
    pub const fn late_since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span that a file may name: 2^62 - 1 ns, about 146 years. Sums of two still fit.
    pub const MAX: Self = Self((1 << 62) - 1);

    /// A span of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// A span of `us` microseconds. Saturates at the largest representable span.
    pub const fn from_us(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// A span of `ms` milliseconds. Saturates at the largest representable span.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// A span of `s` seconds. Saturates at the largest representable span.
    pub const fn from_s(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }

    /// The length in nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Whether this is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self * factor`, or `None` beyond 64 bits.
    pub const fn checked_mul(self, factor: u64) -> Option<Self> {
        match self.0.checked_mul(factor) {
            Some(ns) => Some(Self(ns)),
            None => None,
        }
    }
}

/// Saturates at [`Instant::NEVER`].
impl Add<Span> for Instant {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Instant {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

/// Saturates at the largest representable span.
impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// The caller knows that `other` is not longer; debug builds check it.
impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Span {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

/// Written for people, and exactly: in the largest unit that is not longer, with as many decimals as there are (`1.5ms`,
/// `5.263158ms`, `2ms`, `0ns`). Files and command lines read it back unchanged.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit_ns, decimals, unit) = match self.0 {
            0..1_000 => (1, 0, "ns"),
            1_000..1_000_000 => (1_000, 3, "us"),
            1_000_000..1_000_000_000 => (1_000_000, 6, "ms"),
            _ => (1_000_000_000, 9, "s"),
        };
        let (whole, rest) = (self.0 / unit_ns, self.0 % unit_ns);
        let text = match rest {
            0 => alloc::format!("{whole}{unit}"),
            _ => {
                let rest = alloc::format!("{rest:0decimals$}");
                alloc::format!("{whole}.{}{unit}", rest.trim_end_matches('0'))
            }
        };
        f.pad(&text)
    }
}

/// A span as files have it that other tools read as well: in the largest unit that needs no fraction (`1500us`).
#[derive(Clone, Copy, Debug)]
pub struct InWholeUnits(Span);

impl Span {
    /// The span as a whole number with its unit, for files.
    pub const fn in_whole_units(self) -> InWholeUnits {
        InWholeUnits(self)
    }
}

impl fmt::Display for InWholeUnits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (amount, unit) = match self.0.0 {
            0 => (0, "ns"),
            ns if ns % 1_000_000_000 == 0 => (ns / 1_000_000_000, "s"),
            ns if ns % 1_000_000 == 0 => (ns / 1_000_000, "ms"),
            ns if ns % 1_000 == 0 => (ns / 1_000, "us"),
            ns => (ns, "ns"),
        };
        write!(f, "{amount}{unit}")
    }
}

/// Written as the span since the start of the run.
impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn an_instant_knows_how_long_ago_another_was() {
        let (early, late) = (Instant::from_ns(3), Instant::from_ns(10));
        assert_eq!(late.since(early), Some(Span::from_ns(7)));
        assert_eq!(early.since(late), None);
        assert_eq!(early.late_since(late), Span::ZERO);
    }

    #[test]
    fn never_stays_never() {
        assert_eq!(Instant::NEVER + Span::from_s(1), Instant::NEVER);
    }

    #[test]
    fn spans_are_written_exactly_for_people_and_in_whole_units_for_files() {
        for (ns, text, in_file) in [
            (0, "0ns", "0ns"),
            (999, "999ns", "999ns"),
            (1_001, "1.001us", "1001ns"),
            (1_500_000, "1.5ms", "1500us"),
            (5_263_158, "5.263158ms", "5263158ns"),
            (2_000_000_000, "2s", "2s"),
            (4_000_000_010, "4.00000001s", "4000000010ns"),
            (86_400_000_000_000, "86400s", "86400s"),
        ] {
            let span = Span::from_ns(ns);
            assert_eq!(span.to_string(), text);
            assert_eq!(span.in_whole_units().to_string(), in_file);
        }
        assert_eq!(alloc::format!("{:>8}", Span::from_us(1_500)), "   1.5ms");
    }
}
