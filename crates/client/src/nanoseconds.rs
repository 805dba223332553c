//! The encoding of times: whole numbers of nanoseconds that fit into the signed 64 bits of other implementations of
//! varlink.

use core::fmt;

use serde::de::{self, Deserializer, Visitor};

/// Decodes the format of all modules below.
struct Nanoseconds;

/// Beyond any practical time; the sum of two does not overflow.
const LARGEST: u64 = shiftwork_model::Span::MAX.as_ns();

impl Visitor<'_> for Nanoseconds {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "nanoseconds, a whole number from 0 to {LARGEST}")
    }

    fn visit_u64<E: de::Error>(self, ns: u64) -> Result<u64, E> {
        if ns > LARGEST {
            return Err(E::invalid_value(de::Unexpected::Unsigned(ns), &self));
        }
        Ok(ns)
    }

    fn visit_i64<E: de::Error>(self, ns: i64) -> Result<u64, E> {
        u64::try_from(ns)
            .map_err(|_| E::invalid_value(de::Unexpected::Signed(ns), &self))
            .and_then(|ns| self.visit_u64(ns))
    }
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_u64(Nanoseconds)
}

/// For fields of type `Span`.
pub(crate) mod span {
    use serde::{Deserializer, Serializer};
    use shiftwork_model::Span;

    pub(crate) fn serialize<S: Serializer>(span: &Span, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(span.as_ns())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<Span, D::Error> {
        super::read(source).map(Span::from_ns)
    }
}

/// For fields of type `Option<Span>`, which are omitted if `None`.
pub(crate) mod maybe_span {
    use serde::{Deserialize, Deserializer, Serializer};
    use shiftwork_model::Span;

    /// A span in the format of the module `span`.
    #[derive(Deserialize)]
    struct Present(#[serde(with = "super::span")] Span);

    pub(crate) fn serialize<S: Serializer>(
        span: &Option<Span>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match span {
            Some(span) => serializer.serialize_u64(span.as_ns()),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        source: D,
    ) -> Result<Option<Span>, D::Error> {
        Ok(Option::<Present>::deserialize(source)?.map(|Present(span)| span))
    }
}

/// For fields of type `Instant`.
pub(crate) mod instant {
    use serde::{Deserializer, Serializer};
    use shiftwork_model::Instant;

    pub(crate) fn serialize<S: Serializer>(
        instant: &Instant,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(instant.as_ns())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<Instant, D::Error> {
        super::read(source).map(Instant::from_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;
    use shiftwork_model::Span;

    #[derive(Debug, Deserialize)]
    struct Time(#[serde(with = "span")] Span);

    #[test]
    fn time_out_of_range_is_refused() {
        let read = |value| serde_json::from_value::<Time>(value).map(|Time(span)| span.as_ns());
        assert_eq!(read(json!(0)).unwrap(), 0);
        assert_eq!(read(json!(LARGEST)).unwrap(), LARGEST);
        for (value, found) in [
            (json!(LARGEST + 1), format!("integer `{}`", LARGEST + 1)),
            (json!(u64::MAX), format!("integer `{}`", u64::MAX)),
            (json!(-1), "integer `-1`".into()),
            (json!(0.5), "floating point `0.5`".into()),
            (json!("1ms"), "string \"1ms\"".into()),
        ] {
            let error = read(value).unwrap_err().to_string();
            assert!(error.contains(&found), "{error}");
            assert!(
                error.ends_with(&format!(
                    "expected nanoseconds, a whole number from 0 to {LARGEST}"
                )),
                "{error}"
            );
        }
    }
}
