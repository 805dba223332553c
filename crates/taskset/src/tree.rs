//! Reading a TOML text value by value, with the place of each: what all our TOML formats share.
//!
//! This walks the spanned tree of the `toml` crate instead of deserializing into structs. That way
//! every message is ours and typed, numbers keep their text (so that shares are read exactly), and
//! keys like `cpus = 4` or `cpus = "host"` need no untagged enum, which would lose the place.

mod numbers;
mod table;
mod value;

use std::cell::RefCell;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::TasksetError;
use crate::keys::Key;
use crate::kind::Kind;
use crate::place::Lines;

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

/// The format of a text that is no TOML, and the tools that write task sets in it, if it begins as theirs do.
fn format_of_others(text: &str) -> Option<(&'static str, &'static str)> {
    let text = text.trim_start();
    let begins = |starts: &[&str]| starts.iter().any(|start| text.starts_with(start));
    if begins(&["<"]) {
        Some(("XML", "SimSo and SchedCAT"))
    } else if begins(&["{", "/*", "//"]) {
        Some(("JSON", "rt-app"))
    } else {
        None
    }
}

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
            if let Some((format, tools)) = format_of_others(text) {
                let place = lines.place(text.len() - text.trim_start().len());
                return TasksetError::OtherFormat {
                    place,
                    format,
                    tools,
                };
            }
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

    /// The whole file, which is meant to be of this kind, with these keys at its top.
    ///
    /// # Errors
    /// [`TasksetError::OtherKind`] if it is of another kind; nothing else is worth saying then.
    pub(crate) fn root(
        &'t self,
        kind: Kind,
        keys: &'static [Key],
    ) -> Result<Table<'t>, TasksetError> {
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
        Ok(root.accept(keys))
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
