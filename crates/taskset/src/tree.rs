//! Reading a TOML text value by value, with the place of each: what all our TOML formats share.
//!
//! This walks the spanned tree of the `toml` crate instead of deserializing into structs. That way
//! every message is ours and typed, numbers keep their text (so that shares are read exactly), and
//! keys like `cpus = 4` or `cpus = "host"` need no untagged enum, which would lose the place.

use std::ops::Range;

use shiftwork_model::{CPUS_MAX, CpuId, Instant, Priority, Share, Span};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::TasksetError;
use crate::place::Place;

/// A table whose keys are all known.
pub(crate) struct Table<'t> {
    text: &'t str,
    table: &'t DeTable<'t>,
    span: Range<usize>,
    /// What to call the table in messages.
    within: String,
}

/// A value, and what to call it in messages.
#[derive(Clone)]
pub(crate) struct Value<'t> {
    text: &'t str,
    value: &'t DeValue<'t>,
    span: Range<usize>,
    key: String,
}

/// Parses a text into its spanned tree.
pub(crate) fn parse(text: &str) -> Result<Spanned<DeTable<'_>>, TasksetError> {
    DeTable::parse(text).map_err(|error| TasksetError::Syntax {
        place: Place::of(text, error.span().map_or(0, |span| span.start)),
        format: "TOML",
        problem: error.message().trim().replace('\n', "; "),
    })
}

impl<'t> Table<'t> {
    /// The whole file, called `within` in messages, which may have the keys `accepted`.
    pub(crate) fn root(
        text: &'t str,
        tree: &'t Spanned<DeTable<'t>>,
        within: &str,
        accepted: &[&'static str],
    ) -> Result<Self, TasksetError> {
        let value = Self {
            text,
            table: tree.get_ref(),
            span: 0..0,
            within: within.to_string(),
        };
        value.accept(accepted)
    }

    /// Refuses any key but these.
    fn accept(self, accepted: &[&'static str]) -> Result<Self, TasksetError> {
        let unknown = self
            .table
            .keys()
            .filter(|key| !accepted.contains(&key.get_ref().as_ref()))
            .min_by_key(|key| key.span().start);
        match unknown {
            None => Ok(self),
            Some(key) => Err(TasksetError::UnknownKey {
                place: Place::of(self.text, key.span().start),
                key: key.get_ref().to_string(),
                within: self.within,
                accepted: accepted.to_vec(),
            }),
        }
    }

    /// The value of a key, if the table has it.
    pub(crate) fn get(&self, key: &str) -> Option<Value<'t>> {
        let value = self.table.get(key)?;
        Some(Value {
            text: self.text,
            value: value.get_ref(),
            span: value.span(),
            key: key.to_string(),
        })
    }

    /// The value of a key that must be there; `example` shows how it would look.
    pub(crate) fn need(
        &self,
        key: &'static str,
        example: &'static str,
    ) -> Result<Value<'t>, TasksetError> {
        self.get(key).ok_or_else(|| TasksetError::MissingKey {
            place: self.place(),
            key,
            within: self.within.clone(),
            example,
        })
    }

    /// The value of a key if it is there, read by `read`.
    pub(crate) fn map<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Value<'t>) -> Result<T, TasksetError>,
    ) -> Result<Option<T>, TasksetError> {
        self.get(key).map(|value| read(&value)).transpose()
    }

    /// The items of a list; none if the key is not there.
    pub(crate) fn items(
        &self,
        key: &str,
        accepted: &'static str,
    ) -> Result<Vec<Value<'t>>, TasksetError> {
        let items = self.map(key, |value| value.list(accepted))?;
        Ok(items.unwrap_or_default())
    }

    /// The one of these keys that the table has.
    pub(crate) fn exactly_one(
        &self,
        keys: &[&'static str],
    ) -> Result<(&'static str, Value<'t>), TasksetError> {
        let mut found = keys
            .iter()
            .filter_map(|&key| self.get(key).map(|value| (key, value)));
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            (None, _) => Err(self.not_exactly_one(Vec::new(), keys)),
            (Some((_, value)), Some(_)) => {
                let all = keys.iter().copied().filter(|key| self.get(key).is_some());
                let mut error = self.not_exactly_one(all.collect(), keys);
                if let TasksetError::NotExactlyOne { place, .. } = &mut error {
                    *place = value.place();
                }
                Err(error)
            }
        }
    }

    fn not_exactly_one(&self, found: Vec<&'static str>, keys: &[&'static str]) -> TasksetError {
        TasksetError::NotExactlyOne {
            place: self.place(),
            within: self.within.clone(),
            found,
            accepted: keys.to_vec(),
        }
    }

    /// The keys and values in alphabetical order of the keys, for tables whose keys are names.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Value<'t>> + '_ {
        self.table.iter().map(|(key, value)| Value {
            text: self.text,
            value: value.get_ref(),
            span: value.span(),
            key: key.get_ref().to_string(),
        })
    }

    /// Where the table is.
    pub(crate) fn place(&self) -> Place {
        Place::of(self.text, self.span.start)
    }

    /// What messages call the table from now on.
    pub(crate) fn rename(&mut self, within: String) {
        self.within = within;
    }
}

