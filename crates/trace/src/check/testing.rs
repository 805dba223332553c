//! Helpers shared by the tests of all checkers.

use shiftwork_model::{Invariant, Order, TaskSet};

use super::{PolicyContract, check};
use crate::testing::{Script, at};

pub(crate) fn edf(invariant: Invariant) -> PolicyContract {
    PolicyContract {
        invariant,
        order: Order::Edf,
        packing: None,
        immediate: true,
    }
}

/// The texts of the violations of a script.
pub(super) fn found(
    set: &TaskSet,
    contract: PolicyContract,
    script: &Script,
    horizon: u64,
) -> Vec<String> {
    let found = check(set, contract, at(horizon), &script.records);
    found.iter().map(ToString::to_string).collect()
}
