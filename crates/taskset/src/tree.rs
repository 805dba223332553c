//! Reading a TOML text value by value, with the place of each: what all our TOML formats share.
//!
//! This walks the spanned tree of the `toml` crate instead of deserializing into structs. That way
//! every message is ours and typed, numbers keep their text (so that shares are read exactly), and
//! keys like `cpus = 4` or `cpus = "host"` need no untagged enum, which would lose the place.

use std::cell::RefCell;
use std::ops::Range;

use shiftwork_model::{CPUS_MAX, CpuId, Instant, Priority, Share, Span, nearest_name};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::TasksetError;
use crate::keys::{Environment, Key, choices, names};
use crate::kind::Kind;
use crate::place::{Lines, Place};
use crate::span;

/// A text as a tree, and the mistakes that were found in it so far.
///
/// A reader reports every mistake and goes on with the rest of the file. To go on it evaluates all parts
/// of a table before it returns the first error among them; what is reported twice that way is shown once.
pub(crate) struct Source<'t> {
    tree: Spanned<DeTable<'t>>,
    lines: Lines<'t>,
    mistakes: RefCell<Vec<TasksetError>>,
}

/// A table whose keys are all known.
pub(crate) struct Table<'t> {
    source: &'t Source<'t>,
    table: &'t DeTable<'t>,
    span: Range<usize>,
    /// What to call the table in messages.
    within: String,
    /// Keys that it may have, by the mistake that seems to mean them.
    misspelt: Vec<(&'static str, TasksetError)>,
}

/// A value, and what to call it in messages.
#[derive(Clone)]
pub(crate) struct Value<'t> {
    source: &'t Source<'t>,
    value: &'t DeValue<'t>,
    span: Range<usize>,
    key: String,
}

/// The most mistakes that are kept of one file.
const MISTAKES_MAX: usize = 1_000;

/// Larger texts are searched for the first mistake in the syntax only.
const RECOVERED_BYTES_MAX: usize = 1 << 20;

impl<'t> Source<'t> {
    /// Parses a text into its spanned tree.
    ///
    /// # Errors
    /// What is wrong with the syntax, at most one mistake a line; nothing else is looked at then.
    pub(crate) fn parse(text: &'t str) -> Result<Self, TasksetError> {
        let lines = Lines::new(text);
        let problem = |error: &toml::de::Error| TasksetError::Syntax {
            place: lines.place(error.span().map_or(0, |span| span.start)),
            format: "TOML",
            problem: error.message().trim().replace('\n', "; "),
        };
        let tree = DeTable::parse(text).map_err(|first| {
            let all = match text.len() {
                0..=RECOVERED_BYTES_MAX => DeTable::parse_recoverable(text).1,
                _ => Vec::new(),
            };
            let first = problem(&first);
            let mut all: Vec<TasksetError> = all.iter().take(MISTAKES_MAX).map(problem).collect();
            all.insert(0, first);
            all.sort_by_key(TasksetError::place);
            // What follows a mistake in its line is mostly a consequence.
            all.dedup_by_key(|error| error.place().map(|place| place.line));
            TasksetError::of_all(all)
        })?;
        Ok(Self {
            tree,
            lines,
            mistakes: RefCell::default(),
        })
    }

