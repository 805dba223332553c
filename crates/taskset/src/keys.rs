//! The keys of our TOML files: by these tables readers accept keys, and the schemas for editors are
//! made of them.

use std::path::Path;

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// As files write it.
    pub(crate) name: &'static str,
    /// Whether the table needs it.
    pub(crate) need: Need,
    /// What its value looks like.
    pub(crate) takes: Takes,
    /// What it means, for the reader of a schema.
    pub(crate) says: &'static str,
}

/// Whether a table needs a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// It has to be there.
    Must,
    /// It may be left out.
    May,
    /// Exactly one of the keys that are marked so has to be there.
    Choice,
}

/// What a value looks like. Readers check more than this: whether CPUs exist, for instance.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Takes {
    /// Any text.
    Text,
    /// A text that is not empty.
    Name,
    /// `true` or `false`.
    Boolean,
    /// A text with a number and a unit of time.
    Duration,
    /// A text that names CPUs: a list, a mask or the name of a set.
    Cpus,
    /// A whole number between the two.
    Whole(u32, u32),
    /// Any number between the two.
    Number(f64, f64),
    /// One of these texts.
    Words(fn() -> Vec<&'static str>),
    /// Any number of values, at least so many.
    List(&'static Takes, usize),
    /// A value of one of these kinds.
    Either(&'static [Takes]),
    /// A table with these keys and no others.
    Table(&'static [Key]),
    /// A table whose keys are names.
    Named(&'static Takes),
}

/// A key that has to be there.
pub(crate) const fn must(name: &'static str, takes: Takes, says: &'static str) -> Key {
    Key {
        name,
        need: Need::Must,
        takes,
        says,
    }
}

/// A key that may be left out.
pub(crate) const fn may(name: &'static str, takes: Takes, says: &'static str) -> Key {
    Key {
        name,
        need: Need::May,
        takes,
        says,
    }
}

/// A key of which exactly one has to be there.
pub(crate) const fn choice(name: &'static str, takes: Takes, says: &'static str) -> Key {
    Key {
        name,
        need: Need::Choice,
        takes,
        says,
    }
}

/// The names of keys.
pub(crate) fn names(keys: &[Key]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}

/// The names of keys of which exactly one has to be there.
pub(crate) fn choices(keys: &[Key]) -> Vec<&'static str> {
    let chosen = keys.iter().filter(|key| key.need == Need::Choice);
    chosen.map(|key| key.name).collect()
}

/// The words of a table of words and their meanings.
pub(crate) fn words<T>(table: &[(&'static str, T)]) -> Vec<&'static str> {
    table.iter().map(|(word, _)| *word).collect()
}

/// What a file may refer to that is not in it.
#[derive(Clone, Copy)]
pub struct Environment<'e> {
    /// The tree that answers `cpus = "host"`, as Linux has it at `/sys`.
    pub sysfs: &'e Path,
    /// Whether there is a policy of this name; otherwise the message for people.
    pub policy: &'e dyn Fn(&str) -> Result<(), String>,
    /// Whether there is a user of this name or number; otherwise the message for people.
    pub user: &'e dyn Fn(&str) -> Result<(), String>,
    /// Whether the test (second) can be asked of the policy (first); otherwise the message for people.
    pub test: &'e dyn Fn(&str, &str) -> Result<(), String>,
}

impl Default for Environment<'_> {
    /// This machine, and any name of a policy, user or test.
    fn default() -> Self {
        Self {
            sysfs: Path::new("/sys"),
            policy: &|_| Ok(()),
            user: &|_| Ok(()),
            test: &|_, _| Ok(()),
        }
    }
}
