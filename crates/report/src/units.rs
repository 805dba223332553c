//! Rounded spans for display. CSV and JSON have the exact values.

/// The unit of microseconds: `us` in terminals and files, `µs` where any character can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    Ascii,
    Unicode,
}

/// `ns` in the largest unit that keeps it at least 1, with at most four significant digits. Zero needs
/// no unit.
pub(crate) fn span(ns: u64, script: Script) -> String {
    let (unit_ns, unit) = match ns {
        0 => return "0".into(),
        1..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 if script == Script::Ascii => (1_000, "us"),
        1_000..1_000_000 => (1_000, "µs"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let decimals = match ns / unit_ns {
        0..10 => 3,
        10..100 => 2,
        100..1_000 => 1,
        _ => 0,
    };
    let text = format!("{:.decimals$}", ns as f64 / unit_ns as f64);
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text} {unit}")
}

/// A count with thin groups of thousands, for reading.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_four_digits_and_a_unit() {
        for (ns, text) in [
            (0, "0"),
            (999, "999 ns"),
            (1_000, "1 us"),
            (1_500, "1.5 us"),
            (450_000, "450 us"),
            (12_345_678, "12.35 ms"),
            (100_000_000, "100 ms"),
            (3_100_000_000, "3.1 s"),
            (86_400_000_000_000, "86400 s"),
            (u64::MAX, "18446744074 s"),
        ] {
            assert_eq!(span(ns, Script::Ascii), text);
        }
        assert_eq!(span(2_500, Script::Unicode), "2.5 µs");
    }

    #[test]
    fn counts_are_grouped_in_thousands() {
        assert_eq!(count(7), "7");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
    }
}
