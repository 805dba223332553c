//! Which overheads count under which policy.

use shiftwork_analysis::overheads::Structure;
use shiftwork_analysis::verdicts::Price;
use shiftwork_model::TaskSet;
use shiftwork_taskset::overheads::{OverheadFile, Use};

use super::candidate::Named;

/// What the file says of the policy; `None` if it has no table for it.
pub fn price(named: &Named, set: &TaskSet, file: Option<&OverheadFile>) -> Option<Price> {
    let file = file?;
    let of = |purpose| file.find(purpose, &named.name).cloned();
    let (worst, average) = (of(Use::Worst), of(Use::Average));
    let structure = Structure::of_policy(&named.name, set)?;
    (worst.is_some() || average.is_some()).then_some(Price {
        structure,
        worst,
        average,
    })
}