impl<'t> Value<'t> {
    /// The name of the key.
    pub(crate) fn key(&self) -> String {
        self.key.clone()
    }

    /// Where the value is.
    pub(crate) fn place(&self) -> Place {
        Place::of(self.text, self.span.start)
    }

    /// Where the value is, in bytes.
    pub(crate) fn offset(&self) -> usize {
        self.span.start
    }

    /// What was found instead of `accepted`.
    pub(crate) fn wrong(&self, accepted: &'static str) -> TasksetError {
        TasksetError::WrongKind {
            place: self.place(),
            key: self.key(),
            found: self.describe(),
            accepted,
        }
    }

    /// What the value is, in a few words.
    pub(crate) fn describe(&self) -> String {
        match self.value {
            DeValue::String(text) => format!("the text \"{text}\""),
            DeValue::Integer(number) => format!("the number {number}"),
            DeValue::Float(number) => format!("the number {number}"),
            DeValue::Boolean(value) => value.to_string(),
            DeValue::Datetime(_) => "a date".to_string(),
            DeValue::Array(_) => "a list".to_string(),
            DeValue::Table(_) => "a table".to_string(),
        }
    }

    /// A text, which `accepted` describes.
    pub(crate) fn text(&self, accepted: &'static str) -> Result<&'t str, TasksetError> {
        match self.value {
            DeValue::String(text) => Ok(text),
            _ => Err(self.wrong(accepted)),
        }
    }

    /// A text that is not empty.
    pub(crate) fn name(&self, accepted: &'static str) -> Result<&'t str, TasksetError> {
        match self.text(accepted)? {
            "" => Err(self.empty(accepted)),
            text => Ok(text),
        }
    }

    /// That the value has nothing in it.
    pub(crate) fn empty(&self, accepted: &'static str) -> TasksetError {
        TasksetError::Empty {
            place: self.place(),
            key: self.key(),
            accepted,
        }
    }

    /// Whether the value is a list.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.value, DeValue::Array(_))
    }

    /// Whether the value is a table.
    pub(crate) fn is_table(&self) -> bool {
        matches!(self.value, DeValue::Table(_))
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&self) -> Result<bool, TasksetError> {
        match self.value {
            DeValue::Boolean(value) => Ok(*value),
            _ => Err(self.wrong("true or false")),
        }
    }

    /// A list, which `accepted` describes; its items are called as the list is.
    pub(crate) fn list(&self, accepted: &'static str) -> Result<Vec<Self>, TasksetError> {
        let DeValue::Array(items) = self.value else {
            return Err(self.wrong(accepted));
        };
        let item = |item: &'t Spanned<DeValue<'t>>| Self {
            text: self.text,
            value: item.get_ref(),
            span: item.span(),
            key: self.key(),
        };
        Ok(items.iter().map(item).collect())
    }

    /// A table with any keys.
    pub(crate) fn any_table(&self, accepted: &'static str) -> Result<Table<'t>, TasksetError> {
        match self.value {
            DeValue::Table(table) => Ok(Table {
                text: self.text,
                table,
                span: self.span.clone(),
                within: format!("`{}`", self.key),
            }),
            _ => Err(self.wrong(accepted)),
        }
    }

    /// A table that has only these keys; `example` shows one.
    pub(crate) fn table(
        &self,
        accepted: &[&'static str],
        example: &'static str,
    ) -> Result<Table<'t>, TasksetError> {
        self.any_table(example)?.accept(accepted)
    }

    /// A duration of a whole number of nanoseconds.
    pub(crate) fn span(&self) -> Result<Span, TasksetError> {
        let text = match self.value {
            DeValue::Integer(number) => return Err(self.no_unit(number.to_string())),
            DeValue::Float(number) => return Err(self.no_unit(number.to_string())),
            _ => self.text("a duration like \"500us\" or \"2ms\"")?,
        };
        let digits = text.trim();
        if !digits.is_empty()
            && digits
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
        {
            return Err(self.no_unit(digits.to_string()));
        }
        let parsed = humantime::parse_duration(text).map_err(|error| TasksetError::NoDuration {
            place: self.place(),
            key: self.key(),
            text: text.to_string(),
            problem: error.to_string(),
        })?;
        u64::try_from(parsed.as_nanos())
            .ok()
            .map(Span::from_ns)
            .filter(|&span| span <= Span::MAX)
            .ok_or_else(|| TasksetError::TooLong {
                place: self.place(),
                key: self.key(),
                text: text.to_string(),
            })
    }

    fn no_unit(&self, number: String) -> TasksetError {
        TasksetError::NoUnit {
            place: self.place(),
            key: self.key(),
            number,
        }
    }

    /// A duration above zero.
    pub(crate) fn positive_span(&self) -> Result<Span, TasksetError> {
        match self.span()? {
            Span::ZERO => Err(TasksetError::Zero {
                place: self.place(),
                key: self.key(),
            }),
            span => Ok(span),
        }
    }

    /// A duration since the start of the run.
    pub(crate) fn instant(&self) -> Result<Instant, TasksetError> {
        Ok(Instant::ZERO + self.span()?)
    }

    /// A whole number between the two.
    pub(crate) fn integer(&self, least: u32, most: u32) -> Result<u32, TasksetError> {
        let number = match self.value {
            DeValue::Integer(number) => u32::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number
            .filter(|found| (least..=most).contains(found))
            .ok_or_else(|| {
                let accepted = format!("a whole number from {least} to {most}");
                self.out_of_range(self.describe(), accepted)
            })
    }

    /// That the value is not in its range.
    pub(crate) fn out_of_range(&self, found: String, accepted: String) -> TasksetError {
        TasksetError::OutOfRange {
            place: self.place(),
            key: self.key(),
            found,
            accepted,
        }
    }

    /// A priority.
    pub(crate) fn priority(&self) -> Result<Priority, TasksetError> {
        let most = Priority::LEAST_URGENT.number();
        let number = self.integer(1, most)?;
        Ok(Priority::new(number).expect("the range was just checked"))
    }

    /// Number of one of the `cpus` CPUs of the platform.
    pub(crate) fn cpu(&self, cpus: usize) -> Result<CpuId, TasksetError> {
        let number = self.integer(0, cpus.clamp(1, CPUS_MAX) as u32 - 1)?;
        Ok(CpuId::from_index(number as usize))
    }

    /// An exact share, written as a decimal fraction.
    pub(crate) fn share(&self) -> Result<Share, TasksetError> {
        let text = match self.value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return Err(self.wrong("a share from 0 to 1, like 0.05")),
        };
        share_of(text).ok_or_else(|| {
            self.out_of_range(
                format!("the number {text}"),
                "a share from 0 to 1 with at most 9 decimals, like 0.05".to_string(),
            )
        })
    }

    /// A decimal fraction above zero, in thousandths.
    pub(crate) fn thousandths(&self) -> Result<u32, TasksetError> {
        let text = match self.value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return Err(self.wrong("a number above 0, like 2.5")),
        };
        thousandths_of(text)
            .filter(|&found| found > 0)
            .ok_or_else(|| {
                self.out_of_range(
                    format!("the number {text}"),
                    "a number above 0 and below a million with at most 3 decimals, like 2.5"
                        .to_string(),
                )
            })
    }

    /// One of these words.
    pub(crate) fn word<T: Copy>(&self, words: &[(&'static str, T)]) -> Result<T, TasksetError> {
        let DeValue::String(found) = self.value else {
            let quoted: Vec<String> = words
                .iter()
                .map(|(word, _)| format!("\"{word}\""))
                .collect();
            return Err(self.out_of_range(self.describe(), quoted.join(" or ")));
        };
        let known = words.iter().find(|(word, _)| word == found);
        known.map(|&(_, meaning)| meaning).ok_or_else(|| {
            let accepted = words.iter().map(|(word, _)| (*word).to_string());
            TasksetError::NotOneOf {
                place: self.place(),
                key: self.key(),
                found: found.to_string(),
                accepted: accepted.collect(),
            }
        })
    }
}

/// The decimal fraction in billionths, exactly; `None` if it is not between 0 and 1, or too fine.
fn share_of(text: &str) -> Option<Share> {
    let (whole, billionths) = decimal(text, 9)?;
    let whole = Some(whole).filter(|&whole| whole <= 1)?;
    Share::from_billionths(whole * Share::WHOLE + billionths)
}

/// The decimal fraction in thousandths, exactly; `None` if it is a million or more, or too fine.
fn thousandths_of(text: &str) -> Option<u32> {
    let (whole, thousandths) = decimal(text, 3)?;
    let whole = Some(whole).filter(|&whole| whole < 1_000_000)?;
    Some(whole * 1_000 + thousandths)
}

/// A decimal fraction: what is before the point, and so many decimals; `None` if it has more, or is no such
/// thing.
fn decimal(text: &str, decimals: usize) -> Option<(u32, u32)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > decimals {
        return None;
    }
    Some((
        whole.parse().ok()?,
        format!("{fraction:0<decimals$}").parse().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_exactly() {
        let billionths = |text| share_of(text).map(Share::billionths);
        assert_eq!(billionths("0.05"), Some(50_000_000));
        assert_eq!(billionths("1"), Some(1_000_000_000));
        assert_eq!(billionths("1.0"), Some(1_000_000_000));
        assert_eq!(billionths("0.123456789"), Some(123_456_789));
        assert_eq!(billionths("0.5000000000000"), Some(500_000_000));
        for text in [
            "1.000000001",
            "-0.1",
            "0.1234567891",
            "5e-2",
            "inf",
            "2",
            "99999999999",
        ] {
            assert_eq!(billionths(text), None, "{text}");
        }
    }
}
