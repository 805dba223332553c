//! What the tests of all checkers need.

use shiftwork_model::TaskSet;

use super::{Facts, Invariant, Order, check};
use crate::testing::{Story, at};

pub(crate) fn edf(invariant: Invariant) -> Facts {
    Facts {
        invariant,
        order: Order::Edf,
        packing: None,
        immediate: true,
    }
}

/// The violations of a story as people read them.
pub(super) fn found(set: &TaskSet, facts: Facts, story: &Story, horizon: u64) -> Vec<String> {
    let found = check(set, facts, at(horizon), &story.records);
    found.iter().map(ToString::to_string).collect()
}
