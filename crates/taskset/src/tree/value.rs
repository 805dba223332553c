//! Reading a value as a text, a word, a list or a table, and what is said of one that is none.

use toml::Spanned;
use toml::de::DeValue;

use super::{Table, Value};
use crate::error::TasksetError;
use crate::keys::{Environment, Key};
use crate::place::Place;

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

    /// That the value is not in its range.
    pub(crate) fn out_of_range(&self, found: String, accepted: String) -> TasksetError {
        TasksetError::OutOfRange {
            place: self.place(),
            key: self.key(),
            found,
            accepted,
        }
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
