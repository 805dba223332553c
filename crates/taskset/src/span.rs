//! Spans of time outside of files: on a command line, in a program.

use humantime::DurationError;
use shiftwork_model::{Span, nearest_name};

/// Reads a span of time, as task-set files write it.
pub fn span(text: &str) -> Result<Span, String> {
    const ACCEPTED: &str = "write a number with its unit, like `500us`, `2ms` or `10s`";
    if text.trim().parse::<f64>().is_ok() {
        return Err(format!("`{text}` has no unit; {ACCEPTED}"));
    }
    let parsed = humantime::parse_duration(text).map_err(|error| {
        format!(
            "`{text}` is no span of time ({}); {ACCEPTED}",
            problem(text, &error)
        )
    })?;
    u64::try_from(parsed.as_nanos())
        .ok()
        .map(Span::from_ns)
        .filter(|&span| span <= Span::MAX)
        .ok_or_else(|| format!("`{text}` is too long; the longest span is about 146 years"))
}

/// Units of time as people write them, and as they are read.
const UNITS: [(&str, &str); 22] = [
    ("ns", "ns"),
    ("us", "us"),
    ("ms", "ms"),
    ("s", "s"),
    ("min", "min"),
    ("h", "h"),
    ("nsec", "ns"),
    ("nanos", "ns"),
    ("nanoseconds", "ns"),
    ("usec", "us"),
    ("micros", "us"),
    ("microseconds", "us"),
    ("msec", "ms"),
    ("millis", "ms"),
    ("milliseconds", "ms"),
    ("sec", "s"),
    ("secs", "s"),
    ("seconds", "s"),
    ("mins", "min"),
    ("minutes", "min"),
    ("hr", "h"),
    ("hours", "h"),
];

/// What is wrong with a text that is no duration.
pub(crate) fn problem(text: &str, error: &DurationError) -> String {
    let from = |at: usize| text.get(at..).unwrap_or_default();
    match error {
        DurationError::UnknownUnit { unit, .. } if unit.is_empty() => "it has no unit".to_owned(),
        DurationError::UnknownUnit { unit, .. } => unknown_unit(unit),
        DurationError::NumberExpected(at) if from(*at).starts_with('-') => {
            "it is negative".to_owned()
        }
        DurationError::NumberExpected(at) => format!("there is no number before `{}`", from(*at)),
        DurationError::InvalidCharacter(at) => match from(*at).chars().next() {
            Some(character) => format!("`{character}` is not accepted there"),
            None => "its end is missing".to_owned(),
        },
        DurationError::NumberOverflow if text.contains('.') => {
            "it has a fraction of a nanosecond".to_owned()
        }
        DurationError::NumberOverflow => "it is too large".to_owned(),
        DurationError::Empty => "it is empty".to_owned(),
    }
}

fn unknown_unit(unit: &str) -> String {
    let near = nearest_name(unit, UNITS.iter().map(|(written, _)| *written));
    let meant = UNITS.iter().find(|(written, _)| Some(*written) == near);
    match meant {
        Some((_, meant)) => format!("there is no unit `{unit}`; did you mean `{meant}`?"),
        None => format!("there is no unit `{unit}`; the units are ns, us, ms, s, min and h"),
    }
}

/// Reads a span of time above zero.
pub fn positive_span(text: &str) -> Result<Span, String> {
    match span(text)? {
        Span::ZERO => Err(format!("`{text}` is no time at all; it must be above zero")),
        span => Ok(span),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_with_a_misspelt_unit_names_the_unit_that_seems_meant() {
        for (text, meant) in [
            ("5mss", "did you mean `ms`?"),
            ("5MS", "did you mean `ms`?"),
            ("5microsecond", "did you mean `us`?"),
            ("5furlongs", "the units are ns, us, ms, s, min and h"),
        ] {
            let message = span(text).unwrap_err();
            assert!(message.contains(meant), "{message}");
        }
    }

    #[test]
    fn texts_that_are_no_spans_are_explained_in_plain_words() {
        for (text, problem) in [
            ("-1ms", "it is negative"),
            ("2s -1ms", "it is negative"),
            ("0.3ns", "it has a fraction of a nanosecond"),
            ("99999999999999999999s", "it is too large"),
            ("soon", "there is no number before `soon`"),
            ("2 hours min", "there is no number before `min`"),
            ("1,5ms", "`,` is not accepted there"),
            ("1.", "`.` is not accepted there"),
            ("1.ms", "`.` is not accepted there"),
            ("1ms 2", "it has no unit"),
            ("", "it is empty"),
        ] {
            let error = humantime::parse_duration(text).unwrap_err();
            assert_eq!(super::problem(text, &error), problem, "{text}");
        }
    }

    #[test]
    fn spans_need_a_unit_and_an_end() {
        assert_eq!(span("1500us"), Ok(Span::from_us(1_500)));
        assert!(span("10").unwrap_err().contains("has no unit"));
        assert!(span("-1s").is_err());
        assert!(span("900 years").unwrap_err().contains("too long"));
        assert!(span("99999999999999999999s").is_err());
        assert!(positive_span("0ms").is_err());
    }
}
