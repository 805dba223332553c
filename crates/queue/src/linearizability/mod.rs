//! Tests of linearizability: histories of concurrent calls, and whether a sequential queue in strict order
//! explains them.

mod checker;
#[cfg(loom)]
mod decisions;
#[cfg(loom)]
mod models;
mod recorder;
#[cfg(not(loom))]
mod threads;

pub(crate) use checker::{Call, Event, explained};
pub(crate) use recorder::Recorder;

use crate::job::Key;

/// A key; each prefix is shared by four keys, so that it decides some comparisons and not others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number(pub(crate) u64);

impl Key for Number {
    fn prefix(self) -> u64 {
        self.0 / 4
    }
}
