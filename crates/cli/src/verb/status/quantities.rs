//! Times and counts in few characters.

use shiftwork_model::Span;

/// A unit of time: its name, and its length in ns.
type Unit = (&'static str, u64);

const UNITS: [Unit; 4] = [
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// The longest unit of which the time is at least one.
fn unit_of(time: Span) -> Unit {
    let mut units = UNITS.into_iter();
    units
        .find(|&(_, length)| time.as_ns() >= length)
        .unwrap_or(UNITS[3])
}

/// The time in its own unit: `12.5ms`. To four digits, rounded up.
pub fn in_own_unit(time: Span) -> String {
    let unit = unit_of(time);
    number_in(time, unit) + unit.0
}

/// A part of a time in the unit of the whole: `2.39/20ms`. To four digits, rounded up: what is longer than the whole shows
/// as longer.
pub fn in_unit_of(part: Span, whole: Span) -> String {
    let unit = unit_of(whole);
    // Less than a hundredth would be mostly zeros.
    let shown = match part.as_ns().saturating_mul(100) < unit.1 {
        true => in_own_unit(part),
        false => number_in(part, unit),
    };
    format!("{shown}/{}", in_own_unit(whole))
}

/// At most four digits, at most three of them after the point, rounded up.
fn number_in(time: Span, (_, length): Unit) -> String {
    let whole = time.as_ns() / length;
    let decimals = match whole {
        0..10 => 3,
        10..100 => 2,
        100..1_000 => 1,
        _ => 0,
    };
    let scale = 10_u64.pow(decimals);
    // At most 1,000 times a length of a second: no overflow below 500 years.
    let scaled = (u128::from(time.as_ns()) * u128::from(scale)).div_ceil(u128::from(length));
    let (whole, rest) = (scaled / u128::from(scale), scaled % u128::from(scale));
    let digits = format!("{rest:0width$}", width = decimals as usize);
    let digits = digits.trim_end_matches('0');
    match digits.is_empty() {
        true => whole.to_string(),
        false => format!("{whole}.{digits}"),
    }
}

/// A count in at most five characters: `99999`, `1234k`.
pub fn amount(count: u64) -> String {
    match count {
        0..100_000 => count.to_string(),
        100_000..10_000_000 => format!("{}k", count / 1_000),
        10_000_000..10_000_000_000 => format!("{}M", count / 1_000_000),
        _ => format!("{}G", count / 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_of_time_is_in_unit_of_whole() {
        let us = Span::from_us;
        for (part, whole, expected) in [
            (us(2_000), us(10_000), "2/10ms"),
            (us(2_390), us(20_000), "2.39/20ms"),
            (us(10_020), us(10_000), "10.02/10ms"),
            (us(500), us(12_500), "0.5/12.5ms"),
            (us(480), us(500), "480/500us"),
            (us(50), us(1_000_000), "50us/1s"),
            (us(0), us(1_000), "0ns/1ms"),
            (us(123_456), us(100_000), "123.5/100ms"),
            (us(2_345_678), us(100_000), "2346/100ms"),
            (Span::from_ns(10_000_001), us(10_000), "10.01/10ms"),
            (us(90_000_000), us(60_000_000), "90/60s"),
        ] {
            assert_eq!(in_unit_of(part, whole), expected);
        }
        let longest = Span::from_ns(u64::MAX);
        assert_eq!(in_own_unit(longest), "18446744074s");
    }

    /// By definition: at least the part, and by less than a thousandth of it, or of the unit, more.
    #[test]
    fn rounding_is_up_and_to_four_digits() {
        for exponent in 0..12 {
            for factor in [1, 3, 7, 9_999, 10_001, 99_995] {
                let ns = factor * 10_u64.pow(exponent);
                let text = in_own_unit(Span::from_ns(ns));
                let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                let (_, length) = unit_of(Span::from_ns(ns));
                let shown = digits.parse::<f64>().unwrap() * length as f64;
                let excess = shown - ns as f64;
                let step = (ns as f64 / 1_000.0).max(length as f64 / 1_000.0);
                assert!(excess > -0.5 && excess <= step, "{ns} ns is {text}");
            }
        }
    }

    #[test]
    fn amount_has_at_most_five_characters() {
        for (count, expected) in [
            (99_999, "99999"),
            (100_000, "100k"),
            (9_999_999, "9999k"),
            (10_000_000, "10M"),
            (12_345_678_901, "12G"),
        ] {
            assert_eq!(amount(count), expected);
        }
    }
}
