//! Looking up the keys of a table: needed ones, optional ones, one of several.

use shiftwork_model::nearest_name;

use super::{Source, Table, Value};
use crate::error::TasksetError;
use crate::keys::{Key, choices, names};
use crate::place::Place;

impl<'t> Table<'t> {
    /// Reports every key but these.
    pub(super) fn accept(mut self, keys: &[Key]) -> Self {
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
