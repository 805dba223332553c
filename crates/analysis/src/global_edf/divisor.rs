//! Division by the same number over and over, exact and several times faster than by the machine.

/// A divisor with its reciprocal.
///
/// Invariant: `by` is above zero and `reciprocal` is floor((2^64 - 1) / by).
#[derive(Clone, Copy, Debug)]
pub(super) struct Divisor {
    by: u64,
    reciprocal: u64,
}

impl Divisor {
    /// Of a number above zero.
    pub(super) const fn new(by: u64) -> Self {
        Self {
            by,
            reciprocal: u64::MAX / by,
        }
    }

    /// The number.
    pub(super) const fn by(self) -> u64 {
        self.by
    }

    /// Quotient and remainder of `n`, at most 2^63.
    #[inline]
    pub(super) const fn split(self, n: u64) -> (u64, u64) {
        // The reciprocal is less than 1 below 2^64 / by, so the estimate is more than n / by - 3/2
        // for such n, and not above n / by: one too small at most.
        let estimate = ((n as u128 * self.reciprocal as u128) >> 64) as u64;
        let rest = n - estimate * self.by;
        let more = (rest >= self.by) as u64;
        (estimate + more, rest - more * self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::RandomStream;

    #[test]
    fn quotients_are_those_of_the_machine() {
        let mut stream = RandomStream::new(0, 61, 0);
        let check = |n: u64, by: u64| {
            assert_eq!(Divisor::new(by).split(n), (n / by, n % by), "{n} / {by}");
        };
        for _ in 0..20_000 {
            let by = (stream.bits() >> stream.below(63)).max(1);
            let n = (stream.bits() >> 1) >> stream.below(62);
            let multiple = n / by * by;
            for n in [n, multiple, multiple.saturating_sub(1), 1 << 63, 0] {
                check(n, by);
            }
        }
        check(1 << 63, 1);
        check(1 << 63, u64::MAX);
    }
}
