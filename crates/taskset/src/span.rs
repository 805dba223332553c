//! Spans of time outside of files: on a command line, in a program.

use shiftwork_model::Span;

/// Reads a span of time, as task-set files write it.
pub fn span(text: &str) -> Result<Span, String> {
    const ACCEPTED: &str = "write a number with its unit, like `500us`, `2ms` or `10s`";
    if text.trim().parse::<f64>().is_ok() {
        return Err(format!("`{text}` has no unit; {ACCEPTED}"));
    }
    let parsed = humantime::parse_duration(text)
        .map_err(|error| format!("`{text}` is no span of time ({error}); {ACCEPTED}"))?;
    u64::try_from(parsed.as_nanos())
        .ok()
        .map(Span::from_ns)
        .filter(|&span| span <= Span::MAX)
        .ok_or_else(|| format!("`{text}` is too long; the longest span is about 146 years"))
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
    fn spans_need_a_unit_and_an_end() {
        assert_eq!(span("1500us"), Ok(Span::from_us(1_500)));
        assert!(span("10").unwrap_err().contains("has no unit"));
        assert!(span("-1s").is_err());
        assert!(span("900 years").unwrap_err().contains("too long"));
        assert!(span("99999999999999999999s").is_err());
        assert!(positive_span("0ms").is_err());
    }
}
