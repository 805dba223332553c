//! Division by a number that is fixed and divides often.

/// A divisor of numbers below 2^63. A multiplication and a correction take a fraction of the time of a division.
#[derive(Clone, Copy, Debug)]
pub(super) struct Divisor {
    value: u64,
    /// (2^64 - 1) / value, rounded down.
    inverse: u64,
}

impl Divisor {
    /// # Panics
    /// If `value` is zero.
    pub(super) const fn new(value: u64) -> Self {
        let inverse = u64::MAX / value;
        Self { value, inverse }
    }

    /// The quotient and the remainder.
    ///
    /// With n < 2^63 and `inverse` > (2^64 - 1) / d - 1, n times `inverse` / 2^64 is above n / d - 1: rounded down it is the
    /// quotient, or one less.
    pub(super) const fn divide(self, number: u64) -> (u64, u64) {
        debug_assert!(number < 1 << 63);
        let quotient = ((number as u128 * self.inverse as u128) >> 64) as u64;
        let rest = number - quotient * self.value;
        let is_less = rest >= self.value;
        match is_less {
            true => (quotient + 1, rest - self.value),
            false => (quotient, rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::RandomStream;

    fn check(number: u64, value: u64) {
        let expected = (number / value, number % value);
        assert_eq!(
            Divisor::new(value).divide(number),
            expected,
            "{number} by {value}"
        );
    }

    #[test]
    fn quotients_and_remainders_are_those_of_division() {
        for value in 1..70 {
            (0..300).for_each(|number| check(number, value));
        }
        let mut stream = RandomStream::new(1, 35, 3);
        for _ in 0..100_000 {
            let value = (stream.bits() >> stream.below(63) >> 1).max(1);
            let number = stream.bits() >> stream.below(63) >> 1;
            check(number, value);
            // Around multiples, and at the ends of what is permitted.
            let most = (1 << 63) - 1;
            let multiple = most / value * value;
            [most, multiple, multiple - 1, number / value * value]
                .into_iter()
                .for_each(|number| check(number, value));
        }
    }
}