    /// The whole file, which is meant to be of this kind.
    ///
    /// # Errors
    /// [`TasksetError::OtherKind`] if it is of another kind; nothing else is worth saying then.
    pub(crate) fn root(&'t self, kind: Kind) -> Result<Table<'t>, TasksetError> {
        let table = self.tree.get_ref();
        let found: Vec<&str> = table.keys().map(|key| key.get_ref().as_ref()).collect();
        if let Some(instead) = kind.instead(&found) {
            let distinctive = table
                .keys()
                .filter(|key| instead.distinctive_keys().contains(&key.get_ref().as_ref()));
            let first = distinctive.map(|key| key.span().start).min();
            return Err(TasksetError::OtherKind {
                place: self.lines.place(first.unwrap_or(0)),
                found: instead,
                wanted: kind,
            });
        }
        let root = Table {
            source: self,
            table,
            span: 0..0,
            within: kind.to_string(),
            misspelt: Vec::new(),
        };
        Ok(root.accept(kind.keys()))
    }

    /// What was read, or everything that is wrong with it, ordered by place.
    pub(crate) fn finish<T>(&self, read: Result<T, TasksetError>) -> Result<T, TasksetError> {
        let mut mistakes = self.mistakes.take();
        match read {
            Ok(value) if mistakes.is_empty() => return Ok(value),
            Ok(_) => {}
            Err(last) => mistakes.push(last),
        }
        mistakes.sort_by_key(TasksetError::place);
        let mut shown: Vec<TasksetError> = Vec::with_capacity(mistakes.len());
        for mistake in mistakes {
            let place = mistake.place();
            let mut same = shown.iter().rev().take_while(|one| one.place() == place);
            if !same.any(|one| *one == mistake) {
                shown.push(mistake);
            }
        }
        Err(TasksetError::of_all(shown))
    }

    /// Passes a result on, and keeps its mistake.
    pub(crate) fn note<T>(&self, read: Result<T, TasksetError>) -> Result<T, TasksetError> {
        if let Err(mistake) = &read {
            self.report(mistake.clone());
        }
        read
    }

    fn report(&self, mistake: TasksetError) {
        let mut mistakes = self.mistakes.borrow_mut();
        if mistakes.len() < MISTAKES_MAX {
            mistakes.push(mistake);
        }
    }
}

impl<'t> Table<'t> {
    /// Reports every key but these.
    fn accept(mut self, keys: &[Key]) -> Self {
        let accepted = names(keys);
        let table = self.table;
        for key in table.keys() {
            let found = key.get_ref().as_ref();
            if accepted.contains(&found) {
                continue;
            }
            let mistake = TasksetError::UnknownKey {
                place: self.source.lines.place(key.span().start),
                key: found.to_string(),
                within: self.within.clone(),
                accepted: accepted.clone(),
            };
            self.source.report(mistake.clone());
            let meant = nearest_name(found, accepted.iter().copied());
            self.misspelt.extend(meant.map(|meant| (meant, mistake)));
        }
        self
    }

    /// The value of a key, if the table has it.
    pub(crate) fn get(&self, key: &str) -> Option<Value<'t>> {
        let value = self.table.get(key)?;
        Some(Value {
            source: self.source,
            value: value.get_ref(),
            span: value.span(),
            key: key.to_string(),
        })
    }

