//! Which overheads count under which policy.

use shiftwork_analysis::overheads::Structure;
use shiftwork_analysis::verdicts::Price;
use shiftwork_model::TaskSet;
use shiftwork_policy::registry::Entry;
use shiftwork_taskset::overheads::{OverheadFile, Use};

/// What the file says of the policy; `None` if it has no table for it.
pub fn price(entry: &Entry, set: &TaskSet, file: Option<&OverheadFile>) -> Option<Price> {
    let file = file?;
    let of = |purpose| file.find(purpose, entry.name).cloned();
    let (worst, average) = (of(Use::Worst), of(Use::Average));
    (worst.is_some() || average.is_some()).then_some(Price {
        structure: Structure::of(&entry.traits, set),
        worst,
        average,
    })
}