    /// The value of a key that must be there; `example` shows how it would look.
    ///
    /// # Errors
    /// If it is not there; where a misspelt key seems to be meant, that is the mistake.
    pub(crate) fn need(
        &self,
        key: &'static str,
        example: &'static str,
    ) -> Result<Value<'t>, TasksetError> {
        let missing = || {
            self.misspelt(&[key])
                .unwrap_or_else(|| TasksetError::MissingKey {
                    place: self.place(),
                    key,
                    within: self.within.clone(),
                    example,
                })
        };
        self.source.note(self.get(key).ok_or_else(missing))
    }

    /// The value of a key that must be there, read by `read`.
    pub(crate) fn need_map<T>(
        &self,
        key: &'static str,
        example: &'static str,
        read: impl FnOnce(&Value<'t>) -> Result<T, TasksetError>,
    ) -> Result<T, TasksetError> {
        let value = self.need(key, example)?;
        self.source.note(read(&value))
    }

    /// The value of a key if it is there, read by `read`.
    pub(crate) fn map<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Value<'t>) -> Result<T, TasksetError>,
    ) -> Result<Option<T>, TasksetError> {
        let read = self.get(key).map(|value| read(&value));
        self.source.note(read.transpose())
    }

    /// The items of a list; none if the key is not there, or holds something else.
    pub(crate) fn items(&self, key: &str) -> Vec<Value<'t>> {
        let items = self.get(key).and_then(|value| value.list("a list").ok());
        items.unwrap_or_default()
    }

    /// Every item of a list, read by `read`; none if the key is not there.
    pub(crate) fn each<T>(
        &self,
        key: &str,
        accepted: &'static str,
        read: impl FnMut(&Value<'t>) -> Result<T, TasksetError>,
    ) -> Result<Vec<T>, TasksetError> {
        let items = self.map(key, |value| value.each(accepted, read))?;
        Ok(items.unwrap_or_default())
    }

    /// The one of `keys`, of which exactly one has to be there, that the table has.
    pub(crate) fn choice(&self, keys: &[Key]) -> Result<(&'static str, Value<'t>), TasksetError> {
        self.exactly_one(&choices(keys))
    }

    /// The one of these keys that the table has.
    pub(crate) fn exactly_one(
        &self,
        keys: &[&'static str],
    ) -> Result<(&'static str, Value<'t>), TasksetError> {
        let mut found = keys
            .iter()
            .filter_map(|&key| self.get(key).map(|value| (key, value)));
        let one = match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            (None, _) => Err(self
                .misspelt(keys)
                .unwrap_or_else(|| self.not_exactly_one(self.place(), Vec::new(), keys))),
            (Some((_, value)), Some(_)) => {
                let all = keys.iter().copied().filter(|key| self.get(key).is_some());
                Err(self.not_exactly_one(value.place(), all.collect(), keys))
            }
        };
        self.source.note(one)
    }

    /// The mistake of a key that seems to mean one of these.
    pub(crate) fn misspelt(&self, keys: &[&'static str]) -> Option<TasksetError> {
        let mut misspelt = self.misspelt.iter();
        let (_, mistake) = misspelt.find(|(meant, _)| keys.contains(meant))?;
        Some(mistake.clone())
    }

    fn not_exactly_one(
        &self,
        place: Place,
        found: Vec<&'static str>,
        keys: &[&'static str],
    ) -> TasksetError {
        TasksetError::NotExactlyOne {
            place,
            within: self.within.clone(),
            found,
            accepted: keys.to_vec(),
        }
    }

    /// The keys and values in alphabetical order of the keys, for tables whose keys are names.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Value<'t>> + '_ {
        self.table.iter().map(|(key, value)| Value {
            source: self.source,
            value: value.get_ref(),
            span: value.span(),
            key: key.get_ref().to_string(),
        })
    }

    /// Where the table is.
    pub(crate) fn place(&self) -> Place {
        self.source.lines.place(self.span.start)
    }

    /// The mistakes of the file so far.
    pub(crate) fn source(&self) -> &'t Source<'t> {
        self.source
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
        self.source.lines.place(self.span.start)
    }

    /// Keeps a mistake that is found beside reading the value.
    pub(crate) fn report(&self, mistake: TasksetError) {
        self.source.report(mistake);
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

    /// The name of a policy that the environment knows.
    pub(crate) fn policy(
        &self,
        accepted: &'static str,
        environment: &Environment<'_>,
    ) -> Result<&'t str, TasksetError> {
        let name = self.name(accepted)?;
        match (environment.policy)(name) {
            Ok(()) => Ok(name),
            Err(problem) => Err(self.refused(problem)),
        }
    }

    /// That the environment refuses the value.
    pub(crate) fn refused(&self, problem: String) -> TasksetError {
        TasksetError::Refused {
            place: self.place(),
            problem,
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
            source: self.source,
            value: item.get_ref(),
            span: item.span(),
            key: self.key(),
        };
        Ok(items.iter().map(item).collect())
    }

    /// Every item of a list, which `accepted` describes, read by `read`; the mistakes of all items are kept.
    pub(crate) fn each<T>(
        &self,
        accepted: &'static str,
        mut read: impl FnMut(&Self) -> Result<T, TasksetError>,
    ) -> Result<Vec<T>, TasksetError> {
        let items = self.list(accepted)?;
        let read: Vec<_> = items
            .iter()
            .map(|item| self.source.note(read(item)))
            .collect();
        read.into_iter().collect()
    }

    /// A table with any keys.
    pub(crate) fn any_table(&self, accepted: &'static str) -> Result<Table<'t>, TasksetError> {
        match self.value {
            DeValue::Table(table) => Ok(Table {
                source: self.source,
                table,
                span: self.span.clone(),
                within: format!("`{}`", self.key),
                misspelt: Vec::new(),
            }),
            _ => Err(self.wrong(accepted)),
        }
    }

    /// A table of which every other key than these is a mistake, that is kept; `example` shows one.
    pub(crate) fn table(
        &self,
        keys: &[Key],
        example: &'static str,
    ) -> Result<Table<'t>, TasksetError> {
        Ok(self.any_table(example)?.accept(keys))
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
            problem: span::problem(&error),
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

    /// A decimal fraction from zero to `most`, in millionths.
    pub(crate) fn millionths(&self, most: u32) -> Result<u64, TasksetError> {
        let text = match self.value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return Err(self.wrong("a number like 0.25")),
        };
        let number = decimal(text, 6);
        number
            .map(|(whole, rest)| u64::from(whole) * 1_000_000 + u64::from(rest))
            .filter(|&found| found <= u64::from(most) * 1_000_000)
            .ok_or_else(|| {
                self.out_of_range(
                    format!("the number {text}"),
                    format!("a number from 0 to {most} with at most 6 decimals, like 0.25"),
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
